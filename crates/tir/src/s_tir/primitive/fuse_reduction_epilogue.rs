//! `fuse_reduction_epilogue`: what is added to the result of a reduction becomes what it begins with.
//!
//! ```text
//! for i, j, k in …:                                     for i, j, k in …:
//!     init: C[vi, vj] = 0                                   init: D[vi, vj] = bias[vj]
//!     C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]   ->    D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
//! for i, j in …:
//!     D[vi, vj] = C[vi, vj] + bias[vj]
//! ```
//!
//! The reduction is a sum, and the epilogue its only reader: it loads each element once and adds to it, or subtracts from it,
//! what has been computed by then. Sums of floats are rounded in another order.
//!
//! An epilogue that clips (`max(C[vi, vj] + bias[vj], 0)`) is executed at each step of the sum then, which gives other
//! results wherever a part of the sum is clipped: the one step of a schedule that may change what a kernel computes. It does
//! so since TVM documents it so, and programs ask for it.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, PrimMutator, substitute};

use super::inline::{Inline, check_plain_access, leaf, loads_of, single_store, without};
use super::reverse_compute_inline::{Back, axes_from};
use super::structure::{body_list, holds};
use crate::analysis::reducer::Reducer;
use crate::analysis::regions::with_regions;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{StmtRef, copy_block, replace, with_block};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "FuseReductionEpilogue",
    method: "fuse_reduction_epilogue",
    is_pure: false,
    params: &[Param::Input("reduction_block"), Param::Input("epilogue_block")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let (place, behind) = (sch.block_ref(&call.block(0)?)?, sch.block_ref(&call.block(1)?)?);
    let (realize, epilogue, root) = (place.realize()?, behind.realize()?, place.scope()?);
    let block = &realize.block;
    check_neighbours(&place, &behind, &epilogue.block)?;
    let (begin, step) = stores_of_sum(block)?;
    let around = place.tree.as_block(root).cloned().ok_or(ScheduleError::Expired { what: "block" })?;
    check_plain_access(&around.block, &step.buffer)?;
    let store = single_store(&epilogue.block)?;
    if loads_of(&epilogue.block.body, &step.buffer).len() != 1 {
        let reason = format!("block `{}` does not load `{}` just once", epilogue.block.name, step.buffer.name);
        return Err(ScheduleError::at_block(&epilogue.block, reason));
    }
    let mut analyzer = Analyzer::new();
    for iter in &block.iter_vars {
        analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    let Back { axes: back, all: true } = axes_from(&epilogue.block, &step, &mut analyzer)? else {
        let reason = format!("block `{}` does not load all that block `{}` sums", epilogue.block.name, block.name);
        return Err(ScheduleError::at_block(&epilogue.block, reason));
    };
    let indices: Vec<PrimExpr> =
        store.indices.iter().map(|i| analyzer.simplify_as_tvm(&substitute(i, &back))).collect();
    let back = back.into_iter().map(|(var, e)| (var, analyzer.simplify_as_tvm(&e))).collect();
    let value = substitute(&store.value, &back);
    check_form(&epilogue.block, &value, &step.buffer)?;
    let so_far = |_: &[PrimExpr]| prim::load(&store.buffer, indices.iter().cloned());
    let next = Inline { buffer: &step.buffer, value: &so_far, reuse: Vec::new() }.mutate_prim(&step.value);
    let init = Stmt::store(&store.buffer, indices.iter().cloned(), with_first(&value, &step.buffer, &begin.value));
    let body = Stmt::store(&store.buffer, indices.iter().cloned(), with_next(&value, &step.buffer, &next));
    let made = with_regions(SBlock { init: Some(init), body, writes: Vec::new(), ..copy_block(block) });
    let stays = without(&sch.func(&place.func)?.body, &leaf(&behind, root)?);
    let body = replace(&stays, &[(Stmt::Block(realize.clone()), with_block(&realize, made.clone()).into())]);
    sch.commit(&place.func, body, &[(block.clone(), made)])?;
    Ok(Vec::new())
}

/// The first is a reduction, the second complete and its only consumer, and what else the second reads is there by then.
fn check_neighbours(place: &StmtRef, behind: &StmtRef, epilogue: &Ref<SBlock>) -> Result<(), ScheduleError> {
    let (n, root) = (place.realize()?, place.scope()?);
    let tree = &place.tree;
    let refuse = |reason: String| ScheduleError::at_block(&n.block, reason);
    if place.func != behind.func || behind.scope()? != root {
        return Err(refuse(format!("blocks `{}` and `{}` are not in the same scope", n.block.name, epilogue.name)));
    }
    let scope = Scope::new(tree, root);
    if let Some(why) = scope.why_not_reduction(place.node) {
        return Err(refuse(format!("block `{}` is no reduction: {why}", n.block.name))
            .with_help("fuse the epilogue before the reduction is decomposed"));
    }
    if let Some(why) = scope.why_not_complete(behind.node) {
        return Err(ScheduleError::at_block(epilogue, format!("block `{}` is not complete: {why}", epilogue.name)));
    }
    if scope.is_output(place.node) || scope.consumers(place.node) != [behind.node] {
        let reason =
            format!("block `{}` is not the only one that needs what block `{}` writes", epilogue.name, n.block.name);
        return Err(refuse(reason));
    }
    if !behind.realize()?.predicate.is_int(1) {
        let reason = format!("block `{}` is executed under a condition", epilogue.name);
        return Err(ScheduleError::at_block(epilogue, reason).with_help("fuse it before its loops are split"));
    }
    let list = body_list(&tree.node(root).stmt);
    let at = |id| list.iter().position(|s| holds(s, &tree.node(id).stmt));
    for id in scope.producers(behind.node).into_iter().filter(|id| *id != place.node) {
        if at(id) >= at(place.node) {
            let name = tree.as_block(id).map_or("", |n| n.block.name.as_str());
            let reason =
                format!("block `{}` reads what block `{name}` has not computed when the sum begins", epilogue.name);
            return Err(ScheduleError::at_block(epilogue, reason));
        }
    }
    Ok(())
}

/// The store that a sum begins with, and that of its steps.
fn stores_of_sum(block: &Ref<SBlock>) -> Result<(Ref<BufferStore>, Ref<BufferStore>), ScheduleError> {
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let reducer = Reducer::of(block).map_err(|why| refuse(format!("block `{}`: {why}", block.name)))?;
    let one = [prim::float_of(relaxide_ir::DataType::float(32), 1.0)];
    let is_sum = matches!(reducer.combine(&one, &one).as_slice(), [PrimExpr::Binary(n)] if n.op == BinaryOp::Add);
    match (&block.init, &block.body) {
        (Some(Stmt::Store(begin)), Stmt::Store(step)) if is_sum => Ok((begin.clone(), step.clone())),
        _ => Err(refuse(format!("block `{}` is no sum of one element at a time", block.name))),
    }
}

fn is_load(e: &PrimExpr, buffer: &Ref<Buffer>) -> bool {
    matches!(e, PrimExpr::Load(n) if n.buffer == *buffer)
}

fn mentions(e: &PrimExpr, buffer: &Ref<Buffer>) -> bool {
    !loads_of(&Stmt::evaluate(e.clone()), buffer).is_empty()
}

/// The element itself, or the element and something more: `C + r`, `r + C`, `C - r`.
fn is_sum_of_element(e: &PrimExpr, buffer: &Ref<Buffer>) -> bool {
    match e {
        PrimExpr::Binary(n) => match n.op {
            BinaryOp::Add => is_load(&n.a, buffer) || is_load(&n.b, buffer),
            BinaryOp::Sub => is_load(&n.a, buffer),
            _ => false,
        },
        _ => is_load(e, buffer),
    }
}

/// An error where an epilogue is neither a sum nor a clipped one.
fn check_form(block: &SBlock, value: &PrimExpr, buffer: &Ref<Buffer>) -> Result<(), ScheduleError> {
    if is_sum_of_element(value, buffer) && !is_load(value, buffer) {
        return Ok(());
    }
    if let PrimExpr::Binary(n) = value
        && matches!(n.op, BinaryOp::Max | BinaryOp::Min)
    {
        let inner = if mentions(&n.a, buffer) { &n.a } else { &n.b };
        if is_load(inner, buffer) || is_sum_of_element(inner, buffer) {
            return Ok(());
        }
        return check_form(block, inner, buffer);
    }
    let reason = format!("block `{}` does not add something to `{}`, but computes {value}", block.name, buffer.name);
    Err(ScheduleError::at_block(block, reason)
        .with_help("reverse_compute_at moves any epilogue to where a sum is finished"))
}

/// The epilogue of what a sum begins with; what is added to zero is itself.
fn with_first(value: &PrimExpr, buffer: &Ref<Buffer>, first: &PrimExpr) -> PrimExpr {
    if is_load(value, buffer) {
        return first.clone();
    }
    let PrimExpr::Binary(n) = value else { return value.clone() };
    let is_zero = match first {
        PrimExpr::Float(v) => v.value == 0.0,
        other => other.is_int(0),
    };
    if n.op == BinaryOp::Add && is_zero {
        if is_load(&n.a, buffer) {
            return n.b.clone();
        }
        if is_load(&n.b, buffer) {
            return n.a.clone();
        }
    }
    prim::binary(n.op, with_first_inside(&n.a, buffer, first), with_first_inside(&n.b, buffer, first))
}

fn with_first_inside(e: &PrimExpr, buffer: &Ref<Buffer>, first: &PrimExpr) -> PrimExpr {
    if mentions(e, buffer) { with_first(e, buffer, first) } else { e.clone() }
}

/// The epilogue of a step: what was added at the beginning is not added again.
fn with_next(value: &PrimExpr, buffer: &Ref<Buffer>, next: &PrimExpr) -> PrimExpr {
    if is_sum_of_element(value, buffer) {
        return next.clone();
    }
    let inside = |e: &PrimExpr| if mentions(e, buffer) { with_next(e, buffer, next) } else { e.clone() };
    match value {
        PrimExpr::Binary(n) => prim::binary(n.op, inside(&n.a), inside(&n.b)),
        other => other.clone(),
    }
}

impl Schedule {
    /// Lets a sum begin with what a block behind it adds, which then goes. What clips is executed at each step of the sum.
    pub fn fuse_reduction_epilogue(
        &mut self,
        reduction_block: &Ref<SBlockRV>,
        epilogue_block: &Ref<SBlockRV>,
    ) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(reduction_block), operand(epilogue_block)], vec![])
    }
}
