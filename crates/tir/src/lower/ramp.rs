//! Sums and products of index vectors that stay ramps as long as they are linear in the lane.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, Cast, PrimExpr, is_data};

/// A vector as `base + lane * stride`, where it is one; a scalar has stride zero.
fn linear(e: &PrimExpr) -> Option<(PrimExpr, PrimExpr)> {
    match e {
        PrimExpr::Ramp(n) if n.base.dtype().lanes == 1 => Some((n.base.clone(), n.stride.clone())),
        PrimExpr::Cast(n) if is_widened_index(n) => {
            let (base, stride) = linear(&n.value)?;
            Some((prim::cast(n.dtype.element(), base), prim::cast(n.dtype.element(), stride)))
        }
        PrimExpr::Broadcast(n) if n.value.dtype().lanes == 1 => {
            Some((n.value.clone(), prim::int_of(n.value.dtype(), 0)))
        }
        e if e.dtype().lanes == 1 => Some((e.clone(), prim::int_of(e.dtype(), 0))),
        _ => None,
    }
}

/// Whether it widens an index: lanes of that do not overflow in the narrower type either.
fn is_widened_index(n: &Cast) -> bool {
    let from = n.value.dtype();
    n.dtype.lanes > 1 && n.dtype.is_int() && from.is_int() && n.dtype.bits >= from.bits && !is_data(&n.value)
}

fn rebuild(base: PrimExpr, stride: PrimExpr, lanes: i64) -> PrimExpr {
    match stride.as_int() {
        Some(0) => prim::broadcast(base, lanes),
        _ => prim::ramp(base, stride, lanes),
    }
}

fn lanes_of(a: &PrimExpr, b: &PrimExpr) -> i64 {
    let wider = if a.dtype().is_scalar() { b } else { a };
    wider.dtype().lane_count()
}

/// `a + b`
pub(super) fn add(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    match (linear(a), linear(b)) {
        (Some((a0, a1)), Some((b0, b1))) => rebuild(prim::add(a0, b0), prim::add(a1, b1), lanes_of(a, b)),
        _ => prim::add(a, b),
    }
}

/// `a - b`
pub(super) fn sub(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    match (linear(a), linear(b)) {
        (Some((a0, a1)), Some((b0, b1))) => rebuild(prim::sub(a0, b0), prim::sub(a1, b1), lanes_of(a, b)),
        _ => prim::sub(a, b),
    }
}

/// `a * b`
pub(super) fn mul(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    match (linear(a), linear(b)) {
        (Some((a0, a1)), Some((b0, b1))) if b1.is_int(0) => {
            rebuild(prim::mul(a0, &b0), prim::mul(a1, b0), lanes_of(a, b))
        }
        (Some((a0, a1)), Some((b0, b1))) if a1.is_int(0) => {
            rebuild(prim::mul(&a0, b0), prim::mul(a0, b1), lanes_of(a, b))
        }
        _ => prim::mul(a, b),
    }
}

/// `a` in another type
pub(super) fn cast(dtype: DataType, a: PrimExpr) -> PrimExpr {
    let converted = prim::cast(dtype, a);
    match linear(&converted) {
        Some((base, stride)) if converted.dtype().lanes > 1 => rebuild(base, stride, converted.dtype().lane_count()),
        _ => converted,
    }
}
