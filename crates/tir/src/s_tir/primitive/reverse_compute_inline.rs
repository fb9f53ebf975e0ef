//! `reverse_compute_inline`: a block goes, and its producer does the rest of its work where it stores.
//!
//! ```text
//! C[vi, vj] = A[vi, vj] * 2
//! D[vi * 8 + vj] = C[vi, vj] + 1       ->        D[vi * 8 + vj] = A[vi, vj] * 2 + 1
//! ```
//!
//! The block must be complete, have one producer, be that producer's only consumer, and load what the producer wrote at one
//! place that says its axes: each is found back from the indices. Both store one element. The producer must be complete too:
//! a sum is not known before its last term.

use relaxide_ffi::Ref;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};

use super::inline::{Inline, check_plain_access, index_axes, leaf, loads_of, single_store, without};
use crate::IndexMap;
use crate::analysis::regions::with_regions;
use crate::functor::StmtMutator;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, StmtRef, Tree, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReverseComputeInline",
    method: "reverse_compute_inline",
    is_pure: false,
    params: &[Param::Input("block")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    reverse_compute_inline(sch, &call.block(0)?)?;
    Ok(Vec::new())
}

pub(super) fn reverse_compute_inline(sch: &mut Schedule, block: &Ref<SBlockRV>) -> Result<(), ScheduleError> {
    let place = sch.block_ref(block)?;
    let (n, root) = (place.realize()?, place.scope()?);
    let consumer = single_store(&n.block)?;
    let producer = producer_of(&place)?;
    let store = single_store(&producer.block)?;
    let around = place.tree.as_block(root).cloned().ok_or(ScheduleError::Expired { what: "block" })?;
    check_plain_access(&around.block, &store.buffer)?;
    index_axes(&producer.block, &store)?;
    let back = axes_from(&n.block, &store)?;
    // The consumer's store, at the producer's element.
    let mut analyzer = Analyzer::new();
    for iter in &producer.block.iter_vars {
        analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    let at: VarMap = back.iter().map(|(var, e)| (var.clone(), analyzer.simplify_as_tvm(e))).collect();
    let moved = {
        let indices: Vec<PrimExpr> =
            consumer.indices.iter().map(|i| analyzer.simplify_as_tvm(&substitute(i, &at))).collect();
        Stmt::store(&consumer.buffer, indices, substitute(&consumer.value, &at))
    };
    let value = |_: &[PrimExpr]| store.value.clone();
    let mut inline = Inline { buffer: &store.buffer, value: &value, reuse: Vec::new() };
    let body = inline.mutate_stmt(&moved);
    let block = with_regions(SBlock { body, ..copy_block(&producer.block) });
    let func = sch.func(&place.func)?;
    let stays = without(&func.body, &leaf(&place, root)?);
    let body = replace(&stays, &[(Stmt::Block(producer.clone()), with_block(&producer, block.clone()).into())]);
    let gone = Tree::of(&body);
    let holders = gone.blocks().filter(|(_, n)| n.block.alloc_buffers.contains(&store.buffer));
    let mut reuse = vec![(producer.block.clone(), block)];
    let mut changes = Vec::new();
    for (_, holder) in holders {
        let alloc_buffers = holder.block.alloc_buffers.iter().filter(|b| **b != store.buffer).cloned().collect();
        let renewed = Ref::new(SBlock { alloc_buffers, ..copy_block(&holder.block) });
        changes.push((Stmt::Block(holder.clone()), with_block(holder, renewed.clone()).into()));
        reuse.push((around.block.clone(), renewed));
    }
    sch.commit(&place.func, replace(&body, &changes), &reuse)
}

/// The block that alone produces for this one, and for no other.
fn producer_of(place: &StmtRef) -> Result<Ref<SBlockRealize>, ScheduleError> {
    let n = place.realize()?;
    let refuse = |reason: String| ScheduleError::at_block(&n.block, reason);
    let scope = Scope::new(&place.tree, place.scope()?);
    if let Some(reason) = scope.why_not_complete(place.node) {
        return Err(refuse(format!("block `{}` is not complete: {reason}", n.block.name)));
    }
    let producers = scope.producers(place.node);
    let &[only] = producers.as_slice() else {
        return Err(refuse(format!("block `{}` has {} producers, not one", n.block.name, producers.len())));
    };
    let producer = place.tree.as_block(only).cloned().ok_or(ScheduleError::Expired { what: "block" })?;
    if scope.consumers(only) != [place.node] {
        return Err(refuse(format!("its producer `{}` has other consumers", producer.block.name)));
    }
    if scope.is_output(only) {
        return Err(refuse(format!("its producer `{}` is an output block", producer.block.name)));
    }
    match scope.why_not_complete(only) {
        Some(reason) => Err(refuse(format!("its producer `{}` is not complete: {reason}", producer.block.name))),
        None => Ok(producer),
    }
}

/// The consumer's axes, over the axes of the producer that stores.
pub(super) fn axes_from(block: &SBlock, store: &BufferStore) -> Result<VarMap, ScheduleError> {
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let loads = loads_of(&block.body, &store.buffer);
    let Some(first) = loads.first() else { return Err(refuse(format!("it does not load `{}`", store.buffer.name))) };
    let alike = |other: &[PrimExpr]| first.indices.iter().zip(other).all(|(a, b)| same(a, b));
    if loads.iter().any(|l| l.indices.len() != first.indices.len() || !alike(&l.indices)) {
        return Err(refuse(format!("it loads `{}` at different places", store.buffer.name)));
    }
    // Within the axes' extents an index may be simpler than it is written, and reach less: `v % 3` of an axis of two is `v`.
    let mut bounds = Analyzer::new();
    for iter in &block.iter_vars {
        bounds.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    let map = IndexMap {
        initial_indices: block.iter_vars.iter().map(|i| i.var.clone()).collect(),
        final_indices: first.indices.iter().map(|i| bounds.simplify(i)).collect(),
        inverse_index_map: None,
    };
    let extents: Vec<PrimExpr> = block.iter_vars.iter().map(|i| i.extent.clone()).collect();
    let covers = map.apply_to_shape(&extents).is_some_and(|dims| {
        let mut analyzer = Analyzer::new();
        dims.iter().zip(&store.buffer.shape).all(|(a, b)| analyzer.can_prove_equal(a, b))
    });
    let inverse = map.inverse(&extents).filter(|inverse| covers && !inverse.padded);
    let begins_at_zero = block.iter_vars.iter().all(|i| i.min.is_int(0));
    let back = inverse.filter(|_| begins_at_zero).and_then(|inverse| inverse.map.apply(&store.indices));
    let back = back.ok_or_else(|| {
        let reason =
            format!("the axes of block `{}` do not follow from where it loads `{}`", block.name, store.buffer.name);
        refuse(reason).with_help("the load's indices must name all of the buffer, once")
    })?;
    Ok(block.iter_vars.iter().map(|i| i.var.clone()).zip(back).collect())
}

impl Schedule {
    /// Inlines a block into its only producer.
    pub fn reverse_compute_inline(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block)], vec![])
    }
}
