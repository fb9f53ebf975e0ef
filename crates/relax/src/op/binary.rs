//! Element-wise operators of two tensors, which are broadcast: a table row each.
//!
//! Shapes are aligned at the end; dimensions must be equal, or one of them 1. Where the compiler cannot tell, the rank is
//! all that is known of the result. Both sides have one dtype; a scalar takes the tensor's. Of two scalars the result is a scalar.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};

use super::names::Names;
use super::unary::truth;
use super::*;
use crate::display::tuple_text;
use crate::shape::{Broadcast, broadcast};

const X1_X2: &[ArgDef] = &[ArgDef::operand("x1", "Left operand."), ArgDef::operand("x2", "Right operand.")];

/// Broadcasts what is known of two operands.
pub fn broadcast_info(
    cx: &CallCx,
    a: &TensorInfo,
    b: &TensorInfo,
) -> Result<(Option<Vec<PrimExpr>>, Option<usize>), OpError> {
    let ndim = a.ndim.zip(b.ndim).map(|(a, b)| a.max(b));
    let (Some(da), Some(db)) = (&a.dims, &b.dims) else { return Ok((None, ndim)) };
    match broadcast(da, db) {
        Broadcast::Known(dims) => Ok((Some(dims), ndim)),
        Broadcast::Open(_) => Ok((None, ndim)),
        Broadcast::Mismatch(i) => cx.invalid(format!(
            "shapes {} and {} cannot be broadcast: they differ at dimension {i} of the result",
            tuple_text(da),
            tuple_text(db)
        )),
    }
}

fn is_scalar(cx: &CallCx, i: usize) -> bool {
    matches!(cx.ty(i), Ok(Type::Prim(_)))
}

/// The type of a result of `dtype`: a scalar where both sides are, else a tensor.
fn result(cx: &CallCx, a: &TensorInfo, b: &TensorInfo, dtype: DataType) -> Result<Type, OpError> {
    if is_scalar(cx, 0) && is_scalar(cx, 1) {
        return Ok(Type::prim(dtype));
    }
    let (dims, ndim) = broadcast_info(cx, a, b)?;
    Ok(tensor_type(dims, ndim, dtype))
}

/// The common dtype of the two sides.
fn common_dtype(cx: &CallCx, a: &TensorInfo, b: &TensorInfo) -> Result<DataType, OpError> {
    let is_scalar = |i: usize| is_scalar(cx, i);
    if a.dtype == DataType::void() || b.dtype == DataType::void() {
        return Ok(DataType::void());
    }
    match (is_scalar(0), is_scalar(1)) {
        _ if a.dtype == b.dtype => Ok(a.dtype),
        (false, true) => Ok(a.dtype),
        (true, false) => Ok(b.dtype),
        _ => cx.wrong_dtype(format!(
            "both sides must have one dtype, but they have {} and {}; convert one with astype",
            a.dtype, b.dtype
        )),
    }
}

fn arithmetic(cx: &CallCx) -> Result<Type, OpError> {
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    let dtype = common_dtype(cx, &a, &b)?;
    result(cx, &a, &b, dtype)
}

/// As [`arithmetic`], but the result is a bool, and the sides may have different dtypes.
fn comparison(cx: &CallCx) -> Result<Type, OpError> {
    result(cx, &cx.operand(0)?, &cx.operand(1)?, DataType::bool())
}

macro_rules! binary {
    ($($name:literal, $infer:ident, |$a:ident, $b:ident| $body:expr, $doc:literal $(, $gradient:path)? $(; $hook:ident())?;)*) => {
        /// The rows.
        pub static TABLE: &[OpDef] = &[$(OpDef {
            name: $name,
            doc: $doc,
            args: X1_X2,
            attrs: &[],
            infer: $infer,
            lower: Lowering::Scalar(|cx, values| {
                let ($a, $b) = one_type(cx, values)?;
                Ok($body)
            }),
            pattern: OpPattern::Broadcast,
            mixed_precision: MixedPrecision::Follow,
            layout: Some(layout::elementwise),
            ..OpDef::BASE
        }$(.gradient($gradient))?$(.$hook())?),*];
    };
}

binary! {
    "add", arithmetic, |a, b| a + b, "x1 + x2.", gradient::add; in_place();
    "subtract", arithmetic, |a, b| a - b, "x1 - x2.", gradient::subtract; in_place();
    "multiply", arithmetic, |a, b| a * b, "x1 * x2.", gradient::multiply; in_place();
    "divide", arithmetic, |a, b| prim::div(a, b), "x1 / x2; integers are rounded towards zero.", gradient::divide; in_place();
    "floor_divide", arithmetic, |a, b| floor_divide(a, b), "x1 / x2, rounded down.";
    "mod", arithmetic, |a, b| remainder(a, b), "Remainder of the division that rounds towards zero.";
    "floor_mod", arithmetic, |a, b| floor_remainder(a, b), "Remainder of the division that rounds down.";
    "power", arithmetic, |a, b| power(a, b), "x1 to the power of x2.", gradient::power;
    "maximum", arithmetic, |a, b| prim::max(a, b), "The larger.", gradient::maximum;
    "minimum", arithmetic, |a, b| prim::min(a, b), "The smaller.", gradient::minimum;
    "atan2", arithmetic, |a, b| two("atan2", a, b), "Angle of the point (x2, x1).";
    "log_add_exp", arithmetic, |a, b| log_add_exp(a, b), "log(exp(x1) + exp(x2)), without overflow.";
    "bitwise_and", arithmetic, |a, b| bitwise("bitwise_and", a, b, prim::and), "Bit by bit and.";
    "bitwise_or", arithmetic, |a, b| bitwise("bitwise_or", a, b, prim::or), "Bit by bit or.";
    "bitwise_xor", arithmetic, |a, b| bitwise("bitwise_xor", a, b, prim::ne), "Bit by bit exclusive or.";
    "left_shift", arithmetic, |a, b| two("shift_left", a, b), "x1 shifted left by x2 bits.";
    "right_shift", arithmetic, |a, b| two("shift_right", a, b), "x1 shifted right by x2 bits, keeping the sign.";
    "logical_and", arithmetic, |a, b| logical(prim::and, a, b), "Whether both are not zero.";
    "logical_or", arithmetic, |a, b| logical(prim::or, a, b), "Whether one is not zero.";
    "logical_xor", arithmetic, |a, b| logical(prim::ne, a, b), "Whether just one is not zero.";
    "equal", comparison, |a, b| prim::eq(a, b), "x1 == x2.", gradient::none;
    "not_equal", comparison, |a, b| prim::ne(a, b), "x1 != x2.", gradient::none;
    "less", comparison, |a, b| prim::lt(a, b), "x1 < x2.", gradient::none;
    "less_equal", comparison, |a, b| prim::le(a, b), "x1 <= x2.", gradient::none;
    "greater", comparison, |a, b| prim::gt(a, b), "x1 > x2.", gradient::none;
    "greater_equal", comparison, |a, b| prim::ge(a, b), "x1 >= x2.", gradient::none;
}

/// Both operands in the type of the tensor among them; of two different tensors in the one that holds both.
fn one_type(cx: &CallCx, values: &[PrimExpr]) -> Result<(PrimExpr, PrimExpr), OpError> {
    let [a, b] = values else { return cx.invalid("takes two operands") };
    match common_dtype(cx, &cx.operand(0)?, &cx.operand(1)?) {
        Ok(dtype) => Ok((cast(dtype, a), cast(dtype, b))),
        Err(_) => Ok(prim::promote(a.clone(), b.clone())),
    }
}

/// An operation on bools, whose result has the operands' dtype.
fn logical(op: fn(PrimExpr, PrimExpr) -> PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    let dtype = a.dtype();
    cast(dtype, op(truth(a), truth(b)))
}

fn two(name: &str, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    let dtype = a.dtype();
    prim::call(dtype, format!("tirx.{name}"), vec![a, b])
}

fn bitwise(name: &str, a: PrimExpr, b: PrimExpr, on_bool: fn(PrimExpr, PrimExpr) -> PrimExpr) -> PrimExpr {
    if a.dtype().is_bool() { on_bool(a, b) } else { two(name, a, b) }
}

fn floor_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if a.dtype().is_float() { math("floor", prim::div(a, b)) } else { prim::floordiv(a, b) }
}

fn floor_remainder(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if a.dtype().is_float() { &a - math("floor", prim::div(&a, &b)) * &b } else { prim::floormod(a, b) }
}

fn remainder(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    if a.dtype().is_float() { &a - math("trunc", prim::div(&a, &b)) * &b } else { prim::truncmod(a, b) }
}

/// A power. That of integers is exact and wraps around, as their products do.
fn power(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    match b.as_int() {
        _ if a.dtype().is_float() => two("pow", a, b),
        Some(exponent @ 0..) => {
            whole_power(a, |i| prim::boolean(exponent >> i & 1 == 1), 64 - exponent.leading_zeros())
        }
        _ => {
            let dtype = a.dtype();
            let bit = |i: u32| {
                let shifted = two("shift_right", b.clone(), prim::int_of(dtype, i64::from(i)));
                prim::ne(two("bitwise_and", shifted, prim::int_of(dtype, 1)), prim::int_of(dtype, 0))
            };
            let raised = whole_power(a.clone(), bit, u32::from(dtype.bits) - u32::from(dtype.is_int()));
            if !dtype.is_int() {
                return raised;
            }
            // One over an integer is an integer for two of them alone; for all others nothing is left.
            let number = |v: i64| prim::int_of(dtype, v);
            let of_minus_one = prim::select(bit(0), number(-1), number(1));
            let inverse = prim::select(prim::eq(&a, number(-1)), of_minus_one, number(0));
            let inverse = prim::select(prim::eq(&a, number(1)), number(1), inverse);
            prim::select(prim::lt(&b, number(0)), inverse, raised)
        }
    }
}

/// A power by squaring; `bit` says which of the exponent's first `count` bits are set.
fn whole_power(a: PrimExpr, bit: impl Fn(u32) -> PrimExpr, count: u32) -> PrimExpr {
    let dtype = a.dtype();
    let mut names = Names::default();
    let (mut power, mut square) = (prim::int_of(dtype, 1), a);
    for i in 0..count {
        let bit = bit(i);
        if bit.as_int() != Some(0) {
            power = names.of("power", prim::select(bit, &power * &square, power.clone()));
        }
        if i + 1 < count {
            square = names.of("square", &square * &square);
        }
    }
    names.around(power)
}

fn log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    let (high, low) = (prim::max(&a, &b), prim::min(&a, &b));
    let one = constant(a.dtype(), 1.0);
    &high + math("log", one + math("exp", low - &high))
}
