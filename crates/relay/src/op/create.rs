//! Tensors from nothing, and what is known of tensors.

use relaxide_ffi::DataType;
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};
use crate::scalar;

fn shape_attr(cx: &LowerCx<'_>) -> Result<rx::Expr, LowerError> {
    known_shape(cx).map(rx::Expr::shape)
}

/// The attribute `shape`, whose dimensions must be known.
pub(super) fn known_shape(cx: &LowerCx<'_>) -> Result<Vec<i64>, LowerError> {
    let dims = cx.ints("shape")?;
    match dims.iter().position(|dim| *dim < 0) {
        None => Ok(dims),
        // `Any` is -1 in an attribute.
        Some(at) => fail(format!(
            "{name}: dimension {at} of the shape is {}, and must be known; where only the run shows it, take `dyn.{name}` with \
             a tensor that holds the shape, as `shape_of` of another tensor",
            if dims[at] == -1 { "`Any`".to_string() } else { dims[at].to_string() },
            name = cx.def.name
        )),
    }
}

pub(super) fn zeros(cx: &mut LowerCx<'_>) -> Lowered {
    let (shape, dtype) = (shape_attr(cx)?, cx.dtype_attr("dtype", DataType::float(32)));
    cx.emit("zeros", [shape], attrs([("dtype", dtype.into())]))
}

pub(super) fn ones(cx: &mut LowerCx<'_>) -> Lowered {
    let (shape, dtype) = (shape_attr(cx)?, cx.dtype_attr("dtype", DataType::float(32)));
    cx.emit("ones", [shape], attrs([("dtype", dtype.into())]))
}

pub(super) fn full(cx: &mut LowerCx<'_>) -> Lowered {
    let (value, shape) = (cx.arg(0)?, shape_attr(cx)?);
    let dtype = cx.dtype_attr("dtype", cx.dtype(&value)?);
    cx.emit("full", [shape, value], attrs([("dtype", dtype.into())]))
}

pub(super) fn full_like(cx: &mut LowerCx<'_>) -> Lowered {
    let (like, value) = (cx.arg(0)?, cx.arg(1)?);
    let dtype = cx.dtype(&like)?;
    cx.emit("full_like", [like, value], attrs([("dtype", dtype.into())]))
}

pub(super) fn zeros_like(cx: &mut LowerCx<'_>) -> Lowered {
    let like = cx.arg(0)?;
    cx.op("zeros_like", [like])
}

pub(super) fn ones_like(cx: &mut LowerCx<'_>) -> Lowered {
    let like = cx.arg(0)?;
    cx.op("ones_like", [like])
}

/// A range whose bounds are known; others need a shape that depends on values.
pub(super) fn arange(cx: &mut LowerCx<'_>) -> Lowered {
    let bounds = [cx.number(0)?, cx.number(1)?, cx.number(2)?];
    let dtype = cx.dtype_attr("dtype", DataType::float(32));
    let count = ((bounds[1] - bounds[0]) / bounds[2]).ceil().max(0.0) as i64;
    // The values are those of the reference: start + i * step, in the element type.
    let places = [0, count, 1].map(|v| rx::Expr::prim(relaxide_ir::prim::int(v)));
    let places = cx.emit("arange", places, attrs([("dtype", DataType::int(64).into())]))?;
    let places = cx.cast(places, dtype)?;
    let (step, start) = (cx.constant(bounds[2], dtype)?, cx.constant(bounds[0], dtype)?);
    let scaled = cx.op("multiply", [places, step])?;
    cx.op("add", [scaled, start])
}

/// The dimensions as integers: they are in the shape of the argument already.
pub(super) fn shape_of(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dtype = cx.dtype_attr("dtype", DataType::int(32));
    let shape = cx.shape(&x)?;
    if let Some(dims) = rx::shape::const_dims(&shape) {
        let count = dims.len() as i64;
        let tensor = if dtype == DataType::int(64) {
            relaxide_ffi::Tensor::from_slice(&dims, &[count])?
        } else {
            let narrow: Vec<i32> = dims.iter().map(|d| i32::try_from(*d).unwrap_or(i32::MAX)).collect();
            relaxide_ffi::Tensor::from_slice(&narrow, &[count])?
        };
        let constant = rx::Expr::constant(tensor);
        return cx.cast(constant, dtype);
    }
    let count = shape.len() as i64;
    let made = cx.builder.emit_te("shape_of", vec![x], |_| {
        let out = relaxide_tir::te::compute("T_shape", [count], |indices: &[relaxide_ir::PrimExpr]| {
            let last = shape.last().cloned().unwrap_or_else(|| relaxide_ir::prim::int(0));
            let chosen = shape.iter().enumerate().rev().skip(1).fold(last, |other, (i, dim)| {
                relaxide_ir::prim::select(
                    relaxide_ir::prim::eq(&indices[0], relaxide_ir::prim::int(i as i64)),
                    dim.clone(),
                    other,
                )
            });
            relaxide_ir::prim::cast(dtype, chosen)
        });
        vec![out]
    })?;
    Ok(made)
}

pub(super) fn ndarray_size(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dtype = cx.dtype_attr("dtype", DataType::int(32));
    let count = rx::shape::num_elements(&cx.shape(&x)?);
    if let Some(count) = count.as_int() {
        return Ok(rx::Expr::constant(scalar::int(count, dtype)?));
    }
    Ok(cx.builder.emit_te("ndarray_size", vec![x], |_| {
        let none: [i64; 0] = [];
        let value = relaxide_ir::prim::cast(dtype, count.clone());
        vec![relaxide_tir::te::compute("T_size", none, |_: &[relaxide_ir::PrimExpr]| value.clone())]
    })?)
}
