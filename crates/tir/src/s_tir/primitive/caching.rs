//! Copies of buffers: a block that copies a box, the place where it stands, and the blocks that use the copy instead.
//!
//! The copy stands in the innermost loop around both the block that writes the original and those that use the copy. It has
//! the original's dimensions then, and holds what is written in one iteration of that loop; users further behind, outside of
//! the loop, find all parts there. Where there is no such loop it stands in the scope's own body, and is as large as what is
//! written in the scope: what other iterations of the scope's block write is not its business.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, VarMap, free_vars};
use relaxide_ir::{Buffer, Type, Var};

use super::rebind::guard;
use super::structure::{body_list, holds, with_body_list};
use crate::analysis::affine::conjuncts;
use crate::analysis::interval::{Interval, Running};
use crate::analysis::regions::{substitute_region, whole_dimension, widened};
use crate::functor::StmtMutator;
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, StmtRef, Tree, copy_block, replace, with_block};
use crate::s_tir::{Schedule, ScheduleError};
use crate::stmt::*;

/// Accesses to a buffer become accesses to another, at the same indices.
pub(super) struct Redirect<'a> {
    /// The buffer that is accessed.
    pub from: &'a Ref<Buffer>,
    /// The one that takes its place.
    pub to: &'a Ref<Buffer>,
    /// Whether stores go to it as well, not loads only.
    pub stores: bool,
    /// The element of the one that is the other's first; empty where elements keep their indices.
    pub first: &'a [PrimExpr],
}

impl Redirect<'_> {
    fn moved(&self, indices: Vec<PrimExpr>) -> Vec<PrimExpr> {
        if self.first.is_empty() {
            return indices;
        }
        indices.into_iter().zip(self.first).map(|(index, first)| offset(index, first)).collect()
    }

    /// A region, of the other buffer where it is `wanted`; its bounds may be elements of the buffer.
    fn swapped(&mut self, r: &Ref<BufferRegion>, wanted: bool) -> Ref<BufferRegion> {
        let mut range = |r: &Ref<Range>| {
            let (min, extent) = (self.mutate_prim(&r.min), self.mutate_prim(&r.extent));
            if min == r.min && extent == r.extent { r.clone() } else { Ref::new(Range { min, extent }) }
        };
        let region: Vec<Ref<Range>> = r.region.iter().map(&mut range).collect();
        match wanted && r.buffer == *self.from {
            true => Ref::new(BufferRegion { buffer: self.to.clone(), region: self.moved_ranges(&region) }),
            false if region == r.region => r.clone(),
            false => Ref::new(BufferRegion { buffer: r.buffer.clone(), region }),
        }
    }

    fn moved_ranges(&self, ranges: &[Ref<Range>]) -> Vec<Ref<Range>> {
        if self.first.is_empty() {
            return ranges.to_vec();
        }
        let moved = |(r, first): (&Ref<Range>, &PrimExpr)| {
            Ref::new(Range { min: offset(r.min.clone(), first), extent: r.extent.clone() })
        };
        ranges.iter().zip(self.first).map(moved).collect()
    }
}

/// An index counted from a first element on.
fn offset(index: PrimExpr, first: &PrimExpr) -> PrimExpr {
    if first.is_int(0) { index } else { Analyzer::new().simplify_as_tvm(&(index - first)) }
}

impl PrimMutator for Redirect<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) if n.buffer == *self.from => {
                let (indices, predicate) = (self.mutate_prims(&n.indices), n.predicate.clone());
                let indices = self.moved(indices);
                Ref::new(BufferLoad { buffer: self.to.clone(), indices, predicate }).into()
            }
            // A block that is handed the memory gets the other's.
            PrimExpr::Var(var) if *var == self.from.data => (&self.to.data).into(),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Redirect<'_> {
    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let (value, mut indices) = (self.mutate_prim(&n.value), self.mutate_prims(&n.indices));
        let mut buffer = &n.buffer;
        if self.stores && n.buffer == *self.from {
            (buffer, indices) = (self.to, self.moved(indices));
        }
        if *buffer == n.buffer && value == n.value && indices == n.indices {
            return n.clone();
        }
        Ref::new(BufferStore { buffer: buffer.clone(), value, indices, predicate: n.predicate.clone() })
    }

    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        let stores = self.stores;
        let reads = n.reads.iter().map(|r| self.swapped(r, true)).collect();
        let writes = n.writes.iter().map(|r| self.swapped(r, stores)).collect();
        let mut source = |m: &Ref<MatchBufferRegion>| {
            Ref::new(MatchBufferRegion { buffer: m.buffer.clone(), source: self.swapped(&m.source, true) })
        };
        let match_buffers = n.match_buffers.iter().map(&mut source).collect();
        let init = n.init.as_ref().map(|s| self.mutate_stmt(s));
        let body = self.mutate_stmt(&n.body);
        Ref::new(SBlock { reads, writes, match_buffers, init, body, ..copy_block(n) })
    }
}

/// The same place, but in front of the first block that uses the copy there, and at the end where none does.
pub(super) fn in_front_of_users(tree: &Tree, spot: Spot, users: &[NodeId]) -> Spot {
    let list = body_list(&tree.node(spot.parent).stmt);
    let at = |id: &NodeId| list.iter().position(|s| holds(s, &tree.node(*id).stmt));
    let first = users.iter().filter_map(at).filter(|index| *index >= spot.index).min();
    Spot { parent: spot.parent, index: first.unwrap_or(list.len()) }
}

/// A compact buffer of the same dimensions in another scope.
pub(super) fn buffer_like(buffer: &Buffer, name: String, shape: &[PrimExpr], scope: &str) -> Ref<Buffer> {
    Ref::new(Buffer {
        data: Var::new(name.clone(), Type::pointer(buffer.dtype, scope)),
        name,
        dtype: buffer.dtype,
        shape: shape.to_vec(),
        strides: Vec::new(),
        elem_offset: prim::int_of(buffer.elem_offset.dtype(), 0),
        scope: scope.to_string(),
        alignment: buffer.alignment,
        offset_factor: buffer.offset_factor,
        layout: relaxide_ir::layout::Placement::Strided,
        producer: None,
    })
}

/// Axes `v0, v1, …` over dimensions.
pub(super) fn axes_over(dims: &[PrimExpr]) -> Vec<Ref<IterVar>> {
    let axis = |(d, dim): (usize, &PrimExpr)| {
        let var = Var::prim(format!("v{d}"), dim.dtype());
        let min = prim::int_of(dim.dtype(), 0);
        Ref::new(IterVar { var, min, extent: dim.clone(), kind: IterKind::Spatial })
    };
    dims.iter().enumerate().map(axis).collect()
}

/// An element of a buffer.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub buffer: &'a Ref<Buffer>,
    pub indices: &'a [PrimExpr],
}

impl<'a> Element<'a> {
    pub fn new(buffer: &'a Ref<Buffer>, indices: &'a [PrimExpr]) -> Element<'a> {
        Element { buffer, indices }
    }

    fn load(self) -> PrimExpr {
        prim::load(self.buffer, self.indices.iter().cloned())
    }
}

/// The region of one element.
pub(super) fn element(buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Ref<BufferRegion> {
    let range = |i: &PrimExpr| Ref::new(Range { min: i.clone(), extent: prim::int_of(i.dtype(), 1) });
    Ref::new(BufferRegion { buffer: buffer.clone(), region: indices.iter().map(range).collect() })
}

/// A block that copies elements, under loops over boxes of its axes, and that block.
pub(super) fn copy_nest(
    name: &str,
    axes: Vec<Ref<IterVar>>,
    boxes: &[Interval],
    from: Element<'_>,
    to: Element<'_>,
) -> (Stmt, Ref<SBlock>) {
    let mut analyzer = Analyzer::new();
    let (mut loops, mut iter_values) = (Vec::new(), Vec::new());
    for (d, range) in boxes.iter().enumerate() {
        let extent = range.extent(&mut analyzer);
        let var = Var::prim(format!("ax{d}"), extent.dtype());
        iter_values.push(analyzer.simplify_as_tvm(&(&range.min + &var)));
        loops.push((var, extent));
    }
    let block = Ref::new(SBlock {
        iter_vars: axes,
        reads: vec![element(from.buffer, from.indices)],
        writes: vec![element(to.buffer, to.indices)],
        name: name.to_string(),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: relaxide_ir::Attrs::new(),
        init: None,
        body: Stmt::store(to.buffer, to.indices.iter().cloned(), from.load()),
    });
    let realize = SBlockRealize { iter_values, predicate: prim::boolean(true), block: block.clone() };
    let innermost: Stmt = Ref::new(realize).into();
    let nest = loops.into_iter().rev().fold(innermost, |body, (var, extent)| Stmt::serial(var, extent, body));
    (nest, block)
}

/// A place in the body of a loop or block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The loop, or the scope's block.
    pub parent: NodeId,
    /// Before which of its statements.
    pub index: usize,
}

/// The place directly behind a writer, as far inside as all users allow; those that come behind a loop allow any place in it.
pub(super) fn behind(
    tree: &Tree,
    root: NodeId,
    writer: NodeId,
    users: &[NodeId],
    what: &SBlock,
) -> Result<Spot, ScheduleError> {
    let inwards = tree.loops_above(writer);
    let around = |id: &&NodeId| !users.is_empty() && users.iter().all(|user| tree.contains(**id, *user));
    let parent = inwards.iter().rev().find(around).copied().unwrap_or(root);
    let list = body_list(&tree.node(parent).stmt);
    let at = |id: NodeId| list.iter().position(|s| holds(s, &tree.node(id).stmt));
    let index = at(writer).map_or(0, |i| i + 1);
    let beside: Vec<NodeId> = users.iter().copied().filter(|user| at(*user).is_some_and(|i| i + 1 == index)).collect();
    let is_in_front = |user: &NodeId| at(*user).is_some_and(|i| i + 1 < index);
    if users.iter().any(is_in_front) || beside.len() == users.len() && !users.is_empty() {
        let reason = "there is no place between the block that writes the buffer and those that read it";
        return Err(ScheduleError::at_block(what, reason));
    }
    // Under the writer's own loops, the place is behind it there: each iteration's part is copied before it is read.
    if beside.is_empty() { Ok(Spot { parent, index }) } else { behind(tree, root, writer, &beside, what) }
}

/// Whether all users stand in front of a writer, in the scope's own body: they read what was there before.
pub(super) fn all_in_front(tree: &Tree, root: NodeId, writer: NodeId, users: &[NodeId]) -> bool {
    let list = body_list(&tree.node(root).stmt);
    let at = |id: NodeId| list.iter().position(|s| holds(s, &tree.node(id).stmt));
    !users.is_empty() && users.iter().all(|user| at(*user) < at(writer))
}

/// A copy under the part of its writer's condition that the loops around the spot decide: where nothing is written, nothing is
/// copied.
pub(super) fn guarded(nest: Stmt, tree: &Tree, writer: NodeId, spot: Spot) -> Stmt {
    let Some(n) = tree.as_block(writer).filter(|n| !n.predicate.is_int(1)) else { return nest };
    let inside: Vec<Ref<Var>> = tree
        .loops_above(writer)
        .into_iter()
        .filter(|id| *id != spot.parent && !tree.contains(*id, spot.parent))
        .filter_map(|id| tree.as_loop(id).map(|l| l.var.clone()))
        .collect();
    let decided = conjuncts(&n.predicate).into_iter().filter(|c| !free_vars(c).iter().any(|v| inside.contains(v)));
    match decided.reduce(prim::and) {
        Some(condition) => guard(&nest, &condition),
        None => nest,
    }
}

/// What a copy holds of a buffer.
pub(super) struct CopiedRegion {
    /// The copy's dimensions.
    pub shape: Vec<PrimExpr>,
    /// The element of the buffer that is the copy's first.
    pub first: Vec<PrimExpr>,
    /// The elements of the copy that are copied.
    pub boxes: Vec<Interval>,
}

impl CopiedRegion {
    /// All of a buffer.
    pub fn whole(buffer: &Buffer) -> CopiedRegion {
        let zeros = buffer.shape.iter().map(|d| prim::int_of(d.dtype(), 0)).collect();
        let boxes = (0..buffer.ndim()).map(|d| whole_dimension(buffer, d)).collect();
        CopiedRegion { shape: buffer.shape.clone(), first: zeros, boxes }
    }

    /// A box of a buffer, without what is around it.
    pub fn box_of(buffer: &Buffer, dims: &[Interval]) -> CopiedRegion {
        let mut analyzer = Analyzer::new();
        let shape: Vec<PrimExpr> = dims.iter().map(|dim| dim.extent(&mut analyzer)).collect();
        let boxes = shape.iter().map(|extent| Interval::of_range(&prim::int_of(extent.dtype(), 0), extent)).collect();
        match shape.iter().zip(&buffer.shape).all(|(part, whole)| analyzer.can_prove_equal(part, whole)) {
            true => CopiedRegion::whole(buffer),
            false => CopiedRegion { shape, first: dims.iter().map(|dim| dim.min.clone()).collect(), boxes },
        }
    }

    /// What the only block that writes a buffer in a scope writes of it, for a copy at a spot.
    pub fn written(tree: &Tree, root: NodeId, spot: Spot, writer: NodeId, buffer: &Ref<Buffer>) -> CopiedRegion {
        let Some(dims) = written_there(tree, root, spot, writer, buffer) else { return CopiedRegion::whole(buffer) };
        match tree.as_loop(spot.parent) {
            Some(_) => CopiedRegion { boxes: dims, ..CopiedRegion::whole(buffer) },
            None => CopiedRegion::box_of(buffer, &dims),
        }
    }

    /// The elements of the buffer that elements of the copy are.
    pub fn of_buffer(&self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        self.first.iter().zip(indices).map(|(first, index)| prim::add(first, index)).collect()
    }
}

/// What a writer writes of a buffer in one iteration of the loop at a spot; in the scope's own body, in all iterations of its
/// loops. `None` where it does not say that it writes the buffer.
fn written_there(tree: &Tree, root: NodeId, spot: Spot, writer: NodeId, buffer: &Ref<Buffer>) -> Option<Vec<Interval>> {
    let n = tree.as_block(writer)?;
    let region = n.block.writes.iter().find(|w| w.buffer == *buffer)?;
    let mut analyzer = Analyzer::new();
    let mut running = Running::default();
    if let Some(scope) = tree.as_block(root) {
        for axis in &scope.block.iter_vars {
            analyzer.bind(&axis.var, axis.min.clone(), axis.extent.clone());
        }
    }
    for id in tree.all_loops_above(writer) {
        let Some(l) = tree.as_loop(id) else { continue };
        analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
        analyzer.mark_dims([&l.extent]);
        if id != spot.parent && !tree.contains(id, spot.parent) {
            running.add(&l.var, &l.min, &l.extent, &mut analyzer);
        }
    }
    analyzer.mark_dims(&buffer.shape);
    let mut axes = VarMap::new();
    for (axis, value) in n.block.iter_vars.iter().zip(&n.iter_values) {
        // Over all loops of the scope an axis takes all of its values, whatever the loops are that count them.
        if spot.parent == root && runs_through(&running, value) {
            running.add(&axis.var, &axis.min, &axis.extent, &mut analyzer);
        } else {
            axes.insert(axis.var.clone(), value.clone());
        }
    }
    let dims = widened(&substitute_region(region, &axes), &running, &mut analyzer);
    let whole = (0..buffer.ndim()).map(|d| whole_dimension(buffer, d));
    let clipped = |(dim, whole): (&Interval, Interval)| {
        if whole.covers(dim, &mut analyzer) { dim.clone() } else { dim.meet(&whole, &mut analyzer) }
    };
    Some(dims.iter().zip(whole).map(clipped).collect())
}

/// Refuses a block of which an axis does not take all of its values in one iteration of the scope's block: a copy of all that
/// the axes reach would copy what was not written.
pub(super) fn check_runs_through(tree: &Tree, n: &SBlockRealize, node: NodeId) -> Result<(), ScheduleError> {
    let mut running = Running::default();
    let mut analyzer = Analyzer::new();
    for id in tree.loops_above(node) {
        if let Some(l) = tree.as_loop(id) {
            running.add(&l.var, &l.min, &l.extent, &mut analyzer);
        }
    }
    let stays = |(axis, value): &(&Ref<IterVar>, &PrimExpr)| !axis.extent.is_int(1) && !runs_through(&running, value);
    match n.block.iter_vars.iter().zip(&n.iter_values).find(stays) {
        None => Ok(()),
        Some((axis, _)) => {
            let reason =
                format!("no loop of its scope runs through axis `{}` of block `{}`", axis.var.name, n.block.name);
            Err(ScheduleError::at_block(&n.block, reason))
        }
    }
}

/// Whether a value is made of running variables alone.
fn runs_through(running: &Running, value: &PrimExpr) -> bool {
    let vars = free_vars(value);
    !vars.is_empty() && vars.iter().all(|var| running.holds(var))
}

/// Puts a copy in: blocks changed by `changes`, the nest at its spot, the buffer among those of the scope's block.
pub(super) fn insert_stage(
    sch: &mut Schedule,
    place: &StmtRef,
    root: NodeId,
    changes: &[(Stmt, Stmt)],
    spot: Spot,
    nest: Stmt,
    buffer: &Ref<Buffer>,
) -> Result<(), ScheduleError> {
    let tree = &place.tree;
    let parent = &tree.node(spot.parent).stmt;
    let changed = replace(parent, changes);
    let mut list = body_list(&changed);
    list.insert(spot.index.min(list.len()), nest);
    let changed = with_body_list(&changed, list);
    let root_stmt = &tree.node(root).stmt;
    // Blocks that change may stand outside of the statement that the copy is put into.
    let all: Vec<(Stmt, Stmt)> = [(parent.clone(), changed)].into_iter().chain(changes.iter().cloned()).collect();
    let rebuilt = replace(root_stmt, &all);
    let rebuilt = match &rebuilt {
        Stmt::Block(n) => {
            let mut alloc_buffers = n.block.alloc_buffers.clone();
            alloc_buffers.push(buffer.clone());
            with_block(n, Ref::new(SBlock { alloc_buffers, ..copy_block(&n.block) })).into()
        }
        other => other.clone(),
    };
    let body = replace(&sch.func(&place.func)?.body, &[(root_stmt.clone(), rebuilt)]);
    sch.commit(&place.func, body, &[])
}

/// The only block of a scope that writes a buffer; `None` where none does.
pub(super) fn only_writer(
    scope: &Scope<'_>,
    tree: &Tree,
    buffer: &Ref<Buffer>,
) -> Result<Option<NodeId>, ScheduleError> {
    let writers = scope.writers(buffer);
    match writers.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(*only)),
        several => {
            let name = |id: &NodeId| tree.as_block(*id).map_or(String::new(), |n| format!("`{}`", n.block.name));
            let names: Vec<String> = several.iter().map(name).collect();
            let reason = format!("buffer `{}` is written by several blocks: {}", buffer.name, names.join(", "));
            let at = tree.as_block(several[0]).ok_or(ScheduleError::Expired { what: "block" })?;
            Err(ScheduleError::at_block(&at.block, reason)
                .with_help("stage the buffer before a reduction is decomposed"))
        }
    }
}
