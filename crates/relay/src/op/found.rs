//! The places of what is not zero: a result whose length only the data show.
//!
//! The length is counted by a shape function before the kernels run, as the document has it for operators whose shape depends on
//! data; the kernels know it then.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{DimDef, LowerCx, Lowered, attrs, fail};
use super::manipulate::PLACES;
use crate::scalar::{self, Number};

/// The indices of the elements that are not zero, in order.
pub(super) fn argwhere(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (shape, of) = (cx.shape(&x)?, cx.dtype(&x)?);
    if shape.is_empty() {
        return fail("argwhere takes a tensor that has dimensions");
    }
    let known = cx.value(0).and_then(|value| scalar::numbers(&value));
    let count = match known {
        Some(numbers) => {
            let holds =
                |n: &&Number| !matches!(n, Number::Int(0) | Number::Bool(false)) && !matches!(n, Number::Float(0.0));
            prim::int(numbers.iter().filter(holds).count() as i64)
        }
        None => cx.dim("found", DimDef::Nonzero(x.clone())),
    };
    let total = shape.iter().fold(prim::int(1), |n, dim| n * dim.clone());
    let (dims, all) = (shape.clone(), total.clone());
    let mask = cx.builder.emit_te("is_there", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_is_there", [all], |at: &[PrimExpr]| {
            prim::cast(PLACES, prim::ne(x.at(&unravelled(&at[0], &dims)), prim::constant(of, 0.0)))
        })]
    })?;
    let upto = cx.emit("cumsum", [mask.clone()], attrs([("axis", 0i64.into()), ("dtype", PLACES.into())]))?;
    // Each element that is there goes to its place, all others behind the last.
    let last = count.clone();
    let places = cx.builder.emit_te("place", vec![mask, upto], |inputs| {
        let (mask, upto) = (inputs[0].clone(), inputs[1].clone());
        vec![te::compute("T_place", [total.clone()], |at: &[PrimExpr]| {
            let there = prim::eq(mask.at(at), prim::int(1));
            prim::select(there, upto.at(at) - 1, prim::cast(PLACES, last.clone()))
        })]
    })?;
    let numbers = cx.builder.emit_te("number", vec![], |_| {
        vec![te::compute("T_number", [total.clone()], |at: &[PrimExpr]| prim::cast(PLACES, at[0].clone()))]
    })?;
    let room = rx::Expr::shape(vec![count.clone() + 1]);
    let zero = cx.constant(0.0, PLACES)?;
    let room = cx.emit("full", [room, zero], attrs([("dtype", PLACES.into())]))?;
    let pairs = attrs([("axis", 0i64.into()), ("reduction", "update".into())]);
    let found = cx.emit("scatter_elements", [room, places, numbers], pairs)?;
    let rank = prim::int(shape.len() as i64);
    Ok(cx.builder.emit_te("argwhere", vec![found], |inputs| {
        let found = inputs[0].clone();
        vec![te::compute("T_argwhere", [count, rank], |at: &[PrimExpr]| {
            let index = unravelled(&found.at(&at[..1]), &shape);
            let last = index.len() - 1;
            let chosen = index[..last].iter().enumerate().rev().fold(index[last].clone(), |other, (i, value)| {
                prim::select(prim::eq(&at[1], prim::int(i as i64)), value.clone(), other)
            });
            prim::cast(DataType::int(32), chosen)
        })]
    })?)
}

/// The indices of an element by its place among all.
fn unravelled(place: &PrimExpr, shape: &[PrimExpr]) -> Vec<PrimExpr> {
    let (mut rest, mut out) = (place.clone(), Vec::new());
    for (i, dim) in shape.iter().enumerate().rev() {
        if i == 0 {
            out.push(rest.clone());
        } else {
            out.push(prim::floormod(rest.clone(), dim.clone()));
            rest = prim::floordiv(rest, dim.clone());
        }
    }
    out.reverse();
    out
}
