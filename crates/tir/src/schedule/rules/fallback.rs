//! Plain loops: what is left when no other rule applies. It never refuses.
//!
//! ```text
//! parallel p in range(product of the spatial extents):     # serial where the whole is small
//!     i, j = p // m, p % m
//!     acc[0] = init
//!     for k in range(…):  acc[0] = acc[0] op value
//!     C[i, j] = epilogue(acc[0])
//! ```
//!
//! On devices a parameter: the threads of a block. No roof: whatever spends time here deserves a rule.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{Let, PrimExpr, binary, int, load, mul};

use super::super::affine::{cost, product};
use super::super::inline::freshen_lets;
use super::super::parameters::Choices;
use super::super::{Cx, Machine, Reduce, Refusal, Stage, nest};
use super::device;
use super::rule::Rule;
use crate::{For, ForKind, IterKind, Stmt};

/// The rule for injective stages.
pub struct Elements;

impl Rule for Elements {
    type Work = Stage;
    type Found<'w> = &'w Stage;
    type Decided = Option<i64>;

    fn find<'w>(_: &Machine, stage: &'w Stage) -> Result<&'w Stage, Refusal> {
        Ok(stage)
    }

    fn decide(machine: &Machine, _: &&Stage, choices: &mut Choices<'_>) -> Result<Option<i64>, Refusal> {
        Ok(device::alone(machine, choices))
    }

    fn emit(cx: &mut Cx, stage: &&Stage, threads: &Option<i64>) -> Result<Stmt, Refusal> {
        device::with_blocks_of(cx, *threads, |cx| map(cx, stage))
    }
}

/// The rule for reductions.
pub struct Sums;

impl Rule for Sums {
    type Work = Reduce;
    type Found<'w> = &'w Reduce;
    type Decided = Option<i64>;

    fn find<'w>(_: &Machine, reduce: &'w Reduce) -> Result<&'w Reduce, Refusal> {
        Ok(reduce)
    }

    fn decide(machine: &Machine, _: &&Reduce, choices: &mut Choices<'_>) -> Result<Option<i64>, Refusal> {
        Ok(device::alone(machine, choices))
    }

    fn emit(cx: &mut Cx, found: &&Reduce, threads: &Option<i64>) -> Result<Stmt, Refusal> {
        device::with_blocks_of(cx, *threads, |cx| reduce(cx, found))
    }
}

/// An injective stage, element by element.
pub fn map(cx: &mut Cx, stage: &Stage) -> Result<Stmt, Refusal> {
    let store = Stmt::store(&stage.output, stage.indices.clone(), freshen_lets(&stage.value));
    Ok(over_elements(cx, stage, cost(&stage.value) + 1, store))
}

/// A reduction, element by element.
pub fn reduce(cx: &mut Cx, reduce: &Reduce) -> Result<Stmt, Refusal> {
    let stage = &reduce.stage;
    let Some(reduction) = &stage.reduction else { return Err(Refusal::new("it does not reduce")) };
    let acc = relaxide_ir::Buffer::scoped("acc", stage.output.dtype, [int(1)], "local");
    let value = || load(&acc, [int(0)]);
    let update = Stmt::store(&acc, [int(0)], binary(reduction.op, value(), freshen_lets(&stage.value)));
    let epilogue: PrimExpr =
        Ref::new(Let { var: reduce.acc.clone(), value: value(), body: reduce.epilogue.clone() }).into();
    let body = Stmt::seq([
        Stmt::alloc(&acc),
        Stmt::store(&acc, [int(0)], reduction.init.clone()),
        nest::serial(&stage.reduce, update),
        Stmt::store(&reduce.output, reduce.indices.clone(), freshen_lets(&epilogue)),
    ]);
    // An unknown number of terms counts as many.
    let terms = product(stage.reduce.iter().map(|a| &a.extent)).as_int().unwrap_or(256);
    Ok(over_elements(cx, stage, terms.saturating_mul(cost(&stage.value) + 1), body))
}

fn over_elements(cx: &Cx, stage: &Stage, work: i64, body: Stmt) -> Stmt {
    if stage.spatial.is_empty() {
        return body;
    }
    let p = Var::dim("p");
    let (extent, binds) = nest::fuse(&stage.spatial, &p);
    let body = Stmt::seq(binds.into_iter().chain([body]));
    nest::parallel(&cx.machine, p, extent.clone(), mul(extent, int(work)), body)
}

/// A statement that was not understood: as it is, on several threads where its outermost loop is a spatial axis of the
/// only block inside.
pub fn opaque(stmt: &Stmt) -> Stmt {
    let Stmt::For(outer) = stmt else { return stmt.clone() };
    if outer.kind != ForKind::Serial || outer.body.has_early_exit() || !is_spatial(outer) {
        return stmt.clone();
    }
    Ref::new(For { kind: ForKind::Parallel, ..For::clone(outer) }).into()
}

fn is_spatial(outer: &For) -> bool {
    let mut inner = &outer.body;
    while let Stmt::For(n) = inner {
        inner = &n.body;
    }
    let Stmt::Block(realize) = inner else { return false };
    let axes = realize.block.iter_vars.iter().zip(&realize.iter_values);
    let mut of_loop = axes.filter(|(_, value)| super::super::affine::uses(value, &outer.var));
    let (first, second) = (of_loop.next(), of_loop.next());
    let plain = first.is_some_and(|(iter, value)| iter.kind == IterKind::Spatial && value.as_var() == Some(&outer.var));
    plain && second.is_none()
}
