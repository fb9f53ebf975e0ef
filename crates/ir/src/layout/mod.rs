//! Layouts over the threads and the memory of a device: which element of a tile lies where.
//!
//! A [`TileLayout`] takes the flat index of an element apart by the extents of its *shard*, the last iterator running fastest, and adds
//! `index * stride` to the axis of each iterator. Axes are threads (lanes of a warp, warps of a block …) and memories. *Replicas* say which
//! other places hold the same elements, and an *offset* is added to each axis:
//!
//! ```text
//! S[(8, 4, 2) : (4@laneid, 1@laneid, 1)]      element i -> lane i // 2, register i % 2
//! S[8 : 4@laneid] + R[4 : 1@laneid]           element i is held by lanes 4 * i .. 4 * i + 4
//! ```
//!
//! A [`ComposeLayout`] permutes the memory address that a tile layout gives, within rows of atoms (a *swizzle*), so that columns spread over
//! memory banks.
//!
//! Layouts are nodes; operations make new ones, and there is one file for each: [`canonical`] forms, [`group`]ing by a shape, [`tiling`],
//! direct [`sum`]s, [`slice`]s, [`apply`]ing one to a coordinate. What must hold of extents and strides is asked of the arithmetic analyzer;
//! what it does not prove is refused.
//!
//! The operations and their results are those of TVM's `tirx.layout`. It differs in three places, where TVM's result is another layout:
//! groups of four warps become warps when layouts are brought to warps, offsets are split between threads and warps by value, and an
//! iterator of threads that does not split is refused instead of dropped.

pub mod apply;
mod axis;
pub mod canonical;
mod coords;
mod display;
mod error;
pub mod group;
mod placement;
mod scope;
mod scope_ids;
pub mod slice;
pub mod sum;
mod swizzle;
mod threads;
mod tile;
pub mod tiling;

#[cfg(test)]
mod tests;

use relaxide_ffi::{ObjectEnum, Ref};

use crate::PrimExpr;

pub use axis::{AXES, Axis};
pub use coords::{flatten, split};
pub use error::LayoutError;
pub use placement::Placement;
pub use scope::{ExecScope, ScopeBinding, ScopeIdDef, ScopeKind};
pub use scope_ids::check_scope_ids;
pub use swizzle::ComposeLayout;
pub use threads::Counting;
pub use tile::{Iter, Offsets, TileLayout};

/// Where elements lie.
#[derive(ObjectEnum, Debug)]
pub enum Layout {
    /// By strides along axes.
    Tile(Ref<TileLayout>),
    /// By strides, and a permutation of addresses behind them.
    Compose(Ref<ComposeLayout>),
}

impl Layout {
    /// The map of the elements before the permutation.
    pub fn tile_layout(&self) -> &Ref<TileLayout> {
        match self {
            Layout::Tile(tile) => tile,
            Layout::Compose(compose) => &compose.tile_layout,
        }
    }

    /// How many elements it places, or how many along an axis.
    pub fn size(&self, axis: Option<&str>) -> Result<PrimExpr, LayoutError> {
        self.with_axis(axis, TileLayout::size)
    }

    /// One more than the furthest place along an axis; along the memory axes where none is named.
    pub fn span(&self, axis: Option<&str>) -> Result<PrimExpr, LayoutError> {
        self.with_axis(axis, TileLayout::span)
    }

    fn with_axis(
        &self,
        axis: Option<&str>,
        of: impl Fn(&TileLayout, Option<&str>) -> PrimExpr,
    ) -> Result<PrimExpr, LayoutError> {
        match (self, axis) {
            (Layout::Compose(_), Some(axis)) => Err(LayoutError::AxisOfSwizzle { axis: axis.to_string() }),
            _ => Ok(of(self.tile_layout(), axis)),
        }
    }

    /// Whether its axes of threads are nested without a gap. An error says where they contradict each other.
    pub fn check_scopes(&self) -> Result<(), LayoutError> {
        self.tile_layout().scopes().map(|_| ())
    }

    /// The same map, with another tile layout in front of the permutation.
    pub(crate) fn over(&self, tile: TileLayout) -> Layout {
        match self {
            Layout::Tile(_) => tile.into(),
            Layout::Compose(compose) => compose.over(tile).into(),
        }
    }
}

impl From<TileLayout> for Layout {
    fn from(layout: TileLayout) -> Layout {
        Layout::Tile(Ref::new(layout))
    }
}

impl From<ComposeLayout> for Layout {
    fn from(layout: ComposeLayout) -> Layout {
        Layout::Compose(Ref::new(layout))
    }
}
