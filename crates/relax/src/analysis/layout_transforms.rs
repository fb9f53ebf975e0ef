//! Which layouts of a kernel's blocks and inputs go with new layouts of its outputs.
//!
//! Given a map of indices for each output, each block that writes it is asked in which order its axes would follow, and in which
//! order each input would then be read in sequence:
//!
//! ```text
//! for i, j, k:  C[i, j] += A[i, j, k] * W[j]        with C by (i, j) → (i, j // 16, j % 16):
//!     the block by   (i, j, d) → (i, j // 16, d, j % 16)
//!     A by           (i, j, d) → (i, j // 16, d, j % 16)
//!     W by           (j)       → (j // 16, j % 16)
//! ```
//!
//! **Model.** The *spatial layout* of a buffer in a block says for each dimension which axis of the block it follows, if one.
//! The map of the output is carried over to another layout by dropping axes that the other has not and adding its own.
//!
//! **Proposes nothing** for a block that writes several buffers or none whose map is known, holds other blocks, has axes other
//! than spatial and reduced ones, or writes out of the order of its axes; nor for an input that is read at sums of axes, in
//! several ways, or out of order. Blocks are asked from the last to the first, so that a proposal for what a block reads is the
//! map of the block that writes it; TVM asks from the first, and fails at a kernel of several stages.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, BufferLoad, PrimExpr, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::{IndexMap, IterKind, PrimFunc, SBlock, SBlockRealize, Stmt, StmtVisitor};

/// What is proposed for one block.
#[derive(Debug)]
pub struct BlockTransforms {
    /// The block.
    pub block: Ref<SBlock>,
    /// The new order of its axes.
    pub axes: Ref<IndexMap>,
    /// The new layouts of the buffer that it writes, and of those that it reads.
    pub buffers: Vec<(Ref<Buffer>, Ref<IndexMap>)>,
}

/// Why maps are not those of a kernel's outputs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutMapError {
    /// More maps than parameters.
    #[error("{maps} maps are given for a kernel of {params} parameters")]
    Count {
        /// Maps.
        maps: usize,
        /// Parameters.
        params: usize,
    },
    /// A parameter that is a scalar, by its place.
    #[error("parameter {0} is no buffer, so it has no layout")]
    NoBuffer(usize),
    /// A map of another number of indices than its buffer has dimensions.
    #[error("`{buffer}` has {dims} dimensions, its map {indices} indices")]
    Rank {
        /// The buffer.
        buffer: String,
        /// Its dimensions.
        dims: usize,
        /// The map's indices.
        indices: usize,
    },
}

/// Layouts of blocks and buffers that go with those of a kernel's outputs, which are its last parameters. An error where the maps
/// are not of the outputs.
pub fn suggest_layout_transforms(
    func: &PrimFunc,
    outputs: &[Ref<IndexMap>],
) -> Result<Vec<BlockTransforms>, LayoutMapError> {
    let Some(first) = func.params.len().checked_sub(outputs.len()) else {
        return Err(LayoutMapError::Count { maps: outputs.len(), params: func.params.len() });
    };
    let mut known: HashMap<Ref<Buffer>, Ref<IndexMap>> = HashMap::new();
    for (i, map) in outputs.iter().enumerate() {
        let Some(Some(buffer)) = func.buffers.get(first + i) else {
            return Err(LayoutMapError::NoBuffer(first + i));
        };
        if buffer.shape.len() != map.initial_indices.len() {
            let (indices, dims) = (map.initial_indices.len(), buffer.shape.len());
            return Err(LayoutMapError::Rank { buffer: buffer.name.clone(), dims, indices });
        }
        known.insert(buffer.clone(), map.clone());
    }
    let mut blocks = KernelBlocks(Vec::new());
    blocks.visit_stmt(&func.body);
    let mut out = Vec::new();
    for block in blocks.0.iter().rev() {
        let [write] = block.writes.as_slice() else { continue };
        let Some(map) = known.get(&write.buffer).cloned() else { continue };
        let Some((axes, reads)) = propose(block, &write.buffer, &map, &known) else { continue };
        let mut buffers = vec![(write.buffer.clone(), map)];
        for (buffer, map) in reads {
            known.insert(buffer.clone(), map.clone());
            buffers.push((buffer, map));
        }
        out.push(BlockTransforms { block: block.clone(), axes, buffers });
    }
    out.reverse();
    Ok(out)
}

/// The blocks of a kernel below its root.
struct KernelBlocks(Vec<Ref<SBlock>>);

impl PrimVisitor for KernelBlocks {}

impl StmtVisitor for KernelBlocks {
    fn walk_block(&mut self, block: &Ref<SBlock>) {
        match block.name == "root" {
            true => self.visit_stmt(&block.body),
            false => self.0.push(block.clone()),
        }
    }
}

/// For each dimension of a buffer, the axis of the block that its index follows.
type Spatial = Vec<Option<Ref<Var>>>;
type Proposal = (Ref<IndexMap>, Vec<(Ref<Buffer>, Ref<IndexMap>)>);

fn propose(
    block: &SBlock,
    written: &Ref<Buffer>,
    map: &IndexMap,
    known: &HashMap<Ref<Buffer>, Ref<IndexMap>>,
) -> Option<Proposal> {
    let order: Vec<Ref<Var>> = block.iter_vars.iter().map(|v| v.var.clone()).collect();
    if block.iter_vars.iter().any(|v| !matches!(v.kind, IterKind::Spatial | IterKind::Reduce)) {
        return None;
    }
    let spatial = block.iter_vars.iter().filter(|v| v.kind == IterKind::Spatial).map(|v| v.var.clone()).collect();
    let mut accesses = Accesses { spatial, written, layouts: HashMap::new(), fits: true };
    accesses.visit_stmt(&block.body);
    let layout_of = |buffer: &Ref<Buffer>| accesses.layouts.get(buffer).cloned().flatten();
    let source: Vec<Ref<Var>> = layout_of(written)?.into_iter().collect::<Option<_>>()?;
    let source_layout: Spatial = source.iter().cloned().map(Some).collect();
    if !accesses.fits || !in_order(&source_layout, &order) {
        return None;
    }
    let target: Spatial = order.iter().cloned().map(Some).collect();
    let axes = carried_over(&source, map, &target)?;
    let extents: Vec<PrimExpr> = block.iter_vars.iter().map(|v| v.extent.clone()).collect();
    if axes.inverse(&extents).is_none_or(|inverse| inverse.padded) {
        return None;
    }
    let mut reads = Vec::new();
    for read in &block.reads {
        let Some(layout) = layout_of(&read.buffer).filter(|layout| in_order(layout, &order)) else { continue };
        let new = carried_over(&source, map, &layout);
        match new {
            Some(new) if !known.contains_key(&read.buffer) => reads.push((read.buffer.clone(), Ref::new(new))),
            _ => {}
        }
    }
    Some((Ref::new(axes), reads))
}

/// Whether the axes that a buffer follows come in the order of the block's.
fn in_order(layout: &Spatial, order: &[Ref<Var>]) -> bool {
    let places: Vec<_> = layout.iter().flatten().map(|v| order.iter().position(|o| o == v)).collect();
    places.windows(2).all(|w| w[0] < w[1])
}

/// The spatial layouts of what a block reads and writes; none where accesses differ or are no single axes.
struct Accesses<'a> {
    spatial: HashSet<Ref<Var>>,
    written: &'a Ref<Buffer>,
    layouts: HashMap<Ref<Buffer>, Option<Spatial>>,
    /// Whether the block is one that can be transformed.
    fits: bool,
}

impl Accesses<'_> {
    fn access(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) {
        let found: Option<Spatial> = indices.iter().map(|i| self.axis_of(i)).collect();
        match self.layouts.get_mut(buffer) {
            None => {
                self.layouts.insert(buffer.clone(), found);
            }
            Some(layout) if *layout != found => *layout = None,
            Some(_) => {}
        }
    }

    /// The axis that an index follows: `Some(None)` where it follows none, `None` where it cannot be said.
    fn axis_of(&self, index: &PrimExpr) -> Option<Option<Ref<Var>>> {
        let used: HashSet<Ref<Var>> = free_vars(index).into_iter().filter(|v| self.spatial.contains(v)).collect();
        let mut used = used.into_iter();
        match (used.next(), used.next()) {
            (None, _) => Some(None),
            (Some(var), None) => follows(index, &var).then_some(Some(var)),
            _ => None,
        }
    }
}

/// Whether an index is an axis by a factor, its blocks or what is inside of them, and something without it.
fn follows(e: &PrimExpr, var: &Ref<Var>) -> bool {
    match e {
        PrimExpr::Var(v) => v == var,
        PrimExpr::Binary(n) => {
            let with = |e: &PrimExpr| free_vars(e).contains(var);
            match (n.op, with(&n.a), with(&n.b)) {
                (BinaryOp::Add | BinaryOp::Sub, true, false) => follows(&n.a, var),
                (BinaryOp::Add | BinaryOp::Sub, false, true) => follows(&n.b, var),
                (BinaryOp::Mul | BinaryOp::FloorDiv | BinaryOp::FloorMod, true, false) => {
                    n.b.as_int().is_some_and(|c| c > 0) && follows(&n.a, var)
                }
                (BinaryOp::Mul, false, true) => n.a.as_int().is_some_and(|c| c > 0) && follows(&n.b, var),
                _ => false,
            }
        }
        _ => false,
    }
}

impl PrimVisitor for Accesses<'_> {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Load(load) = e {
            let BufferLoad { buffer, indices, .. } = &**load;
            self.access(buffer, indices);
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Accesses<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store(store) => {
                self.fits &= store.buffer == *self.written;
                self.access(&store.buffer, &store.indices);
            }
            Stmt::Block(nested) => {
                let SBlockRealize { .. } = &**nested;
                self.fits = false;
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// A map over the axes `source`, carried over to a layout that follows the axes `target`: indices of axes that it has not are
/// dropped, and dimensions that follow other axes, or none, are added where they lie.
fn carried_over(source: &[Ref<Var>], map: &IndexMap, target: &Spatial) -> Option<IndexMap> {
    let of_target = |axis: &Ref<Var>| target.iter().flatten().any(|t| t == axis);
    let kept = source.iter().zip(&map.initial_indices).filter(|(axis, _)| of_target(axis)).map(|(_, var)| var.clone());
    let mut initial: Vec<Ref<Var>> = kept.collect();
    let mut last = Vec::with_capacity(map.final_indices.len());
    for index in &map.final_indices {
        let used = free_vars(index);
        let there = used.iter().filter(|v| initial.contains(v)).count();
        match there {
            _ if used.is_empty() => return None,
            n if n == used.len() => last.push(index.clone()),
            0 => {}
            // What mixes an axis that is dropped with one that stays has no meaning without it.
            _ => return None,
        }
    }
    let mut at = 0;
    for (i, axis) in target.iter().enumerate() {
        if axis.as_ref().is_some_and(|axis| source.contains(axis)) {
            at = (at + 1).min(last.len());
            continue;
        }
        let added = Var::dim("d");
        initial.insert(i.min(initial.len()), added.clone());
        last.insert(at, PrimExpr::from(&added));
        at += 1;
    }
    Some(IndexMap { initial_indices: initial, final_indices: last, inverse_index_map: None }.renewed())
}
