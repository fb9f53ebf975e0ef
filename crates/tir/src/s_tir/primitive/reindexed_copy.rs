//! What `reindex_cache_read` and `reindex_cache_write` share: a copy of a buffer at indices that a map of a block's axes
//! gives, made under copies of the block's own loops.
//!
//! ```text
//! for i, j, k in …:                                       for i, k in …:
//!     C[vi, vj] = C[vi, vj] + A[vi, vk]                       A_local[vk, vi] = A[vi, vk]
//!                         -- lambda i, j, k: (k, i) ->    for i, j, k in …:
//!                                                             C[vi, vj] = C[vi, vj] + A_local[vk, vi]
//! ```
//!
//! The block touches the buffer at one place, and the map depends on the axes that this place depends on. Two values of the
//! axes may share a place of the copy only if they share one of the buffer: the map holds the buffer's indices themselves, has
//! an inverse, or is small enough to be tried.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, load, substitute};
use relaxide_ir::{Buffer, Var};

use super::caching::{Spot, buffer_like, element, insert_stage};
use super::reindex::{only_access, redirected};
use super::structure::loops_around;
use crate::IndexMap;
use crate::analysis::affine::conjuncts;
use crate::s_tir::state::{StmtRef, copy_loop};
use crate::s_tir::{Schedule, ScheduleError, Value};
use crate::stmt::*;

/// Maps with more values than this are not tried one by one.
const TRIED: i64 = 4096;

/// A block, a buffer that it touches at one place, and where a copy holds that.
pub(super) struct ReindexedCopy<'a> {
    realize: &'a Ref<SBlockRealize>,
    buffer: Ref<Buffer>,
    copy: Ref<Buffer>,
    /// Where the block touches the buffer, over its axes.
    at: Vec<PrimExpr>,
    /// Where it touches the copy.
    at_copy: Vec<PrimExpr>,
    kept: Vec<Ref<IterVar>>,
}

impl<'a> ReindexedCopy<'a> {
    /// Checks what is asked for, and lays out the copy.
    pub fn new(
        realize: &'a Ref<SBlockRealize>,
        region: &BufferRegion,
        map: &IndexMap,
        name: String,
        storage: &str,
    ) -> Result<ReindexedCopy<'a>, ScheduleError> {
        let (block, buffer) = (&realize.block, &region.buffer);
        let refuse = |reason: String| ScheduleError::at_block(block, reason);
        let at = only_access(block, buffer).filter(|_| region.region.iter().all(|r| r.extent.is_int(1)));
        let at = at.ok_or_else(|| {
            refuse(format!("block `{}` accesses buffer `{}` at more than one place", block.name, buffer.name))
        })?;
        let vars: Vec<PrimExpr> = block.iter_vars.iter().map(|i| (&i.var).into()).collect();
        let mut analyzer = Analyzer::new();
        for iter in &block.iter_vars {
            analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
        }
        let at_copy = map.apply(&vars).ok_or_else(|| {
            let (takes, has) = (map.initial_indices.len(), vars.len());
            refuse(format!("the map takes {takes} indices, but block `{}` has {has} axes", block.name))
        })?;
        check_axes(block, buffer, &at, &at_copy)?;
        let used: Vec<Ref<Var>> = at.iter().flat_map(free_vars).collect();
        let kept: Vec<Ref<IterVar>> = block.iter_vars.iter().filter(|i| used.contains(&i.var)).cloned().collect();
        if let Some(iter) = kept.iter().find(|i| !i.min.is_int(0)) {
            return Err(refuse(format!("axis `{}` of block `{}` does not begin at zero", iter.var.name, block.name)));
        }
        check_inside(block, buffer, &at, &mut analyzer)?;
        if !tells_apart(map, &kept, block, &at, &at_copy) {
            return Err(refuse(format!("the map may put different elements of buffer `{}` in one place", buffer.name))
                .with_help(
                    "choose a map that can be inverted, such as a permutation, splits and joins of the indices",
                ));
        }
        let extents: Vec<PrimExpr> = block.iter_vars.iter().map(|i| i.extent.clone()).collect();
        let shape = map.apply_to_shape(&extents).ok_or_else(|| {
            refuse(format!("the dimensions of the copy of buffer `{}` cannot be worked out", buffer.name))
        })?;
        let dtype = buffer.shape.first().map_or(relaxide_ir::DataType::int(64), PrimExpr::dtype);
        let shape: Vec<PrimExpr> = shape.iter().map(|d| prim::cast(dtype, analyzer.simplify_as_tvm(d))).collect();
        let copy = buffer_like(buffer, name, &shape, storage);
        Ok(ReindexedCopy { realize, buffer: buffer.clone(), copy, at, at_copy, kept })
    }

    /// Lets the block use the copy, and puts the nest that copies, into it or out of it, at a place of the block's scope.
    pub fn insert(
        &self,
        sch: &mut Schedule,
        place: &StmtRef,
        spot: Spot,
        inwards: bool,
    ) -> Result<Vec<Value>, ScheduleError> {
        let tree = &place.tree;
        let loops = loops_around(tree, place.node);
        let outside = tree.loops_above(spot.parent).len() + usize::from(tree.as_loop(spot.parent).is_some());
        let (nest, made) = self.nest(loops.get(outside..).unwrap_or_default(), inwards)?;
        let changed = redirected(self.realize, &self.buffer, &self.copy, &self.at_copy, !inwards);
        insert_stage(sch, place, place.scope()?, &[(place.stmt().clone(), changed)], spot, nest, &self.copy)?;
        Ok(vec![Value::Block(place.func.clone(), made)])
    }

    /// The block that copies, into the copy or out of it, under loops like those of the block, the outermost first.
    fn nest(&self, loops: &[Ref<For>], inwards: bool) -> Result<(Stmt, Ref<SBlock>), ScheduleError> {
        let fresh = |var: &Ref<Var>| Var::new(var.name.clone(), var.ty.clone());
        let axis = |iter: &Ref<IterVar>| {
            let (min, extent) = (iter.min.clone(), iter.extent.clone());
            Ref::new(IterVar { var: fresh(&iter.var), min, extent, kind: IterKind::Spatial })
        };
        let axes: Vec<Ref<IterVar>> = self.kept.iter().map(axis).collect();
        let own: VarMap =
            self.kept.iter().zip(&axes).map(|(old, new)| (old.var.clone(), PrimExpr::from(&new.var))).collect();
        let values: Vec<&PrimExpr> = self.kept.iter().filter_map(|iter| self.value_of(iter)).collect();
        let used: Vec<Ref<Var>> = values.iter().flat_map(|value| free_vars(value)).collect();
        let kept: Vec<&Ref<For>> = loops.iter().filter(|l| used.contains(&l.var)).collect();
        let counters: VarMap = kept.iter().map(|l| (l.var.clone(), PrimExpr::from(&fresh(&l.var)))).collect();
        let renamed = |e: &PrimExpr| substitute(e, &counters);
        let predicate = renamed(&self.predicate(loops, &kept)?);
        let over = |list: &[PrimExpr]| list.iter().map(|e| substitute(e, &own)).collect::<Vec<_>>();
        let (outside, inside) = ((&self.buffer, over(&self.at)), (&self.copy, over(&self.at_copy)));
        let (from, to) = if inwards { (outside, inside) } else { (inside, outside) };
        let block = Ref::new(SBlock {
            iter_vars: axes,
            reads: vec![element(from.0, &from.1)],
            writes: vec![element(to.0, &to.1)],
            name: self.copy.name.clone(),
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: relaxide_ir::Attrs::new(),
            init: None,
            body: Stmt::store(to.0, to.1, load(from.0, from.1)),
        });
        let iter_values = values.into_iter().map(renamed).collect();
        let innermost: Stmt = Ref::new(SBlockRealize { iter_values, predicate, block: block.clone() }).into();
        let around = |body: Stmt, l: &&Ref<For>| {
            let var = match counters.get(&l.var).and_then(PrimExpr::as_var) {
                Some(var) => var.clone(),
                None => l.var.clone(),
            };
            let (min, extent) = (renamed(&l.min), renamed(&l.extent));
            let plain = For { var, min, extent, kind: ForKind::Serial, body, ..copy_loop(l) };
            Ref::new(For { thread_tag: String::new(), annotations: relaxide_ir::Attrs::new(), ..plain }).into()
        };
        Ok((kept.iter().rev().fold(innermost, around), block))
    }

    fn value_of(&self, iter: &Ref<IterVar>) -> Option<&PrimExpr> {
        let at = self.realize.block.iter_vars.iter().position(|i| i == iter)?;
        self.realize.iter_values.get(at)
    }

    /// The part of the block's condition that is about the loops that are kept.
    fn predicate(&self, loops: &[Ref<For>], kept: &[&Ref<For>]) -> Result<PrimExpr, ScheduleError> {
        let mut all = prim::boolean(true);
        for part in conjuncts(&self.realize.predicate) {
            let vars = free_vars(&part);
            let (here, gone): (Vec<&Ref<For>>, Vec<&Ref<For>>) =
                loops.iter().filter(|l| vars.contains(&l.var)).partition(|l| kept.contains(l));
            match (here.as_slice(), gone.as_slice()) {
                ([..], []) => all = prim::and(all, part),
                ([], _) => {}
                ([one, ..], [other, ..]) => {
                    let block = &self.realize.block;
                    let reason = format!(
                        "the condition of block `{}` is about loop `{}`, which copies, and loop `{}`, which does not",
                        block.name, one.var.name, other.var.name
                    );
                    return Err(
                        ScheduleError::at_block(block, reason).with_help("make the copy before loops are split")
                    );
                }
            }
        }
        Ok(all)
    }
}

/// The map and the access depend on the same axes.
fn check_axes(block: &SBlock, buffer: &Buffer, at: &[PrimExpr], at_copy: &[PrimExpr]) -> Result<(), ScheduleError> {
    let (here, there): (Vec<_>, Vec<_>) =
        (at.iter().flat_map(free_vars).collect(), at_copy.iter().flat_map(free_vars).collect());
    for iter in &block.iter_vars {
        let (in_access, in_map) = (here.contains(&iter.var), there.contains(&iter.var));
        if in_access == in_map || iter.extent.is_int(1) && !in_access {
            continue;
        }
        let (is, is_not) = if in_access {
            ("where the block accesses it", "in the map")
        } else {
            ("in the map", "where the block accesses it")
        };
        let reason = format!("axis `{}` of block `{}` occurs {is}, but not {is_not}", iter.var.name, block.name);
        return Err(ScheduleError::at_block(block, reason).with_help(format!(
            "the map may use the axes that tell where buffer `{}` is accessed, all of them",
            buffer.name
        )));
    }
    Ok(())
}

/// The copy is made for all values of the axes, without the conditions that may stand around the access.
pub(super) fn check_inside(
    block: &SBlock,
    buffer: &Buffer,
    at: &[PrimExpr],
    analyzer: &mut Analyzer,
) -> Result<(), ScheduleError> {
    for (index, dim) in at.iter().zip(&buffer.shape) {
        analyzer.mark_dims([dim]);
        let zero = prim::int_of(index.dtype(), 0);
        if !analyzer.can_prove(&prim::ge(index, zero)) || !analyzer.can_prove(&prim::lt(index, dim.clone())) {
            let reason =
                format!("index {index} of buffer `{}` may lie outside of it for some value of the axes", buffer.name);
            return Err(ScheduleError::at_block(block, reason));
        }
    }
    Ok(())
}

/// Whether values of the axes that share a place of the copy share one of the buffer.
fn tells_apart(map: &IndexMap, kept: &[Ref<IterVar>], block: &SBlock, at: &[PrimExpr], at_copy: &[PrimExpr]) -> bool {
    let mut analyzer = Analyzer::new();
    if at.iter().all(|index| at_copy.iter().any(|other| same(index, other) || analyzer.can_prove_equal(index, other))) {
        return true;
    }
    // What does not occur in the map is as good as one value.
    let dims: Vec<PrimExpr> = block
        .iter_vars
        .iter()
        .map(|iter| if kept.contains(iter) { iter.extent.clone() } else { prim::int_of(iter.extent.dtype(), 1) })
        .collect();
    map.inverse(&dims).is_some() || tried(kept, at, at_copy)
}

/// Goes through all values of the axes, where they are few.
fn tried(kept: &[Ref<IterVar>], at: &[PrimExpr], at_copy: &[PrimExpr]) -> bool {
    let extents: Option<Vec<i64>> = kept.iter().map(|iter| iter.extent.as_int()).collect();
    let Some(extents) = extents else { return false };
    let Some(count) = extents.iter().try_fold(1i64, |all, e| all.checked_mul(*e)).filter(|all| *all <= TRIED) else {
        return false;
    };
    let mut analyzer = Analyzer::new();
    let mut places: HashMap<Vec<i64>, Vec<i64>> = HashMap::new();
    for number in 0..count {
        let mut rest = number;
        let mut values = VarMap::new();
        for (iter, extent) in kept.iter().zip(&extents) {
            values.insert(iter.var.clone(), prim::int_of(iter.var.dtype(), rest % extent));
            rest /= extent;
        }
        let mut numbers = |list: &[PrimExpr]| -> Option<Vec<i64>> {
            list.iter().map(|e| analyzer.simplify_as_tvm(&substitute(e, &values)).as_int()).collect()
        };
        let (Some(from), Some(to)) = (numbers(at), numbers(at_copy)) else { return false };
        if places.insert(to, from.clone()).is_some_and(|known| known != from) {
            return false;
        }
    }
    true
}
