//! Sums and products of index vectors that stay ramps as long as they are linear in the lane.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, BinaryOp, Cast, PrimExpr, is_data};

/// A vector as `base + lane * stride`, where it is one; a scalar has stride zero. `widens` says of a cast whether the lanes of what it casts
/// stay in the narrower type.
pub fn linear_in_lane(e: &PrimExpr, widens: fn(&Cast) -> bool) -> Option<(PrimExpr, PrimExpr)> {
    match e {
        PrimExpr::Ramp(n) if n.base.dtype().lanes == 1 => Some((n.base.clone(), n.stride.clone())),
        PrimExpr::Cast(n) if n.dtype.lanes != 1 && widens(n) => {
            let (base, stride) = linear_in_lane(&n.value, widens)?;
            Some((prim::cast(n.dtype.element(), base), prim::cast(n.dtype.element(), stride)))
        }
        PrimExpr::Broadcast(n) if n.value.dtype().lanes == 1 => {
            Some((n.value.clone(), prim::int_of(n.value.dtype(), 0)))
        }
        e if e.dtype().lanes == 1 => Some((e.clone(), prim::int_of(e.dtype(), 0))),
        PrimExpr::Binary(n) => {
            let (a, b) = (linear_in_lane(&n.a, widens)?, linear_in_lane(&n.b, widens)?);
            combined(n.op, a, b)
        }
        _ => None,
    }
}

/// A sum, difference or product of two linear functions of the lane, where it is one.
fn combined(op: BinaryOp, a: (PrimExpr, PrimExpr), b: (PrimExpr, PrimExpr)) -> Option<(PrimExpr, PrimExpr)> {
    match op {
        BinaryOp::Add => Some((prim::add(a.0, b.0), prim::add(a.1, b.1))),
        BinaryOp::Sub => Some((prim::sub(a.0, b.0), prim::sub(a.1, b.1))),
        BinaryOp::Mul if b.1.is_int(0) => Some((prim::mul(a.0, &b.0), prim::mul(a.1, b.0))),
        BinaryOp::Mul if a.1.is_int(0) => Some((prim::mul(&a.0, b.0), prim::mul(a.0, b.1))),
        _ => None,
    }
}

/// Whether it widens an index: lanes of that do not overflow in the narrower type either.
fn is_widened_index(n: &Cast) -> bool {
    let from = n.value.dtype();
    n.dtype.is_int() && from.is_int() && n.dtype.bits >= from.bits && !is_data(&n.value)
}

fn linear(e: &PrimExpr) -> Option<(PrimExpr, PrimExpr)> {
    linear_in_lane(e, is_widened_index)
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
    of(BinaryOp::Add, a, b).unwrap_or_else(|| prim::add(a, b))
}

/// `a - b`
pub(super) fn sub(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    of(BinaryOp::Sub, a, b).unwrap_or_else(|| prim::sub(a, b))
}

/// `a * b`
pub(super) fn mul(a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
    of(BinaryOp::Mul, a, b).unwrap_or_else(|| prim::mul(a, b))
}

fn of(op: BinaryOp, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    let (base, stride) = combined(op, linear(a)?, linear(b)?)?;
    Some(rebuild(base, stride, lanes_of(a, b)))
}

/// `a` in another type
pub(super) fn cast(dtype: DataType, a: PrimExpr) -> PrimExpr {
    let converted = prim::cast(dtype, a);
    match linear(&converted) {
        Some((base, stride)) if converted.dtype().lanes > 1 => rebuild(base, stride, converted.dtype().lane_count()),
        _ => converted,
    }
}
