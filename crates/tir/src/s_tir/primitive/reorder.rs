//! `reorder`: loops around one block change places.
//!
//! ```text
//! for i, j, k in T.grid(4, 8, 16):   -- reorder(k, i) ->   for k, j, i in T.grid(16, 8, 4):
//! ```
//!
//! The loops must lie on one line, each the only thing in the one around it down to the last that moves; an extent may not
//! depend on a loop that comes to stand inside; and the blocks inside must not depend on the order of their iterations:
//! all axes spatial or combined, at values that are affine in the loops.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{BinaryOp, PrimExpr, free_vars};

use super::gaps::leaves_gaps;
use crate::analysis::affine::{bindings_of, is_affine};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{NodeId, StmtRef, copy_loop, replace};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "Reorder",
    method: "reorder",
    is_pure: false,
    params: &[Param::Splat],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let places = call.loops()?.iter().map(|l| sch.loop_ref(l)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = places.first() else { return Err(ScheduleError::Operand("reorder needs a loop".into())) };
    let mut seen = HashSet::new();
    for place in &places {
        if !seen.insert(place.node) || place.func != first.func {
            let l = place.for_loop()?;
            let reason = format!("loop `{}` is named twice, or is of another function", l.var.name);
            return Err(ScheduleError::at_loop(&l, reason));
        }
    }
    let chain = chain(first, &seen)?;
    check_chain(first, &chain)?;
    check_blocks(first, &chain)?;
    let wanted: Vec<NodeId> = places.iter().map(|place| place.node).collect();
    let mut next = wanted.into_iter();
    let order: Vec<NodeId> =
        chain.iter().map(|id| if seen.contains(id) { next.next().unwrap_or(*id) } else { *id }).collect();
    check_first_iterations(first, &chain, &order)?;
    let loops: Vec<&Ref<For>> = order.iter().filter_map(|id| first.tree.as_loop(*id)).collect();
    check_extents(&loops)?;
    let innermost = chain.last().and_then(|id| first.tree.as_loop(*id)).map(|l| l.body.clone());
    let body = innermost.ok_or(ScheduleError::Expired { what: "loop" })?;
    let nest = loops.iter().rev().fold(body, |body, l| Ref::new(For { body, ..copy_loop(l) }).into());
    let outermost = first.tree.node(chain.first().copied().unwrap_or(first.node)).stmt.clone();
    let body = replace(&sch.func(&first.func)?.body, &[(outermost, nest)]);
    sch.commit(&first.func, body, &[])?;
    Ok(Vec::new())
}

/// The loops from the outermost to the innermost of those that move.
fn chain(place: &StmtRef, moved: &HashSet<NodeId>) -> Result<Vec<NodeId>, ScheduleError> {
    let tree = &place.tree;
    let deepest = moved.iter().copied().max_by_key(|id| tree.loops_above(*id).len()).unwrap_or(place.node);
    let line: Vec<NodeId> = tree.loops_above(deepest).into_iter().chain([deepest]).collect();
    if let Some(other) = moved.iter().find(|id| !line.contains(id)).and_then(|id| tree.as_loop(*id)) {
        let reason = format!("loop `{}` is not on one line with the others", other.var.name);
        return Err(
            ScheduleError::at_loop(other, reason).with_help("loops that change places stand around the same block")
        );
    }
    Ok(line.into_iter().skip_while(|id| !moved.contains(id)).collect())
}

fn check_chain(place: &StmtRef, chain: &[NodeId]) -> Result<(), ScheduleError> {
    for pair in chain.windows(2) {
        let (Some(outer), Some(inner)) = (place.tree.as_loop(pair[0]), place.tree.as_loop(pair[1])) else { continue };
        if outer.body != Stmt::For(inner.clone()) {
            let reason = format!("loop `{}` holds more than loop `{}`", outer.var.name, inner.var.name);
            return Err(ScheduleError::at_loop(outer, reason));
        }
    }
    Ok(())
}

/// No extent depends on a loop further inside.
fn check_extents(loops: &[&Ref<For>]) -> Result<(), ScheduleError> {
    for (i, l) in loops.iter().enumerate() {
        let used: Vec<_> = free_vars(&l.extent).into_iter().chain(free_vars(&l.min)).collect();
        if let Some(inner) = loops.iter().skip(i + 1).find(|inner| used.contains(&inner.var)) {
            let reason = format!(
                "the range of `{}` depends on `{}`, which would come to stand inside",
                l.var.name, inner.var.name
            );
            return Err(ScheduleError::at_loop(l, reason));
        }
    }
    Ok(())
}

fn check_blocks(place: &StmtRef, chain: &[NodeId]) -> Result<(), ScheduleError> {
    let Some(outer) = chain.first() else { return Ok(()) };
    for id in place.tree.child_blocks(*outer) {
        let Some(n) = place.tree.as_block(id) else { continue };
        if let Some(iter) = n.block.iter_vars.iter().find(|i| !matches!(i.kind, IterKind::Spatial | IterKind::Reduce)) {
            let reason =
                format!("axis `{}` of block `{}` is neither spatial nor combined", iter.var.name, n.block.name);
            return Err(ScheduleError::at_block(&n.block, reason));
        }
        let loops: Vec<Ref<For>> =
            place.tree.loops_above(id).iter().filter_map(|l| place.tree.as_loop(*l).cloned()).collect();
        let moving: HashSet<Ref<Var>> =
            chain.iter().filter_map(|id| place.tree.as_loop(*id).map(|l| l.var.clone())).collect();
        let around: Vec<&Ref<For>> = loops.iter().collect();
        let is_simple = |value: &PrimExpr| is_sum_of_multiples(value, &moving) && !leaves_gaps(value, &around);
        if !is_affine(n, &loops) && !n.iter_values.iter().all(is_simple) {
            let reason =
                format!("the values of the axes of block `{}` are not affine in the loops around it", n.block.name);
            return Err(ScheduleError::at_block(&n.block, reason));
        }
    }
    Ok(())
}

/// Whether a value is a sum of multiples of loops, and of what does not change while they run. Then iterations in another order
/// have the same values, all between the least and the largest where the multiples leave no gaps; that some have them twice does not matter.
fn is_sum_of_multiples(value: &PrimExpr, loops: &HashSet<Ref<Var>>) -> bool {
    let is_fixed = |e: &PrimExpr| free_vars(e).iter().all(|var| !loops.contains(var));
    match value {
        PrimExpr::Binary(n) if matches!(n.op, BinaryOp::Add | BinaryOp::Sub) => {
            is_sum_of_multiples(&n.a, loops) && is_sum_of_multiples(&n.b, loops)
        }
        PrimExpr::Binary(n) if n.op == BinaryOp::Mul && n.b.as_int().is_some() => is_sum_of_multiples(&n.a, loops),
        PrimExpr::Var(_) => true,
        other => is_fixed(other),
    }
}

/// Whatever sets an element is executed in front of all that adds to it: where loops are joined to one and taken apart in
/// digits, of which a reduction has some, the first iteration for an element is first in the loops' own order only.
fn check_first_iterations(place: &StmtRef, chain: &[NodeId], order: &[NodeId]) -> Result<(), ScheduleError> {
    let tree = &place.tree;
    let Some(outer) = chain.first() else { return Ok(()) };
    for id in tree.child_blocks(*outer) {
        let Some(n) = tree.as_block(id).filter(|n| n.block.init.is_some()) else { continue };
        let loops: Vec<Ref<For>> = tree.loops_above(id).iter().filter_map(|l| tree.as_loop(*l).cloned()).collect();
        let refused = |axis: &IterVar| {
            let reason = format!(
                "axis `{}` of block `{}` is a part of loops that would change their order: an element would be added to \
                 before it is set",
                axis.var.name, n.block.name
            );
            Err(ScheduleError::at_block(&n.block, reason).with_help("decompose_reduction first"))
        };
        let parts = |ids: &[NodeId], uses: &dyn Fn(&Ref<Var>) -> bool| -> Vec<NodeId> {
            ids.iter().copied().filter(|id| tree.as_loop(*id).is_some_and(|l| uses(&l.var))).collect()
        };
        let moves = |uses: &dyn Fn(&Ref<Var>) -> bool| parts(chain, uses) != parts(order, uses);
        let axes = || n.block.iter_vars.iter().enumerate().filter(|(_, axis)| axis.kind == IterKind::Reduce);
        let Ok(bindings) = bindings_of(n, &loops) else {
            // Which parts they are is not known, so any loop that other axes are made of as well counts.
            for (at, axis) in axes() {
                let used = |e: Option<&PrimExpr>| e.map(free_vars).unwrap_or_default();
                let own = used(n.iter_values.get(at));
                let others = n.iter_values.iter().enumerate().filter(|(other, _)| *other != at);
                let others: HashSet<Ref<Var>> = others.flat_map(|(_, value)| free_vars(value)).collect();
                let shared = own.iter().any(|var| others.contains(var) && loops.iter().any(|l| l.var == *var));
                if shared && moves(&|var| own.contains(var)) {
                    return refused(axis);
                }
            }
            continue;
        };
        for (axis, term) in axes().flat_map(|(at, axis)| bindings[at].terms.iter().map(move |term| (axis, term))) {
            let digit = &term.digit;
            let is_part = !digit.lower.is_int(1) || digit.extent != digit.total;
            if is_part && moves(&|var| digit.uses(var)) {
                return refused(axis);
            }
        }
    }
    Ok(())
}

impl Schedule {
    /// Puts loops in this order, in the places that they have.
    pub fn reorder(&mut self, loops: &[Ref<LoopRV>]) -> Result<(), StepError> {
        let inputs: Vec<AttrValue> = loops.iter().map(loop_operand).collect();
        self.step_only(&KIND, inputs, vec![])
    }
}
