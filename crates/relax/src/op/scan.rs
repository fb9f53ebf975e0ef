//! Operators that go through a dimension in order: running sums and products.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::{Stmt, te};

use super::loops::{axes, nest};
use super::manipulate::{input, reshape_tensor};
use super::*;
use crate::shape::num_elements;

const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The input.")];
const SCAN: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::Int, AttrDefault::None, "The dimension; of the flattened tensor if absent."),
    AttrDef::dtype("dtype", "Dtype of the result; that of the input if void."),
    AttrDef::bool("exclusive", false, "Whether an element's own value is left out."),
];
const fn row(
    name: &'static str,
    attrs: &'static [AttrDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    lower: Compute,
    doc: &'static str,
) -> OpDef {
    OpDef {
        name,
        doc,
        args: DATA,
        attrs,
        infer,
        lower: Lowering::Compute(lower),
        pattern: OpPattern::Opaque,
        ..OpDef::BASE
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row("cumsum", SCAN, scan_type, |cx, t| scan(cx, t, 0.0, |a, b| a + b), "Running sum.").gradient(gradient::cumsum),
    row("cumprod", SCAN, scan_type, |cx, t| scan(cx, t, 1.0, |a, b| a * b), "Running product."),
];

fn scan_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let dtype = cx.dtype("dtype").unwrap_or(x.dtype);
    if cx.attrs.get("axis").is_none() {
        return Ok(tensor_type(x.dims.map(|d| vec![num_elements(&d)]), x.ndim.map(|_| 1), dtype));
    }
    x.ndim.map_or(Ok(0), |ndim| cx.axis("axis", ndim))?;
    Ok(TensorInfo { dtype, ..x }.ty())
}

fn scan(
    cx: &CallCx,
    inputs: &[te::Tensor],
    start: f64,
    combine: fn(PrimExpr, PrimExpr) -> PrimExpr,
) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let (x, axis) = match cx.attrs.get("axis") {
        None => (reshape_tensor("flatten", x, &[num_elements(x.shape())]), 0),
        Some(_) => (x.clone(), cx.axis("axis", x.ndim())?),
    };
    let dtype = cx.dtype("dtype").unwrap_or(x.dtype());
    Ok(vec![running(&x, axis, dtype, cx.bool("exclusive")?, start, combine)])
}

/// Along an axis all elements so far put together; with `exclusive` without an element's own.
pub(super) fn running(
    x: &te::Tensor,
    axis: usize,
    dtype: DataType,
    exclusive: bool,
    start: f64,
    combine: fn(PrimExpr, PrimExpr) -> PrimExpr,
) -> te::Tensor {
    let out = [("T_scan".to_string(), x.shape().to_vec(), dtype)];
    let mut outs = te::extern_stage("scan", std::slice::from_ref(x), out, |source, target| {
        let (vars, at) = axes(x.shape(), "i");
        let mut before = at.clone();
        before[axis] = &at[axis] - 1;
        let own = if exclusive { before.clone() } else { at.clone() };
        let own = cast(dtype, prim::load(&source[0], own));
        let first = if exclusive { constant(dtype, start) } else { own.clone() };
        let next = combine(prim::load(&target[0], before), own);
        let value = prim::if_then_else(prim::eq(&at[axis], 0), first, next);
        nest(&vars, x.shape(), Stmt::store(&target[0], at, value))
    });
    outs.swap_remove(0)
}
