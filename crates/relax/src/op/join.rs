//! Operators that join tensors along a dimension, and that split one into slices.

use relaxide_ir::Type;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::limits::{MOST_PARTS, listed};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::*;
use crate::shape::{prove_equal, same_dims};

const X: ArgDef = ArgDef::tensor("x", "The input.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::injective(
        "concat",
        &[ArgDef::tensors("tensors", "The inputs.")],
        &[AttrDef::int("axis", 0, "The dimension along which they are joined.")],
        concat_type,
        concat,
        "Tensors joined along one dimension.",
    )
    .lengths(|cx| tuple_agrees(cx, Some("axis")))
    .follow()
    .divide(divide::joined)
    .layout(layout::concat)
    .gradient(gradient::concat),
    OpDef::injective(
        "stack",
        &[ArgDef::tensors("tensors", "The inputs, of one shape.")],
        &[AttrDef::int("axis", 0, "The new dimension, in the result.")],
        stack_type,
        stack,
        "Tensors joined along a new dimension.",
    )
    .lengths(|cx| tuple_agrees(cx, None))
    .follow()
    .divide(divide::joined)
    .layout(layout::stack),
    OpDef::injective(
        "split",
        &[X],
        &[
            AttrDef::new(
                "indices_or_sections",
                AttrKind::Any,
                AttrDefault::Required,
                "Into how many equal parts, or the indices where parts begin.",
            ),
            AttrDef::int("axis", 0, "The dimension that is split."),
        ],
        split_type,
        split,
        "A tuple of slices along one dimension. Parts are equal but for a shorter last one.",
    )
    .follow()
    .divide(divide::split)
    .layout(layout::along_axis)
    .gradient(gradient::split),
];

fn one_dtype(cx: &CallCx, tensors: &[TensorInfo]) -> Result<relaxide_ffi::DataType, OpError> {
    let mut dtypes = tensors.iter().map(|t| t.dtype).filter(|d| !d.is_void());
    let Some(first) = dtypes.next() else { return Ok(relaxide_ffi::DataType::void()) };
    match dtypes.find(|d| *d != first) {
        Some(other) => cx.wrong_dtype(format!("the tensors have dtypes {first} and {other}; convert them with astype")),
        None if tensors.iter().any(|t| t.dtype.is_void()) => Ok(relaxide_ffi::DataType::void()),
        None => Ok(first),
    }
}

/// The tensors of a tuple have the same lengths, but along one axis if any.
fn tuple_agrees(cx: &CallCx, but: Option<&str>) -> Result<Vec<lengths::Lengths>, OpError> {
    let tensors = cx.tensors(0)?;
    let Some(first) = tensors.first().and_then(|t| t.dims.clone()) else { return Ok(Vec::new()) };
    let but = but.map_or(Ok(None), |name| cx.axis(name, first.len()).map(Some))?;
    let others = tensors.iter().enumerate().skip(1);
    let pairs = others.flat_map(|(i, t)| t.dims.iter().flatten().zip(&first).enumerate().map(move |pair| (i, pair)));
    let pairs = pairs.filter(|(_, (axis, _))| Some(*axis) != but);
    Ok(pairs
        .map(|(i, (axis, (own, wanted)))| lengths::Lengths {
            left: (format!("dimension {axis} of tensor {i}"), own.clone()),
            relation: lengths::Relation::Equal,
            right: ("that of tensor 0".to_string(), wanted.clone()),
        })
        .collect())
}

fn concat_type(cx: &CallCx) -> Result<Type, OpError> {
    let tensors = cx.tensors(0)?;
    let dtype = one_dtype(cx, &tensors)?;
    let Some(ndim) = tensors.iter().find_map(|t| t.ndim) else { return Ok(tensor_type(None, None, dtype)) };
    if let Some(other) = tensors.iter().filter_map(|t| t.ndim).find(|n| *n != ndim) {
        return cx.invalid(format!("the tensors have {ndim} and {other} dimensions"));
    }
    let axis = cx.axis("axis", ndim)?;
    for i in (0..ndim).filter(|i| *i != axis) {
        let mut sizes = tensors.iter().filter_map(|t| t.dims.as_ref()?.get(i)?.as_int());
        if let Some((x, y)) = sizes.next().and_then(|x| Some((x, sizes.find(|y| *y != x)?))) {
            return cx.invalid(format!("the tensors differ at dimension {i}: {x} and {y}"));
        }
    }
    let Some(all) = tensors.iter().map(|t| t.dims.clone()).collect::<Option<Vec<_>>>() else {
        return Ok(tensor_type(None, Some(ndim), dtype));
    };
    let Some(mut dims) = all.first().cloned() else { return cx.invalid("needs one tensor at least") };
    // Each length is compared with the first and not with the sum so far, which would be as long as there are tensors.
    let first = dims[axis].clone();
    if all.iter().skip(1).all(|other| prove_equal(&first, &other[axis])) {
        dims[axis] = &first * all.len() as i64;
    } else {
        dims[axis] = all.iter().skip(1).fold(first, |sum, other| sum + &other[axis]);
    }
    for other in all.iter().skip(1) {
        for (i, (a, b)) in dims.iter_mut().zip(other).enumerate() {
            if i != axis && a.as_int().is_none() && b.as_int().is_some() {
                *a = b.clone();
            }
        }
    }
    Ok(Type::tensor(dims, dtype))
}

fn concat(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let dims = result_dims(cx)?;
    let axis = cx.axis("axis", dims.len())?;
    let size = |t: &te::Tensor| t.shape().get(axis).cloned().unwrap_or_else(|| PrimExpr::from(1));
    let mut begins = vec![PrimExpr::from(0)];
    for t in inputs {
        let next = begins.last().map(|b| b + size(t)).unwrap_or_else(|| PrimExpr::from(0));
        begins.push(next);
    }
    let Some((last, front)) = inputs.split_last() else { return cx.invalid("needs one tensor at least") };
    Ok(vec![te::compute("T_concat", &dims, |axes| {
        let at = |t: &te::Tensor, begin: &PrimExpr| {
            let mut index = axes.to_vec();
            if let Some(i) = index.get_mut(axis) {
                *i = &*i - begin;
            }
            t.at(&index)
        };
        let here = axes.get(axis).cloned().unwrap_or_else(|| PrimExpr::from(0));
        if cx.form == KernelForm::Plain {
            let parts = inputs.iter().zip(&begins).map(|(t, begin)| (prim::ge(&here, begin), at(t, begin)));
            let joined = parts.reduce(|(first, value), (from, next)| (first, prim::if_then_else(from, next, value)));
            return joined.map_or_else(|| at(last, &begins[front.len()]), |(_, value)| value);
        }
        let mut value = at(last, &begins[front.len()]);
        for (i, t) in front.iter().enumerate().rev() {
            value = prim::if_then_else(prim::lt(&here, &begins[i + 1]), at(t, &begins[i]), value);
        }
        value
    })])
}

fn stack_type(cx: &CallCx) -> Result<Type, OpError> {
    let tensors = cx.tensors(0)?;
    let dtype = one_dtype(cx, &tensors)?;
    let Some(first) = tensors.first() else { return cx.invalid("needs one tensor at least") };
    let Some(ndim) = tensors.iter().find_map(|t| t.ndim) else { return Ok(tensor_type(None, None, dtype)) };
    if let Some(other) = tensors.iter().filter_map(|t| t.ndim).find(|n| *n != ndim) {
        return cx.invalid(format!("the tensors have {ndim} and {other} dimensions"));
    }
    let axis = cx.axis("axis", ndim + 1)?;
    let differ = |t: &TensorInfo| {
        let pairs = t.dims.iter().flatten().zip(first.dims.iter().flatten());
        pairs.filter_map(|(a, b)| a.as_int().zip(b.as_int())).any(|(a, b)| a != b)
    };
    if tensors.iter().any(differ) {
        return cx.invalid("the tensors have different shapes");
    }
    let alike = |t: &TensorInfo| matches!((&t.dims, &first.dims), (Some(a), Some(b)) if same_dims(a, b));
    let dims = first.dims.clone().filter(|_| tensors.iter().all(alike)).map(|mut dims| {
        dims.insert(axis.min(dims.len()), PrimExpr::from(tensors.len() as i64));
        dims
    });
    Ok(tensor_type(dims, Some(ndim + 1), dtype))
}

fn stack(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let dims = result_dims(cx)?;
    let axis = cx.axis("axis", dims.len())?;
    let Some((last, front)) = inputs.split_last() else { return cx.invalid("needs one tensor at least") };
    Ok(vec![te::compute("T_stack", &dims, |axes| {
        let mut index = axes.to_vec();
        let which = index.remove(axis);
        let mut value = last.at(&index);
        for (i, t) in front.iter().enumerate().rev() {
            value = prim::if_then_else(prim::eq(&which, i as i64), t.at(&index), value);
        }
        value
    })])
}

/// Where each part of a split begins and ends.
fn parts(cx: &CallCx, size: &PrimExpr) -> Result<Vec<(PrimExpr, PrimExpr)>, OpError> {
    let how = cx.attrs.get("indices_or_sections");
    if let Some(relaxide_ir::AttrValue::List(_)) = how {
        let indices = cx.ints("indices_or_sections")?;
        let mut begins: Vec<PrimExpr> = vec![PrimExpr::from(0)];
        begins.extend(indices.into_iter().map(PrimExpr::from));
        let clamp = |e: &PrimExpr| prim::min(e, size);
        let ends = begins.iter().skip(1).map(clamp).chain([size.clone()]);
        return Ok(begins.iter().map(clamp).zip(ends).collect());
    }
    let sections = cx.int("indices_or_sections")?;
    if sections < 1 {
        return cx.invalid(format!("cannot split into {sections} parts"));
    }
    if listed(sections, MOST_PARTS).is_none() {
        return cx.invalid(format!("cannot split into {sections} parts: at most {MOST_PARTS}"));
    }
    let step = prim::floordiv(size + (sections - 1), sections);
    let edge = |i: i64| prim::min(&step * i, size);
    Ok((0..sections).map(|i| (edge(i), if i + 1 == sections { size.clone() } else { edge(i + 1) })).collect())
}

fn split_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let (Some(ndim), Some(dims)) = (x.ndim, x.dims) else {
        return cx.invalid("the shape of what is split must be known; give it one with match_cast");
    };
    let axis = cx.axis("axis", ndim)?;
    let Some(size) = dims.get(axis) else { return cx.invalid("the axis is out of range") };
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(&dims);
    let field = |(begin, end): (PrimExpr, PrimExpr)| {
        let mut dims = dims.clone();
        dims[axis] = analyzer.simplify(&(end - begin));
        Type::tensor(dims, x.dtype)
    };
    Ok(Type::tuple(parts(cx, size)?.into_iter().map(field).collect::<Vec<_>>()))
}

fn split(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    let Type::Tuple(tuple) = (cx.def.infer)(cx)? else { return cx.invalid("has no tuple type") };
    let Some(size) = x.shape().get(axis) else { return cx.invalid("the axis is out of range") };
    let parts = parts(cx, size)?;
    let part = |(i, ((begin, _), ty)): (usize, (&(PrimExpr, PrimExpr), &Type))| {
        let dims = ty.as_tensor().and_then(|t| t.shape.clone()).unwrap_or_default();
        te::compute(format!("T_split_{i}"), dims, |axes| {
            let mut index = axes.to_vec();
            index[axis] = &index[axis] + begin;
            x.at(&index)
        })
    };
    Ok(parts.iter().zip(&tuple.fields).enumerate().map(part).collect())
}
