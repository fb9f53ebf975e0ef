//! Tiling: tiles of an inner layout, placed as an outer one says, and the way back.
//!
//! Per dimension, the iterators of the outer layout come in front of those of the inner one, and their strides grow by the span of the inner
//! layout along the same axis:
//!
//! ```text
//! inner S[(2, 4) : (1, 2)], outer S[(8, 8) : (8, 1)]   ->   S[(8, 2, 8, 4) : (64, 1, 8, 2)]
//! ```

use relaxide_ffi::Ref;

use super::group::{Grouped, group};
use super::threads::{Counting, cut_at};
use super::tile::add_offset;
use super::{Iter, Layout, LayoutError, TileLayout, tile::without_offsets};
use crate::PrimExpr;
use crate::arith::{self, Analyzer};
use crate::prim;

impl Layout {
    /// Tiles of this layout, placed by an outer one.
    pub fn tiled(
        &self,
        outer: &TileLayout,
        outer_shape: &[PrimExpr],
        inner_shape: &[PrimExpr],
        counting: Counting,
    ) -> Result<Layout, LayoutError> {
        let inner = self.tile_over(inner_shape);
        Ok(self.over(tiled(&inner, outer, outer_shape, inner_shape, counting)?))
    }

    /// The outer layout of a tiled one of which this is the inner; `None` where it is not.
    pub fn outer_of(
        &self,
        tiled: &Layout,
        tiled_shape: &[PrimExpr],
        inner_shape: &[PrimExpr],
        counting: Counting,
    ) -> Result<Option<TileLayout>, LayoutError> {
        if !self.permutes_like(tiled) {
            return Ok(None);
        }
        outer_of(&self.tile_over(inner_shape), &tiled.tile_over(tiled_shape), tiled_shape, inner_shape, counting)
    }

    /// The inner layout of a tiled one of which this is the outer; `None` where it is not.
    pub fn inner_of(
        &self,
        tiled: &Layout,
        tiled_shape: &[PrimExpr],
        outer_shape: &[PrimExpr],
        counting: Counting,
    ) -> Result<Option<Layout>, LayoutError> {
        let Layout::Tile(outer) = self else { return Ok(None) };
        let inner = inner_of(outer, tiled.tile_layout(), tiled_shape, outer_shape, counting)?;
        Ok(inner.map(|inner| tiled.over(inner)))
    }

    /// The tile layout; of a permutation that says nothing else, as many elements in a row as the shape has.
    pub(super) fn tile_over(&self, shape: &[PrimExpr]) -> Ref<TileLayout> {
        match self {
            Layout::Compose(compose) if compose.tile_layout.is_trivial() => Ref::new(TileLayout::flat(shape)),
            _ => self.tile_layout().clone(),
        }
    }

    /// Whether both permute addresses in the same way, or both do not.
    pub(super) fn permutes_like(&self, other: &Layout) -> bool {
        match (self, other) {
            (Layout::Tile(_), Layout::Tile(_)) => true,
            (Layout::Compose(a), Layout::Compose(b)) => a.permutes_like(b),
            _ => false,
        }
    }
}

pub(super) fn same_rank(a: &[PrimExpr], b: &[PrimExpr], what: &'static str) -> Result<(), LayoutError> {
    match a.len() == b.len() {
        true => Ok(()),
        false => Err(LayoutError::Length { what, expected: a.len(), given: b.len() }),
    }
}

/// The iterators of two layouts, per dimension those of the first in front.
pub(super) fn interleaved(first: &Grouped, second: &Grouped) -> Vec<Ref<Iter>> {
    first.groups().zip(second.groups()).flat_map(|(a, b)| a.iter().chain(b)).cloned().collect()
}

fn tiled(
    inner: &TileLayout,
    outer: &TileLayout,
    outer_shape: &[PrimExpr],
    inner_shape: &[PrimExpr],
    counting: Counting,
) -> Result<TileLayout, LayoutError> {
    same_rank(outer_shape, inner_shape, "dimensions of the inner shape")?;
    let mut outer = group(&outer.canonical(counting)?, outer_shape)?;
    let inner = group(&inner.canonical(counting)?, inner_shape)?;
    let spans = Spans::of(&inner.layout);
    outer.layout.shard = outer.layout.shard.iter().map(|iter| spans.grown(iter)).collect();
    let shard = interleaved(&outer, &inner);
    let replica = inner.layout.replica.iter().chain(&outer.layout.replica).cloned().collect();
    let mut offsets = inner.layout.offsets();
    for (axis, value) in outer.layout.offsets() {
        add_offset(&mut offsets, &axis, value);
    }
    TileLayout::new(shard, replica, offsets).canonical(counting)
}

/// How far a layout reaches along each of its axes.
struct Spans(Vec<(String, PrimExpr)>);

impl Spans {
    fn of(layout: &TileLayout) -> Spans {
        let mut spans: Vec<(String, PrimExpr)> = Vec::new();
        for iter in &layout.shard {
            let name = &iter.axis.name;
            if !spans.iter().any(|(axis, _)| axis == name) {
                spans.push((name.clone(), layout.span(Some(name))));
            }
        }
        Spans(spans)
    }

    fn along(&self, iter: &Iter) -> Option<&PrimExpr> {
        self.0.iter().find(|(axis, _)| *axis == iter.axis.name).map(|(_, span)| span)
    }

    /// An iterator of tiles, over the places that the tiles take.
    fn grown(&self, iter: &Ref<Iter>) -> Ref<Iter> {
        match self.along(iter) {
            Some(span) => Iter::new(iter.extent.clone(), &iter.stride * span, &iter.axis),
            None => iter.clone(),
        }
    }

    /// An iterator over places, of tiles; `None` where its steps are not whole tiles.
    fn shrunk(&self, iter: &Ref<Iter>, analyzer: &mut Analyzer) -> Option<Ref<Iter>> {
        let Some(span) = self.along(iter).filter(|_| !iter.extent.is_int(1)) else { return Some(iter.clone()) };
        let whole = analyzer.can_prove(&prim::eq(prim::floormod(&iter.stride, span), 0));
        let stride = analyzer.simplify(&prim::floordiv(&iter.stride, span));
        whole.then(|| Iter::new(iter.extent.clone(), stride, &iter.axis))
    }
}

/// Dimensions, each cut in two.
enum Halves<'a> {
    Inner(&'a [PrimExpr]),
    Outer(&'a [PrimExpr]),
}

impl Halves<'_> {
    /// `dim // factor, factor` for each dimension, or the other way round.
    fn of(&self, shape: &[PrimExpr]) -> Result<Vec<PrimExpr>, LayoutError> {
        let (Halves::Inner(factors) | Halves::Outer(factors)) = self;
        let mut analyzer = Analyzer::new();
        let mut halves = Vec::with_capacity(2 * shape.len());
        for (dim, factor) in shape.iter().zip(*factors) {
            if factor.is_int(0) || !analyzer.can_prove(&prim::eq(prim::floormod(dim, factor), 0)) {
                return Err(LayoutError::Indivisible { dim: dim.clone(), factor: factor.clone() });
            }
            let rest = analyzer.simplify(&prim::floordiv(dim, factor));
            match self {
                Halves::Inner(_) => halves.extend([rest, factor.clone()]),
                Halves::Outer(_) => halves.extend([factor.clone(), rest]),
            }
        }
        Ok(halves)
    }
}

/// The iterators of both halves of a dimension.
fn both_halves(grouped: &Grouped, dim: usize) -> Vec<Ref<Iter>> {
    grouped.group(2 * dim).iter().chain(grouped.group(2 * dim + 1)).cloned().collect()
}

fn outer_of(
    inner: &TileLayout,
    whole: &TileLayout,
    tiled_shape: &[PrimExpr],
    inner_shape: &[PrimExpr],
    counting: Counting,
) -> Result<Option<TileLayout>, LayoutError> {
    let (mut whole, inner) = (whole.canonical(counting)?, inner.canonical(counting)?);
    if let (Some(of_whole), Some(of_inner)) = (whole.scopes()?, inner.scopes()?) {
        if of_whole.inner != of_inner.inner || of_inner.outer.is_above(of_whole.outer) {
            return Ok(None);
        }
        if of_whole.outer.is_above(of_inner.outer) {
            match cut_at(&whole, of_inner.outer, counting)? {
                Some(cut) => whole = cut,
                None => return Ok(None),
            }
        }
    }
    same_rank(tiled_shape, inner_shape, "dimensions of the inner shape")?;
    let parts = group(&whole, &Halves::Inner(inner_shape).of(tiled_shape)?)?;
    let inner_parts = group(&inner, inner_shape)?;
    let (spans, mut analyzer) = (Spans::of(&inner), Analyzer::new());
    let mut shard = Vec::new();
    for dim in 0..tiled_shape.len() {
        let (iters, known) = (both_halves(&parts, dim), inner_parts.group(dim));
        let Some(split) = iters.len().checked_sub(known.len()) else { return Ok(None) };
        if !iters[split..].iter().zip(known).all(|(a, b)| same_iter(a, b, &mut analyzer)) {
            return Ok(None);
        }
        for iter in &iters[..split] {
            let Some(iter) = spans.shrunk(iter, &mut analyzer) else { return Ok(None) };
            shard.push(iter);
        }
    }
    let mut replica = Vec::new();
    for iter in without(&whole.replica, &inner.replica) {
        let Some(iter) = spans.shrunk(&iter, &mut analyzer) else { return Ok(None) };
        replica.push(iter);
    }
    Ok(Some(TileLayout::new(shard, replica, offsets_of_rest(&whole, &inner))))
}

fn inner_of(
    outer: &TileLayout,
    whole: &TileLayout,
    tiled_shape: &[PrimExpr],
    outer_shape: &[PrimExpr],
    counting: Counting,
) -> Result<Option<TileLayout>, LayoutError> {
    let (mut whole, outer) = (whole.canonical(counting)?, outer.canonical(counting)?);
    if let (Some(of_whole), Some(of_outer)) = (whole.scopes()?, outer.scopes()?) {
        if of_whole.outer != of_outer.outer || of_whole.inner.is_above(of_outer.inner) {
            return Ok(None);
        }
        if of_outer.inner.is_above(of_whole.inner) {
            match cut_at(&whole, of_outer.inner, counting)? {
                Some(cut) => whole = cut,
                None => return Ok(None),
            }
        }
    }
    same_rank(tiled_shape, outer_shape, "dimensions of the outer shape")?;
    let parts = group(&whole, &Halves::Outer(outer_shape).of(tiled_shape)?)?;
    let outer_parts = group(&outer, outer_shape)?;
    let mut analyzer = Analyzer::new();
    let mut shard = Vec::new();
    for dim in 0..tiled_shape.len() {
        let (iters, known) = (both_halves(&parts, dim), outer_parts.group(dim));
        let alike = |(a, b): (&Ref<Iter>, &Ref<Iter>)| {
            analyzer.can_prove_equal(&a.extent, &b.extent) && (b.extent.is_int(1) || a.axis.name == b.axis.name)
        };
        if known.len() > iters.len() || !iters.iter().zip(known).all(alike) {
            return Ok(None);
        }
        shard.extend_from_slice(&iters[known.len()..]);
    }
    let replica = without(&whole.replica, &outer.replica);
    let inner = TileLayout::new(shard, replica, offsets_of_rest(&whole, &outer));
    let inner_shape: Vec<PrimExpr> =
        tiled_shape.iter().zip(outer_shape).map(|(dim, part)| analyzer.simplify(&prim::floordiv(dim, part))).collect();
    let again = tiled(&inner, &outer, outer_shape, &inner_shape, counting)?.canonical(counting)?;
    let same = relaxide_ffi::structural_equal(
        &Ref::new(again),
        &Ref::new(whole.canonical(counting)?),
        relaxide_ffi::FreeVars::Same,
    )
    .is_ok();
    Ok(same.then_some(inner))
}

/// The offsets of a layout less those of a part of it, on axes that the whole has an offset of.
fn offsets_of_rest(whole: &TileLayout, part: &TileLayout) -> super::Offsets {
    let kept = whole.offsets();
    let mut rest = without_offsets(whole, part);
    rest.retain(|(axis, _)| kept.iter().any(|(of, _)| of.name == axis.name));
    rest
}

/// Whether two iterators go to the same places. Of a single place, only that it is one counts.
pub(super) fn same_iter(a: &Iter, b: &Iter, analyzer: &mut Analyzer) -> bool {
    analyzer.can_prove_equal(&a.extent, &b.extent)
        && (a.extent.is_int(1) || (a.axis.name == b.axis.name && analyzer.can_prove_equal(&a.stride, &b.stride)))
}

/// The replicas of the one that the other does not have.
pub(super) fn without(of: &[Ref<Iter>], less: &[Ref<Iter>]) -> Vec<Ref<Iter>> {
    let same = |a: &Iter, b: &Iter| {
        a.axis.name == b.axis.name && arith::same(&a.extent, &b.extent) && arith::same(&a.stride, &b.stride)
    };
    of.iter().filter(|a| !less.iter().any(|b| same(a, b))).cloned().collect()
}
