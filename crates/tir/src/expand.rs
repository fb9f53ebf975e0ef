//! Intrinsics that are nothing but arithmetic: what they stand for, said once for the interpreter and all back ends.
//!
//! ```text
//! q_multiply_shift(x, y, q, s)  =  (int64(x << max(s, 0)) * y + (1 << (t - 1))) >> t,   t = q + max(-s, 0)
//! ```
//!
//! is a product with a fixed-point number of `q` bits behind the point, moved by `s` bits and rounded to nearest, ties up.
//!
//! ```text
//! dot_bytes(a, b, c)  =  c + a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
//! ```
//!
//! is a sum of products of the bytes of two words, and
//!
//! ```text
//! dot_pairs(a, b, c)  =  c + a[0] * b[0] + a[1] * b[1]
//! ```
//!
//! is one of the numbers that their halves are as bfloat16, which are the upper halves of float32.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimCall, PrimExpr};

use crate::intrin::Intrinsic;

/// Bytes of an argument of `dot_bytes`.
const BYTES: i64 = 4;

/// What a call stands for; `None` if it is an operation of its own.
pub fn expand(call: &PrimCall) -> Option<PrimExpr> {
    expand_as(Intrinsic::of_call(&call.op)?, call)
}

/// The same of a call of an intrinsic that is known.
pub(crate) fn expand_as(intrinsic: Intrinsic, call: &PrimCall) -> Option<PrimExpr> {
    match (intrinsic, call.args.as_slice()) {
        (Intrinsic::QMultiplyShift, [x, y, q, s]) => {
            let zero = prim::int_of(s.dtype(), 0);
            let (left, right) = (prim::max(s, &zero), prim::max(&zero - s, &zero));
            Some(fixed_point(call.dtype, x, y, q, Some(&left), Some(&right)))
        }
        (Intrinsic::QMultiplyShiftPerAxis, [x, y, left, right, q, by_left, by_right]) => {
            let asked = |flag: &PrimExpr| flag.as_int().is_some_and(|v| v != 0);
            let (left, right) = (asked(by_left).then_some(left), asked(by_right).then_some(right));
            Some(fixed_point(call.dtype, x, y, q, left, right))
        }
        (Intrinsic::DotBytes, [a, b, c]) => {
            Some((0..BYTES).fold(c.clone(), |sum, at| sum + byte_of(a, at) * byte_of(b, at)))
        }
        (Intrinsic::Dp4a, [a, b, c]) => {
            Some(prim::call(call.dtype, "tirx.dot_bytes", vec![word_of(a)?, word_of(b)?, c.clone()]))
        }
        (Intrinsic::DotPairs, [a, b, c]) => {
            Some([false, true].iter().fold(c.clone(), |sum, &upper| sum + half_of(a, upper) * half_of(b, upper)))
        }
        (Intrinsic::IgnoreLoopPartition | Intrinsic::ThreadInvariant, [value]) => Some(value.clone()),
        (Intrinsic::Assume, [condition]) => Some(condition.clone()),
        _ => None,
    }
}

/// The number that a half of a word is as bfloat16, as float32.
fn half_of(word: &PrimExpr, upper: bool) -> PrimExpr {
    let dtype = word.dtype();
    let same = |value: i64| {
        let value = prim::int_of(dtype.element(), value);
        if dtype.lanes == 1 { value } else { prim::broadcast(value, dtype.lane_count()) }
    };
    let bits = match upper {
        true => prim::call(dtype, "tirx.bitwise_and", vec![word.clone(), same(0xffff_0000)]),
        false => prim::call(dtype, "tirx.shift_left", vec![word.clone(), same(16)]),
    };
    prim::call(DataType::float(32).with_lanes(dtype.lanes), "tirx.reinterpret", vec![bits])
}

/// Four bytes as a word, whose sign is theirs; words, also several, as they are; nothing where they are neither.
fn word_of(bytes: &PrimExpr) -> Option<PrimExpr> {
    let dtype = bytes.dtype();
    match (dtype.bits, dtype.lane_count()) {
        (32, _) => Some(bytes.clone()),
        (8, 4) => {
            let word = DataType { bits: 32, lanes: 1, ..dtype };
            Some(prim::call(word, "tirx.reinterpret", vec![bytes.clone()]))
        }
        _ => None,
    }
}

/// A byte of an integer of 32 bits, the lowest being the first, with the sign that its type has, as int32.
fn byte_of(word: &PrimExpr, at: i64) -> PrimExpr {
    let dtype = word.dtype();
    let same = |e: PrimExpr| if dtype.lanes == 1 { e } else { prim::broadcast(e, dtype.lane_count()) };
    let shift = |name: &str, e: PrimExpr, by: i64| match by {
        0 => e,
        _ => prim::call(dtype, format!("tirx.{name}"), vec![e, same(prim::int_of(dtype.element(), by))]),
    };
    // Shifts carry the sign down.
    let top = shift("shift_left", word.clone(), 8 * (BYTES - 1 - at));
    prim::cast(DataType::int(32).with_lanes(dtype.lanes), shift("shift_right", top, 8 * (BYTES - 1)))
}

fn fixed_point(
    dtype: DataType,
    x: &PrimExpr,
    y: &PrimExpr,
    q: &PrimExpr,
    left: Option<&PrimExpr>,
    right: Option<&PrimExpr>,
) -> PrimExpr {
    let lanes = dtype.lane_count();
    let wide = |e: &PrimExpr| {
        let value = prim::cast(DataType::int(64).with_lanes(e.dtype().lanes), e);
        if value.dtype().lanes == dtype.lanes { value } else { prim::broadcast(value, lanes) }
    };
    let shift = |name: &str, a: PrimExpr, b: PrimExpr| prim::call(a.dtype(), format!("tirx.{name}"), vec![a, b]);
    let x = match left {
        Some(left) => shift("shift_left", wide(x), wide(left)),
        None => wide(x),
    };
    let total = match right {
        Some(right) => wide(q) + wide(right),
        None => wide(q),
    };
    let one = || wide(&prim::int(1));
    let half = shift("shift_left", one(), total.clone() - one());
    prim::cast(dtype, shift("shift_right", x * wide(y) + half, total))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::interp::{Scalar, eval};

    fn q_multiply_shift(x: i64, y: i64, q: i64, s: i64) -> i64 {
        let i32 = DataType::int(32);
        let args = [x, y, q, s].map(|v| prim::int_of(i32, v)).to_vec();
        match eval(&prim::call(i32, "tirx.q_multiply_shift", args), &HashMap::new()) {
            Ok(Scalar::Int(value)) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fixed_point_products_are_rounded_to_nearest() {
        // Half of a number, moved by two bits either way, as TVM computes it.
        assert_eq!(q_multiply_shift(-6000, 1 << 30, 31, 2), -12000);
        assert_eq!(q_multiply_shift(-6000, 1 << 30, 31, -2), -750);
        assert_eq!([-3, -2, -1, 0, 1, 2, 3].map(|x| q_multiply_shift(x, 1 << 30, 31, 0)), [-1, -1, 0, 0, 1, 1, 2]);
    }
}
