//! The canonical form of a layout.
//!
//! Iterators of one place go, axes of threads become one axis where it is known how threads are counted, neighbours that continue each other
//! become one iterator, offsets of zero go, and replicas are sorted:
//!
//! ```text
//! S[(8, 1, 4, 2) : (4@laneid, 2, 1@laneid, 1)]   ->   S[(32, 2) : (1@laneid, 1)]
//! ```

use relaxide_ffi::Ref;

use super::coords::like;
use super::threads::{Counting, fuse};
use super::tile::add_offset;
use super::{Iter, Layout, LayoutError, Offsets, TileLayout};
use crate::arith::Analyzer;

impl Layout {
    /// The canonical form.
    pub fn canonical(&self, counting: Counting) -> Result<Layout, LayoutError> {
        Ok(self.over(self.tile_layout().canonical(counting)?))
    }
}

impl TileLayout {
    /// The canonical form.
    pub fn canonical(&self, counting: Counting) -> Result<TileLayout, LayoutError> {
        let layout = TileLayout {
            shard: without_units(&self.shard),
            replica: self.replica.clone(),
            offset: self.offsets().into_iter().filter(|(_, value)| !value.is_int(0)).collect(),
        };
        let TileLayout { shard, mut replica, offset } = fuse_axes(layout, counting)?;
        let shard = joined(&shard);
        replica.sort_by_cached_key(|iter| format!("{} {} {}", iter.axis.name, iter.stride, iter.extent));
        Ok(TileLayout { shard, replica, offset })
    }
}

/// The iterators of more than one place; one remains where all have one.
fn without_units(shard: &[Ref<Iter>]) -> Vec<Ref<Iter>> {
    let mut kept: Vec<_> = shard.iter().filter(|iter| !iter.extent.is_int(1)).cloned().collect();
    if let (true, Some(first)) = (kept.is_empty(), shard.first()) {
        let one = like(&first.extent, 1);
        kept.push(Iter::new(one.clone(), one, &first.axis));
    }
    kept
}

/// Iterators over axes of threads, over the one axis from their innermost scope to their outermost.
fn fuse_axes(layout: TileLayout, counting: Counting) -> Result<TileLayout, LayoutError> {
    if counting == Counting::Unknown {
        return Ok(layout);
    }
    let Some(scopes) = layout.scopes()? else { return Ok(layout) };
    let along = |iters: &[Ref<Iter>]| iters.iter().map(|iter| fuse(iter, scopes)).collect();
    let mut offsets = Offsets::new();
    for (axis, value) in layout.offsets() {
        let one = like(&value, 1);
        let fused = fuse(&Iter::new(one, value, &axis), scopes);
        add_offset(&mut offsets, &fused.axis, fused.stride.clone());
    }
    Ok(TileLayout::new(along(&layout.shard), along(&layout.replica), offsets))
}

/// Neighbours that continue each other as one iterator.
fn joined(shard: &[Ref<Iter>]) -> Vec<Ref<Iter>> {
    let mut analyzer = Analyzer::new();
    let mut joined: Vec<Ref<Iter>> = Vec::with_capacity(shard.len());
    for iter in shard {
        match joined.last_mut() {
            Some(last)
                if last.axis.name == iter.axis.name
                    && analyzer.can_prove_equal(&(&iter.extent * &iter.stride), &last.stride) =>
            {
                *last = Iter::new(&last.extent * &iter.extent, iter.stride.clone(), &last.axis);
            }
            _ => joined.push(iter.clone()),
        }
    }
    joined
}
