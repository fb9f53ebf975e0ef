//! Where an element lies: a layout applied to its coordinate.

use relaxide_ffi::Ref;

use super::coords::{flatten, split};
use super::group::group;
use super::{Axis, Layout, LayoutError, TileLayout};
use crate::PrimExpr;
use crate::arith::Analyzer;
use crate::prim;

/// Places along axes.
pub type Places = Vec<(Ref<Axis>, PrimExpr)>;

impl Layout {
    /// The places of the element with a flat index.
    pub fn apply_flat(&self, index: &PrimExpr) -> Result<Places, LayoutError> {
        let tile = self.tile_layout();
        let places = tile.apply(&split(index, &tile.extents()))?;
        match self {
            Layout::Tile(_) => Ok(places),
            Layout::Compose(compose) => compose.permute(places),
        }
    }

    /// The places of the element at a coordinate over the iterators.
    pub fn apply(&self, coord: &[PrimExpr]) -> Result<Places, LayoutError> {
        match self {
            Layout::Tile(tile) => tile.apply(coord),
            Layout::Compose(compose) => compose.apply_parts(&compose.tile_layout, coord),
        }
    }

    /// The places of the element at a coordinate over a shape.
    ///
    /// Where the iterators fall into groups that have the extents of the shape, each part of the coordinate is split within its group, which
    /// keeps quotients and remainders small; else the flat index is taken apart.
    pub fn apply_over(&self, coord: &[PrimExpr], shape: &[PrimExpr]) -> Result<Places, LayoutError> {
        if coord.len() != shape.len() {
            return Err(LayoutError::Length {
                what: "parts of a coordinate",
                expected: shape.len(),
                given: coord.len(),
            });
        }
        let Ok(grouped) = group(self.tile_layout(), shape) else {
            return match self {
                Layout::Tile(_) => self.apply_flat(&flatten(coord, shape)),
                Layout::Compose(compose) => {
                    let tile = Layout::Tile(compose.tile_layout.clone());
                    compose.permute_once(tile.apply_flat(&flatten(coord, shape))?)
                }
            };
        };
        let parts: Vec<PrimExpr> = grouped
            .groups()
            .zip(coord)
            .flat_map(|(iters, at)| split(at, &iters.iter().map(|iter| iter.extent.clone()).collect::<Vec<_>>()))
            .collect();
        match self {
            Layout::Tile(_) => grouped.layout.apply(&parts),
            Layout::Compose(compose) => compose.apply_parts(&grouped.layout, &parts),
        }
    }
}

impl TileLayout {
    /// The places of the element at a coordinate over the iterators.
    pub fn apply(&self, coord: &[PrimExpr]) -> Result<Places, LayoutError> {
        if coord.len() != self.shard.len() {
            let (expected, given) = (self.shard.len(), coord.len());
            return Err(LayoutError::Length { what: "parts of a coordinate over the shard", expected, given });
        }
        let mut analyzer = Analyzer::new();
        let mut places = Places::new();
        let mut add = |axis: &Ref<Axis>, value: PrimExpr| match places.iter_mut().find(|(of, _)| of.name == axis.name) {
            Some((_, sum)) => *sum = analyzer.simplify(&prim::add(&*sum, value)),
            None => places.push((axis.clone(), analyzer.simplify(&value))),
        };
        for (iter, at) in self.shard.iter().zip(coord) {
            add(&iter.axis, at * &iter.stride);
        }
        for (axis, value) in self.offsets() {
            add(&axis, value);
        }
        Ok(places)
    }
}
