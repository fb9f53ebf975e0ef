//! Operators whose shape is data: the tensor of the shape has a known length, its elements become dimensions.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;

use super::cx::{DimDef, LowerCx, LowerError, Lowered, attrs, fail};
use crate::scalar;

/// The dimensions that a tensor of integers holds.
fn dims_of(cx: &mut LowerCx<'_>, i: usize) -> Result<Vec<PrimExpr>, LowerError> {
    if let Some(value) = cx.value(i) {
        let values = scalar::ints(&value).ok_or_else(|| LowerError("a shape must hold integers".into()))?;
        return Ok(values.into_iter().map(prim::int).collect());
    }
    let operand = cx.arg(i)?;
    if !cx.dtype(&operand)?.is_integer() {
        return fail(format!("{}: a shape must hold integers", cx.def.name));
    }
    let shape = cx.shape(&operand)?;
    let [count] = shape.as_slice() else { return fail(format!("{}: a shape has one dimension", cx.def.name)) };
    let Some(count) = count.as_int() else {
        return fail(format!("{}: the number of dimensions must be known", cx.def.name));
    };
    Ok((0..count as usize).map(|k| cx.dim("s", DimDef::Element(operand.clone(), k))).collect())
}

/// Zero copies a dimension and -1 takes what is left; both may be known when the program runs only.
pub(super) fn reshape(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let own = cx.shape(&x)?;
    let wanted = dims_of(cx, 1)?;
    if let Some(known) = rx::shape::const_dims(&wanted) {
        return super::shaping::reshape_to(cx, x, &known, false);
    }
    let copied: Vec<PrimExpr> = wanted
        .iter()
        .enumerate()
        .map(|(i, dim)| match own.get(i) {
            Some(own) => prim::select(prim::eq(dim, prim::int(0)), own.clone(), dim.clone()),
            None => dim.clone(),
        })
        .collect();
    let total = rx::shape::num_elements(&own);
    let minus_one = prim::int(-1);
    let known = copied
        .iter()
        .fold(prim::int(1), |n, dim| n * prim::select(prim::eq(dim, minus_one.clone()), prim::int(1), dim.clone()));
    let left = prim::floordiv(total, prim::max(known, prim::int(1)));
    let shape: Vec<PrimExpr> = copied
        .into_iter()
        .map(|dim| {
            let value = prim::select(prim::eq(&dim, minus_one.clone()), left.clone(), dim.clone());
            cx.dim("r", DimDef::Expr(value))
        })
        .collect();
    // The kernel is given the result's memory, whose shape says what the dimensions are.
    let own_count = own.len();
    Ok(cx.builder.emit_te("dyn_reshape", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![relaxide_tir::te::compute("T_reshape", shape.clone(), |indices: &[PrimExpr]| {
            let flat = indices.iter().zip(&shape).fold(prim::int(0), |at, (i, dim)| at * dim + i);
            let mut rest = flat;
            let mut at = vec![prim::int(0); own_count];
            for k in (0..own_count).rev() {
                at[k] = if k == 0 { rest.clone() } else { prim::floormod(rest.clone(), own[k].clone()) };
                rest = prim::floordiv(rest, own[k].clone());
            }
            x.at(&at)
        })]
    })?)
}

pub(super) fn broadcast_to(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = dims_of(cx, 1)?;
    if shape.len() < cx.ndim(&x)? {
        return fail("broadcast_to: the shape has fewer dimensions than the tensor");
    }
    cx.repeated(x, &shape)
}

pub(super) fn full(cx: &mut LowerCx<'_>) -> Lowered {
    let (value, shape) = (cx.arg(0)?, dims_of(cx, 1)?);
    let dtype = cx.dtype_attr("dtype", cx.dtype(&value)?);
    cx.emit("full", [rx::Expr::shape(shape), value], attrs([("dtype", dtype.into())]))
}

pub(super) fn zeros(cx: &mut LowerCx<'_>) -> Lowered {
    let shape = rx::Expr::shape(dims_of(cx, 0)?);
    let dtype = cx.dtype_attr("dtype", DataType::float(32));
    cx.emit("zeros", [shape], attrs([("dtype", dtype.into())]))
}

pub(super) fn ones(cx: &mut LowerCx<'_>) -> Lowered {
    let shape = rx::Expr::shape(dims_of(cx, 0)?);
    let dtype = cx.dtype_attr("dtype", DataType::float(32));
    cx.emit("ones", [shape], attrs([("dtype", dtype.into())]))
}

pub(super) fn tile(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let reps = dims_of(cx, 1)?;
    let own = cx.shape(&x)?;
    let ndim = own.len().max(reps.len());
    let padded = |list: &[PrimExpr], i: usize| {
        (i + list.len()).checked_sub(ndim).and_then(|j| list.get(j).cloned()).unwrap_or_else(|| prim::int(1))
    };
    let shape: Vec<PrimExpr> =
        (0..ndim).map(|i| cx.dim("t", DimDef::Expr(padded(&own, i) * padded(&reps, i)))).collect();
    let skipped = ndim - own.len();
    Ok(cx.builder.emit_te("dyn_tile", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![relaxide_tir::te::compute("T_tile", shape, |indices: &[PrimExpr]| {
            let at: Vec<PrimExpr> =
                indices[skipped..].iter().zip(&own).map(|(i, dim)| prim::floormod(i.clone(), dim.clone())).collect();
            x.at(&at)
        })]
    })?)
}
