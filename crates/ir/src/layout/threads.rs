//! How axes of threads are parts of each other, on devices whose warps have 32 threads and whose warp groups have four warps.

use relaxide_ffi::Ref;

use super::coords::like;
use super::tile::Scopes;
use super::{Axis, Iter, LayoutError, Offsets, ScopeKind, TileLayout};
use crate::arith::Analyzer;
use crate::prim::{self, PrimExpr};

/// Whether it is known how threads are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// It is not: axes of threads stay apart.
    Unknown,
    /// Warps of 32 threads, groups of four warps.
    Warps,
}

/// An iterator over an axis that counts from the innermost of the scopes to the outermost; the same one where none does.
pub(super) fn fuse(iter: &Ref<Iter>, scopes: Scopes) -> Ref<Iter> {
    use ScopeKind::{Cta, Thread, Warp, Warpgroup};
    let (axis, factor) = match (iter.axis.name.as_str(), scopes.inner, scopes.outer) {
        ("warpid" | "wid_in_wg", Thread, Cta) => ("tx", 32),
        ("laneid" | "tid_in_wg", Thread, Cta) => ("tx", 1),
        ("wgid", Thread, Cta) => ("tx", 128),
        ("laneid", Thread, Warpgroup) => ("tid_in_wg", 1),
        ("wid_in_wg", Thread, Warpgroup) => ("tid_in_wg", 32),
        ("wgid", Warp, Cta) => ("warpid", 4),
        ("wid_in_wg", Warp, Cta) => ("warpid", 1),
        _ => return iter.clone(),
    };
    Iter::new(iter.extent.clone(), &iter.stride * like(&iter.stride, factor), &Axis::get(axis))
}

/// An axis, cut where another scope begins.
struct Cut {
    outer: &'static str,
    inner: &'static str,
    /// How many places the inner one has.
    places: i64,
}

fn cut(axis: &Axis, at: ScopeKind) -> Result<Option<Cut>, LayoutError> {
    let cut = |outer, inner, places| Ok(Some(Cut { outer, inner, places }));
    match (axis.name.as_str(), at) {
        ("tx", ScopeKind::Warp) => cut("warpid", "laneid", 32),
        ("tx", ScopeKind::Warpgroup) => cut("wgid", "tid_in_wg", 128),
        ("warpid", ScopeKind::Warp | ScopeKind::Warpgroup) => cut("wgid", "wid_in_wg", 4),
        ("tid_in_wg", ScopeKind::Warp) => cut("wid_in_wg", "laneid", 32),
        ("tx" | "warpid" | "laneid" | "wgid" | "tid_in_wg" | "wid_in_wg", _) => {
            Err(LayoutError::Unsplittable { axis: axis.name.clone(), scope: at.name() })
        }
        _ => Ok(None),
    }
}

/// The layout over axes that are cut where a scope begins. `None` where an iterator runs across the cut in unequal steps.
pub(super) fn cut_at(
    layout: &TileLayout,
    at: ScopeKind,
    counting: Counting,
) -> Result<Option<TileLayout>, LayoutError> {
    if counting == Counting::Unknown {
        return Ok(Some(layout.clone()));
    }
    let (mut shard, mut replica, mut offsets) = (Vec::new(), Vec::new(), Offsets::new());
    for (iters, parts) in [(&layout.shard, &mut shard), (&layout.replica, &mut replica)] {
        for iter in iters {
            match cut(&iter.axis, at)? {
                None => parts.push(iter.clone()),
                Some(cut) => match cut.apart(iter) {
                    Some(cut) => parts.extend(cut),
                    None => return Ok(None),
                },
            }
        }
    }
    let mut analyzer = Analyzer::new();
    for (axis, value) in layout.offsets() {
        match cut(&axis, at)? {
            None => offsets.push((axis, value)),
            Some(cut) => {
                offsets
                    .push((Axis::get(cut.outer), analyzer.simplify(&prim::floordiv(&value, like(&value, cut.places)))));
                offsets
                    .push((Axis::get(cut.inner), analyzer.simplify(&prim::floormod(&value, like(&value, cut.places)))));
            }
        }
    }
    offsets.retain(|(_, value)| !value.is_int(0));
    Ok(Some(TileLayout::new(shard, replica, offsets)))
}

impl Cut {
    fn apart(&self, iter: &Iter) -> Option<Vec<Ref<Iter>>> {
        let mut analyzer = Analyzer::new();
        let (outer, inner) = (Axis::get(self.outer), Axis::get(self.inner));
        let span = &iter.extent * &iter.stride;
        let whole =
            |analyzer: &mut Analyzer, a: PrimExpr, b: PrimExpr| analyzer.can_prove(&prim::eq(prim::floormod(a, b), 0));
        if analyzer.can_prove(&prim::lt(&span, self.places)) {
            return Some(vec![Iter::new(iter.extent.clone(), iter.stride.clone(), &inner)]);
        }
        let places = like(&iter.stride, self.places);
        if whole(&mut analyzer, places.clone(), iter.stride.clone()) && whole(&mut analyzer, span, places.clone()) {
            let within = analyzer.simplify(&prim::floordiv(&places, &iter.stride));
            let across = analyzer.simplify(&prim::floordiv(&iter.extent, &within));
            let one = like(&across, 1);
            return Some(vec![Iter::new(across, one, &outer), Iter::new(within, iter.stride.clone(), &inner)]);
        }
        if whole(&mut analyzer, iter.stride.clone(), places.clone()) {
            let stride = analyzer.simplify(&prim::floordiv(&iter.stride, &places));
            return Some(vec![Iter::new(iter.extent.clone(), stride, &outer)]);
        }
        None
    }
}
