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
    to_integers(cx, x, &Scale { scale, zero, axis }, Halves::Away, out)
}

pub(super) fn dequantize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, scale, zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let axis = cx.int("axis")?;
    to_floats(cx, x, scale, zero, axis)
}

/// The codes of element types, as the simulating operators take them, with the least and the largest number of each.
const SIMULATED: [(f64, f64, f64); 3] =
    [(1.0, -128.0, 127.0), (2.0, 0.0, 255.0), (3.0, i32::MIN as f64, i32::MAX as f64)];

/// Floats as they would be quantized, for an element type that is a value: of code 0 they stay what they are.
pub(super) fn simulated_quantize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, code) = (cx.arg(0)?, cx.arg(1)?);
    let (dtype, ndim, axis) = (cx.dtype(&x)?, cx.ndim(&x)?, cx.int("axis")?);
    let (scale, zero) = (cx.arg(2)?, cx.arg(3)?);
    let (scale, zero) = (placed(cx, scale, axis, ndim)?, placed(cx, zero, axis, ndim)?);
    let (scale, zero) = (cx.cast(scale, dtype)?, cx.cast(zero, dtype)?);
    let scaled = cx.binary("divide", x.clone(), scale)?;
    let rounded = cx.relay("round", vec![scaled], relaxide_ir::Attrs::new())?;
    let moved = cx.binary("add", rounded, zero)?;
    let code = cx.cast(code, ACCUMULATED)?;
    let mut made = x;
    for (number, least, largest) in SIMULATED {
        let (least, largest) = (cx.constant(least, dtype)?, cx.constant(largest, dtype)?);
        let inside = cx.binary("maximum", moved.clone(), least)?;
        let inside = cx.binary("minimum", inside, largest)?;
        let wanted = cx.constant(number, ACCUMULATED)?;
        let chosen = cx.binary("equal", code.clone(), wanted)?;
        made = cx.relay("where", vec![chosen, inside, made], relaxide_ir::Attrs::new())?;
    }
    Ok(made)
}

/// What a quantization pass writes where it tries ranges: numbers as a whole number of scales holds them. Of kind 0 they stay.
pub(super) fn simulated(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, scale, least, largest) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let rounding = cx.str("rounding");
    if !cx.bool("sign") || rounding != "round" {
        return fail(format!("{}: numbers have signs and are rounded by `round`, not by {rounding:?}", cx.def.name));
    }
    if cx.int("kind")? == 0 {
        return Ok(x);
    }
    let scaled = cx.binary("divide", x, scale.clone())?;
    let inside = cx.binary("minimum", scaled, largest)?;
    let inside = cx.binary("maximum", inside, least)?;
    let rounded = cx.relay("round", vec![inside], relaxide_ir::Attrs::new())?;
    cx.binary("multiply", rounded, scale)
}

/// The way back: of code 0 they stay what they are.
pub(super) fn simulated_dequantize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, code) = (cx.arg(0)?, cx.arg(1)?);
    let (dtype, ndim, axis) = (cx.dtype(&x)?, cx.ndim(&x)?, cx.int("axis")?);
    let (scale, zero) = (cx.arg(2)?, cx.arg(3)?);
    let (scale, zero) = (placed(cx, scale, axis, ndim)?, placed(cx, zero, axis, ndim)?);
    let (scale, zero) = (cx.cast(scale, dtype)?, cx.cast(zero, dtype)?);
    let centred = cx.binary("subtract", x.clone(), zero)?;
    let value = cx.binary("multiply", centred, scale)?;
    let code = cx.cast(code, ACCUMULATED)?;
    let none = cx.constant(0.0, ACCUMULATED)?;
    let stays = cx.binary("equal", code, none)?;
    cx.relay("where", vec![stays, x, value], relaxide_ir::Attrs::new())
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

/// Where a number in the middle between two integers goes.
#[derive(Clone, Copy, PartialEq)]
enum Halves {
    /// Away from zero: `TONEAREST`.
    Away,
    /// Up: `UPWARD`, the default of `qnn.requantize`.
    Up,
}

/// clip(round(x / scale) + zero)
fn to_integers(cx: &mut LowerCx<'_>, x: rx::Expr, to: &Scale, halves: Halves, out: DataType) -> Lowered {
    let ndim = cx.ndim(&x)?;
    let scale = placed(cx, to.scale.clone(), to.axis, ndim)?;
    let zero = placed(cx, to.zero.clone(), to.axis, ndim)?;
    let scaled = cx.binary("divide", x, scale)?;
    let rounded = match halves {
        Halves::Away => super::basic::rounded_away(cx, scaled)?,
        Halves::Up => super::basic::rounded_up(cx, scaled)?,
    };
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
    // Where no type is said, narrow integers stay what they are.
    let own = cx.dtype(&x)?;
    let own = if own.bits == 8 { own } else { DataType::int(8) };
    let (axis, out) = (cx.int("axis")?, cx.dtype_attr("out_dtype", own));
    let halves = match cx.str("rounding").as_str() {
        "TONEAREST" => Halves::Away,
        _ => Halves::Up,
    };
    let (from, to) = (Scale { scale: in_scale, zero: in_zero, axis }, Scale { scale: out_scale, zero: out_zero, axis });
    let wide = rescaled(cx, x, &from, &to, halves)?;
    narrowed(cx, wide, out)
}

/// What integers stand for: a scale and the integer that is zero, for all or along a dimension.
struct Scale {
    scale: rx::Expr,
    zero: rx::Expr,
    axis: i64,
}

/// Integers of one scale in another, as wide integers: by integer arithmetic where the scales are constants, as the reference
/// does, so that results are equal to the last bit.
fn rescaled(cx: &mut LowerCx<'_>, x: rx::Expr, from: &Scale, to: &Scale, halves: Halves) -> Lowered {
    let ndim = cx.ndim(&x)?;
    let factors = match (constants(&from.scale), constants(&to.scale)) {
        (Some(from), Some(to)) if to.len() == 1 && to[0] != 0.0 => {
            Some(from.iter().map(|v| v / to[0]).collect::<Vec<f64>>())
        }
        _ => None,
    };
    let Some(factors) = factors else {
        let floats = to_floats(cx, x, from.scale.clone(), from.zero.clone(), from.axis)?;
        return to_integers(cx, floats, to, halves, ACCUMULATED);
    };
    let centred = centred(cx, x, from.zero.clone(), from.axis)?;
    let scaled = if factors.iter().all(|f| *f == 1.0) {
        centred
    } else {
        let pairs: Vec<(i64, i64)> = factors.iter().map(|f| multiplier_of(*f)).collect();
        let wide = DataType::int(64);
        let place = |cx: &mut LowerCx<'_>, values: Vec<i64>| -> Lowered {
            let mut dims = Vec::new();
            if values.len() > 1 {
                dims = vec![1; ndim - cx.axis(from.axis, ndim)?];
                dims[0] = values.len() as i64;
            }
            Ok(rx::Expr::constant(relaxide_ffi::Tensor::from_slice(&values, &dims)?))
        };
        let multipliers = place(cx, pairs.iter().map(|(m, _)| *m).collect())?;
        let left = place(cx, pairs.iter().map(|(_, shift)| 1i64 << (*shift).clamp(0, 62)).collect())?;
        let rights: Vec<i64> = pairs.iter().map(|(_, shift)| (31 - (*shift).min(0)).min(62)).collect();
        let half = place(cx, rights.iter().map(|right| 1i64 << (right - 1)).collect())?;
        let right = place(cx, rights)?;
        let mut product = cx.cast(centred, wide)?;
        if pairs.iter().any(|(_, shift)| *shift > 0) {
            product = cx.binary("multiply", product, left)?;
        }
        product = cx.binary("multiply", product, multipliers)?;
        let mut rounded = cx.binary("add", product.clone(), half)?;
        if halves == Halves::Away {
            // A negative number in the middle goes down.
            let zero = cx.constant(0.0, wide)?;
            let below = cx.binary("less", product, zero)?;
            let one = cx.cast(below, wide)?;
            rounded = cx.binary("subtract", rounded, one)?;
        }
        let moved = cx.binary("right_shift", rounded, right)?;
        cx.cast(moved, ACCUMULATED)?
    };
    let zero = placed(cx, to.zero.clone(), to.axis, ndim)?;
    let zero = cx.cast(zero, ACCUMULATED)?;
    cx.binary("add", scaled, zero)
}

/// The numbers of a constant.
fn constants(e: &rx::Expr) -> Option<Vec<f64>> {
    let rx::Expr::Constant(c) = e else { return None };
    let number = |n: crate::scalar::Number| match n {
        crate::scalar::Number::Float(v) => v,
        crate::scalar::Number::Int(v) => v as f64,
        crate::scalar::Number::Bool(v) => f64::from(u8::from(v)),
    };
    Some(crate::scalar::numbers(&c.value)?.into_iter().map(number).collect())
}

/// A positive number as an integer of 31 bits times a power of two.
fn multiplier_of(value: f64) -> (i64, i64) {
    if value == 0.0 || !value.is_finite() {
        return (0, 0);
    }
    let mut exponent = value.abs().log2().floor() as i64 + 1;
    let mut significand = value / 2f64.powi(exponent as i32);
    // The logarithm may round over a power of two.
    if significand.abs() >= 1.0 {
        significand /= 2.0;
        exponent += 1;
    }
    let mut multiplier = (significand * 2f64.powi(31)).round() as i64;
    if multiplier == 1 << 31 {
        multiplier /= 2;
        exponent += 1;
    }
    (multiplier, exponent)
}

/// Wide integers brought into the range of narrow ones.
fn narrowed(cx: &mut LowerCx<'_>, x: rx::Expr, out: DataType) -> Lowered {
    if out == ACCUMULATED {
        return Ok(x);
    }
    let (low, high) = bounds(out)?;
    let bound = |v: f64| rx::Expr::prim(relaxide_ir::prim::int_of(DataType::int(64), v as i64));
    let clipped = cx.op("clip", [x, bound(low), bound(high)])?;
    cx.cast(clipped, out)
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
    let (x, weight, x_zero, w_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let x = centred(cx, x, x_zero, 1)?;
    let kernel_axis = cx.str("kernel_layout").find('O').unwrap_or(0) as i64;
    let weight = centred(cx, weight, w_zero, kernel_axis)?;
    super::conv::convolution(cx, x, weight)
}

pub(super) fn conv2d_transpose(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight, x_zero, w_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let x = centred(cx, x, x_zero, 1)?;
    let kernel_axis = cx.str("kernel_layout").find('O').unwrap_or(1) as i64;
    let weight = centred(cx, weight, w_zero, kernel_axis)?;
    let attrs = cx.attrs.clone().with("out_dtype", ACCUMULATED);
    cx.relay("nn.conv2d_transpose", vec![x, weight], attrs)
}

/// The mean of what the integers of each window stand for.
pub(super) fn avg_pool2d(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..5).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let out = cx.dtype(&args[0])?;
    let x = to_floats(cx, args[0].clone(), args[1].clone(), args[2].clone(), -1)?;
    let attrs = cx.attrs.clone();
    let y = cx.relay("nn.avg_pool2d", vec![x], attrs)?;
    to_integers(cx, y, &Scale { scale: args[3].clone(), zero: args[4].clone(), axis: -1 }, Halves::Away, out)
}

pub(super) fn leaky_relu(cx: &mut LowerCx<'_>) -> Lowered {
    by_floats(cx, |cx, x| {
        let attrs = cx.attrs.clone();
        cx.relay("nn.leaky_relu", vec![x], attrs)
    })
}

pub(super) fn softmax(cx: &mut LowerCx<'_>) -> Lowered {
    by_floats(cx, |cx, x| {
        let attrs = cx.attrs.clone();
        cx.relay("nn.softmax", vec![x], attrs)
    })
}

/// x * min(max(x + 3, 0), 6) / 6
pub(super) fn hardswish(cx: &mut LowerCx<'_>) -> Lowered {
    by_floats(cx, |cx, x| {
        let (three, sixth) = (cx.constant(3.0, FLOAT)?, cx.constant(1.0 / 6.0, FLOAT)?);
        let moved = cx.binary("add", x.clone(), three)?;
        let bound = |v: f64| rx::Expr::prim(relaxide_ir::prim::float_of(FLOAT, v));
        let gate = cx.op("clip", [moved, bound(0.0), bound(6.0)])?;
        let product = cx.binary("multiply", x, gate)?;
        cx.binary("multiply", product, sixth)
    })
}

/// A dense layer whose weight is packed.
pub(super) fn packed_dense(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight, x_zero, w_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let layout = cx.str("weight_layout");
    let weight = match layout.as_str() {
        "NC" => weight,
        _ => cx.relay(
            "layout_transform",
            vec![weight],
            attrs([("src_layout", layout.clone().into()), ("dst_layout", "NC".into())]),
        )?,
    };
    let x = centred(cx, x, x_zero, -1)?;
    let weight = centred(cx, weight, w_zero, 0)?;
    let units = cx.attrs.0.get("units").cloned().unwrap_or(AttrValue::None);
    cx.relay("nn.dense", vec![x, weight], attrs([("units", units), ("out_dtype", ACCUMULATED.into())]))
}

pub(super) fn dense(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight, x_zero, w_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let x = centred(cx, x, x_zero, -1)?;
    let weight = centred(cx, weight, w_zero, 0)?;
    let units = cx.attrs.0.get("units").cloned().unwrap_or(AttrValue::None);
    cx.relay("nn.dense", vec![x, weight], attrs([("units", units), ("out_dtype", ACCUMULATED.into())]))
}

pub(super) fn batch_matmul(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, y, x_zero, y_zero) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
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

/// Sums and differences are taken in the result's scale; a product has the product of the scales.
fn arithmetic(cx: &mut LowerCx<'_>, name: &str) -> Lowered {
    let args = (0..8).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let out = cx.dtype(&args[0])?;
    let (lhs_axis, rhs_axis) = (cx.int("lhs_axis")?, cx.int("rhs_axis")?);
    let to = Scale { scale: args[6].clone(), zero: args[7].clone(), axis: -1 };
    let ndim = cx.ndim(&args[0])?.max(cx.ndim(&args[1])?);
    if name == "multiply" {
        let (a, b) = (
            centred(cx, args[0].clone(), args[3].clone(), lhs_axis)?,
            centred(cx, args[1].clone(), args[5].clone(), rhs_axis)?,
        );
        let product = cx.binary("multiply", a, b)?;
        let scale = match (constants(&args[2]), constants(&args[4])) {
            (Some(a), Some(b)) if a.len() == 1 && b.len() == 1 => {
                cx.constant(f64::from(a[0] as f32 * b[0] as f32), FLOAT)?
            }
            _ => {
                let (a, b) =
                    (placed(cx, args[2].clone(), lhs_axis, ndim)?, placed(cx, args[4].clone(), rhs_axis, ndim)?);
                let scale = cx.binary("multiply", a, b)?;
                let x = cx.cast(product, FLOAT)?;
                let x = cx.binary("multiply", x, scale)?;
                return to_integers(cx, x, &to, Halves::Away, out);
            }
        };
        let from = Scale { scale, zero: cx.constant(0.0, ACCUMULATED)?, axis: -1 };
        let wide = rescaled(cx, product, &from, &to, Halves::Up)?;
        return narrowed(cx, wide, out);
    }
    let lhs = Scale { scale: args[2].clone(), zero: args[3].clone(), axis: lhs_axis };
    let rhs = Scale { scale: args[4].clone(), zero: args[5].clone(), axis: rhs_axis };
    let (a, b) =
        (rescaled(cx, args[0].clone(), &lhs, &to, Halves::Up)?, rescaled(cx, args[1].clone(), &rhs, &to, Halves::Up)?);
    let result = cx.binary(name, a, b)?;
    let zero = cx.cast(args[7].clone(), ACCUMULATED)?;
    // Two zero points were added, or have taken each other away.
    let result = if name == "add" { cx.binary("subtract", result, zero)? } else { cx.binary("add", result, zero)? };
    narrowed(cx, result, out)
}

/// A function of floats on what the integers stand for.
fn by_floats(cx: &mut LowerCx<'_>, apply: impl FnOnce(&mut LowerCx<'_>, rx::Expr) -> Lowered) -> Lowered {
    let args = (0..5).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let out = cx.dtype(&args[0])?;
    let x = to_floats(cx, args[0].clone(), args[1].clone(), args[2].clone(), -1)?;
    let y = apply(cx, x)?;
    to_integers(cx, y, &Scale { scale: args[3].clone(), zero: args[4].clone(), axis: -1 }, Halves::Away, out)
}

/// A float function of what the integers stand for.
pub(super) fn unary(cx: &mut LowerCx<'_>) -> Lowered {
    let name = cx.def.name.trim_start_matches("qnn.");
    by_floats(cx, |cx, x| cx.op(name, [x]))
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
        let to = Scale { scale: out_scale.clone(), zero: out_zero.clone(), axis: -1 };
        let wide = rescaled(cx, part, &Scale { scale, zero, axis: -1 }, &to, Halves::Up)?;
        moved.push(narrowed(cx, wide, dtype)?);
    }
    let axis = cx.int("axis")?;
    cx.relay("concatenate", vec![rx::Expr::tuple(moved)], attrs([("axis", axis.into())]))
}

/// x * multiplier * 2 ^ (shift - 31), rounded up from the middle, in wide integers.
pub(super) fn fixed_point_multiply(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (multiplier, shift) = (cx.int("multiplier")?, cx.int("shift")?);
    if !(-31..=31).contains(&shift) {
        return fail(format!("fixed_point_multiply: a shift of {shift} is more than the 31 bits of a number"));
    }
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

/// The same with a multiplier and shifts for each place along a dimension, as tensors.
pub(super) fn fixed_point_multiply_per_axis(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (axes, dtype, ndim) = (cx.ints("axes")?, cx.dtype(&x)?, cx.ndim(&x)?);
    let [axis] = axes.as_slice() else {
        return fail("fixed_point_multiply_per_axis along several dimensions cannot be compiled yet");
    };
    let axis = cx.axis(*axis, ndim)?;
    let wide = DataType::int(64);
    let part = |cx: &mut LowerCx<'_>, i: usize| -> Lowered {
        let e = cx.arg(i)?;
        let e = cx.cast(e, wide)?;
        along(cx, e, axis, ndim)
    };
    let (multiplier, left, right) = (part(cx, 1)?, part(cx, 2)?, part(cx, 3)?);
    let mut value = cx.cast(x, wide)?;
    if cx.bool("is_lshift_required") {
        value = cx.binary("left_shift", value, left)?;
    }
    value = cx.binary("multiply", value, multiplier)?;
    let (all, one) = (cx.constant(31.0, wide)?, cx.constant(1.0, wide)?);
    let right = if cx.bool("is_rshift_required") { cx.binary("add", right, all)? } else { all };
    let less = cx.binary("subtract", right.clone(), one.clone())?;
    let half = cx.binary("left_shift", one, less)?;
    let rounded = cx.binary("add", value, half)?;
    let moved = cx.binary("right_shift", rounded, right)?;
    cx.cast(moved, dtype)
}
