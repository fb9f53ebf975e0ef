//! Shapes and the order of elements.

use relaxide_ffi::DataType;
use relaxide_ir::AttrValue;
use relaxide_ir::limits::{MOST_DIMENSIONS, listed};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};

pub(super) fn concatenate(cx: &mut LowerCx<'_>) -> Lowered {
    let tensors = cx.tuple_args(0)?;
    let axis = cx.int("axis")?;
    let first = tensors.first().ok_or_else(|| LowerError("concatenate takes at least one tensor".into()))?;
    let axis_at = cx.axis(axis, cx.ndim(first)?)?;
    // Along the other dimensions all are alike: what only the run shows is taken from the first that knows it.
    let mut shape = cx.shape(first)?;
    for tensor in &tensors[1..] {
        let own = cx.shape(tensor)?;
        if own.len() != shape.len() {
            return fail("concatenate: the tensors must have one number of dimensions");
        }
        for (i, dim) in own.iter().enumerate() {
            if i != axis_at {
                if matches!((shape[i].as_int(), dim.as_int()), (Some(a), Some(b)) if a != b) {
                    return fail("concatenate: the tensors differ in another dimension than the axis");
                }
                shape[i] = cx.agreed(&shape[i].clone(), dim, false);
            }
        }
    }
    let mut aligned = Vec::new();
    for tensor in tensors {
        let mut own = shape.clone();
        own[axis_at] = cx.shape(&tensor)?[axis_at].clone();
        aligned.push(same_shape(cx, tensor, &own)?);
    }
    cx.emit("concat", [rx::Expr::tuple(aligned)], attrs([("axis", axis.into())]))
}

/// A tensor whose dimensions are taken to be others, where the compiler cannot tell: elements are read where they are.
pub(super) fn same_shape(cx: &mut LowerCx<'_>, e: rx::Expr, shape: &[PrimExpr]) -> Lowered {
    let own = cx.shape(&e)?;
    if rx::shape::same_dims(&own, shape) {
        return Ok(e);
    }
    // The dimensions agree, or there is no memory for the result and the kernel never runs.
    let shape = shape.to_vec();
    Ok(cx.builder.emit_te("agreed", vec![e], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_agreed", shape, |at: &[PrimExpr]| x.at(at))]
    })?)
}
pub(super) fn stack(cx: &mut LowerCx<'_>) -> Lowered {
    let tensors = cx.tuple_args(0)?;
    let axis = cx.int("axis")?;
    cx.emit("stack", [rx::Expr::tuple(tensors)], attrs([("axis", axis.into())]))
}

pub(super) fn expand_dims(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let mut shape = cx.shape(&x)?;
    let (axis, count) = (cx.int("axis")?, cx.int("num_newaxis")?);
    let at = if axis < 0 { axis + shape.len() as i64 + 1 } else { axis };
    let at = usize::try_from(at).ok().filter(|at| *at <= shape.len());
    let at = at
        .ok_or_else(|| LowerError(format!("expand_dims: there is no place {axis} among {} dimensions", shape.len())))?;
    let count = listed(count, MOST_DIMENSIONS).ok_or_else(|| {
        LowerError(format!("expand_dims: {count} new dimensions, and a tensor may have {MOST_DIMENSIONS}"))
    })?;
    for _ in 0..count {
        shape.insert(at, prim::int(1));
    }
    cx.reshape(x, shape)
}

pub(super) fn squeeze(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.shape(&x)?;
    let chosen: Vec<usize> = match cx.attrs.ints("axis") {
        Some(list) => list.iter().map(|axis| cx.axis(*axis, shape.len())).collect::<Result<_, _>>()?,
        None if rx::shape::const_dims(&shape).is_none() => return fail("axis needs to be defined for dynamic input."),
        None => (0..shape.len()).filter(|i| shape[*i].is_int(1)).collect(),
    };
    if let Some(bad) = chosen.iter().find(|i| shape[**i].as_int().is_some_and(|d| d != 1)) {
        return fail(format!("squeeze: dimension {bad} is {}, not 1", rx::display::dim_text(&shape[*bad])));
    }
    let kept = shape.into_iter().enumerate().filter(|(i, _)| !chosen.contains(i)).map(|(_, dim)| dim).collect();
    cx.reshape(x, kept)
}

pub(super) fn reshape(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (wanted, zero) = (cx.ints("newshape")?, cx.bool("allowzero"));
    reshape_to(cx, x, &wanted, zero)
}

/// The codes of a new shape: 0 copies, -1 takes what is left, -2 copies the rest, -3 merges two, -4 splits one in two.
pub(super) fn reshape_to(cx: &mut LowerCx<'_>, x: rx::Expr, wanted: &[i64], allow_zero: bool) -> Lowered {
    let own = cx.shape(&x)?;
    let shape = decoded_shape(&own, wanted, allow_zero)?;
    if let (Some(a), Some(b)) = (rx::shape::const_dims(&own), rx::shape::const_dims(&shape)) {
        let count = |dims: &[i64]| dims.iter().try_fold(1i64, |n, d| n.checked_mul(*d));
        if count(&a) != count(&b) {
            let text = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            return fail(format!(
                "Input tensor shape({}) and reshaped shape({}) are not compatible!",
                text(&a),
                text(&b)
            ));
        }
    }
    if rx::shape::same_dims(&own, &shape) {
        return Ok(x);
    }
    cx.reshape(x, shape)
}

fn decoded_shape(own: &[PrimExpr], wanted: &[i64], allow_zero: bool) -> Result<Vec<PrimExpr>, LowerError> {
    let exhausted = || LowerError("reshape: newshape uses more dimensions than there are".into());
    let (mut out, mut at, mut infer, mut i) = (Vec::new(), 0usize, None, 0usize);
    while let Some(code) = wanted.get(i).copied() {
        i += 1;
        match code {
            0 if !allow_zero => {
                out.push(own.get(at).cloned().ok_or_else(exhausted)?);
                at += 1;
            }
            -1 => {
                if infer.replace(out.len()).is_some() {
                    return Err(LowerError("reshape: one dimension at most can be inferred".into()));
                }
                out.push(prim::int(1));
                at += 1;
            }
            -2 => {
                out.extend(own.get(at..).unwrap_or_default().iter().cloned());
                at = own.len();
            }
            -3 => {
                let (a, b) = (own.get(at), own.get(at + 1));
                let (a, b) = a.zip(b).ok_or_else(exhausted)?;
                out.push(a * b);
                at += 2;
            }
            -4 => {
                let (Some(mut a), Some(mut b)) = (wanted.get(i).copied(), wanted.get(i + 1).copied()) else {
                    return Err(LowerError("reshape: -4 is followed by two numbers".into()));
                };
                i += 2;
                let dim = own.get(at).cloned().ok_or_else(exhausted)?;
                let whole = dim.as_int();
                let missing = || LowerError("reshape: -4 needs a known dimension where a part is -1".into());
                if a == -1 {
                    a = whole.ok_or_else(missing)?.checked_div(b).ok_or_else(exhausted)?;
                } else if b == -1 {
                    b = whole.ok_or_else(missing)?.checked_div(a).ok_or_else(exhausted)?;
                }
                out.extend([prim::int(a), prim::int(b)]);
                at += 1;
            }
            dim if dim >= 0 => {
                out.push(prim::int(dim));
                at += 1;
            }
            _ => return Err(LowerError(format!("reshape: {code} means nothing in newshape"))),
        }
    }
    if let Some(place) = infer {
        let known = rx::shape::num_elements(&out);
        let total = rx::shape::num_elements(own);
        out[place] = match (total.as_int(), known.as_int()) {
            (_, Some(0)) => prim::int(0),
            (Some(total), Some(known)) => prim::int(total / known),
            _ => relaxide_ir::arith::Analyzer::new().simplify(&prim::floordiv(total, known)),
        };
    }
    Ok(out)
}

pub(super) fn reverse_reshape(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let mut own = cx.shape(&x)?;
    own.reverse();
    let mut wanted = cx.ints("newshape")?;
    wanted.reverse();
    let mut shape = decoded_shape(&own, &wanted, false)?;
    shape.reverse();
    cx.reshape(x, shape)
}

pub(super) fn reshape_like(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, like) = (cx.arg(0)?, cx.arg(1)?);
    let (own, other) = (cx.shape(&x)?, cx.shape(&like)?);
    let place = |name: &str, default: usize, ndim: usize| {
        let value = cx.attrs.int(name).unwrap_or(default as i64);
        let value = if value < 0 { value + ndim as i64 } else { value };
        usize::try_from(value).ok().filter(|v| *v <= ndim)
    };
    let ranges = [
        place("lhs_begin", 0, own.len()),
        place("lhs_end", own.len(), own.len()),
        place("rhs_begin", 0, other.len()),
        place("rhs_end", other.len(), other.len()),
    ];
    let [Some(a), Some(b), Some(c), Some(d)] = ranges else { return fail("reshape_like: a range lies outside") };
    let middle = other.get(c..d).unwrap_or_default();
    let shape = [own.get(..a).unwrap_or_default(), middle, own.get(b..).unwrap_or_default()].concat();
    cx.reshape(x, shape)
}

pub(super) fn transpose(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let axes: AttrValue = cx.attrs.ints("axes").filter(|axes| !axes.is_empty()).into();
    cx.emit("permute_dims", [x], attrs([("axes", axes)]))
}

pub(super) fn split(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let axis = cx.int("axis")?;
    let at = cx.axis(axis, cx.ndim(&x)?)?;
    let parts = cx.attrs.0.get("indices_or_sections").cloned().unwrap_or(AttrValue::None);
    if let (AttrValue::Int(parts), Some(extent)) = (&parts, cx.shape(&x)?[at].as_int())
        && (*parts <= 0 || extent % parts != 0)
    {
        return fail(format!("indices_or_sections need to be able to divide input.shape[axis]: {extent} by {parts}"));
    }
    cx.emit("split", [x], attrs([("indices_or_sections", parts), ("axis", axis.into())]))
}

/// Bounds may be negative; in mode "size" the ends are sizes. The result of each dimension is computed here, so that all
/// of Relay's cases become the one that Relax has: inside bounds, a stride that is not zero.
pub(super) fn strided_slice(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.shape(&x)?;
    let (begin, end) = (cx.ints("begin")?, cx.ints("end")?);
    let strides = cx.attrs.ints("strides").unwrap_or_default();
    let axes: Vec<usize> = match cx.attrs.ints("axes") {
        Some(list) => list.iter().map(|axis| cx.axis(*axis, shape.len())).collect::<Result<_, _>>()?,
        None => (0..begin.len().max(end.len())).collect(),
    };
    if axes.iter().any(|axis| *axis >= shape.len()) {
        return fail("strided_slice: there are more bounds than dimensions");
    }
    let by_size = cx.str("slice_mode") == "size";
    let (mut from, mut to, mut step) = (Vec::new(), Vec::new(), Vec::new());
    for (k, axis) in axes.iter().enumerate() {
        let stride = if by_size {
            1
        } else {
            strides.get(k).or(strides.last().filter(|_| strides.len() == 1)).copied().unwrap_or(1)
        };
        if stride == 0 {
            return fail("strided_slice: a stride is 0");
        }
        let first = begin.get(k).copied().unwrap_or(if stride > 0 { 0 } else { i64::from(i32::MAX) });
        let last = match (by_size, end.get(k).copied()) {
            (true, Some(size)) if size >= 0 => first.saturating_add(size),
            (true, _) => i64::from(i32::MAX),
            (false, Some(last)) => last,
            (false, None) if stride > 0 => i64::from(i32::MAX),
            (false, None) => i64::from(i32::MIN),
        };
        let (a, b) = match shape[*axis].as_int() {
            Some(extent) => {
                let (low, high) = if stride > 0 { (0, extent) } else { (-1, extent - 1) };
                let inside = |v: i64| (if v < 0 { v.saturating_add(extent) } else { v }).clamp(low, high);
                let last = if last == i64::from(i32::MIN) && stride < 0 { -1 } else { inside(last) };
                (prim::int(inside(first)), prim::int(last))
            }
            None => {
                let dim = shape[*axis].clone();
                let inside = |v: i64| {
                    if v == 0 {
                        prim::int(0)
                    } else if v >= i64::from(i32::MAX) {
                        dim.clone()
                    } else if v < 0 {
                        prim::max(&dim + v, prim::int(0))
                    } else {
                        prim::min(prim::int(v), dim.clone())
                    }
                };
                if stride < 0 {
                    return fail("strided_slice: a negative stride needs a known dimension");
                }
                (inside(first), inside(last))
            }
        };
        from.push(a);
        to.push(b);
        step.push(stride);
    }
    sliced(cx, x, &axes, from, to, &step)
}

pub(super) fn sliced(
    cx: &mut LowerCx<'_>,
    x: rx::Expr,
    axes: &[usize],
    from: Vec<PrimExpr>,
    to: Vec<PrimExpr>,
    step: &[i64],
) -> Lowered {
    let mut shape = cx.shape(&x)?;
    let mut analyzer = relaxide_ir::arith::Analyzer::new();
    for (k, axis) in axes.iter().enumerate() {
        let (distance, stride) = if step[k] > 0 { (&to[k] - &from[k], step[k]) } else { (&from[k] - &to[k], -step[k]) };
        let count = prim::floordiv(distance + (stride - 1), prim::int(stride));
        shape[*axis] = match analyzer.simplify(&count).as_int() {
            Some(count) => prim::int(count.max(0)),
            None => analyzer.simplify(&prim::max(count, prim::int(0))),
        };
    }
    let axes = axes.to_vec();
    let step = step.to_vec();
    Ok(cx.builder.emit_te("strided_slice", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_strided_slice", shape, |indices: &[PrimExpr]| {
            let mut at = indices.to_vec();
            for (k, axis) in axes.iter().enumerate() {
                at[*axis] = &from[k] + &indices[*axis] * step[k];
            }
            x.at(&at)
        })]
    })?)
}

pub(super) fn slice_like(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, like) = (cx.arg(0)?, cx.arg(1)?);
    let (own, other) = (cx.shape(&x)?, cx.shape(&like)?);
    let axes: Vec<usize> = match cx.attrs.ints("axes").filter(|axes| !axes.is_empty()) {
        Some(list) => list.iter().map(|axis| cx.axis(*axis, own.len())).collect::<Result<_, _>>()?,
        None => (0..own.len().min(other.len())).collect(),
    };
    if axes.iter().any(|axis| *axis >= other.len()) {
        return fail("slice_like: the other tensor has fewer dimensions");
    }
    let from = axes.iter().map(|_| prim::int(0)).collect();
    let to = axes.iter().map(|axis| other[*axis].clone()).collect();
    let step = vec![1; axes.len()];
    sliced(cx, x, &axes, from, to, &step)
}

pub(super) fn tile(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, reps) = (cx.arg(0)?, cx.ints("reps")?);
    cx.emit("tile", [x], attrs([("repeats", reps.into())]))
}

pub(super) fn repeat(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, repeats) = (cx.arg(0)?, cx.int("repeats")?);
    let axis: AttrValue = cx.attrs.int("axis").into();
    cx.emit("repeat", [x], attrs([("repeats", repeats.into()), ("axis", axis)]))
}

pub(super) fn reverse(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let axis = cx.attrs.int("axis").unwrap_or(0);
    cx.emit("flip", [x], attrs([("axis", axis.into())]))
}

pub(super) fn broadcast_to(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape: Vec<PrimExpr> = super::create::known_shape(cx)?.into_iter().map(prim::int).collect();
    cx.repeated(x, &shape)
}

pub(super) fn broadcast_to_like(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, like) = (cx.arg(0)?, cx.arg(1)?);
    let shape = cx.shape(&like)?;
    cx.repeated(x, &shape)
}

pub(super) fn pad(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let width = flat_pairs(cx, "pad_width")?;
    let mode = cx.str("pad_mode");
    let (mode, value) = match mode.as_str() {
        "constant" => ("constant", cx.number(1)?),
        "edge" => ("replicate", 0.0),
        "reflect" => ("reflect", 0.0),
        other => return fail(format!("nn.pad: there is no mode {other:?}")),
    };
    let pairs = [("pad_width", width.into()), ("pad_mode", mode.into()), ("pad_value", value.into())];
    cx.emit("nn.pad", [x], attrs(pairs))
}

/// Pairs of a list of pairs, or of a flat list.
pub(super) fn flat_pairs(cx: &LowerCx<'_>, name: &str) -> Result<Vec<i64>, LowerError> {
    let Some(AttrValue::List(list)) = cx.attrs.get(name) else {
        return fail(format!("{}: the attribute `{name}` is missing", cx.def.name));
    };
    let mut flat = Vec::new();
    for item in list {
        match item {
            AttrValue::Int(v) => flat.push(*v),
            AttrValue::List(pair) => {
                for v in pair {
                    let AttrValue::Int(v) = v else {
                        return fail(format!("{}: `{name}` must hold integers", cx.def.name));
                    };
                    flat.push(*v);
                }
            }
            _ => return fail(format!("{}: `{name}` must hold integers", cx.def.name)),
        }
    }
    Ok(flat)
}

pub(super) fn mirror_pad(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let width = flat_pairs(cx, "pad_width")?;
    let mode = if cx.str("mode") == "SYMMETRIC" { "symmetric" } else { "reflect" };
    if mode == "reflect" {
        return cx.emit("nn.pad", [x], attrs([("pad_width", width.into()), ("pad_mode", mode.into())]));
    }
    let own = cx.shape(&x)?;
    let mut shape = own.clone();
    for (i, dim) in shape.iter_mut().enumerate() {
        *dim = &*dim + (width[2 * i] + width[2 * i + 1]);
    }
    Ok(cx.builder.emit_te("mirror_pad", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_mirror_pad", shape, |indices: &[PrimExpr]| {
            let at: Vec<PrimExpr> = indices
                .iter()
                .enumerate()
                .map(|(i, index)| {
                    let place = index - width[2 * i];
                    let before = prim::select(prim::lt(&place, prim::int(0)), prim::int(-1) - &place, place.clone());
                    let behind = &own[i] * 2 - 1 - &before;
                    prim::select(prim::ge(&before, own[i].clone()), behind, before)
                })
                .collect();
            x.at(&at)
        })]
    })?)
}

pub(super) fn meshgrid(cx: &mut LowerCx<'_>) -> Lowered {
    let (tensors, indexing) = (cx.tuple_args(0)?, cx.str("indexing"));
    cx.emit("meshgrid", [rx::Expr::tuple(tensors)], attrs([("indexing", indexing.into())]))
}

/// Windows that slide over the dimensions from `axis` on: each becomes an index and a place in the window.
pub(super) fn sliding_window(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let own = cx.shape(&x)?;
    let axis = cx.axis(cx.int("axis")?, own.len())?;
    let (window, strides) = (cx.ints("window_shape")?, cx.ints("strides")?);
    let mut shape = own[..axis].to_vec();
    for (i, size) in window.iter().enumerate() {
        let dim = own.get(axis + i).ok_or_else(|| LowerError("sliding_window: too many dimensions".into()))?;
        shape.push(prim::floordiv(dim - *size, prim::int(strides[i])) + 1);
    }
    let count = window.len();
    shape.extend(window.iter().map(|size| prim::int(*size)));
    Ok(cx.builder.emit_te("sliding_window", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_window", shape, |indices: &[PrimExpr]| {
            let mut at = indices[..axis].to_vec();
            at.extend((0..count).map(|i| &indices[axis + i] * strides[i] + &indices[axis + count + i]));
            x.at(&at)
        })]
    })?)
}

/// The dtype of places, for the other files.
pub(super) const PLACES: DataType = DataType::int(64);
