//! `reverse_compute_inline`: a block goes, and its producer does the rest of its work where it stores.
//!
//! ```text
//! C[vi, vj] = A[vi, vj] * 2
//! D[vi * 8 + vj] = C[vi, vj] + 1       ->        D[vi * 8 + vj] = A[vi, vj] * 2 + 1
//! ```
//!
//! The block must be complete, have one producer, be that producer's only consumer, and load what the producer wrote at one
//! place that says its axes: each is found back from the indices. Both store one element. The producer must be complete too:
//! a sum is not known before its last term. Where the block loads but a part of the buffer, the producer runs for that part
//! only: a predicate says that the block's axes are inside of their extents.

use relaxide_ffi::Ref;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{self, PrimExpr, VarMap, substitute};
use relaxide_ir::{BinaryOp, Buffer};

use super::inline::{Inline, check_plain_access, index_axes, leaf, loads_of, single_store, without};
use super::split::analyzer_at;
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
    check_writes_all(&producer.block, &store)?;
    let mut analyzer = Analyzer::new();
    for iter in &producer.block.iter_vars {
        analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    let back = axes_from(&n.block, &store, &mut analyzer)?;
    // The consumer's store, at the producer's element. Where that is named by axes, it stays as they name it.
    let is_named = store.indices.iter().all(|index| index.as_var().is_some());
    let mut simplified = |e: PrimExpr| if is_named { e } else { analyzer.rewrite_and_simplify(&e) };
    let at: VarMap = back.axes.iter().map(|(var, e)| (var.clone(), simplified(e.clone()))).collect();
    let moved = {
        let indices: Vec<PrimExpr> = consumer.indices.iter().map(|i| simplified(substitute(i, &at))).collect();
        Stmt::store(&consumer.buffer, indices, substitute(&consumer.value, &at))
    };
    let value = |_: &[PrimExpr]| store.value.clone();
    let mut inline = Inline { buffer: &store.buffer, value: &value, reuse: Vec::new() };
    let body = inline.mutate_stmt(&moved);
    let block = with_regions(SBlock { body, ..copy_block(&producer.block) });
    let func = sch.func(&place.func)?;
    let stays = without(&func.body, &leaf(&place, root)?);
    let predicate = match back.all {
        true => producer.predicate.clone(),
        false => prim::and(producer.predicate.clone(), inside(&place, &n.block, &producer, &at)?),
    };
    let changed = SBlockRealize { predicate, ..SBlockRealize::clone(&with_block(&producer, block.clone())) };
    let body = replace(&stays, &[(Stmt::Block(producer.clone()), Ref::new(changed).into())]);
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

/// Refuses a producer that leaves elements of its buffer out, or stores one several times: those of which the consumer makes
/// something would have no place.
fn check_writes_all(block: &SBlock, store: &BufferStore) -> Result<(), ScheduleError> {
    let Err(refused) = index_axes(block, store) else { return Ok(()) };
    let map = IndexMap {
        initial_indices: block.iter_vars.iter().map(|i| i.var.clone()).collect(),
        final_indices: store.indices.clone(),
        inverse_index_map: None,
    };
    let extents: Vec<PrimExpr> = block.iter_vars.iter().map(|i| i.extent.clone()).collect();
    let is_inverted = map.inverse(&extents).is_some_and(|inverse| !inverse.padded);
    let begins_at_zero = block.iter_vars.iter().all(|i| i.min.is_int(0));
    match is_inverted && begins_at_zero && reaches(&map, &extents, &store.buffer) {
        true => Ok(()),
        false => Err(refused),
    }
}

/// Whether a map of axes goes as far as a buffer does.
fn reaches(map: &IndexMap, extents: &[PrimExpr], buffer: &Buffer) -> bool {
    let mut analyzer = Analyzer::new();
    map.apply_to_shape(extents)
        .is_some_and(|dims| dims.iter().zip(&buffer.shape).all(|(a, b)| analyzer.can_prove_equal(a, b)))
}

/// The consumer's axes, over those of the producer.
pub(super) struct Back {
    pub axes: VarMap,
    /// Whether the consumer loads all that the producer stores. Where it does not, axes are outside of their extents.
    pub all: bool,
}

/// The consumer's axes, over the axes of the producer that stores; `analyzer` knows these.
pub(super) fn axes_from(block: &SBlock, store: &BufferStore, analyzer: &mut Analyzer) -> Result<Back, ScheduleError> {
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
    let inverse = map.inverse(&extents);
    let all = reaches(&map, &extents, &store.buffer) && inverse.as_ref().is_some_and(|inverse| !inverse.padded);
    let begins_at_zero = block.iter_vars.iter().all(|i| i.min.is_int(0));
    let back = inverse.filter(|_| begins_at_zero).and_then(|inverse| inverse.map.apply(&store.indices));
    // Where some of the buffer is not loaded, axes outside of their extents must tell which: the load at the axes that are
    // found must be the element that was stored.
    let mut returns = |back: &Vec<PrimExpr>| {
        let there = map.apply(back).unwrap_or_default();
        there.len() == store.indices.len()
            && there.iter().zip(&store.indices).all(|(a, b)| analyzer.can_prove_equal(a, b))
    };
    let back = back.filter(|back| all || returns(back)).ok_or_else(|| {
        let reason =
            format!("the axes of block `{}` do not follow from where it loads `{}`", block.name, store.buffer.name);
        refuse(reason).with_help("the load's indices must name elements of the buffer, each once")
    })?;
    // An axis that is an index itself is what stands there, also if it has but one value.
    let own = |iter: &IterVar, e: PrimExpr| {
        let place = first.indices.iter().position(|index| index.as_var() == Some(&iter.var));
        place.and_then(|d| store.indices.get(d).cloned()).unwrap_or_else(|| lightest_first(&e))
    };
    let typed = block.iter_vars.iter().zip(back).map(|(i, e)| (i.var.clone(), prim::cast(i.var.dtype(), own(i, e))));
    Ok(Back { axes: typed.collect(), all })
}

/// A sum of digits with the last one in front.
fn lightest_first(e: &PrimExpr) -> PrimExpr {
    let mut terms = Vec::new();
    let mut rest = e.clone();
    while let PrimExpr::Binary(n) = &rest
        && n.op == BinaryOp::Add
    {
        terms.push(n.b.clone());
        rest = n.a.clone();
    }
    terms.push(rest);
    terms.into_iter().reduce(|sum, term| sum + term).unwrap_or_else(|| e.clone())
}

/// That the consumer's axes are inside of their extents, over the loops around the producer.
fn inside(
    place: &StmtRef,
    block: &SBlock,
    producer: &Ref<SBlockRealize>,
    at: &VarMap,
) -> Result<PrimExpr, ScheduleError> {
    let tree = &place.tree;
    let node = tree.blocks().find(|(_, n)| *n == producer).map(|(id, _)| id);
    let mut analyzer = analyzer_at(tree, node.ok_or(ScheduleError::Expired { what: "block" })?);
    let axes = &producer.block.iter_vars;
    let values: VarMap = axes.iter().map(|i| i.var.clone()).zip(producer.iter_values.iter().cloned()).collect();
    let mut conditions = Vec::new();
    for iter in &block.iter_vars {
        let Some(value) = at.get(&iter.var) else { continue };
        let value = analyzer.simplify_as_tvm(&substitute(value, &values));
        let low = prim::le(prim::int_of(value.dtype(), 0), value.clone());
        conditions.push(analyzer.canonical_as_tvm(&low));
        conditions.push(analyzer.canonical_as_tvm(&prim::lt(value, iter.extent.clone())));
    }
    let open = conditions.into_iter().filter(|e| !e.is_int(1));
    Ok(open.reduce(prim::and).unwrap_or_else(|| prim::boolean(true)))
}

impl Schedule {
    /// Inlines a block into its only producer.
    pub fn reverse_compute_inline(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block)], vec![])
    }
}
