//! [`TileLayout`]: iterators with strides along axes.

use relaxide_ffi::{Map, Object, Ref};

use super::coords::like;
use super::scope::ScopeKind;
use super::{Axis, LayoutError};
use crate::PrimExpr;
use crate::arith::Analyzer;
use crate::prim;

/// `extent` steps of `stride` along an axis.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.Iter")]
pub struct Iter {
    /// How many places it has.
    pub extent: PrimExpr,
    /// How far apart they are.
    pub stride: PrimExpr,
    /// Along what.
    pub axis: Ref<Axis>,
}

impl Iter {
    /// An iterator.
    pub fn new(extent: PrimExpr, stride: PrimExpr, axis: &Ref<Axis>) -> Ref<Iter> {
        Ref::new(Iter { extent, stride, axis: axis.clone() })
    }
}

/// What is added to each axis.
pub type Offsets = Vec<(Ref<Axis>, PrimExpr)>;

/// A map from the flat index of an element to places along axes.
#[derive(Object, Debug, Clone)]
#[object(key = "tirx.TileLayout", parent = "tirx.Layout")]
pub struct TileLayout {
    /// The iterators over the elements, slowest first.
    pub shard: Vec<Ref<Iter>>,
    /// The iterators over the places that hold copies of an element.
    pub replica: Vec<Ref<Iter>>,
    /// From axes to expressions, see [`offsets`](TileLayout::offsets).
    pub offset: Map,
}

/// The outermost and the innermost unit that a layout counts threads by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes {
    /// What is counted at the bottom.
    pub inner: ScopeKind,
    /// Within what at the top.
    pub outer: ScopeKind,
}

impl TileLayout {
    /// A layout of its parts. An offset of an axis that comes twice is the sum.
    pub fn new(shard: Vec<Ref<Iter>>, replica: Vec<Ref<Iter>>, offsets: Offsets) -> TileLayout {
        let mut sums = Offsets::new();
        for (axis, value) in offsets {
            add_offset(&mut sums, &axis, value);
        }
        TileLayout { shard, replica, offset: sums.into_iter().collect() }
    }

    /// Elements one behind another in memory, the last dimension fastest.
    pub fn compact(shape: &[PrimExpr]) -> TileLayout {
        let axis = Axis::memory();
        let Some(first) = shape.first() else { return TileLayout::new(Vec::new(), Vec::new(), Vec::new()) };
        let mut stride = like(first, 1);
        let mut shard = Vec::with_capacity(shape.len());
        for extent in shape.iter().rev() {
            shard.push(Iter::new(extent.clone(), stride.clone(), &axis));
            stride = stride * extent;
        }
        shard.reverse();
        TileLayout::new(shard, Vec::new(), Vec::new())
    }

    /// As many elements as a shape has, as one dimension of memory.
    pub(super) fn flat(shape: &[PrimExpr]) -> TileLayout {
        let Some(extent) = shape.iter().cloned().reduce(prim::mul) else { return TileLayout::compact(shape) };
        TileLayout::compact(&[extent])
    }

    /// What is added to each axis.
    pub fn offsets(&self) -> Offsets {
        self.offset.iter().filter_map(|(axis, value)| Some((axis.to().ok()?, value.to().ok()?))).collect()
    }

    /// The extents of the iterators over elements.
    pub fn extents(&self) -> Vec<PrimExpr> {
        self.shard.iter().map(|iter| iter.extent.clone()).collect()
    }

    pub(super) fn size(&self, axis: Option<&str>) -> PrimExpr {
        let along = self.shard.iter().filter(|iter| axis.is_none_or(|axis| iter.axis.name == axis));
        along.map(|iter| iter.extent.clone()).reduce(prim::mul).unwrap_or_else(one)
    }

    pub(super) fn span(&self, axis: Option<&str>) -> PrimExpr {
        let asked = |of: &Axis| axis.map_or_else(|| of.is_memory(), |name| of.name == name);
        let iters = self.shard.iter().chain(&self.replica).filter(|iter| asked(&iter.axis));
        let spans = iters.map(|iter| (&iter.extent - like(&iter.extent, 1)) * &iter.stride);
        let offsets = self.offsets().into_iter().filter(|(axis, _)| asked(axis)).map(|(_, value)| value);
        let last = spans.chain(offsets).reduce(prim::add);
        Analyzer::new().simplify(&last.map_or_else(one, |last| {
            let one = like(&last, 1);
            last + one
        }))
    }

    /// What remains of it within a thread: its iterators and offsets along memories.
    pub fn storage(&self) -> TileLayout {
        let within = |iters: &[Ref<Iter>]| iters.iter().filter(|iter| iter.axis.is_memory()).cloned().collect();
        let offsets = self.offsets().into_iter().filter(|(axis, _)| axis.is_memory()).collect();
        TileLayout::new(within(&self.shard), within(&self.replica), offsets)
    }

    /// Whether element `i` lies at address `i`, as far as one iterator shows it.
    pub fn is_trivial(&self) -> bool {
        let plain = |iter: &Ref<Iter>| iter.axis.is_memory() && iter.stride.is_int(1);
        self.shard.len() <= 1 && self.shard.iter().all(plain) && self.replica.is_empty() && self.offset.is_empty()
    }

    /// Whether all its memories are those of Trainium.
    pub fn is_trainium(&self) -> bool {
        let known = |axis: &Axis| matches!(axis.name.as_str(), "P" | "F" | "Bank");
        self.shard.iter().all(|iter| iter.axis.is_thread() || known(&iter.axis))
    }

    /// By which units it counts threads; `None` where it does not. An error says what is missing between them.
    pub fn scopes(&self) -> Result<Option<Scopes>, LayoutError> {
        if !self.shard.iter().any(|iter| iter.axis.is_thread()) {
            return Ok(None);
        }
        let offsets = self.offsets();
        let axes = self.shard.iter().chain(&self.replica).map(|iter| &iter.axis).chain(offsets.iter().map(|(a, _)| a));
        let mut chain: Vec<(ScopeKind, ScopeKind)> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for axis in axes {
            let (Some(subscope), Some(scope)) = (axis.subscope(), axis.scope()) else { continue };
            match chain.iter().find(|(counted, _)| *counted == subscope) {
                Some((_, first)) if *first != scope => {
                    let (subscope, first, second) = (subscope.name(), first.name(), scope.name());
                    return Err(LayoutError::Conflict { subscope, first, second });
                }
                Some(_) => {}
                None => chain.push((subscope, scope)),
            }
            names.push(&axis.name);
        }
        let Some(inner) = chain.iter().map(|(counted, _)| *counted).max() else { return Ok(None) };
        let (mut outer, mut links) = (inner, 0);
        while links < chain.len()
            && let Some((_, scope)) = chain.iter().find(|(counted, _)| *counted == outer)
        {
            outer = *scope;
            links += 1;
        }
        if links != chain.len() {
            return Err(LayoutError::Gap { axes: names.join(", ") });
        }
        Ok(Some(Scopes { inner, outer }))
    }
}

/// The literal one, of the type that TVM's literals have.
fn one() -> PrimExpr {
    prim::int_of(relaxide_ffi::DataType::int(32), 1)
}

/// Adds to the offset of an axis.
pub(super) fn add_offset(offsets: &mut Offsets, axis: &Ref<Axis>, value: PrimExpr) {
    match offsets.iter_mut().find(|(of, _)| of.name == axis.name) {
        Some((_, sum)) => *sum = Analyzer::new().simplify(&prim::add(&*sum, value)),
        None => offsets.push((axis.clone(), value)),
    }
}

/// The offsets of one layout less those of another.
pub(super) fn without_offsets(of: &TileLayout, less: &TileLayout) -> Offsets {
    let mut offsets = of.offsets();
    for (axis, value) in less.offsets() {
        let zero = like(&value, 0);
        add_offset(&mut offsets, &axis, zero - value);
    }
    offsets
}
