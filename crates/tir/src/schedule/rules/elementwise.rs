//! Injective stages: one pass over the output in vectors.
//!
//! Matches every stage without a reduction whose body has a vector form: arithmetic, broadcasts, concatenation, slices,
//! gathers, rearrangements. Adjacent axes that every access walks together have been merged before.
//!
//! ```text
//! parallel p in range(outer * ceil(inner / 4096)):      # serial where the whole is small
//!     s = scale[c]                                      # whatever does not move along the row is loaded once
//!     for t in range(… // 8):  B[c, base + t*8 .. +8] = max(A[c, …] * s, 0)
//!     the rest of the row, masked
//! ```
//!
//! Parameters: a block of 4096 elements (16 KiB of f32: half of the first-level cache, and enough to hide a task's start);
//! vectors of the widest type among output and inputs. Conditions that do not move along the row (concatenation of
//! channels) are decided once a row. Roof: memory bandwidth.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{Let, PrimExpr, PrimMutator, PrimVisitor, VarMap, int, min, mul, sub};
use relaxide_ir::{DataType, Var};

use super::super::affine::{ceil_div, cost, loads, product, uses, uses_any};
use super::super::lanes::Lanes;
use super::super::{Axis, Cx, Refusal, Stage, nest};
use crate::Stmt;

/// Elements of a row that one task takes.
const BLOCK: i64 = 4096;

/// Makes the nest of an injective stage.
pub fn apply(cx: &mut Cx, stage: &Stage) -> Result<Stmt, Refusal> {
    let lanes = cx.machine.lanes(widest(stage));
    let Some((inner, outer)) = stage.spatial.split_last() else {
        return Err(Refusal::new("a single element has no vectors"));
    };
    if inner.extent.as_int().is_some_and(|n| n < lanes / 2) {
        return Err(Refusal::new("rows are shorter than half a vector"));
    }
    let blocks = ceil_div(&inner.extent, BLOCK);
    let single = inner.extent.as_int().is_some_and(|n| n <= BLOCK);
    let (counter, block) = (Var::dim("p"), Var::dim("block"));
    let mut axes = outer.to_vec();
    let (start, extent) = if single {
        (int(0), inner.extent.clone())
    } else {
        axes.push(Axis { var: block.clone(), extent: blocks });
        let start = mul(&PrimExpr::from(&block), int(BLOCK));
        (start.clone(), min(int(BLOCK), sub(&inner.extent, start)))
    };
    let rows = Rows { stage, axis: &inner.var, lanes };
    let length = Var::dim("length");
    let (bind, extent) = match extent.as_int() {
        Some(n) => (Stmt::nop(), int(n)),
        None => (Stmt::bind(length.clone(), extent), PrimExpr::from(&length)),
    };
    let row = rows.emit(cx, &start, &extent, &stage.value)?;
    let body = Stmt::seq([bind, row]);
    if axes.is_empty() {
        return Ok(body);
    }
    let (tasks, binds) = nest::fuse(&axes, &counter);
    let body = Stmt::seq(binds.into_iter().chain([body]));
    let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(cost(&stage.value) + 1));
    Ok(nest::parallel(&cx.machine, counter, tasks, work, body))
}

/// The widest element type that takes part, which decides how many lanes fit.
pub fn widest(stage: &Stage) -> DataType {
    let inputs = loads(&stage.value).into_iter().map(|l| l.buffer.dtype);
    inputs.fold(stage.output.dtype, |widest, dtype| if dtype.bits > widest.bits { dtype } else { widest })
}

struct Rows<'a> {
    stage: &'a Stage,
    axis: &'a Ref<Var>,
    lanes: i64,
}

impl Rows<'_> {
    /// A row of the output; a choice at the top of the value that the row does not move is made outside the loop.
    fn emit(&self, cx: &mut Cx, start: &PrimExpr, extent: &PrimExpr, value: &PrimExpr) -> Result<Stmt, Refusal> {
        if let PrimExpr::Call(choice) = value
            && let ("tirx.if_then_else", [condition, t, f]) = (choice.op.as_str(), choice.args.as_slice())
            && !uses(condition, self.axis)
        {
            let (t, f) = (self.emit(cx, start, extent, t)?, self.emit(cx, start, extent, f)?);
            return Ok(Stmt::if_else(condition.clone(), t, f));
        }
        let (value, binds) = Hoist::run(self.axis, value);
        let stage = self.stage;
        let loops = nest::tiles(start.clone(), extent, self.lanes, 1, |tile| {
            let none = VarMap::new();
            Lanes::new(&mut cx.views, self.axis, tile.base.clone(), self.lanes, tile.mask_of(0), &none).store(
                &stage.output,
                &stage.indices,
                &value,
            )
        })?;
        Ok(Stmt::seq(binds.into_iter().chain([loops])))
    }
}

/// Gives names to what does not move along the row and costs a load.
pub struct Hoist<'a> {
    axis: &'a Ref<Var>,
    /// Names of `let`s around the place where the walk is.
    inner: Vec<Ref<Var>>,
    binds: Vec<Stmt>,
}

impl<'a> Hoist<'a> {
    /// An expression over names, and the statements that bind them.
    pub fn run(axis: &'a Ref<Var>, e: &PrimExpr) -> (PrimExpr, Vec<Stmt>) {
        let mut hoist = Hoist { axis, inner: Vec::new(), binds: Vec::new() };
        let value = hoist.mutate_prim(e);
        (value, hoist.binds)
    }
}

impl PrimMutator for Hoist<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let moves = uses(e, self.axis) || uses_any(e, &self.inner);
        match e {
            _ if !moves && !loads(e).is_empty() && !has_let(e) => {
                let var = Var::prim("invariant", e.dtype());
                self.binds.push(Stmt::bind(var.clone(), e.clone()));
                PrimExpr::from(&var)
            }
            // The sides of a lazy choice must not be evaluated ahead of it.
            PrimExpr::Call(c) if c.op == "tirx.if_then_else" => e.clone(),
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                self.inner.push(n.var.clone());
                let body = self.mutate_prim(&n.body);
                Ref::new(Let { var: n.var.clone(), value, body }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}

fn has_let(e: &PrimExpr) -> bool {
    struct Search(bool);
    impl PrimVisitor for Search {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= matches!(e, PrimExpr::Let(_));
            self.walk_prim(e);
        }
    }
    let mut search = Search(false);
    search.visit_prim(e);
    search.0
}
