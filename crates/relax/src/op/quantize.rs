//! Quantization: floating-point numbers as small integers, with a scale and a zero point.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::te;

use super::manipulate::input;
use super::*;

const ARGS: &[ArgDef] = &[
    ArgDef::tensor("data", "The input."),
    ArgDef::tensor("scale", "The step: one number, or one for each channel."),
    ArgDef::tensor("zero_point", "The integer that stands for zero: one, or one for each channel."),
];
const AXIS: AttrDef = AttrDef::int("axis", -1, "The dimension of channels.");

/// The largest number of half precision.
const HALF_MAX: f64 = 65504.0;

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef {
        name: "quantize",
        doc: "clip(round(x / scale) + zero_point), to the range of the result's dtype.",
        args: ARGS,
        attrs: &[AXIS, AttrDef::new("out_dtype", AttrKind::DType, AttrDefault::Str("int8"), "Dtype of the result.")],
        infer: |cx| output_type(cx, DataType::int(8)),
        lengths: channels_agree,
        lower: Lowering::Compute(quantize),
        pattern: OpPattern::Broadcast,
        ..OpDef::BASE
    },
    OpDef {
        name: "dequantize",
        doc: "(x - zero_point) * scale; in half precision what is beyond its range becomes its bound.",
        args: ARGS,
        attrs: &[AXIS, AttrDef::new("out_dtype", AttrKind::DType, AttrDefault::Str("float32"), "Dtype of the result.")],
        infer: |cx| output_type(cx, DataType::float(32)),
        lengths: channels_agree,
        lower: Lowering::Compute(dequantize),
        pattern: OpPattern::Broadcast,
        ..OpDef::BASE
    },
];

/// Parameters are one number, or as many as channels.
fn channels_agree(cx: &CallCx) -> Result<Vec<lengths::Lengths>, OpError> {
    let Some(ndim) = cx.tensor(0)?.ndim.filter(|n| *n > 0) else { return Ok(Vec::new()) };
    let axis = cx.axis("axis", ndim)? as i64;
    let many = |i: &usize| lengths::of(cx, *i, 0).is_some_and(|(_, size)| !size.is_int(1));
    Ok((1..3).filter(many).flat_map(|i| lengths::equal_dims(cx, &[(0, axis), (i, 0)])).collect())
}

fn output_type(cx: &CallCx, default: DataType) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    for i in 1..3 {
        let parameter = cx.tensor(i)?;
        let many = parameter.dims.as_ref().and_then(|d| d.first()).filter(|d| !d.is_int(1));
        let Some(size) = many else { continue };
        let Some(dims) = &data.dims else {
            return cx.invalid("parameters for each channel need a tensor of known shape");
        };
        let channels = &dims[cx.axis("axis", dims.len())?];
        if channels.as_int().zip(size.as_int()).is_some_and(|(a, b)| a != b) {
            return cx.invalid("the parameters are not as many as the channels");
        }
    }
    Ok(TensorInfo { dtype: cx.dtype("out_dtype").unwrap_or(default), ..data }.ty())
}

/// A parameter: argument `i`, of the channel that an index lies in.
fn of_channel(cx: &CallCx, i: usize, t: &te::Tensor, axis: usize, at: &[PrimExpr]) -> PrimExpr {
    match t.shape() {
        [] => cx.literal(i).unwrap_or_else(|| t.at(&[])),
        [one] if one.is_int(1) => t.at(&[PrimExpr::from(0)]),
        _ => t.at(std::slice::from_ref(&at[axis])),
    }
}

fn quantize(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, scale, zero) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?, input(cx, inputs, 2)?);
    let axis = if x.ndim() == 0 { 0 } else { cx.axis("axis", x.ndim())? };
    let dtype = cx.dtype("out_dtype").unwrap_or(DataType::int(8));
    if !dtype.is_integer() || dtype.bits > 16 {
        return cx.unsupported(format!("cannot quantize to {dtype}; there are integers of 8 and 16 bits"));
    }
    let bits = i32::from(dtype.bits);
    let (low, high) = if dtype.is_uint() {
        (0.0, 2f64.powi(bits) - 1.0)
    } else {
        (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0)
    };
    Ok(vec![te::compute("T_quantize", x.shape(), |at| {
        let number = |v: f64| constant(x.dtype(), v);
        let steps = math("round", prim::div(x.at(at), cast(x.dtype(), of_channel(cx, 1, scale, axis, at))));
        let moved = steps + cast(x.dtype(), of_channel(cx, 2, zero, axis, at));
        cast(dtype, prim::max(prim::min(moved, number(high)), number(low)))
    })])
}

fn dequantize(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, scale, zero) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?, input(cx, inputs, 2)?);
    let axis = if x.ndim() == 0 { 0 } else { cx.axis("axis", x.ndim())? };
    let dtype = cx.dtype("out_dtype").unwrap_or(DataType::float(32));
    let wide = DataType::int(32);
    Ok(vec![te::compute("T_dequantize", x.shape(), |at| {
        let steps = cast(wide, x.at(at)) - cast(wide, of_channel(cx, 2, zero, axis, at));
        let scale = of_channel(cx, 1, scale, axis, at);
        if dtype != DataType::float(16) {
            return cast(dtype, steps) * cast(dtype, scale);
        }
        // The steps of integers of 16 bits are beyond halves, though their products with the scale need not be.
        let single = DataType::float(32);
        let value = cast(single, steps) * cast(single, scale);
        cast(dtype, prim::max(prim::min(value, constant(single, HALF_MAX)), constant(single, -HALF_MAX)))
    })])
}
