//! Matrix products.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{PrimExpr, cast};
use relaxide_tir::te;

use super::binary::broadcast_info;
use super::manipulate::{input, result_dims};
use super::*;
use crate::display::dim_text;
use crate::shape::broadcast_index;

/// The rows.
pub static TABLE: &[OpDef] = &[OpDef {
    name: "matmul",
    doc: "Matrix product of the last two dimensions; those in front are broadcast. A vector on the left is a row, on the \
          right a column, and its dimension is dropped from the result.",
    args: &[ArgDef::tensor("x1", "Left factor."), ArgDef::tensor("x2", "Right factor.")],
    attrs: &[AttrDef::dtype("out_dtype", "Dtype of products and sums; that of the factors if void.")],
    infer,
    lengths: |cx| {
        let rows = if cx.tensor(1)?.ndim == Some(1) { 0 } else { -2 };
        Ok(lengths::equal_dims(cx, &[(0, -1), (1, rows)]))
    },
    lower: Lowering::Compute(lower),
    pattern: OpPattern::OutFusable,
    mixed_precision: MixedPrecision::Always(Some("out_dtype")),
    gradient: Some(gradient::matmul),
    ..OpDef::BASE
}];

fn out_dtype(cx: &CallCx) -> Result<DataType, OpError> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    match cx.dtype("out_dtype") {
        Some(dtype) => Ok(dtype),
        None if a.dtype == b.dtype => Ok(a.dtype),
        None if a.dtype.is_void() || b.dtype.is_void() => Ok(DataType::void()),
        None => cx
            .wrong_dtype(format!("the factors have dtypes {} and {}; give out_dtype or convert one", a.dtype, b.dtype)),
    }
}

fn infer(cx: &CallCx) -> Result<Type, OpError> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = out_dtype(cx)?;
    let (Some(na), Some(nb)) = (a.ndim, b.ndim) else { return Ok(tensor_type(None, None, dtype)) };
    if na == 0 || nb == 0 {
        return cx.invalid("a factor has no dimensions; multiply it instead");
    }
    let vectors = usize::from(na == 1) + usize::from(nb == 1);
    let ndim = na.max(nb).max(2) - vectors;
    let (Some(da), Some(db)) = (&a.dims, &b.dims) else { return Ok(tensor_type(None, Some(ndim), dtype)) };
    let (ka, kb) = (&da[na - 1], &db[nb.saturating_sub(2)]);
    if let (Some(x), Some(y)) = (ka.as_int(), kb.as_int())
        && x != y
    {
        return cx.invalid(format!("{} columns on the left meet {} rows on the right", dim_text(ka), dim_text(kb)));
    }
    let front = |dims: &[PrimExpr]| TensorInfo {
        dims: Some(dims[..dims.len().saturating_sub(2)].to_vec()),
        ndim: Some(dims.len().saturating_sub(2)),
        dtype,
    };
    let (batch, _) = broadcast_info(cx, &front(da), &front(db))?;
    let Some(mut dims) = batch else { return Ok(tensor_type(None, Some(ndim), dtype)) };
    if na > 1 {
        dims.push(da[na - 2].clone());
    }
    if nb > 1 {
        dims.push(db[nb - 1].clone());
    }
    Ok(Type::tensor(dims, dtype))
}

fn lower(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (a, b) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let dtype = out_dtype(cx)?;
    let dims = result_dims(cx)?;
    let Some(extent) = a.shape().last().cloned() else { return cx.invalid("a factor has no dimensions") };
    let k = te::reduce_axis(extent);
    let (rows, columns) = (a.ndim() > 1, b.ndim() > 1);
    let batch = dims.len() - usize::from(rows) - usize::from(columns);
    Ok(vec![te::compute("matmul", &dims, |out| {
        let front =
            |t: &te::Tensor| broadcast_index(&t.shape()[..t.ndim().saturating_sub(2)], &out[..batch], &dims[..batch]);
        let (mut left, mut right) = (front(a), front(b));
        if rows {
            left.push(out[batch].clone());
        }
        left.push(k.var());
        right.push(k.var());
        if columns && let Some(column) = out.last() {
            right.push(column.clone());
        }
        te::sum(cast(dtype, a.at(&left)) * cast(dtype, b.at(&right)), [&k])
    })])
}
