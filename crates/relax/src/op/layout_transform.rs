//! A tensor laid out anew, by a map of indices.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_ir::{AttrValue, Type};
use relaxide_tir::index_map::Inverse;
use relaxide_tir::{IndexMap, Stmt, te};

use super::loops::{axes, nest};
use super::manipulate::{input, result_dims};
use super::*;

/// The rows.
pub static TABLE: &[OpDef] = &[OpDef::compute(
    "layout_transform",
    &[ArgDef::tensor("x", "The input.")],
    &[
        AttrDef::required("index_map", AttrKind::Any, "From an element's index in x to that in the result."),
        AttrDef::absent("pad_value", AttrKind::Any, "What stands where no element goes; zero if absent."),
    ],
    infer,
    lower,
    "Each element at the place that a map of indices gives it; the result is as large as the largest of them.",
)
.follow()];

fn index_map(cx: &CallCx) -> Result<Ref<IndexMap>, OpError> {
    let map = match cx.attrs.get("index_map") {
        Some(AttrValue::Object(object)) => object.clone().downcast::<IndexMap>().ok(),
        _ => None,
    };
    map.map_or_else(|| cx.invalid("`index_map` must be a map of indices"), Ok)
}

fn infer(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let map = index_map(cx)?;
    if let Some(n) = x.ndim.filter(|n| *n != map.initial_indices.len()) {
        return cx.invalid(format!("a map of {} indices comes with {n} dimensions", map.initial_indices.len()));
    }
    pad_value(cx, x.dtype)?;
    let ndim = Some(map.final_indices.len());
    let Some(dims) = x.dims else { return Ok(tensor_type(None, ndim, x.dtype)) };
    match map.apply_to_shape(&dims) {
        Some(dims) => Ok(tensor_type(Some(dims), ndim, x.dtype)),
        None => cx.unsupported("the largest index that the map gives is not known; it may add, multiply, // and %"),
    }
}

fn pad_value(cx: &CallCx, dtype: DataType) -> Result<PrimExpr, OpError> {
    match cx.attrs.get("pad_value") {
        None => Ok(constant(dtype, 0.0)),
        Some(AttrValue::Prim(e)) if e.dtype() == dtype => Ok(e.clone()),
        Some(AttrValue::Int(v)) => Ok(constant(dtype, *v as f64)),
        Some(AttrValue::Float(v)) if dtype.is_float() => Ok(constant(dtype, *v)),
        Some(_) => cx.invalid(format!("`pad_value` must be a number of {dtype}")),
    }
}

fn lower(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let map = index_map(cx)?;
    let dims = result_dims(cx)?;
    let value = pad_value(cx, x.dtype())?;
    if let Some(inverse) = map.inverse(x.shape()) {
        return Ok(vec![gathered(x, &inverse, &dims, value)?]);
    }
    let (vars, at) = axes(x.shape(), "i");
    let Some(to) = map.apply(&at) else { return cx.invalid("the map has another rank than the tensor") };
    let to: Vec<PrimExpr> = to.into_iter().map(|e| cast(DataType::int(64), e)).collect();
    let out = [("T_layout_transform".to_string(), dims.clone(), x.dtype())];
    Ok(te::extern_stage("layout_transform", inputs, out, |source, target| {
        let (fill_vars, place) = axes(&dims, "o");
        let fill = nest(&fill_vars, &dims, Stmt::store(&target[0], place, value));
        let move_all = nest(&vars, x.shape(), Stmt::store(&target[0], to, prim::load(&source[0], at)));
        Stmt::seq([fill, move_all])
    }))
}

/// Where the map leads back, each element is taken from where it was: what follows can be computed along with it.
fn gathered(x: &te::Tensor, back: &Inverse, dims: &[PrimExpr], pad: PrimExpr) -> Result<te::Tensor, OpError> {
    let mut wrong = false;
    let result = te::Compute::new("T_layout_transform", dims).simplified().build(|to| {
        let Some(at) = back.map.apply(to) else {
            wrong = true;
            return pad.clone();
        };
        if !back.padded {
            return x.at(&at);
        }
        let inside = at.iter().zip(x.shape()).map(|(at, dim)| prim::lt(at, dim));
        prim::if_then_else(window::all(inside), x.at(&at), pad.clone())
    });
    if wrong {
        Err(OpError::invalid("layout_transform", "the map's results are not the result's indices"))
    } else {
        Ok(result)
    }
}
