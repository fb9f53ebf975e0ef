//! FoldRepeatToMatmul: rows that are multiplied by copies of one matrix are the rows of one product.
//!
//! ```text
//! k: [n, 4, s, 64], each matrix repeated 4 times         x = R.reshape(q, [n, 4, 4 * m, 64])
//! w = R.broadcast_to(R.expand_dims(k, 2), …)         →   y = R.matmul(x, R.permute_dims(k, …))
//! v = R.reshape(w, [n, 16, s, 64])                       z = R.reshape(y, [n, 16, m, s])
//! z = R.matmul(q, R.permute_dims(v, …))
//! ```
//!
//! This is how exporters write the attention of groups of heads that share keys and values (Ainslie et al. 2023, "GQA"). The copies are neither
//! made nor read: the reshapes move nothing. Each sum is taken in the same order as before.

use relaxide_ffi::Ref;
use relaxide_ir::Attrs;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimExpr;

use super::rules::{Known, apply};
use crate::op::OpPattern;
use crate::shape::{dims, dims_of, same_dims};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "FoldRepeatToMatmul",
    "A product with a repeated matrix multiplies the rows of all copies by one.",
    |module, _, _| apply(PASS.name, module, fold),
);

/// Rows from which copies cost nothing beside the products with them, and what follows a product may become one kernel with it, which reshapes
/// between them would prevent.
const MANY_ROWS: i64 = 256;

fn fold(known: &Known, call: &Ref<Call>, _: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let (Some("matmul"), [x, right]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let (Some(rows), Some(out), Some(matrix)) = (dims(x), dims_of(&call.ty), dims(right)) else { return Ok(None) };
    // The axis in front of the rows is the one whose matrices may be copies.
    let Some(axis) = rows.len().checked_sub(3).filter(|_| matrix.len() == rows.len()) else { return Ok(None) };
    let once = match matrix[axis].is_int(1) {
        true => right.clone(),
        false => match unrepeated(known, right, axis)? {
            Some(once) => once,
            None => return Ok(None),
        },
    };
    let (Some(copies), Some(few)) = (rows[axis].as_int(), dims(&once).and_then(|d| d[axis].as_int())) else {
        return Ok(None);
    };
    let has_many_rows = rows[axis + 1].as_int().is_some_and(|rows| rows > MANY_ROWS);
    if few == 0 || copies <= few || copies % few != 0 || has_many_rows {
        return Ok(None);
    }
    let mut merged = rows.clone();
    merged[axis] = few.into();
    merged[axis + 1] = PrimExpr::from(copies / few) * rows[axis + 1].clone();
    let product = op::call("matmul", [reshape(x.clone(), merged)?, once], call.attrs.clone())?;
    Ok(Some(reshape(product, out)?))
}

fn reshape(x: Expr, dims: Vec<PrimExpr>) -> Result<Expr, BuildError> {
    Ok(op::call("reshape", [x, Expr::shape(dims)], Attrs::new())?)
}

/// The value with one matrix where `e` has several equal ones behind each other along an axis; `None` where it has not. What is done to each
/// element, and another order of the axes, are done to the one matrix.
fn unrepeated(known: &Known, e: &Expr, axis: usize) -> Result<Option<Expr>, BuildError> {
    let Some((call, name)) = known.value(e).as_op_call() else { return Ok(None) };
    let Some(data) = call.args.first() else { return Ok(None) };
    match name {
        "permute_dims" => {
            let ndim = call.ty.as_tensor().map_or(0, |t| t.ndim);
            let from = match call.attrs.ints("axes") {
                Some(axes) => axes.get(axis).map(|a| a.rem_euclid(ndim.max(1))),
                None => Some(ndim - 1 - axis as i64),
            };
            let Some(from) = from.and_then(|from| usize::try_from(from).ok()) else { return Ok(None) };
            again(call, unrepeated(known, data, from)?)
        }
        "repeat" => {
            let along =
                call.attrs.int("axis").and_then(|a| usize::try_from(a.rem_euclid(call.ty.as_tensor()?.ndim)).ok());
            Ok((along == Some(axis)).then(|| data.clone()))
        }
        "broadcast_to" => Ok(widened_only_along(call, data, axis).then(|| data.clone())),
        "reshape" => merged_copies(known, call, data, axis),
        _ if is_elementwise(call) => again(call, unrepeated(known, data, axis)?),
        _ => Ok(None),
    }
}

/// A call with another first operand.
fn again(call: &Call, data: Option<Expr>) -> Result<Option<Expr>, BuildError> {
    let Some((data, name)) = data.zip(call.op_name()) else { return Ok(None) };
    let args: Vec<Expr> = std::iter::once(data).chain(call.args.iter().skip(1).cloned()).collect();
    Ok(Some(op::call(name, args, call.attrs.clone())?))
}

/// Whether a call takes each element of its first operand by itself, the others being single numbers.
fn is_elementwise(call: &Call) -> bool {
    let pattern = call.op_name().and_then(op::lookup).map(|def| def.pattern);
    let is_number = |e: &Expr| e.ty().as_tensor().is_none_or(|t| t.ndim == 0);
    let keeps = call.args.first().and_then(dims).zip(dims_of(&call.ty)).is_some_and(|(a, b)| same_dims(&a, &b));
    let pattern = matches!(pattern, Some(OpPattern::Elemwise | OpPattern::Broadcast));
    pattern && keeps && call.args.iter().skip(1).all(is_number)
}

/// Whether a `broadcast_to` makes `axis` longer and no other.
fn widened_only_along(call: &Call, data: &Expr, axis: usize) -> bool {
    let (Some(from), Some(to)) = (dims(data), dims_of(&call.ty)) else { return false };
    let is_rest_equal = (0..from.len()).filter(|&i| i != axis).all(|i| same_dims(&from[i..=i], &to[i..=i]));
    from.len() == to.len() && from.get(axis).is_some_and(|d| d.is_int(1)) && is_rest_equal
}

/// What stands behind a `reshape` that merges an axis of copies into the axis in front of it.
fn merged_copies(known: &Known, call: &Call, data: &Expr, axis: usize) -> Result<Option<Expr>, BuildError> {
    let (Some(parted), Some(merged)) = (dims(data), dims_of(&call.ty)) else { return Ok(None) };
    let is_merge = parted.len() == merged.len() + 1
        && same_dims(&parted[..axis], &merged[..axis])
        && same_dims(&parted[axis + 2..], &merged[axis + 1..]);
    let wide = match known.op(data, "broadcast_to") {
        Some(wide) if is_merge => wide,
        _ => return Ok(None),
    };
    let Some(once) = wide.args.first().filter(|once| widened_only_along(wide, once, axis + 1)) else { return Ok(None) };
    let mut single = merged;
    single[axis] = parted[axis].clone();
    // Mostly there is a reshape of its own in front of the copies, which this one undoes.
    let before = known.op(once, "reshape").or_else(|| known.op(once, "expand_dims")).and_then(|call| call.args.first());
    match before.filter(|before| dims(before).is_some_and(|dims| same_dims(&dims, &single))) {
        Some(before) => Ok(Some(before.clone())),
        None => Ok(Some(reshape(once.clone(), single)?)),
    }
}
