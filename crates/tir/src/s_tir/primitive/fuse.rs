//! `fuse`: loops that stand one inside the other become one.
//!
//! ```text
//! for i, j in T.grid(4, 8):            for i_j_fused in range(32):
//!     B[i, j] = …               ->         B[i_j_fused // 8, i_j_fused % 8] = …
//! ```
//!
//! Each loop must be all that the one around it holds, begin at zero, and have an extent that the loops around do not
//! change. Where the loops' own type does not hold the product of their extents, the one loop counts in 64 bits.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars};

use super::rebind::simplify_bindings;
use super::split::{analyzer_at, check_plain};
use crate::functor::substitute_stmt;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{NodeId, Tree, replace};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "Fuse",
    method: "fuse",
    is_pure: false,
    params: &[Param::Splat, Param::Attr("preserve_unit_iters")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let keep_unit = call.flag(0)?;
    let places = call.loops()?.iter().map(|l| sch.loop_ref(l)).collect::<Result<Vec<_>, _>>()?;
    let (Some(outer), Some(inner)) = (places.first(), places.last()) else {
        return Err(ScheduleError::Operand("fuse needs at least one loop".into()));
    };
    let loops = places.iter().map(|place| place.for_loop()).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<NodeId> = places.iter().map(|place| place.node).collect();
    check_nested(&outer.tree, &ids, &loops)?;
    let dtype = counter_type(&loops);
    let names: Vec<&str> = loops.iter().map(|l| l.var.name.as_str()).collect();
    let fused = Var::prim(format!("{}_fused", names.join("_")), dtype);
    let mut analyzer = analyzer_at(&outer.tree, outer.node);
    let product = loops.iter().fold(prim::int_of(dtype, 1), |p, l| prim::mul(p, prim::cast(dtype, l.extent.clone())));
    let extent = analyzer.simplify_as_tvm(&product);
    analyzer.bind(&fused, prim::int_of(dtype, 0), extent.clone());
    let body = substitute_stmt(&inner.for_loop()?.body, &parts(&fused, &loops, &mut analyzer));
    let nest = Stmt::serial(fused.clone(), extent, body);
    let nest = simplify_bindings(&nest, &outer.tree, outer.node, keep_unit);
    let body = replace(&sch.func(&outer.func)?.body, &[(outer.stmt().clone(), nest)]);
    sch.commit(&outer.func, body, &[])?;
    Ok(vec![Value::Loop(outer.func.clone(), fused)])
}

/// The widest of the loops' types, or one that holds the product of their extents where that is a number.
fn counter_type(loops: &[Ref<For>]) -> DataType {
    let widest = loops.iter().map(|l| l.var.dtype()).max_by_key(|d| d.bits).unwrap_or(DataType::int(64));
    let count = loops.iter().try_fold(1i64, |count, l| count.checked_mul(l.extent.as_int()?));
    if count.is_some_and(|count| !prim::holds(widest, count)) { DataType::int(64) } else { widest }
}

/// The counters of the loops, as digits of the one counter, whose range is known: the digit of a loop of one iteration is 0.
fn parts(fused: &Ref<Var>, loops: &[Ref<For>], analyzer: &mut Analyzer) -> VarMap {
    let mut inner = prim::int_of(fused.dtype(), 1);
    let mut values = VarMap::new();
    for (i, l) in loops.iter().enumerate().rev() {
        let count = analyzer.simplify_as_tvm(&prim::mul(inner.clone(), prim::cast(fused.dtype(), l.extent.clone())));
        let from_here = if i == 0 { fused.into() } else { prim::floormod(PrimExpr::from(fused), count.clone()) };
        let digit = if inner.is_int(1) { from_here } else { prim::floordiv(from_here, inner) };
        let bounds = analyzer.bounds(&digit);
        let digit = if (bounds.min, bounds.max) == (Some(0), Some(0)) { prim::int_of(fused.dtype(), 0) } else { digit };
        values.insert(l.var.clone(), prim::cast(l.var.dtype(), digit));
        inner = count;
    }
    values
}

fn check_nested(tree: &Tree, ids: &[NodeId], loops: &[Ref<For>]) -> Result<(), ScheduleError> {
    for l in loops {
        check_plain(l)?;
    }
    for (k, pair) in ids.windows(2).enumerate() {
        let (outer, inner) = (&loops[k], &loops[k + 1]);
        if tree.node(pair[1]).parent != Some(pair[0]) {
            let reason = format!("loop `{}` is not directly around `{}`", outer.var.name, inner.var.name);
            return Err(ScheduleError::at_loop(inner, reason)
                .with_help("name the loops from the outermost inwards, without gap"));
        }
        if outer.body != Stmt::For(inner.clone()) {
            let reason = format!("loop `{}` holds more than `{}`", outer.var.name, inner.var.name);
            return Err(ScheduleError::at_loop(inner, reason));
        }
        let used = free_vars(&inner.extent);
        if let Some(l) = loops.iter().take(k + 1).find(|l| used.contains(&l.var)) {
            let reason = format!("the extent of `{}` depends on `{}`", inner.var.name, l.var.name);
            return Err(ScheduleError::at_loop(inner, reason));
        }
    }
    Ok(())
}

impl Schedule {
    /// Makes one loop of several, given from the outermost inwards.
    pub fn fuse(&mut self, loops: &[Ref<LoopRV>]) -> Result<Ref<LoopRV>, StepError> {
        let inputs: Vec<AttrValue> = loops.iter().map(loop_operand).collect();
        self.step_loop(&KIND, inputs, vec![true.into()])
    }
}
