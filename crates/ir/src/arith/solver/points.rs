//! The value of an expression at a point.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};

use crate::prim::{self, PrimExpr};
use crate::{BinaryOp, Var};

/// The value of an integer expression; nothing where it has none that is known, as where it divides by zero.
pub(super) fn value(e: &PrimExpr, point: &HashMap<Ref<Var>, i64>) -> Option<i64> {
    match e {
        PrimExpr::Int(n) => Some(n.value),
        PrimExpr::Var(var) => point.get(var).copied(),
        PrimExpr::Cast(n) if is_integer(n.dtype) && is_integer(n.value.dtype()) => {
            Some(wrapped(n.dtype, value(&n.value, point)?))
        }
        PrimExpr::Not(n) => Some(i64::from(value(&n.a, point)? == 0)),
        PrimExpr::Binary(n) => match (n.op, value(&n.a, point)?) {
            // The other operand need not have a value.
            (BinaryOp::And, 0) => Some(0),
            (BinaryOp::Or, known) if known != 0 => Some(1),
            (op, a) => prim::fold(op, a, value(&n.b, point)?),
        },
        PrimExpr::Select(n) => chosen(&n.condition, &n.true_value, &n.false_value, point),
        PrimExpr::Let(n) => {
            let mut inner = point.clone();
            inner.insert(n.var.clone(), value(&n.value, point)?);
            value(&n.body, &inner)
        }
        PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
            ("tirx.if_then_else", [c, a, b]) => chosen(c, a, b, point),
            ("tirx.likely", [a]) => value(a, point),
            ("tirx.bitwise_not", [a]) => Some(wrapped(n.dtype, !value(a, point)?)),
            (name, [a, b]) => bits(name, n.dtype, value(a, point)?, value(b, point)?),
            _ => None,
        },
        _ => None,
    }
}

fn chosen(c: &PrimExpr, a: &PrimExpr, b: &PrimExpr, point: &HashMap<Ref<Var>, i64>) -> Option<i64> {
    value(if value(c, point)? != 0 { a } else { b }, point)
}

fn bits(name: &str, dtype: DataType, a: i64, b: i64) -> Option<i64> {
    let by = u32::try_from(b).ok().filter(|by| *by < u32::from(dtype.bits));
    Some(match name {
        "tirx.bitwise_and" => a & b,
        "tirx.bitwise_or" => a | b,
        "tirx.bitwise_xor" => a ^ b,
        "tirx.shift_left" => wrapped(dtype, a.checked_shl(by?)?),
        "tirx.shift_right" => a.checked_shr(by?)?,
        _ => return None,
    })
}

fn is_integer(dtype: DataType) -> bool {
    dtype.lanes == 1 && (dtype.is_int() || dtype.is_uint() || dtype.is_bool())
}

/// The lowest bits of a number, as a type reads them.
fn wrapped(dtype: DataType, number: i64) -> i64 {
    if dtype.is_bool() {
        return i64::from(number != 0);
    }
    let unused = 64u32.saturating_sub(u32::from(dtype.bits)).min(63);
    match dtype.is_int() {
        true => number.wrapping_shl(unused).wrapping_shr(unused),
        false => (number as u64).wrapping_shl(unused).wrapping_shr(unused) as i64,
    }
}
