//! Slices: the layout of a region of a tile.

use relaxide_ffi::Ref;

use super::coords::like;
use super::group::group;
use super::tile::add_offset;
use super::{Counting, Iter, Layout, LayoutError, Offsets, TileLayout};
use crate::arith::Analyzer;
use crate::prim::{self, PrimExpr};

/// A part of a dimension.
#[derive(Clone, Debug)]
pub struct DimSlice {
    /// Where it begins.
    pub begin: PrimExpr,
    /// How long it is.
    pub extent: PrimExpr,
}

impl Layout {
    /// The layout of a region of a tile of a shape. The region must lie within the shape. `None` where no layout is known to be it.
    pub fn slice(
        &self,
        shape: &[PrimExpr],
        region: &[DimSlice],
        counting: Counting,
    ) -> Result<Option<Layout>, LayoutError> {
        if shape.len() != region.len() {
            return Err(LayoutError::Length {
                what: "ranges of the region",
                expected: shape.len(),
                given: region.len(),
            });
        }
        // The whole layout comes to its canonical form first: parts of one could join axes of threads that others keep apart.
        let grouped = group(&self.tile_over(shape).canonical(counting)?, shape)?;
        let (mut shard, mut offsets) = (Vec::new(), grouped.layout.offsets());
        for (iters, part) in grouped.groups().zip(region) {
            let own = TileLayout::new(iters.to_vec(), Vec::new(), Offsets::new()).canonical(counting)?;
            let Some((iters, begin)) = slice_of_dimension(&own.shard, part) else { return Ok(None) };
            shard.extend(iters);
            for (axis, value) in begin {
                add_offset(&mut offsets, &axis, value);
            }
        }
        Ok(Some(self.over(TileLayout::new(shard, grouped.layout.replica.clone(), offsets))))
    }
}

/// The iterators of a part of a dimension, and where it begins.
fn slice_of_dimension(shard: &[Ref<Iter>], part: &DimSlice) -> Option<(Vec<Ref<Iter>>, Offsets)> {
    let mut analyzer = Analyzer::new();
    let extent = analyzer.simplify(&part.extent);
    let begins = begin_of(shard, &part.begin, &mut analyzer);
    let mut offsets = Offsets::new();
    for (iter, begin) in shard.iter().zip(&begins) {
        add_offset(&mut offsets, &iter.axis, analyzer.simplify(&(begin * &iter.stride)));
    }
    if let [only] = shard {
        return Some((vec![Iter::new(extent, only.stride.clone(), &only.axis)], offsets));
    }
    // The fastest iterators that the part runs through whole stay as they are.
    let (mut rest, mut at) = (extent, shard.len());
    while let Some(place) = at.checked_sub(1) {
        let whole = analyzer.can_prove_equal(&begins[place], &like(&begins[place], 0))
            && analyzer.can_prove(&prim::eq(prim::floormod(&rest, &shard[place].extent), 0));
        if !whole {
            break;
        }
        rest = analyzer.simplify(&prim::floordiv(&rest, &shard[place].extent));
        at = place;
    }
    let (cut, whole) = shard.split_at(at);
    let Some((pivot, above)) = cut.split_last() else {
        return rest.is_int(1).then(|| (whole.to_vec(), offsets));
    };
    let begin = &begins[above.len()];
    let mut iters = if analyzer.can_prove(&prim::le(begin + &rest, &pivot.extent)) {
        vec![Iter::new(rest, pivot.stride.clone(), &pivot.axis)]
    } else {
        two_halves(Crossing { pivot, above, begins: &begins, rest }, &mut analyzer)?
    };
    iters.extend_from_slice(whole);
    Some((iters, offsets))
}

/// The coordinate at which a part begins.
fn begin_of(shard: &[Ref<Iter>], begin: &PrimExpr, analyzer: &mut Analyzer) -> Vec<PrimExpr> {
    let mut rest = begin.clone();
    let mut coord = Vec::with_capacity(shard.len());
    for iter in shard.iter().rev() {
        // Of a single iterator the part lies within it: a remainder would only hide where it begins.
        let at = if shard.len() == 1 { rest.clone() } else { prim::floormod(&rest, &iter.extent) };
        coord.push(analyzer.simplify(&at));
        rest = prim::floordiv(&rest, &iter.extent);
    }
    coord.reverse();
    coord
}

/// A part that runs beyond the end of an iterator.
struct Crossing<'a> {
    pivot: &'a Ref<Iter>,
    above: &'a [Ref<Iter>],
    begins: &'a [PrimExpr],
    rest: PrimExpr,
}

/// A part of which one half ends an iterator and the other begins its next round.
fn two_halves(of: Crossing<'_>, analyzer: &mut Analyzer) -> Option<Vec<Ref<Iter>>> {
    let Crossing { pivot, above, begins, rest } = of;
    let half = analyzer.simplify(&prim::floordiv(&rest, like(&rest, 2)));
    let even = analyzer.can_prove(&prim::eq(prim::floormod(&rest, like(&rest, 2)), 0));
    if !even || !analyzer.can_prove_equal(&(&begins[above.len()] + &half), &pivot.extent) {
        return None;
    }
    // The second half begins where the iterator above goes on by one, which must not end itself. The slowest does not: the part lies within
    // the dimension.
    let next = above.last()?;
    let goes_on = above.len() == 1
        || analyzer.can_prove(&prim::lt(&begins[above.len() - 1] + like(&begins[above.len() - 1], 1), &next.extent));
    if !goes_on || next.axis.name != pivot.axis.name {
        return None;
    }
    let back = prim::sub(&pivot.extent, &half) * &pivot.stride;
    let step = analyzer.simplify(&(&next.stride - back));
    let two = like(&half, 2);
    Some(vec![Iter::new(two, step, &pivot.axis), Iter::new(half, pivot.stride.clone(), &pivot.axis)])
}
