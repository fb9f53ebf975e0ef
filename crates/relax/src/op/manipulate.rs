//! Operators that rearrange elements without computing: reshapes, transposes, slices of the index space.

use std::ops::Range;

use relaxide_ir::Type;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::*;
use crate::display::tuple_text;
use crate::shape::broadcast_index;
use crate::shape::{Broadcast, broadcast, num_elements, prove_equal};

const X: ArgDef = ArgDef::tensor("x", "The input.");
const DATA: ArgDef = ArgDef::tensor("data", "The input.");
const SHAPE: ArgDef = ArgDef::shape("shape", "Dimensions of the result.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::injective(
        "reshape",
        &[X, SHAPE],
        &[],
        reshape_type,
        reshape,
        "The same elements, in order, under other dimensions. One dimension may be -1: it follows from the others.",
    )
    .memory(MemoryUse::View)
    .follow()
    .gradient(gradient::reshape),
    OpDef::injective("flatten", &[X], &[], flatten_type, reshape, "The same elements, in order, in one dimension.")
        .memory(MemoryUse::View)
        .follow(),
    OpDef::injective(
        "nn.batch_flatten",
        &[DATA],
        &[],
        batch_flatten_type,
        reshape,
        "All dimensions but the first made one.",
    )
    .memory(MemoryUse::View)
    .follow(),
    OpDef::injective(
        "expand_dims",
        &[X],
        &[AttrDef::new(
            "axis",
            AttrKind::Ints,
            AttrDefault::Required,
            "Where dimensions of size one are inserted, in the result.",
        )],
        expand_dims_type,
        reflow,
        "Dimensions of size one are inserted.",
    )
    .memory(MemoryUse::View)
    .follow()
    .layout(layout::expand_dims)
    .gradient(gradient::expand_dims),
    OpDef::injective(
        "squeeze",
        &[X],
        &[AttrDef::axes("axis", "Which dimensions, each of size one; all such if absent.")],
        squeeze_type,
        squeeze,
        "Dimensions of size one are dropped; a dimension of another size stays.",
    )
    .memory(MemoryUse::View)
    .follow()
    .layout(layout::squeeze),
    OpDef::injective(
        "permute_dims",
        &[X],
        &[AttrDef::axes("axes", "Which dimension of x each dimension of the result is; reversed if absent.")],
        permute_type,
        permute,
        "Dimensions in another order.",
    )
    .follow()
    .layout(layout::permute_dims)
    .gradient(gradient::permute_dims),
    OpDef {
        pattern: OpPattern::Broadcast,
        ..OpDef::injective(
            "broadcast_to",
            &[X, SHAPE],
            &[],
            broadcast_to_type,
            broadcast_to,
            "x repeated to the given dimensions.",
        )
        .follow()
        .gradient(gradient::broadcast_to)
    },
    OpDef::injective(
        "flip",
        &[DATA],
        &[AttrDef::new("axis", AttrKind::Int, AttrDefault::Required, "The dimension.")],
        |cx| {
            let x = cx.tensor(0)?;
            x.ndim.map_or(Ok(0), |ndim| cx.axis("axis", ndim))?;
            Ok(x.ty())
        },
        flip,
        "Reversed along one dimension.",
    )
    .layout(layout::along_axis),
    OpDef::injective(
        "tile",
        &[DATA],
        &[AttrDef::new(
            "repeats",
            AttrKind::Ints,
            AttrDefault::Required,
            "How often along each dimension; missing ones in front are 1.",
        )],
        tile_type,
        tile,
        "The whole tensor repeated along dimensions.",
    )
    .layout(layout::tile),
    OpDef::injective(
        "repeat",
        &[DATA],
        &[
            AttrDef::new("repeats", AttrKind::Int, AttrDefault::Required, "How often."),
            AttrDef::new(
                "axis",
                AttrKind::Int,
                AttrDefault::None,
                "Along which dimension; of the flattened tensor if absent.",
            ),
        ],
        repeat_type,
        repeat,
        "Each element repeated along one dimension.",
    )
    .layout(layout::along_axis),
];

// Reshapes.

fn reshape_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let mut dims = match cx.shape_arg(1)? {
        Ok(dims) => dims,
        Err(ndim) => return Ok(tensor_type(None, ndim, x.dtype)),
    };
    let open: Vec<usize> = dims.iter().enumerate().filter(|(_, d)| d.is_int(-1)).map(|(i, _)| i).collect();
    match (open.as_slice(), &x.dims) {
        ([], Some(from)) => {
            let (have, want) = (num_elements(from), num_elements(&dims));
            if let (Some(a), Some(b)) = (have.as_int(), want.as_int())
                && a != b
            {
                return cx.invalid(format!("{} has {a} elements, {} has {b}", tuple_text(from), tuple_text(&dims)));
            }
        }
        ([], None) => {}
        ([at], Some(from)) => {
            let rest = dims.iter().filter(|d| !d.is_int(-1)).fold(PrimExpr::from(1), |n, d| n * d);
            let whole = num_elements(from);
            if let (Some(a), Some(b)) = (whole.as_int(), rest.as_int())
                && (b == 0 || a % b != 0)
            {
                return cx.invalid(format!("{} cannot be divided into {}", tuple_text(from), tuple_text(&dims)));
            }
            if let Some(d) = dims.get_mut(*at) {
                *d = Analyzer::new().simplify(&prim::floordiv(whole, rest));
            }
        }
        ([_], None) => return Ok(tensor_type(None, Some(dims.len()), x.dtype)),
        _ => return cx.invalid("more than one dimension is -1"),
    }
    Ok(Type::tensor(dims, x.dtype))
}

fn reshape(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    match cx.form {
        KernelForm::Plain => Ok(vec![reshape_in_full("T_reshape", input(cx, inputs, 0)?, &result_dims(cx)?)]),
        KernelForm::Fast => reflow(cx, inputs),
    }
}

/// Without dimensions of one; where several stand together, those that are named.
fn squeeze(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    if cx.form == KernelForm::Fast {
        return reflow(cx, inputs);
    }
    let named = cx.axes("axis", x.ndim())?;
    let goes = |i: usize, d: &PrimExpr| match &named {
        Some(axes) => axes.contains(&i) && d.as_int().is_none_or(|d| d == 1),
        None => d.is_int(1),
    };
    Ok(vec![te::compute("T_squeeze", result_dims(cx)?, |at| {
        let mut rest = at.iter();
        let index = x.shape().iter().enumerate().map(|(i, d)| if goes(i, d) { None } else { rest.next().cloned() });
        x.at(&index.map(|at| at.unwrap_or_else(|| 0.into())).collect::<Vec<_>>())
    })])
}

/// The same elements, in order, in the dimensions that inference gives.
fn reflow(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let dims = result_dims(cx)?;
    Ok(vec![reshape_tensor(cx.name(), x, &dims)])
}

/// A tensor of other dimensions whose elements, in order, are those of `x`.
pub fn reshape_tensor(name: &str, x: &te::Tensor, dims: &[PrimExpr]) -> te::Tensor {
    te::compute(format!("T_{name}"), dims, |axes| x.at(&reindex(axes, dims, x.shape())))
}

/// The same with every index taken from the place among all elements, as TVM writes it.
pub(super) fn reshape_in_full(name: &str, x: &te::Tensor, dims: &[PrimExpr]) -> te::Tensor {
    te::compute(name, dims, |axes| {
        let flat = axes
            .iter()
            .zip(dims)
            .skip(1)
            .fold(axes.first().cloned().unwrap_or_else(|| 0.into()), |flat, (at, dim)| flat * dim + at);
        let mut rest = flat;
        let mut index: Vec<PrimExpr> = Vec::with_capacity(x.ndim());
        for dim in x.shape().iter().rev() {
            index.push(prim::floormod(&rest, dim));
            rest = prim::floordiv(rest, dim);
        }
        index.reverse();
        x.at(&index)
    })
}

/// The index into `from` of the element that has index `axes` in `dims`. Leading and trailing dimensions that are equal are passed through,
/// and between them neighbours of one are neighbours of the other where they have as many elements, so that no division is made where
/// none is needed, and none by a dimension with a name where a number will do.
fn reindex(axes: &[PrimExpr], dims: &[PrimExpr], from: &[PrimExpr]) -> Vec<PrimExpr> {
    let lead = dims.iter().zip(from).take_while(|(a, b)| prove_equal(a, b)).count();
    let (rest_dims, rest_from) = (dims.get(lead..).unwrap_or(&[]), from.get(lead..).unwrap_or(&[]));
    let trail = rest_dims.iter().rev().zip(rest_from.iter().rev()).take_while(|(a, b)| prove_equal(a, b)).count();
    let middle_dims = rest_dims.get(..rest_dims.len() - trail).unwrap_or(&[]);
    let middle_from = rest_from.get(..rest_from.len() - trail).unwrap_or(&[]);
    let middle_axes = axes.get(lead..lead + middle_dims.len()).unwrap_or(&[]);
    let mut index: Vec<PrimExpr> = axes.get(..lead).unwrap_or(&[]).to_vec();
    for (of_dims, of_from) in neighbours(middle_dims, middle_from) {
        let from = middle_from.get(of_from).unwrap_or(&[]);
        let own = (middle_axes.get(of_dims.clone()).unwrap_or(&[]), middle_dims.get(of_dims).unwrap_or(&[]));
        index.extend(reindex_together(own.0, own.1, from));
    }
    index.extend(axes.get(axes.len() - trail..).unwrap_or(&[]).iter().cloned());
    index
}

/// Dimensions of both sides up to which runs of them are looked for: every pair of ends is tried.
const MOST_NEIGHBOURS: usize = 24;

/// The shortest runs of neighbouring dimensions that have as many elements in both; everything where that leaves something over.
fn neighbours(dims: &[PrimExpr], from: &[PrimExpr]) -> Vec<(Range<usize>, Range<usize>)> {
    let whole = vec![(0..dims.len(), 0..from.len())];
    if dims.len() + from.len() > MOST_NEIGHBOURS {
        return whole;
    }
    let (mut i, mut j) = (0, 0);
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let same = |a: &Range<usize>, b: &Range<usize>| match (dims.get(a.clone()), from.get(b.clone())) {
        (Some(dims), Some(from)) => prove_equal(&num_elements(dims), &num_elements(from)),
        _ => false,
    };
    while i < dims.len() && j < from.len() {
        let ends = (2..=dims.len() - i + from.len() - j).flat_map(|n| (1..n).map(move |p| (p, n - p)));
        let mut pairs =
            ends.map(|(p, q)| (i..i + p, j..j + q)).filter(|(a, b)| a.end <= dims.len() && b.end <= from.len());
        let Some((a, b)) = pairs.find(|(a, b)| same(a, b)) else { break };
        (i, j) = (a.end, b.end);
        runs.push((a, b));
    }
    let is_rest = |dims: &[PrimExpr]| dims.iter().all(|d| d.is_int(1));
    match runs.last_mut() {
        Some(last) if is_rest(&dims[i..]) && is_rest(&from[j..]) => {
            (last.0.end, last.1.end) = (dims.len(), from.len());
            runs
        }
        _ => whole,
    }
}

/// The index into dimensions that have as many elements as those that `axes` count.
fn reindex_together(axes: &[PrimExpr], dims: &[PrimExpr], from: &[PrimExpr]) -> Vec<PrimExpr> {
    let real = || axes.iter().zip(dims).filter(|(_, d)| !d.is_int(1));
    let real_from: Vec<&PrimExpr> = from.iter().filter(|d| !d.is_int(1)).collect();
    if real().count() == real_from.len() && real().zip(real_from).all(|((_, a), b)| prove_equal(a, b)) {
        let mut rest = real().map(|(axis, _)| axis.clone());
        let place = |d: &PrimExpr| if d.is_int(1) { None } else { rest.next() };
        return from.iter().map(place).map(|at| at.unwrap_or_else(|| PrimExpr::from(0))).collect();
    }
    let flat = real().fold(PrimExpr::from(0), |flat, (axis, dim)| flat * dim + axis);
    let mut analyzer = Analyzer::new();
    let significant = from.iter().position(|d| !d.is_int(1)).unwrap_or(0);
    let index = from.iter().enumerate().map(|(i, dim)| {
        let stride = num_elements(from.get(i + 1..).unwrap_or(&[]));
        let at = if dim.is_int(1) { PrimExpr::from(0) } else { prim::floordiv(&flat, analyzer.simplify(&stride)) };
        if i <= significant || dim.is_int(1) { at } else { prim::floormod(at, dim) }
    });
    index.collect()
}

fn flatten_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let scalar = || (x.ndim == Some(0)).then(Vec::new);
    let dims = x.dims.clone().or_else(scalar);
    Ok(tensor_type(dims.map(|d| vec![num_elements(&d)]), Some(1), x.dtype))
}

fn batch_flatten_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    if let Some(n) = x.ndim.filter(|n| *n < 2) {
        return cx.invalid(format!("needs a tensor of two dimensions at least, not {n}"));
    }
    let dims = match x.dims.as_deref() {
        Some([batch, rest @ ..]) => Some(vec![batch.clone(), num_elements(rest)]),
        _ => None,
    };
    Ok(tensor_type(dims, Some(2), x.dtype))
}

fn expand_dims_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let count = cx.ints("axis")?.len();
    let Some(ndim) = x.ndim else { return Ok(tensor_type(None, None, x.dtype)) };
    let axes = cx.axes("axis", ndim + count)?.unwrap_or_default();
    let dims = x.dims.map(|dims| {
        let mut rest = dims.into_iter();
        let at = |i: usize| if axes.contains(&i) { Some(PrimExpr::from(1)) } else { rest.next() };
        (0..ndim + count).filter_map(at).collect()
    });
    Ok(tensor_type(dims, Some(ndim + count), x.dtype))
}

fn squeeze_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let Some(ndim) = x.ndim else { return Ok(tensor_type(None, None, x.dtype)) };
    let axes = cx.axes("axis", ndim)?;
    let Some(dims) = x.dims else {
        return Ok(tensor_type(None, axes.map(|a| ndim.saturating_sub(a.len())), x.dtype));
    };
    let axes = match axes {
        Some(axes) => axes,
        None if dims.iter().any(|d| d.as_int().is_none()) => return Ok(tensor_type(None, None, x.dtype)),
        None => (0..ndim).filter(|i| dims.get(*i).is_some_and(|d| d.is_int(1))).collect(),
    };
    // A dimension that is known not to be of size one stays, as in PyTorch.
    let goes = |i: usize, d: &PrimExpr| axes.contains(&i) && d.as_int().is_none_or(|v| v == 1);
    let kept = dims.into_iter().enumerate().filter(|(i, d)| !goes(*i, d)).map(|(_, d)| d);
    Ok(Type::tensor(kept.collect::<Vec<_>>(), x.dtype))
}

// Transposes and repetition.

fn permutation(cx: &CallCx, ndim: usize) -> Result<Vec<usize>, OpError> {
    match cx.axes("axes", ndim)? {
        Some(axes) if axes.len() == ndim => Ok(axes),
        Some(axes) => cx.invalid(format!("`axes` names {} of {ndim} dimensions", axes.len())),
        None => Ok((0..ndim).rev().collect()),
    }
}

fn permute_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let Some(ndim) = x.ndim else { return Ok(x.ty()) };
    let axes = permutation(cx, ndim)?;
    let dims = x.dims.map(|dims| axes.iter().filter_map(|a| dims.get(*a).cloned()).collect());
    Ok(tensor_type(dims, Some(ndim), x.dtype))
}

fn permute(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axes = permutation(cx, x.ndim())?;
    Ok(vec![te::compute("T_transpose", result_dims(cx)?, |out| {
        let mut index = vec![PrimExpr::from(0); axes.len()];
        for (i, axis) in axes.iter().enumerate() {
            if let (Some(slot), Some(at)) = (index.get_mut(*axis), out.get(i)) {
                *slot = at.clone();
            }
        }
        x.at(&index)
    })])
}

fn broadcast_to_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let shape = cx.shape_arg(1)?;
    let ndim = shape.as_ref().map_or_else(|ndim| *ndim, |dims| Some(dims.len()));
    if let (Some(from), Some(to)) = (x.ndim, ndim)
        && from > to
    {
        return cx.invalid(format!("a tensor of {from} dimensions cannot be broadcast to {to}"));
    }
    let dims = match shape {
        Ok(dims) => dims,
        Err(ndim) => return Ok(tensor_type(None, ndim, x.dtype)),
    };
    if let Some(from) = &x.dims {
        match broadcast(from, &dims) {
            Broadcast::Known(out) if out.len() == dims.len() => {}
            Broadcast::Open(_) => {}
            _ => {
                return cx.invalid(format!("{} cannot be broadcast to {}", tuple_text(from), tuple_text(&dims)));
            }
        }
    }
    Ok(Type::tensor(dims, x.dtype))
}

fn broadcast_to(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let dims = result_dims(cx)?;
    Ok(vec![te::compute("T_broadcast_to", &dims, |axes| x.at(&broadcast_index(x.shape(), axes, &dims)))])
}

fn flip(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    Ok(vec![te::compute("T_flip", x.shape(), |axes| {
        let mut index = axes.to_vec();
        index[axis] = &x.shape()[axis] - 1 - &index[axis];
        x.at(&index)
    })])
}

// Repetition.

fn tile_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let repeats = cx.ints("repeats")?;
    let ndim = x.ndim.map(|n| n.max(repeats.len()));
    let dims = x.dims.map(|dims| {
        let n = dims.len().max(repeats.len());
        let (pad_dims, pad_repeats) = (n - dims.len(), n - repeats.len());
        let at = |i: usize| {
            let dim = i.checked_sub(pad_dims).and_then(|i| dims.get(i).cloned()).unwrap_or_else(|| PrimExpr::from(1));
            let times = i.checked_sub(pad_repeats).and_then(|i| repeats.get(i).copied()).unwrap_or(1);
            dim * times
        };
        (0..n).map(at).collect()
    });
    Ok(tensor_type(dims, ndim, x.dtype))
}

fn tile(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let dims = result_dims(cx)?;
    let is_fast = cx.form == KernelForm::Fast;
    Ok(vec![te::compute("T_tile", &dims, |axes| {
        let skip = axes.len() - x.ndim();
        let at = |((axis, dim), all): ((&PrimExpr, &PrimExpr), &PrimExpr)| match () {
            () if dim.is_int(1) => PrimExpr::from(0),
            () if is_fast && prove_equal(dim, all) => axis.clone(),
            () => prim::floormod(axis, dim),
        };
        x.at(&axes[skip..].iter().zip(x.shape()).zip(&dims[skip..]).map(at).collect::<Vec<_>>())
    })])
}

fn repeat_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let times = cx.int("repeats")?;
    if cx.attrs.get("axis").is_none() {
        let count = |d: Vec<PrimExpr>| Analyzer::new().simplify(&(num_elements(&d) * times));
        return Ok(tensor_type(x.dims.map(|d| vec![count(d)]), Some(1), x.dtype));
    }
    let Some(ndim) = x.ndim else { return Ok(x.ty()) };
    let axis = cx.axis("axis", ndim)?;
    let dims = x.dims.map(|mut dims| {
        dims[axis] = &dims[axis] * times;
        dims
    });
    Ok(tensor_type(dims, Some(ndim), x.dtype))
}

fn repeat(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let times = cx.int("repeats")?;
    if cx.attrs.get("axis").is_none() {
        let flat = [num_elements(x.shape())];
        if cx.form == KernelForm::Plain {
            let row = reshape_in_full("T_reshape", x, &flat);
            let repeated = |at: &[PrimExpr]| row.at(&[prim::floordiv(&at[0], times)]);
            return Ok(vec![te::compute("T_repeat", result_dims(cx)?, repeated)]);
        }
        return Ok(vec![te::compute("T_repeat", result_dims(cx)?, |axes| {
            x.at(&reindex(&[prim::floordiv(&axes[0], times)], &flat, x.shape()))
        })]);
    }
    let axis = cx.axis("axis", x.ndim())?;
    Ok(vec![te::compute("T_repeat", result_dims(cx)?, |axes| {
        let mut index = axes.to_vec();
        index[axis] = prim::floordiv(&index[axis], times);
        x.at(&index)
    })])
}

// Shared by the files of computes.

/// The `i`th tensor of a compute.
pub fn input<'t>(cx: &CallCx, inputs: &'t [te::Tensor], i: usize) -> Result<&'t te::Tensor, OpError> {
    inputs.get(i).ok_or_else(|| OpError::invalid(cx.name(), format!("has no tensor argument {i}")))
}

/// The dimensions of a call's result, which its compute needs.
pub fn result_dims(cx: &CallCx) -> Result<Vec<PrimExpr>, OpError> {
    match (cx.def.infer)(cx)? {
        Type::Tensor(t) => match &t.shape {
            Some(dims) => Ok(dims.clone()),
            None => cx.unsupported("the shape of the result is not known to the compiler; bind it with match_cast"),
        },
        _ => cx.invalid("does not give one tensor"),
    }
}
