//! The different elements of a vector.
//!
//! Results are as long as the operand: what stands behind the different elements is nothing, zeros here, and their number is a
//! result of its own. Elements are sorted, each stretch of equal ones is a group, and a group's number is its place in the result.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, Lowered, attrs, fail};
use super::manipulate::PLACES;

const INDEX: DataType = DataType::int(32);

/// A vector of one number.
fn filled(cx: &mut LowerCx<'_>, length: &PrimExpr, value: rx::Expr) -> Lowered {
    let dtype = cx.dtype(&value)?;
    cx.emit("full", [rx::Expr::shape(vec![length.clone()]), value], attrs([("dtype", dtype.into())]))
}

/// Values at places in a vector.
fn placed(cx: &mut LowerCx<'_>, vector: rx::Expr, places: &rx::Expr, values: rx::Expr, reduction: &str) -> Lowered {
    let pairs = attrs([("axis", 0i64.into()), ("reduction", reduction.into())]);
    cx.emit("scatter_elements", [vector, places.clone(), values], pairs)
}

fn order_of(cx: &mut LowerCx<'_>, vector: &rx::Expr) -> Lowered {
    let pairs = [("axis", 0i64.into()), ("descending", false.into()), ("dtype", INDEX.into())];
    cx.emit("argsort", [vector.clone()], attrs(pairs))
}

fn taken(cx: &mut LowerCx<'_>, vector: &rx::Expr, places: &rx::Expr) -> Lowered {
    let pairs = attrs([("axis", 0i64.into()), ("mode", "clip".into())]);
    cx.emit("take", [vector.clone(), places.clone()], pairs)
}

/// The numbers from 0 on.
fn counted(cx: &mut LowerCx<'_>, length: &PrimExpr) -> Lowered {
    let length = length.clone();
    Ok(cx.builder.emit_te("number", vec![], |_| {
        vec![te::compute("T_number", [length], |at: &[PrimExpr]| prim::cast(INDEX, at[0].clone()))]
    })?)
}

pub(super) fn unique(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.shape(&x)?;
    let [length] = shape.as_slice() else { return fail("unique takes a vector") };
    let (order, zero) = (order_of(cx, &x)?, cx.constant(0.0, INDEX)?);
    let sorted = taken(cx, &x, &order)?;
    let first = cx.builder.emit_te("begins", vec![sorted.clone()], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_begins", [length.clone()], |at: &[PrimExpr]| {
            let before = prim::max(at[0].clone() - 1, prim::int(0));
            let begins = prim::or(prim::eq(at[0].clone(), prim::int(0)), prim::ne(x.at(at), x.at(&[before])));
            prim::cast(INDEX, begins)
        })]
    })?;
    let number = cx.emit("sum", [first.clone()], attrs([("axis", vec![0i64].into()), ("keepdims", true.into())]))?;
    let upto = cx.emit("cumsum", [first], attrs([("axis", 0i64.into()), ("dtype", INDEX.into())]))?;
    let one = cx.constant(1.0, INDEX)?;
    let groups = cx.op("subtract", [upto, one.clone()])?;
    let places = cx.cast(groups.clone(), PLACES)?;
    let of_values = cx.constant(0.0, cx.dtype(&x)?)?;
    let nothing = filled(cx, length, of_values)?;
    let mut values = placed(cx, nothing, &places, sorted, "update")?;
    let behind = cx.builder.emit_te("behind", vec![zero.clone()], |_| {
        vec![te::compute("T_behind", [length.clone()], |_: &[PrimExpr]| prim::cast(INDEX, length.clone()))]
    })?;
    let mut index = placed(cx, behind, &places, order.clone(), "min")?;
    let (none, ones) = (filled(cx, length, zero)?, filled(cx, length, one)?);
    let mut counts = placed(cx, none.clone(), &places, ones, "add")?;
    let order = cx.cast(order, PLACES)?;
    let mut inverse = placed(cx, none.clone(), &order, groups, "update")?;
    if !cx.bool("sorted") {
        let order = order_of(cx, &index)?;
        (values, index, counts) =
            (taken(cx, &values, &order)?, taken(cx, &index, &order)?, taken(cx, &counts, &order)?);
        let (numbers, order) = (counted(cx, length)?, cx.cast(order, PLACES)?);
        let rank = placed(cx, none, &order, numbers, "update")?;
        inverse = taken(cx, &rank, &inverse)?;
    }
    let mut results = vec![values, index, inverse, number];
    if cx.bool("return_counts") {
        results.push(counts);
    }
    Ok(rx::Expr::tuple(results))
}
