//! Direct sums: two layouts over the product of their domains, whose places are added.
//!
//! Per dimension, the iterators of the left layout come in front of those of the right one; unlike in a tiling, strides stay as they are.

use super::group::group;
use super::tile::{add_offset, without_offsets};
use super::tiling::{interleaved, same_iter, same_rank, without};
use super::{Counting, Layout, LayoutError, TileLayout};
use crate::PrimExpr;
use crate::arith::Analyzer;

impl Layout {
    /// The sum of a left layout and this one.
    pub fn direct_sum(
        &self,
        left: &TileLayout,
        left_shape: &[PrimExpr],
        right_shape: &[PrimExpr],
        counting: Counting,
    ) -> Result<Layout, LayoutError> {
        same_rank(left_shape, right_shape, "dimensions of the right shape")?;
        let left = group(&left.canonical(counting)?, left_shape)?;
        let right = group(&self.tile_over(right_shape).canonical(counting)?, right_shape)?;
        let shard = interleaved(&left, &right);
        let replica = left.layout.replica.iter().chain(&right.layout.replica).cloned().collect();
        let mut offsets = left.layout.offsets();
        for (axis, value) in right.layout.offsets() {
            add_offset(&mut offsets, &axis, value);
        }
        Ok(self.over(TileLayout::new(shard, replica, offsets).canonical(counting)?))
    }

    /// The left layout of a sum of which this is the right one; `None` where it is not.
    pub fn left_of_sum(
        &self,
        sum: &Layout,
        interleaved_shape: &[PrimExpr],
        right_shape: &[PrimExpr],
        counting: Counting,
    ) -> Result<Option<TileLayout>, LayoutError> {
        self.rest_of_sum(sum, interleaved_shape, right_shape, KnownAddend::Right, counting)
    }

    /// The right layout of a sum of which this is the left one; `None` where it is not.
    pub fn right_of_sum(
        &self,
        sum: &Layout,
        interleaved_shape: &[PrimExpr],
        left_shape: &[PrimExpr],
        counting: Counting,
    ) -> Result<Option<TileLayout>, LayoutError> {
        self.rest_of_sum(sum, interleaved_shape, left_shape, KnownAddend::Left, counting)
    }

    fn rest_of_sum(
        &self,
        sum: &Layout,
        interleaved_shape: &[PrimExpr],
        shape: &[PrimExpr],
        known: KnownAddend,
        counting: Counting,
    ) -> Result<Option<TileLayout>, LayoutError> {
        if !self.permutes_like(sum) {
            return Ok(None);
        }
        if interleaved_shape.len() != 2 * shape.len() {
            let (what, expected) = ("dimensions of the interleaved shape", 2 * shape.len());
            return Err(LayoutError::Length { what, expected, given: interleaved_shape.len() });
        }
        let whole = sum.tile_over(interleaved_shape).canonical(counting)?;
        let addend = self.tile_over(shape).canonical(counting)?;
        let (parts, own) = (group(&whole, interleaved_shape)?, group(&addend, shape)?);
        let mut analyzer = Analyzer::new();
        let mut shard = Vec::new();
        for dim in 0..shape.len() {
            let (left, right) = (parts.group(2 * dim), parts.group(2 * dim + 1));
            let (mine, rest) = if known == KnownAddend::Left { (left, right) } else { (right, left) };
            let expected = own.group(dim);
            if mine.len() != expected.len() || !mine.iter().zip(expected).all(|(a, b)| same_iter(a, b, &mut analyzer)) {
                return Ok(None);
            }
            shard.extend_from_slice(rest);
        }
        let offsets = without_offsets(&whole, &addend);
        Ok(Some(TileLayout::new(shard, without(&whole.replica, &addend.replica), offsets)))
    }
}

/// Which of the addends is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownAddend {
    Left,
    Right,
}
