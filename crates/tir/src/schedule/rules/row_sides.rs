//! What a row's value is on a side of an interval.
//!
//! ```text
//! if_then_else(1 <= x < w + 1, A[x - 1], A[max(min(x - 1, w - 1), 0)])     # padding with the nearest element
//! ```
//! In front of the interval `x` is less than 1, so that the index there is 0, and behind it, `w - 1`: one element, not one for each lane. An index that
//! is no constant there may become linear, which is a vector in place of a gather.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, VarMap, sub, substitute};

use super::super::affine::{loads, uses};

/// A value for places of an axis from `from` on, below `to`, with the indices of its loads as simple as they are there; `None` where none moves along
/// the axis. It is to be computed where there is such a place.
pub(super) fn on_side(value: &PrimExpr, axis: &Ref<Var>, from: &PrimExpr, to: &PrimExpr) -> Option<PrimExpr> {
    let found = loads(value);
    if !found.iter().any(|load| load.indices.iter().any(|index| uses(index, axis))) {
        return None;
    }
    let mut analyzer = Analyzer::new();
    for load in &found {
        analyzer.mark_dims(&load.buffer.shape);
    }
    let length = analyzer.simplify(&sub(to, from));
    if length.as_int().is_some_and(|length| length < 1) {
        return None;
    }
    if length.is_int(1) {
        let value = substitute(value, &VarMap::from_iter([(axis.clone(), from.clone())]));
        return Some(Indices(analyzer).mutate_prim(&value));
    }
    analyzer.bind(axis, from.clone(), length);
    Some(Indices(analyzer).mutate_prim(value))
}

/// Makes indices simpler.
struct Indices(Analyzer);

impl PrimMutator for Indices {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(load) => {
                let indices = load.indices.iter().map(|index| self.0.simplify(index)).collect();
                let (buffer, predicate) = (load.buffer.clone(), load.predicate.clone());
                Ref::new(BufferLoad { buffer, indices, predicate }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}
