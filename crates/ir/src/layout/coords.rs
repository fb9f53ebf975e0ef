//! Coordinates and flat indices.

use crate::PrimExpr;
use crate::prim;

/// The flat index of an element at a coordinate, the last dimension running fastest.
pub fn flatten(coord: &[PrimExpr], shape: &[PrimExpr]) -> PrimExpr {
    let flat = coord
        .iter()
        .zip(shape)
        .fold(None, |flat: Option<PrimExpr>, (at, dim)| Some(flat.map_or_else(|| at.clone(), |flat| flat * dim + at)));
    flat.unwrap_or_else(|| prim::int_of(relaxide_ffi::DataType::int(32), 0))
}

/// A number of the type of an expression: two literals of different types would widen the result.
pub(super) fn like(e: &PrimExpr, value: i64) -> PrimExpr {
    prim::int_of(e.dtype(), value)
}

/// The coordinate of a flat index. The first coordinate is not bounded by its dimension.
pub fn split(flat: &PrimExpr, shape: &[PrimExpr]) -> Vec<PrimExpr> {
    let mut rest = flat.clone();
    let mut coord = Vec::with_capacity(shape.len());
    for (place, dim) in shape.iter().enumerate().rev() {
        coord.push(if place == 0 { rest.clone() } else { prim::floormod(&rest, dim) });
        rest = prim::floordiv(&rest, dim);
    }
    coord.reverse();
    coord
}
