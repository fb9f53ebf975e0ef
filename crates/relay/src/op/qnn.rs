//! Quantized operators: each is its float or wide-integer counterpart between scales and zero points.

use relaxide_ffi::DataType;
use relaxide_ir::AttrValue;
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};
use super::nn::{ACCUMULATED, along};

const FLOAT: DataType = DataType::float(32);

pub(super) fn quantize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, scale, zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let out = cx.dtype_attr("out_dtype", DataType::int(8));
    let axis = cx.int("axis")?;
    to_integers(cx, x, scale, zero, axis, out)
}

pub(super) fn dequantize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, scale, zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let axis = cx.int("axis")?;
    to_floats(cx, x, scale, zero, axis)
}

/// A scale or zero point, along a dimension if it is a vector.
fn placed(cx: &mut LowerCx<'_>, e: rx::Expr, axis: i64, ndim: usize) -> Lowered {
    if cx.ndim(&e)? == 0 {
        return Ok(e);
    }
    let axis = cx.axis(axis, ndim)?;
    along(cx, e, axis, ndim)
}

/// (x - zero) * scale
fn to_floats(cx: &mut LowerCx<'_>, x: rx::Expr, scale: rx::Expr, zero: rx::Expr, axis: i64) -> Lowered {
    let ndim = cx.ndim(&x)?;
    let (scale, zero) = (placed(cx, scale, axis, ndim)?, placed(cx, zero, axis, ndim)?);
    let x = cx.cast(x, ACCUMULATED)?;
    let zero = cx.cast(zero, ACCUMULATED)?;
    let centred = cx.binary("subtract", x, zero)?;
    let centred = cx.cast(centred, FLOAT)?;
    cx.binary("multiply", centred, scale)
}

/// clip(round(x / scale) + zero)
fn to_integers(
    cx: &mut LowerCx<'_>,
    x: rx::Expr,
    scale: rx::Expr,
    zero: rx::Expr,
    axis: i64,
    out: DataType,
) -> Lowered {
    let ndim = cx.ndim(&x)?;
    let (scale, zero) = (placed(cx, scale, axis, ndim)?, placed(cx, zero, axis, ndim)?);
    let scaled = cx.binary("divide", x, scale)?;
    let rounded = cx.op("round", [scaled])?;
    let zero = cx.cast(zero, FLOAT)?;
    let moved = cx.binary("add", rounded, zero)?;
    let (low, high) = bounds(out)?;
    let bound = |v: f64| rx::Expr::prim(relaxide_ir::prim::float_of(FLOAT, v));
    let clipped = cx.op("clip", [moved, bound(low), bound(high)])?;
    cx.cast(clipped, out)
}

fn bounds(dtype: DataType) -> Result<(f64, f64), LowerError> {
    let bits = i32::from(dtype.bits);
    match dtype.code {
        DataType::INT if bits < 32 => Ok((-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0)),
        // The largest number that a float holds below the bound.
        DataType::INT if bits == 32 => Ok((-2_147_483_648.0, 2_147_483_520.0)),
        DataType::UINT if bits < 32 => Ok((0.0, 2f64.powi(bits) - 1.0)),
        _ => fail(format!("nothing is quantized to {dtype}")),
    }
}

pub(super) fn requantize(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..5).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let [x, in_scale, in_zero, out_scale, out_zero]: [rx::Expr; 5] =
        args.try_into().map_err(|_| LowerError("qnn.requantize takes five arguments".into()))?;
    let (axis, out) = (cx.int("axis")?, cx.dtype_attr("out_dtype", DataType::int(8)));
    let floats = to_floats(cx, x, in_scale, in_zero, axis)?;
    to_integers(cx, floats, out_scale, out_zero, axis, out)
}

/// An operand without its zero point, in wide integers.
fn centred(cx: &mut LowerCx<'_>, x: rx::Expr, zero: rx::Expr, axis: i64) -> Lowered {
    let ndim = cx.ndim(&x)?;
    let x = cx.cast(x, ACCUMULATED)?;
    let zero = placed(cx, zero, axis, ndim)?;
    let zero = cx.cast(zero, ACCUMULATED)?;
    cx.binary("subtract", x, zero)
}

/// The sums of products of what the integers stand for, without the scales.
pub(super) fn conv2d(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight, x_zero, w_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(3)?, cx.arg(5)?);
    let x = centred(cx, x, x_zero, 1)?;
    let kernel_axis = cx.str("kernel_layout").find('O').unwrap_or(0) as i64;
    let weight = centred(cx, weight, w_zero, kernel_axis)?;
    super::conv::convolution(cx, x, weight)
}

pub(super) fn dense(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight, x_zero, w_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(3)?, cx.arg(5)?);
    let x = centred(cx, x, x_zero, -1)?;
    let weight = centred(cx, weight, w_zero, 0)?;
    let units = cx.attrs.0.get("units").cloned().unwrap_or(AttrValue::None);
    cx.relay("nn.dense", vec![x, weight], attrs([("units", units), ("out_dtype", ACCUMULATED.into())]))
}

pub(super) fn batch_matmul(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, y, x_zero, y_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(3)?, cx.arg(5)?);
    let x = centred(cx, x, x_zero, -1)?;
    let y = centred(cx, y, y_zero, -1)?;
    cx.relay("nn.batch_matmul", vec![x, y], attrs([("transpose_b", true.into()), ("out_dtype", ACCUMULATED.into())]))
}

pub(super) fn add(cx: &mut LowerCx<'_>) -> Lowered {
    arithmetic(cx, "add")
}

pub(super) fn subtract(cx: &mut LowerCx<'_>) -> Lowered {
    arithmetic(cx, "subtract")
}

pub(super) fn mul(cx: &mut LowerCx<'_>) -> Lowered {
    arithmetic(cx, "multiply")
}

fn arithmetic(cx: &mut LowerCx<'_>, name: &str) -> Lowered {
    let args = (0..8).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let out = cx.dtype(&args[0])?;
    let (lhs_axis, rhs_axis) = (cx.int("lhs_axis")?, cx.int("rhs_axis")?);
    let a = to_floats(cx, args[0].clone(), args[2].clone(), args[3].clone(), lhs_axis)?;
    let b = to_floats(cx, args[1].clone(), args[4].clone(), args[5].clone(), rhs_axis)?;
    let result = cx.binary(name, a, b)?;
    to_integers(cx, result, args[6].clone(), args[7].clone(), -1, out)
}

/// A float function of what the integers stand for.
pub(super) fn unary(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..5).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let out = cx.dtype(&args[0])?;
    let name = cx.def.name.trim_start_matches("qnn.");
    let x = to_floats(cx, args[0].clone(), args[1].clone(), args[2].clone(), -1)?;
    let y = cx.op(name, [x])?;
    to_integers(cx, y, args[3].clone(), args[4].clone(), -1, out)
}

/// Each part brought to the scale of the result, then joined.
pub(super) fn concatenate(cx: &mut LowerCx<'_>) -> Lowered {
    let (parts, scales, zeros) = (cx.tuple_args(0)?, cx.tuple_args(1)?, cx.tuple_args(2)?);
    let (out_scale, out_zero) = (cx.arg(3)?, cx.arg(4)?);
    if parts.len() != scales.len() || parts.len() != zeros.len() {
        return fail("qnn.concatenate: each part needs its scale and its zero point");
    }
    let mut moved = Vec::new();
    for ((part, scale), zero) in parts.into_iter().zip(scales).zip(zeros) {
        let dtype = cx.dtype(&part)?;
        let floats = to_floats(cx, part, scale, zero, -1)?;
        moved.push(to_integers(cx, floats, out_scale.clone(), out_zero.clone(), -1, dtype)?);
    }
    let axis = cx.int("axis")?;
    cx.relay("concatenate", vec![rx::Expr::tuple(moved)], attrs([("axis", axis.into())]))
}

/// x * multiplier * 2 ^ (shift - 31), rounded up from the middle, in wide integers.
pub(super) fn fixed_point_multiply(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (multiplier, shift) = (cx.int("multiplier")?, cx.int("shift")?);
    let wide = DataType::int(64);
    let dtype = cx.dtype(&x)?;
    let x = cx.cast(x, wide)?;
    let constant = |v: i64| -> Lowered { Ok(rx::Expr::constant(crate::scalar::int(v, wide)?)) };
    let x = if shift > 0 { cx.op("left_shift", [x, constant(shift)?])? } else { x };
    let right = 31 - shift.min(0);
    let product = cx.op("multiply", [x, constant(multiplier)?])?;
    let rounded = cx.op("add", [product, constant(1 << (right - 1))?])?;
    let moved = cx.op("right_shift", [rounded, constant(right)?])?;
    cx.cast(moved, dtype)
}
