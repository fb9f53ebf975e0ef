//! `reindex`: a buffer that a block reads or writes is copied in the order of the block's axes.
//!
//! ```text
//! for i, j, k in …:                             for ax0, ax1 in …:
//!     C[vi, vj] = C[vi, vj] + A[vk, vi]   ->        A_reindex[ax0, ax1] = A[ax1, ax0]
//!                                               for i, j, k in …:
//!                                                   C[vi, vj] = C[vi, vj] + A_reindex[vi, vk]
//! ```
//!
//! The copy has one dimension for each axis that the access depends on. All accesses of the block to the buffer must be at
//! the same indices; those that write must not depend on a reduction axis, and must depend on every other axis.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{PrimExpr, PrimVisitor, VarMap, free_vars, int_of, substitute};

use super::caching::{
    Element, Redirect, Spot, axes_over, behind, buffer_like, check_runs_through, copy_nest, insert_stage, only_writer,
};
use super::reindexed_copy::check_inside;
use super::structure::{body_list, free_name, holds};
use super::transform_layout::{buffer_operand, chosen_buffer};
use crate::analysis::interval::Interval;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, copy_block, with_block};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReIndex",
    method: "reindex",
    is_pure: false,
    params: &[Param::Input("block"), Param::Buffer("buffer")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    let buffer = chosen_buffer(call, block)?.buffer.clone();
    let writes = call.int(1)? == 1;
    let (tree, root) = (&place.tree, place.scope()?);
    let scope = Scope::new(tree, root);
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let indices = only_access(block, &buffer).ok_or_else(|| {
        refuse(format!("block `{}` accesses buffer `{}` at different indices", block.name, buffer.name))
    })?;
    if !place.tree.node(place.node).children.is_empty() {
        let reason = format!("block `{}` holds loops or blocks, which its accesses may depend on", block.name);
        return Err(refuse(reason).with_help("reindex before a block is made of several iterations"));
    }
    // Within the axes' extents an index may not depend on what it is written with: `v // 64` of an axis of 64 is zero. Axes of one
    // value stay called.
    let (mut analyzer, mut several) = (analyzer_of(block, |_| true), analyzer_of(block, |iter| !iter.extent.is_int(1)));
    let indices: Vec<PrimExpr> = indices.iter().map(|e| several.simplify_as_tvm(e)).collect();
    let used: Vec<_> = indices.iter().flat_map(free_vars).collect();
    let kept: Vec<&Ref<IterVar>> = block.iter_vars.iter().filter(|i| used.contains(&i.var)).collect();
    if writes && block.iter_vars.iter().any(|i| used.contains(&i.var) == (i.kind == IterKind::Reduce)) {
        let reason = format!(
            "where block `{}` writes in `{}` does not depend on just its spatial axes",
            block.name, buffer.name
        );
        return Err(refuse(reason));
    }
    if kept.iter().any(|i| !i.min.is_int(0)) {
        return Err(refuse(format!("an axis of block `{}` does not begin at zero", block.name)));
    }
    check_inside(block, &buffer, &indices, &mut analyzer)?;
    if writes {
        check_runs_through(tree, &realize, place.node)?;
    }
    let writer = only_writer(&scope, tree, &buffer)?;
    let shape: Vec<PrimExpr> = kept.iter().map(|i| i.extent.clone()).collect();
    let name = free_name(&*sch.func(&place.func)?, tree, format!("{}_reindex", buffer.name));
    let copy = buffer_like(&buffer, name.clone(), &shape, &buffer.scope);
    let axes = axes_over(&shape);
    let mine: Vec<PrimExpr> = axes.iter().map(|axis| (&axis.var).into()).collect();
    let map: VarMap = kept.iter().map(|i| i.var.clone()).zip(mine.iter().cloned()).collect();
    let theirs: Vec<PrimExpr> = indices.iter().map(|e| substitute(e, &map)).collect();
    let boxes: Vec<Interval> = axes.iter().map(|a| Interval::of_range(&a.min, &a.extent)).collect();
    let (inner, outer) = (Element::new(&copy, &mine), Element::new(&buffer, &theirs));
    let (spot, (nest, made)) = if writes {
        let spot = behind(tree, root, place.node, &[], block)?;
        (spot, copy_nest(&name, axes, &boxes, inner, outer))
    } else {
        // In front of the block's own loops.
        let list = body_list(&tree.node(root).stmt);
        let at = |id: NodeId| list.iter().position(|s| holds(s, &tree.node(id).stmt));
        let index = at(place.node).unwrap_or(0);
        if writer.and_then(at).is_some_and(|writer| writer >= index) {
            let reason = format!("buffer `{}` is read under the loops of the block that writes it", buffer.name);
            return Err(refuse(reason).with_help("reindex before blocks are computed at each other's loops"));
        }
        let nest = copy_nest(&format!("{name}_reindex"), axes, &boxes, outer, inner);
        (Spot { parent: root, index }, nest)
    };
    let users = scope.children.iter().filter(|id| if writes { scope.reads(**id, &buffer) } else { **id == place.node });
    let list = body_list(&tree.node(root).stmt);
    let early =
        |id: &NodeId| list.iter().position(|s| holds(s, &tree.node(*id).stmt)).is_some_and(|at| at < spot.index);
    if users.filter(|id| !writes || **id != place.node).any(early) {
        let reason = format!("buffer `{}` is read under the loops of the block that writes it", buffer.name);
        return Err(refuse(reason).with_help("reindex before blocks are computed at each other's loops"));
    }
    if writes && block.writes.len() > 1 {
        let reason = format!("block `{}` writes several buffers", block.name);
        return Err(refuse(reason));
    }
    let new_indices: Vec<PrimExpr> = kept.iter().map(|i| (&i.var).into()).collect();
    let changed = redirected(&realize, &buffer, &copy, &new_indices, writes);
    insert_stage(sch, &place, root, &[(place.stmt().clone(), changed)], spot, nest, &copy)?;
    Ok(vec![Value::Block(place.func.clone(), made)])
}

/// What knows the ranges of a block's axes, of some of them.
fn analyzer_of(block: &SBlock, known: impl Fn(&IterVar) -> bool) -> Analyzer {
    let mut analyzer = Analyzer::new();
    for iter in block.iter_vars.iter().filter(|iter| known(iter)) {
        analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    analyzer
}

/// The indices of all accesses of a block to a buffer, if they are the same.
pub(super) fn only_access(block: &SBlock, buffer: &Ref<Buffer>) -> Option<Vec<PrimExpr>> {
    struct Accesses<'a> {
        buffer: &'a Ref<Buffer>,
        found: Vec<Vec<PrimExpr>>,
    }
    impl PrimVisitor for Accesses<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Load(n) = e
                && n.buffer == *self.buffer
            {
                self.found.push(n.indices.clone());
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Accesses<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Store(n) = stmt
                && n.buffer == *self.buffer
            {
                self.found.push(n.indices.clone());
            }
            self.walk_stmt(stmt);
        }
    }
    let mut accesses = Accesses { buffer, found: Vec::new() };
    block.init.iter().for_each(|init| accesses.visit_stmt(init));
    accesses.visit_stmt(&block.body);
    let (first, rest) = accesses.found.split_first()?;
    let mut analyzer = Analyzer::new();
    let mut same = |other: &Vec<PrimExpr>| {
        other.len() == first.len() && other.iter().zip(first).all(|(a, b)| analyzer.can_prove_equal(a, b))
    };
    rest.iter().all(&mut same).then(|| first.clone())
}

/// The block with its accesses to a buffer at the copy's indices.
pub(super) fn redirected(
    realize: &Ref<SBlockRealize>,
    from: &Ref<Buffer>,
    to: &Ref<Buffer>,
    at: &[PrimExpr],
    writes: bool,
) -> Stmt {
    struct Put<'a> {
        to: &'a Ref<Buffer>,
        at: &'a [PrimExpr],
    }
    impl relaxide_ir::prim::PrimMutator for Put<'_> {
        fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
            match e {
                PrimExpr::Load(n) if n.buffer == *self.to => relaxide_ir::prim::load(self.to, self.at.iter().cloned()),
                _ => self.remake_prim(e),
            }
        }
    }
    impl StmtMutator for Put<'_> {
        fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
            let value = self.mutate_prim(&n.value);
            let indices = if n.buffer == *self.to { self.at.to_vec() } else { n.indices.clone() };
            Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate: n.predicate.clone() })
        }
    }
    use relaxide_ir::prim::PrimMutator;
    let changed = Redirect { from, to, stores: writes, first: &[] }.mutate_stmt(&realize.clone().into());
    let one = |e: &PrimExpr| Ref::new(Range { min: e.clone(), extent: int_of(e.dtype(), 1) });
    let moved = |r: &Ref<BufferRegion>| match r.buffer == *to {
        true => Ref::new(BufferRegion { buffer: to.clone(), region: at.iter().map(one).collect() }),
        false => r.clone(),
    };
    match (Put { to, at }).mutate_stmt(&changed) {
        // What the block says it touches stays said, of the copy's element where it was the buffer.
        Stmt::Block(n) => {
            let (reads, writes) = (&n.block.reads, &n.block.writes);
            let (reads, writes) = (reads.iter().map(moved).collect(), writes.iter().map(moved).collect());
            with_block(&n, Ref::new(SBlock { reads, writes, ..copy_block(&n.block) })).into()
        }
        other => other,
    }
}

impl Schedule {
    /// Copies a buffer of a block in the order of the block's axes. The block that copies.
    pub fn reindex(&mut self, block: &Ref<SBlockRV>, side: &str, index: i64) -> Result<Ref<SBlockRV>, StepError> {
        self.step_block(&KIND, vec![operand(block)], buffer_operand(side, index).to_vec())
    }
}
