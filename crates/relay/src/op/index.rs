//! Elements by index, and orders.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};
use super::manipulate::PLACES;

pub(super) fn take(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    if cx.int("batch_dims")? != 0 {
        return take_in_batches(cx, x, indices);
    }
    // A fast take says nothing of indices outside; here they are brought inside. None counts from the end.
    let (mode, indices) = match cx.str("mode").as_str() {
        "wrap" => ("wrap", indices),
        _ => {
            let dtype = cx.dtype(&indices)?;
            let zero = cx.constant(0.0, dtype)?;
            ("clip", cx.op("maximum", [indices, zero])?)
        }
    };
    let (x, axis) = match cx.attrs.int("axis") {
        Some(axis) => (x, axis),
        None => {
            let count = rx::shape::num_elements(&cx.shape(&x)?);
            (cx.reshape(x, vec![count])?, 0)
        }
    };
    cx.emit("take", [x, indices], attrs([("axis", axis.into()), ("mode", mode.into())]))
}

/// `take` where the first dimensions of both are the same ones.
fn take_in_batches(cx: &mut LowerCx<'_>, x: rx::Expr, indices: rx::Expr) -> Lowered {
    let (shape, places) = (cx.shape(&x)?, cx.shape(&indices)?);
    let batch = cx.int("batch_dims")?;
    let batch = usize::try_from(if batch < 0 { batch + places.len() as i64 } else { batch }).unwrap_or(usize::MAX);
    let axis = match cx.attrs.int("axis") {
        Some(axis) => cx.axis(axis, shape.len())?,
        None => return fail("take with batch_dims needs an axis"),
    };
    if batch > axis || batch > places.len() {
        return fail(format!("take: {batch} batch dimensions are more than there are in front of axis {axis}"));
    }
    let wrap = cx.str("mode") == "wrap";
    let out: Vec<PrimExpr> = shape[..axis].iter().chain(&places[batch..]).chain(&shape[axis + 1..]).cloned().collect();
    let (extent, count) = (shape[axis].clone(), places.len() - batch);
    elements(cx, "take_in_batches", vec![x, indices], out, move |inputs, at| {
        let own: Vec<PrimExpr> = at[..batch].iter().chain(&at[axis..axis + count]).cloned().collect();
        let place = prim::cast(PLACES, inputs[1].at(&own));
        let inside = match wrap {
            true => prim::floormod(place, extent.clone()),
            false => prim::max(prim::min(place, extent.clone() - 1), prim::int(0)),
        };
        let source: Vec<PrimExpr> =
            at[..axis].iter().cloned().chain([inside]).chain(at[axis + count..].iter().cloned()).collect();
        inputs[0].at(&source)
    })
}

pub(super) fn gather(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    let axis = cx.int("axis")?;
    let indices = cx.cast(indices, PLACES)?;
    cx.emit("gather_elements", [x, indices], attrs([("axis", axis.into())]))
}

/// Relay's indices lie along the first dimension, Relax's along the last.
pub(super) fn gather_nd(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, indices) = (cx.arg(0)?, cx.arg(1)?);
    let indices = last_dim(cx, indices)?;
    let indices = cx.cast(indices, PLACES)?;
    let batch = cx.int("batch_dims")?;
    cx.emit("gather_nd", [x, indices], attrs([("batch_dims", batch.into())]))
}

fn last_dim(cx: &mut LowerCx<'_>, indices: rx::Expr) -> Lowered {
    let ndim = cx.ndim(&indices)? as i64;
    let order: Vec<i64> = (1..ndim).chain([0]).collect();
    cx.emit("permute_dims", [indices], attrs([("axes", order.into())]))
}

pub(super) fn scatter_elements(cx: &mut LowerCx<'_>) -> Lowered {
    let reduction = cx.str("reduction");
    scattered(cx, &reduction)
}

pub(super) fn scatter(cx: &mut LowerCx<'_>) -> Lowered {
    scattered(cx, "update")
}

pub(super) fn scatter_add(cx: &mut LowerCx<'_>) -> Lowered {
    scattered(cx, "add")
}

fn scattered(cx: &mut LowerCx<'_>, reduction: &str) -> Lowered {
    let (x, indices, updates) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let indices = cx.cast(indices, PLACES)?;
    let axis = cx.attrs.int("axis").unwrap_or(0);
    let pairs = [("axis", axis.into()), ("reduction", reduction.into())];
    cx.emit("scatter_elements", [x, indices, updates], attrs(pairs))
}

pub(super) fn scatter_nd(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, indices, updates) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let indices = last_dim(cx, indices)?;
    let indices = cx.cast(indices, PLACES)?;
    let mode = cx.str("mode");
    cx.emit("scatter_nd", [x, indices, updates], attrs([("reduction", mode.into())]))
}

pub(super) fn adv_index(cx: &mut LowerCx<'_>) -> Lowered {
    let mut inputs = cx.tuple_args(0)?;
    if inputs.len() < 2 {
        return fail("adv_index takes a tensor and at least one tensor of indices");
    }
    let x = inputs.remove(0);
    let mut indices = Vec::new();
    for index in inputs {
        indices.push(cx.cast(index, PLACES)?);
    }
    cx.op("index_tensor", [x, rx::Expr::tuple(indices)])
}

pub(super) fn one_hot(cx: &mut LowerCx<'_>) -> Lowered {
    let indices = cx.arg(0)?;
    let dtype = cx.dtype_attr("dtype", DataType::float(32));
    let value = |v: f64| rx::Expr::prim(prim::constant(dtype, v));
    let (on, off) = (value(cx.number(1)?), value(cx.number(2)?));
    let (depth, axis) = (cx.int("depth")?, cx.int("axis")?);
    cx.emit("one_hot", [indices, on, off], attrs([("depth", depth.into()), ("axis", axis.into())]))
}

pub(super) fn argsort(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dtype = cx.dtype_attr("dtype", DataType::int(32));
    let exact = if dtype == DataType::int(64) { dtype } else { DataType::int(32) };
    let (axis, descending) = (cx.int("axis")?, !cx.bool("is_ascend"));
    let pairs = [("axis", axis.into()), ("descending", descending.into()), ("dtype", exact.into())];
    let places = cx.emit("argsort", [x], attrs(pairs))?;
    cx.cast(places, dtype)
}

pub(super) fn sort(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (axis, descending) = (cx.int("axis")?, !cx.bool("is_ascend"));
    cx.emit("sort", [x], attrs([("axis", axis.into()), ("descending", descending.into())]))
}

pub(super) fn topk(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dtype = cx.dtype_attr("dtype", DataType::int(32));
    let pairs = [
        ("k", cx.int("k")?.into()),
        ("axis", cx.int("axis")?.into()),
        ("ret_type", cx.str("ret_type").into()),
        ("largest", (!cx.bool("is_ascend")).into()),
        ("dtype", dtype.into()),
    ];
    cx.emit("topk", [x], attrs(pairs))
}

pub(super) fn searchsorted(cx: &mut LowerCx<'_>) -> Lowered {
    let (sorted, values) = (cx.arg(0)?, cx.arg(1)?);
    let (right, dtype) = (cx.bool("right"), cx.dtype_attr("dtype", DataType::int(32)));
    if cx.ndim(&sorted)? != 1 {
        return searched_in_rows(cx, sorted, values, right, dtype);
    }
    let pairs = [("out_int32", (dtype == DataType::int(32)).into()), ("right", right.into())];
    let places = cx.emit("bucketize", [values, sorted], attrs(pairs))?;
    cx.cast(places, dtype)
}

/// Where values of each row go in the sorted row of the same place: behind the elements that are less.
fn searched_in_rows(cx: &mut LowerCx<'_>, sorted: rx::Expr, values: rx::Expr, right: bool, dtype: DataType) -> Lowered {
    let (rows, shape) = (cx.shape(&sorted)?, cx.shape(&values)?);
    let Some((extent, rows)) = rows.split_last() else { return fail("searchsorted takes a sequence, not a scalar") };
    if rows.len() + 1 != shape.len() {
        return fail("searchsorted: there is a row of values for each sequence");
    }
    for (a, b) in rows.iter().zip(&shape) {
        if a.as_int().zip(b.as_int()).is_some_and(|(a, b)| a != b) {
            return fail(format!("searchsorted: there are {a} sequences and {b} rows of values"));
        }
    }
    let (axis, last) = (te::reduce_axis(extent.clone()), shape.len() - 1);
    let counts = cx.builder.emit_te("searchsorted", vec![sorted, values], |inputs| {
        let (sorted, values) = (inputs[0].clone(), inputs[1].clone());
        vec![te::compute("T_searchsorted", shape, |at: &[PrimExpr]| {
            let mut place = at.to_vec();
            place[last] = axis.var();
            let (element, value) = (sorted.at(&place), values.at(at));
            let before = if right { prim::le(&element, &value) } else { prim::lt(&element, &value) };
            te::sum(prim::cast(PLACES, before), [axis.clone()])
        })]
    })?;
    cx.cast(counts, dtype)
}

/// The upper or lower triangle, of which `k` shifts the diagonal.
pub(super) fn trilu(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let k = rx::Expr::prim(prim::int(cx.number(1)? as i64));
    let name = if cx.bool("upper") { "triu" } else { "tril" };
    cx.op(name, [x, k])
}

/// A compute of the elements of the first argument, with the others at hand.
pub(super) fn elements(
    cx: &mut LowerCx<'_>,
    name: &str,
    args: Vec<rx::Expr>,
    shape: Vec<PrimExpr>,
    element: impl FnOnce(&[te::Tensor], &[PrimExpr]) -> PrimExpr,
) -> Lowered {
    Ok(cx.builder.emit_te(name, args, |inputs| {
        vec![te::compute("T_elements", shape, |indices: &[PrimExpr]| element(inputs, indices))]
    })?)
}

/// What lies behind the valid length of each sequence becomes a value.
pub(super) fn sequence_mask(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, length) = (cx.arg(0)?, cx.arg(1)?);
    let (axis, value) = (cx.int("axis")?, cx.float("mask_value")?);
    let (shape, dtype) = (cx.shape(&x)?, cx.dtype(&x)?);
    let axis = cx.axis(axis, shape.len())?;
    if axis > 1 {
        return fail("sequence_mask: the axis is 0 or 1");
    }
    elements(cx, "sequence_mask", vec![x, length], shape, move |inputs, at| {
        let valid = prim::cast(PLACES, inputs[1].at(&[at[1 - axis].clone()]));
        let inside = prim::lt(prim::cast(PLACES, at[axis].clone()), valid);
        prim::select(inside, inputs[0].at(at), prim::constant(dtype, value))
    })
}

/// Places in a flat tensor as places in a shape, which must be a constant.
pub(super) fn unravel_index(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.value(1).and_then(|t| crate::scalar::ints(&t));
    let Some(dims) = shape else { return fail("unravel_index: the shape must be a constant") };
    let dtype = cx.dtype(&x)?;
    let mut out = vec![prim::int(dims.len() as i64)];
    out.extend(cx.shape(&x)?);
    elements(cx, "unravel_index", vec![x], out, move |inputs, at| {
        let place = prim::cast(PLACES, inputs[0].at(&at[1..]));
        let mut result = prim::int(0);
        let mut rest = place;
        for (i, dim) in dims.iter().enumerate().rev() {
            let own = if i == 0 { rest.clone() } else { prim::floormod(rest.clone(), prim::int(*dim)) };
            result = prim::select(prim::eq(&at[0], prim::int(i as i64)), own, result);
            rest = prim::floordiv(rest, prim::int(*dim));
        }
        prim::cast(dtype, result)
    })
}

/// The diagonals from `k1` to `k2` taken from another tensor: a row for each, the uppermost first. Rows are as long as the longest
/// diagonal; a shorter one lies at the left or the right end of its row.
pub(super) fn matrix_set_diag(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, diagonal) = (cx.arg(0)?, cx.arg(1)?);
    let (k1, k2) = (cx.int("k1")?, cx.int("k2")?);
    let (upper_right, lower_right) = (cx.bool("super_diag_right_align"), cx.bool("sub_diag_right_align"));
    let (shape, rows) = (cx.shape(&x)?, cx.shape(&diagonal)?);
    let one = k1 == k2;
    if shape.len() < 2 || rows.len() + usize::from(one) != shape.len() || k1 > k2 {
        return fail(format!(
            "matrix_set_diag: the diagonals {k1} to {k2} do not fit a tensor of {} dimensions",
            shape.len()
        ));
    }
    let Some(extent) = rows.last().cloned() else { return fail("matrix_set_diag: the diagonal is empty") };
    let (height, width) = (shape[shape.len() - 2].clone(), shape[shape.len() - 1].clone());
    elements(cx, "matrix_set_diag", vec![x, diagonal], shape, move |inputs, at| {
        let n = at.len();
        let (row, column) = (&at[n - 2], &at[n - 1]);
        let k = column.clone() - row;
        let zero = || prim::int(0);
        let upper = prim::ge(&k, zero());
        // How far along its diagonal an element is.
        let along = prim::select(upper.clone(), row.clone(), column.clone());
        let length = prim::min(&height + prim::min(&k, zero()), &width - prim::max(&k, zero()));
        let at_right = prim::select(upper, prim::boolean(upper_right), prim::boolean(lower_right));
        let shift = if one { zero() } else { prim::select(at_right, &extent - length, zero()) };
        // Outside of the diagonals the other tensor is not read.
        let within = |place: PrimExpr, extent: PrimExpr| prim::max(prim::min(place, extent - 1), prim::int(0));
        let mut index = at[..n - 2].to_vec();
        if !one {
            index.push(within(prim::int(k2) - &k, prim::int(k2 - k1 + 1)));
        }
        index.push(within(along + shift, extent.clone()));
        let on = prim::and(prim::ge(&k, prim::int(k1)), prim::le(&k, prim::int(k2)));
        prim::select(on, inputs[1].at(&index), inputs[0].at(at))
    })
}

pub(super) fn invert_permutation(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dtype = cx.dtype(&x)?;
    // The places in the order of the values.
    let places = cx.emit("argsort", [x], attrs([("dtype", DataType::int(32).into())]))?;
    cx.cast(places, dtype)
}

/// A slice replaced by other values; bounds and strides must be constants.
pub(super) fn strided_set(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, value) = (cx.arg(0)?, cx.arg(1)?);
    let list = |i: usize| cx.value(i).and_then(|t| crate::scalar::ints(&t));
    let (Some(begin), Some(end)) = (list(2), list(3)) else { return fail("strided_set: the bounds must be constants") };
    let strides = list(4).unwrap_or_default();
    let shape = cx.shape(&x)?;
    let dims = rx::shape::const_dims(&shape).ok_or_else(|| LowerError("strided_set needs known dimensions".into()))?;
    let mut bounds = Vec::new();
    for (i, dim) in dims.iter().enumerate() {
        let stride = strides.get(i).copied().unwrap_or(1);
        if stride <= 0 {
            return fail("strided_set: strides must be positive");
        }
        let inside = |v: i64| (if v < 0 { v + dim } else { v }).clamp(0, *dim);
        let first = inside(begin.get(i).copied().unwrap_or(0));
        bounds.push((first, inside(end.get(i).copied().unwrap_or(*dim)).max(first), stride));
    }
    let extents = cx.shape(&value)?;
    elements(cx, "strided_set", vec![x, value], shape, move |inputs, at| {
        let mut inside = prim::boolean(true);
        let mut index = Vec::new();
        for (i, (first, last, stride)) in bounds.iter().enumerate() {
            let distance = &at[i] - *first;
            let in_range = prim::and(prim::ge(&at[i], prim::int(*first)), prim::lt(&at[i], prim::int(*last)));
            let on_stride = prim::eq(prim::floormod(distance.clone(), prim::int(*stride)), prim::int(0));
            inside = prim::and(inside, prim::and(in_range, on_stride));
            let place = prim::max(prim::floordiv(distance, prim::int(*stride)), prim::int(0));
            index.push(prim::min(place, extents[i].clone() - 1));
        }
        prim::select(inside, inputs[1].at(&index), inputs[0].at(at))
    })
}
