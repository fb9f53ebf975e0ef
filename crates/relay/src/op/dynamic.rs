//! Operators whose shape is data: the tensor of the shape has a known length, its elements become dimensions.

use relaxide_ffi::DataType;
use relaxide_ir::limits::{MOST_DIMENSIONS, MOST_PARTS, listed};
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
    let count = listed(count, MOST_DIMENSIONS).ok_or_else(|| {
        LowerError(format!(
            "{}: the shape has {count} elements, and a tensor may have {MOST_DIMENSIONS} dimensions",
            cx.def.name
        ))
    })?;
    Ok((0..count).map(|k| cx.dim("s", DimDef::Element(operand.clone(), k))).collect())
}

/// An element of a tensor of integers, by its place among all, as a dimension.
fn element(cx: &mut LowerCx<'_>, i: usize, place: usize) -> Result<PrimExpr, LowerError> {
    if let Some(values) = cx.value(i).and_then(|t| scalar::ints(&t)) {
        let value = values.get(place).copied();
        return value.map(prim::int).ok_or_else(|| LowerError(format!("{}: there is no element {place}", cx.def.name)));
    }
    let operand = cx.arg(i)?;
    if !cx.dtype(&operand)?.is_integer() {
        return fail(format!("{}: `{}` must hold integers", cx.def.name, cx.def.args[i]));
    }
    // The machine takes all elements of a tensor out to have one.
    let shape = cx.shape(&operand)?;
    let count = rx::shape::const_dims(&shape).and_then(|dims| dims.iter().try_fold(1i64, |n, dim| n.checked_mul(*dim)));
    if count.is_some_and(|count| listed(count, MOST_PARTS).is_none()) {
        return fail(format!("{}: `{}` may have {MOST_PARTS} elements", cx.def.name, cx.def.args[i]));
    }
    Ok(cx.dim("s", DimDef::Element(operand, place)))
}

/// Zero copies a dimension and -1 takes what is left; both may be known when the program runs only.
pub(super) fn reshape(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let own = cx.shape(&x)?;
    let wanted = dims_of(cx, 1)?;
    if let Some(known) = rx::shape::const_dims(&wanted) {
        return super::manipulate::reshape_to(cx, x, &known, false);
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

/// The axes that a constant names: how many dimensions a result has is known when a program is compiled.
fn axes_of(cx: &LowerCx<'_>, i: usize) -> Result<Vec<i64>, LowerError> {
    let value = cx.value(i).and_then(|t| scalar::ints(&t));
    value.ok_or_else(|| {
        LowerError(format!(
            "{}: `{}` must be a constant, for the result has as many dimensions as it says",
            cx.def.name, cx.def.args[i]
        ))
    })
}

pub(super) fn expand_dims(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, axes) = (cx.arg(0)?, axes_of(cx, 1)?);
    let [axis] = axes.as_slice() else { return fail("dyn.expand_dims takes one axis") };
    cx.relay("expand_dims", vec![x], attrs([("axis", (*axis).into())]))
}

pub(super) fn squeeze(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, axes) = (cx.arg(0)?, axes_of(cx, 1)?);
    cx.relay("squeeze", vec![x], attrs([("axis", axes.into())]))
}

/// Bounds are data: the kernel reads them, and the result's sizes follow from them.
pub(super) fn strided_slice(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let known = |i: usize| cx.value(i).and_then(|t| scalar::ints(&t));
    if let (Some(begin), Some(end), Some(strides)) = (known(1), known(2), known(3)) {
        let mode = cx.str("slice_mode");
        let pairs =
            [("begin", begin.into()), ("end", end.into()), ("strides", strides.into()), ("slice_mode", mode.into())];
        return cx.relay("strided_slice", vec![x], attrs(pairs));
    }
    // By sizes, the second tensor says how many there are, all if negative, and nothing is left out between them.
    let by_size = cx.str("slice_mode") == "size";
    let own = cx.shape(&x)?;
    let (begin, end, strides) = (dims_of(cx, 1)?, dims_of(cx, 2)?, dims_of(cx, 3)?);
    if begin.len() != end.len() || begin.len() > own.len() {
        return fail("dyn.strided_slice: there are as many begins as ends, and no more than dimensions");
    }
    let mut shape = own.clone();
    for (k, (first, last)) in begin.iter().zip(&end).enumerate() {
        let stride = strides.get(k).filter(|_| !by_size).cloned().unwrap_or_else(|| prim::int(1));
        let up = prim::gt(&stride, prim::int(0));
        let from = start_of(first, &stride, &own[k]);
        let to = match by_size {
            true => {
                let to = prim::min(from.clone() + last.clone(), own[k].clone());
                prim::select(prim::lt(last, prim::int(0)), own[k].clone(), to)
            }
            false => start_of(last, &stride, &own[k]),
        };
        let steps = prim::select(up.clone(), stride.clone(), prim::int(0) - stride.clone());
        let distance = prim::select(up, to.clone() - from.clone(), from - to);
        let steps = prim::max(steps, prim::int(1));
        let count = prim::floordiv(prim::max(distance, prim::int(0)) + steps.clone() - 1, steps);
        shape[k] = cx.dim("n", DimDef::Expr(count));
    }
    let wide = |cx: &mut LowerCx<'_>, i: usize| -> Lowered {
        let operand = cx.arg(i)?;
        cx.cast(operand, super::manipulate::PLACES)
    };
    let (begin, strides, count) = (wide(cx, 1)?, wide(cx, 3)?, begin.len());
    Ok(cx.builder.emit_te("dyn_strided_slice", vec![x, begin, strides], |inputs| {
        let [x, begin, strides] = [0, 1, 2].map(|i| inputs[i].clone());
        vec![relaxide_tir::te::compute("T_strided_slice", shape, |at: &[PrimExpr]| {
            let mut index = at.to_vec();
            for k in 0..count {
                let place = [prim::int(k as i64)];
                let stride = if by_size { prim::int(1) } else { strides.at(&place) };
                let from = start_of(&begin.at(&place), &stride, &own[k]) + at[k].clone() * stride;
                index[k] = prim::max(prim::min(from, own[k].clone() - 1), prim::int(0));
            }
            x.at(&index)
        })]
    })?)
}

/// A bound of a slice: negative ones count from the end, and none is outside.
fn start_of(bound: &PrimExpr, stride: &PrimExpr, extent: &PrimExpr) -> PrimExpr {
    let from_end = prim::select(prim::lt(bound, prim::int(0)), bound.clone() + extent.clone(), bound.clone());
    let up = prim::gt(stride, prim::int(0));
    let (low, high) =
        (prim::select(up.clone(), prim::int(0), prim::int(-1)), prim::select(up, extent.clone(), extent.clone() - 1));
    prim::max(prim::min(from_end, high), low)
}

/// As many as a tensor says: all, sorted, of which the first are taken.
pub(super) fn topk(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let own = cx.attrs.clone();
    if let Some(k) = cx.value(1).and_then(|t| scalar::ints(&t)).and_then(|list| list.first().copied()) {
        return cx.relay("topk", vec![x], own.with("k", k));
    }
    let shape = cx.shape(&x)?;
    let axis = cx.axis(cx.int("axis")?, shape.len())?;
    let wanted = element(cx, 1, 0)?;
    let all = prim::lt(&wanted, prim::int(1));
    let count =
        cx.dim("k", DimDef::Expr(prim::select(all, shape[axis].clone(), prim::min(wanted, shape[axis].clone()))));
    let sorted = cx.relay("topk", vec![x], own.with("k", 0))?;
    let mut out = shape;
    out[axis] = count;
    let mut first = |part: rx::Expr| -> Lowered {
        let out = out.clone();
        Ok(cx.builder.emit_te("dyn_topk", vec![part], |inputs| {
            let part = inputs[0].clone();
            vec![relaxide_tir::te::compute("T_first", out, |at: &[PrimExpr]| part.at(at))]
        })?)
    };
    match sorted.ty() {
        relaxide_ir::Type::Tuple(_) => {
            let parts = [first(rx::Expr::field(sorted.clone(), 0))?, first(rx::Expr::field(sorted, 1))?];
            Ok(rx::Expr::tuple(parts))
        }
        _ => first(sorted),
    }
}

pub(super) fn one_hot(cx: &mut LowerCx<'_>) -> Lowered {
    let (indices, on, off) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let dtype = cx.dtype_attr("dtype", DataType::float(32));
    let (on, off) = (cx.cast(on, dtype)?, cx.cast(off, dtype)?);
    let mut shape = cx.shape(&indices)?;
    let axis = match cx.int("axis")? {
        -1 => shape.len(),
        axis => cx.axis(axis, shape.len() + 1)?,
    };
    let depth = element(cx, 3, 0)?;
    shape.insert(axis, depth);
    Ok(cx.builder.emit_te("dyn_one_hot", vec![indices, on, off], |inputs| {
        let [indices, on, off] = [0, 1, 2].map(|i| inputs[i].clone());
        vec![relaxide_tir::te::compute("T_one_hot", shape, |at: &[PrimExpr]| {
            let mut index = at.to_vec();
            let place = index.remove(axis);
            let wanted = prim::cast(super::manipulate::PLACES, indices.at(&index));
            prim::select(prim::eq(&wanted, prim::cast(super::manipulate::PLACES, place)), on.at(&[]), off.at(&[]))
        })]
    })?)
}

pub(super) fn pad(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, width, value) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let mode = cx.str("pad_mode");
    if let Some(widths) = cx.value(1).and_then(|t| scalar::ints(&t)) {
        return cx.relay("nn.pad", vec![x, value], attrs([("pad_width", widths.into()), ("pad_mode", mode.into())]));
    }
    if !["constant", "edge", "reflect"].contains(&mode.as_str()) {
        return fail(format!("dyn.nn.pad: there is no mode {mode:?}"));
    }
    let (own, dtype) = (cx.shape(&x)?, cx.dtype(&x)?);
    let value = cx.cast(value, dtype)?;
    let width = cx.cast(width, super::manipulate::PLACES)?;
    let width = cx.reshape(width, vec![prim::int(2 * own.len() as i64)])?;
    let mut shape = Vec::new();
    for (k, dim) in own.iter().enumerate() {
        let (before, behind) = (element(cx, 1, 2 * k)?, element(cx, 1, 2 * k + 1)?);
        shape.push(cx.dim("n", DimDef::Expr(dim.clone() + before + behind)));
    }
    Ok(cx.builder.emit_te("dyn_pad", vec![x, width, value], |inputs| {
        let [x, width, value] = [0, 1, 2].map(|i| inputs[i].clone());
        vec![relaxide_tir::te::compute("T_pad", shape, |at: &[PrimExpr]| {
            let mut inside = prim::boolean(true);
            let mut index = Vec::new();
            for (k, dim) in own.iter().enumerate() {
                let place = at[k].clone() - width.at(&[prim::int(2 * k as i64)]);
                inside = prim::and(inside, prim::and(prim::ge(&place, prim::int(0)), prim::lt(&place, dim.clone())));
                // Mirrored at the first and at the last element, which are not repeated.
                let place = match mode.as_str() {
                    "reflect" => {
                        let behind = (dim.clone() - 1) * 2 - &place;
                        let place = prim::select(prim::lt(&place, prim::int(0)), prim::int(0) - &place, place);
                        prim::min(place, behind)
                    }
                    _ => place,
                };
                index.push(prim::max(prim::min(place, dim.clone() - 1), prim::int(0)));
            }
            if mode == "constant" { prim::select(inside, x.at(&index), value.at(&[])) } else { x.at(&index) }
        })]
    })?)
}

/// Scales are numbers with fractions, which no shape can hold: they must be constants.
pub(super) fn upsampling(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (height, width) = (cx.number(1)?, cx.number(2)?);
    let own = cx.attrs.clone().with("scale_h", height).with("scale_w", width);
    cx.relay("nn.upsampling", vec![x], own)
}

/// The same in three dimensions.
pub(super) fn upsampling3d(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let scales = [cx.number(1)?, cx.number(2)?, cx.number(3)?];
    let names = ["scale_d", "scale_h", "scale_w"];
    let own = names.iter().zip(scales).fold(cx.attrs.clone(), |own, (name, scale)| own.with(*name, scale));
    cx.relay("nn.upsampling3d", vec![x], own)
}

pub(super) fn resize2d(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let size = dims_of(cx, 1)?;
    let roi = cx.value(2).and_then(|t| scalar::numbers(&t));
    if roi.is_some_and(|list| list.iter().any(|n| !matches!(n, scalar::Number::Float(0.0)))) {
        return fail("dyn.image.resize2d: a region of interest cannot be compiled yet");
    }
    super::image::resized(cx, x, size)
}

pub(super) fn sparse_to_dense(cx: &mut LowerCx<'_>) -> Lowered {
    let shape = dims_of(cx, 3)?;
    super::sparse::placed_in(cx, shape)
}
