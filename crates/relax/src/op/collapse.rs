//! Sums to a smaller shape: what broadcasting repeats is added up. The gradient of a broadcast.

use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::*;
use crate::display::tuple_text;
use crate::shape::prove_equal;

const DATA: ArgDef = ArgDef::tensor("data", "What is summed.");
const DOC: &str = "The sum over all dimensions that broadcasting the smaller shape to the tensor's would repeat.";

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "collapse_sum_like",
        &[DATA, ArgDef::tensor("collapse_target", "The tensor whose shape the result has.")],
        &[],
        like_type,
        collapse,
        DOC,
    )
    .pattern(OpPattern::Reduce),
    OpDef::compute(
        "collapse_sum_to",
        &[DATA, ArgDef::shape("shape", "Dimensions of the result.")],
        &[],
        to_type,
        collapse,
        DOC,
    )
    .pattern(OpPattern::Reduce),
];

/// Checks that one shape can be broadcast to another, for certain.
fn check(cx: &CallCx, from: &[PrimExpr], to: &[PrimExpr]) -> Result<(), OpError> {
    let fits = from.len() >= to.len()
        && from.iter().rev().zip(to.iter().rev()).all(|(have, want)| want.is_int(1) || prove_equal(have, want));
    match fits {
        true => Ok(()),
        false => cx.invalid(format!("{} cannot be summed to {}", tuple_text(from), tuple_text(to))),
    }
}

fn like_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, target) = (cx.tensor(0)?, cx.tensor(1)?);
    if let (Some(from), Some(to)) = (&data.dims, &target.dims) {
        check(cx, from, to)?;
    }
    Ok(tensor_type(target.dims, target.ndim, data.dtype))
}

fn to_type(cx: &CallCx) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    match cx.shape_arg(1)? {
        Ok(dims) => {
            if let Some(from) = &data.dims {
                check(cx, from, &dims)?;
            }
            Ok(Type::tensor(dims, data.dtype))
        }
        Err(ndim) => Ok(tensor_type(None, ndim, data.dtype)),
    }
}

fn collapse(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let dims = result_dims(cx)?;
    let lead = x.ndim() - dims.len();
    let gone = |i: usize| match i.checked_sub(lead) {
        None => true,
        Some(j) => dims[j].is_int(1) && !x.shape()[i].is_int(1),
    };
    let taps: Vec<(usize, te::ReduceAxis)> = (0..x.ndim())
        .filter(|i| gone(*i))
        .map(|i| (i, te::reduce_axis_named(format!("k{i}"), x.shape()[i].clone())))
        .collect();
    let index = |out: &[PrimExpr]| -> Vec<PrimExpr> {
        let tap = |i: usize| taps.iter().find(|(axis, _)| *axis == i).map(|(_, k)| k.var());
        (0..x.ndim()).map(|i| tap(i).unwrap_or_else(|| out[i - lead].clone())).collect()
    };
    let name = "T_collapse_sum";
    if taps.is_empty() {
        return Ok(vec![te::compute(name, &dims, |out| x.at(out))]);
    }
    Ok(vec![te::compute(name, &dims, |out| te::sum(x.at(&index(out)), taps.iter().map(|(_, k)| k)))])
}
