//! Operators that go through a dimension in order: running sums and products, sorting, the largest few.
//!
//! Sorting ranks each element by counting those that come before it (the comparison is stable, ties keep their order), then
//! writes elements to their ranks. That is quadratic in the sorted dimension, but regular: no data-dependent control flow.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_ir::{AttrValue, Type, Var};
use relaxide_tir::{Stmt, te};

use super::shaping::{input, reshape_tensor};
use super::*;
use crate::shape::num_elements;

const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The input.")];
const SCAN: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::Int, AttrDefault::None, "The dimension; of the flattened tensor if absent."),
    AttrDef::dtype("dtype", "Dtype of the result; that of the input if void."),
    AttrDef::bool("exclusive", false, "Whether an element's own value is left out."),
];
const AXIS: AttrDef = AttrDef::int("axis", -1, "The dimension.");
const DESCENDING: AttrDef = AttrDef::bool("descending", false, "Whether large values come first.");
const INDEX_DTYPE: AttrDef = AttrDef::new("dtype", AttrKind::DType, AttrDefault::Str("int32"), "Dtype of indices.");

type Compute = fn(&CallCx, &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError>;

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
    row(
        "sort",
        &[AXIS, DESCENDING],
        |cx| Ok(cx.tensor(0)?.ty()),
        |cx, t| Ok(vec![sorted(cx, t)?.0]),
        "Sorted along a dimension; equal elements keep their order.",
    ),
    row(
        "argsort",
        &[AXIS, DESCENDING, INDEX_DTYPE],
        argsort_type,
        |cx, t| Ok(vec![sorted(cx, t)?.1]),
        "Indices that sort along a dimension.",
    ),
    row(
        "topk",
        &[
            AttrDef::int("k", 1, "How many; all if less than one."),
            AXIS,
            AttrDef::str("ret_type", "both", "both (a tuple), values, or indices."),
            AttrDef::bool("largest", true, "Whether the largest are taken, or the smallest."),
            INDEX_DTYPE,
        ],
        topk_type,
        topk,
        "The largest few along a dimension, in order, and where they are.",
    ),
];

fn scan_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let dtype = cx.dtype("dtype").unwrap_or(x.dtype);
    if cx.attrs.get("axis").is_none() {
        return Ok(tensor_type(x.dims.map(|d| vec![num_elements(&d)]), Some(1), dtype));
    }
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
    let exclusive = cx.bool("exclusive")?;
    let out = [("T_scan".to_string(), x.shape().to_vec(), dtype)];
    Ok(te::extern_stage("scan", std::slice::from_ref(&x), out, |source, target| {
        let vars: Vec<_> = (0..x.ndim()).map(|i| Var::dim(format!("i{i}"))).collect();
        let at: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        let mut before = at.clone();
        before[axis] = &at[axis] - 1;
        let own = if exclusive { before.clone() } else { at.clone() };
        let own = cast(dtype, prim::load(&source[0], own));
        let first = if exclusive { constant(dtype, start) } else { own.clone() };
        let next = combine(prim::load(&target[0], before), own);
        let value = prim::if_then_else(prim::eq(&at[axis], 0), first, next);
        nest(&vars, x.shape(), Stmt::store(&target[0], at, value))
    }))
}

/// Loops over every axis.
fn nest(vars: &[Ref<Var>], dims: &[PrimExpr], body: Stmt) -> Stmt {
    vars.iter().zip(dims).rev().fold(body, |body, (var, dim)| Stmt::serial(var.clone(), dim.clone(), body))
}

fn argsort_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    Ok(TensorInfo { dtype: cx.dtype("dtype").unwrap_or(DataType::int(32)), ..x }.ty())
}

/// Values and indices in order.
fn sorted(cx: &CallCx, inputs: &[te::Tensor]) -> Result<(te::Tensor, te::Tensor), OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    let descending = match cx.attrs.bool("descending") {
        Some(descending) => descending,
        None => cx.bool("largest")?,
    };
    let rank = ranks(x, axis, descending);
    let index = cx.dtype("dtype").unwrap_or(DataType::int(32));
    let outs =
        [("T_values".to_string(), x.shape().to_vec(), x.dtype()), ("T_indices".to_string(), x.shape().to_vec(), index)];
    let mut outs = te::extern_stage("sort", &[x.clone(), rank], outs, |source, target| {
        let vars: Vec<_> = (0..x.ndim()).map(|i| Var::dim(format!("i{i}"))).collect();
        let at: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        let mut to = at.clone();
        to[axis] = prim::load(&source[1], at.clone());
        let value = Stmt::store(&target[0], to.clone(), prim::load(&source[0], at.clone()));
        let place = Stmt::store(&target[1], to, cast(index, &at[axis]));
        nest(&vars, x.shape(), Stmt::seq([value, place]))
    });
    match (outs.pop(), outs.pop()) {
        (Some(indices), Some(values)) => Ok((values, indices)),
        _ => cx.invalid("gives no values and indices"),
    }
}

/// For each element how many along the axis come before it.
fn ranks(x: &te::Tensor, axis: usize, descending: bool) -> te::Tensor {
    let k = te::reduce_axis(x.shape()[axis].clone());
    te::compute("T_rank", x.shape(), |out| {
        let mut other = out.to_vec();
        other[axis] = k.var();
        let (own, other) = (x.at(out), x.at(&other));
        let before = if descending { prim::gt(&other, &own) } else { prim::lt(&other, &own) };
        let tied = prim::and(prim::eq(&other, &own), prim::lt(k.var(), &out[axis]));
        te::sum(cast(DataType::int(64), prim::or(before, tied)), [&k])
    })
}

fn topk_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let index = cx.dtype("dtype").unwrap_or(DataType::int(32));
    let k = cx.int("k")?;
    let dims = match (x.ndim, x.dims) {
        (Some(ndim), Some(mut dims)) => {
            let axis = cx.axis("axis", ndim)?;
            if k > 0 {
                if dims[axis].as_int().is_some_and(|size| size < k) {
                    return cx.invalid(format!("cannot take {k} of fewer elements"));
                }
                dims[axis] = PrimExpr::from(k);
            }
            Some(dims)
        }
        _ => None,
    };
    let ty = |dtype| tensor_type(dims.clone(), x.ndim, dtype);
    Ok(match cx.str("ret_type")? {
        "both" => Type::tuple(vec![ty(x.dtype), ty(index)]),
        "values" => ty(x.dtype),
        "indices" => ty(index),
        other => return cx.invalid(format!("ret_type is {other}; there are both, values, indices")),
    })
}

fn topk(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (values, indices) = sorted(cx, inputs)?;
    let axis = cx.axis("axis", values.ndim())?;
    let k = cx.int("k")?;
    let mut dims = values.shape().to_vec();
    if k > 0 {
        dims[axis] = PrimExpr::from(k);
    }
    let first = |name: &str, t: &te::Tensor| te::compute(name, &dims, |out| t.at(out));
    Ok(match cx.attrs.get("ret_type") {
        Some(AttrValue::Str(which)) if which == "values" => vec![first("T_topk", &values)],
        Some(AttrValue::Str(which)) if which == "indices" => vec![first("T_topk_indices", &indices)],
        _ => vec![first("T_topk", &values), first("T_topk_indices", &indices)],
    })
}
