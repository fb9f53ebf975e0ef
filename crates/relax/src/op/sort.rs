//! Operators that put elements in order: sorting, the largest few, the median.
//!
//! All rest on one stage, [`order`]: for each row the indices of its elements in order, by a merge sort ([`merge_sort`]),
//! in `n log n` steps. It is stable: equal elements keep their order. NaN counts as larger than every number. The first few
//! elements are selected instead ([`select`]), except on devices, whose threads share a sort.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{AttrValue, Type};
use relaxide_tir::{Stmt, te};

use super::loops::{axes, nest};
use super::manipulate::{input, reshape_tensor};
use super::merge_sort::{Sorting, rank};
use super::*;
use crate::shape::num_elements;

const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The input.")];
const AXIS: AttrDef = AttrDef::int("axis", -1, "The dimension.");
const DESCENDING: AttrDef = AttrDef::bool("descending", false, "Whether large values come first.");
const INDEX_DTYPE: AttrDef = AttrDef::new("dtype", AttrKind::DType, AttrDefault::Str("int32"), "Dtype of indices.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "sort",
        &[ArgDef::tensor("x", "The input.")],
        &[AXIS, DESCENDING],
        sort_type,
        |cx, t| Ok(vec![sorted(cx, t)?.0]),
        "Sorted along a dimension; equal elements keep their order, NaN counts as the largest.",
    ),
    OpDef::compute(
        "argsort",
        DATA,
        &[AXIS, DESCENDING, INDEX_DTYPE],
        argsort_type,
        |cx, t| Ok(vec![sorted(cx, t)?.1]),
        "Indices that sort along a dimension.",
    ),
    OpDef::compute(
        "topk",
        DATA,
        &[
            AttrDef::int("k", 1, "How many; all if less than one."),
            AXIS,
            AttrDef::str("ret_type", "both", "both (a tuple), values, or indices."),
            AttrDef::bool("largest", true, "Whether the largest are taken, or the smallest."),
            INDEX_DTYPE,
        ],
        topk_type,
        topk,
        "The largest few along a dimension, in order, and where they are.",
    ),
    OpDef::compute(
        "median",
        &[ArgDef::tensor("x", "The input.")],
        &[
            AttrDef::axes("axis", "The dimension, at most one; of the flattened tensor if absent."),
            AttrDef::bool("keepdims", false, "Whether the reduced dimension stays, with size one."),
        ],
        median_type,
        median,
        "The element in the middle, the lower of two. Along a dimension: a tuple of it and of its index, as int64.",
    ),
];

/// The most elements that are selected one by one, and so few that no other way is tried; of a row of unknown length.
const MOST_ENTERED: i64 = 128;
const FEW_ENTERED: i64 = 16;
const ENTERED_OF_ANY: i64 = 64;

/// Whether the first `k` of a row are best selected one by one. An element that is among the first so far is put in its place by moving
/// those behind it, which costs about the square of `k`; counting them off costs several passes over the row.
fn are_entered(k: i64, size: Option<i64>) -> bool {
    match size {
        Some(size) => (1..=MOST_ENTERED).contains(&k) && size > 2 * k && (k <= FEW_ENTERED || 3 * k * k <= 2 * size),
        None => (1..=ENTERED_OF_ANY).contains(&k),
    }
}

/// Which of two elements comes first.
pub(super) fn before(a: &PrimExpr, b: &PrimExpr, descending: bool) -> PrimExpr {
    let nan = |x: &PrimExpr| prim::call(DataType::bool(), "tirx.isnan", vec![x.clone()]);
    let (less, last) = if descending { (prim::gt(a, b), (a, b)) } else { (prim::lt(a, b), (b, a)) };
    if !a.dtype().is_float() {
        return less;
    }
    prim::or(less, prim::and(nan(last.0), prim::not(nan(last.1))))
}

/// For each row along an axis the indices, as int64, of its elements in order. Of a row only the first `count` elements are
/// sorted, where a count for each row is given; the others keep their places.
pub fn order(x: &te::Tensor, axis: usize, descending: bool, count: Option<&te::Tensor>) -> te::Tensor {
    let wide = DataType::int(64);
    let mut rows = x.shape().to_vec();
    let size = rows.remove(axis);
    let order = ("order".to_string(), x.shape().to_vec(), wide);
    let outs = std::iter::once(order).chain(Sorting::buffers(&size, x.dtype()));
    let inputs: Vec<te::Tensor> = std::iter::once(x).chain(count).cloned().collect();
    let mut outs = te::extern_stage("sort", &inputs, outs, |source, target| {
        let Some((order, Some(sorting))) = target.split_first().map(|(order, rest)| (order, Sorting::of(rest))) else {
            return Stmt::nop();
        };
        let (vars, row) = axes(&rows, "i");
        let at = |k: &PrimExpr| {
            let mut index = row.clone();
            index.insert(axis, k.clone());
            index
        };
        let length = match source.get(1) {
            Some(count) => cast(wide, prim::load(count, row.clone())),
            None => size.clone(),
        };
        let start = Stmt::each("k", size.clone(), |k| {
            sorting.set(k, rank(&prim::load(&source[0], at(k)), descending), k.clone())
        });
        let end = Stmt::each("k", size.clone(), |k| Stmt::store(order, at(k), prim::load(&sorting.places, [k])));
        nest(&vars, &rows, Stmt::seq([start, sorting.sort(&length, &size), end]))
    });
    outs.swap_remove(0)
}

/// Values and indices in order.
fn sorted(cx: &CallCx, inputs: &[te::Tensor]) -> Result<(te::Tensor, te::Tensor), OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    let descending = match cx.attrs.bool("descending") {
        Some(descending) => descending,
        None => cx.bool("largest")?,
    };
    let order = order(x, axis, descending, None);
    let index = cx.dtype("dtype").unwrap_or(DataType::int(32));
    let values = te::compute("T_values", x.shape(), |out| x.at(&taken(&order, axis, out)));
    Ok((values, te::compute("T_indices", x.shape(), |out| cast(index, order.at(out)))))
}

/// An index whose axis is read from a tensor of indices.
fn taken(order: &te::Tensor, axis: usize, out: &[PrimExpr]) -> Vec<PrimExpr> {
    let mut index = out.to_vec();
    index[axis] = order.at(out);
    index
}

fn sort_type(cx: &CallCx) -> Result<Type, OpError> {
    Ok(cx.tensor(0)?.ty())
}

fn argsort_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    Ok(TensorInfo { dtype: cx.dtype("dtype").unwrap_or(DataType::int(32)), ..x }.ty())
}

fn topk_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let index = cx.dtype("dtype").unwrap_or(DataType::int(32));
    let k = cx.int("k")?;
    let dims = match (x.ndim, x.dims) {
        (Some(ndim), Some(mut dims)) => {
            let axis = cx.axis("axis", ndim)?;
            if k > 0 {
                if dims[axis].as_int().is_some_and(|size| size < k) {
                    return cx.invalid(format!("cannot take {k} of fewer elements"));
                }
                dims[axis] = PrimExpr::from(k);
            }
            Some(dims)
        }
        _ => None,
    };
    let ty = |dtype| tensor_type(dims.clone(), x.ndim, dtype);
    Ok(match cx.str("ret_type")? {
        "both" => Type::tuple(vec![ty(x.dtype), ty(index)]),
        "values" => ty(x.dtype),
        "indices" => ty(index),
        other => return cx.invalid(format!("ret_type is {other}; there are both, values, indices")),
    })
}

fn topk(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    let k = cx.int("k")?;
    let mut dims = x.shape().to_vec();
    // A selection visits each element a few times, one after the other; a sort is better where all elements are taken, and where many
    // threads share it.
    let size = dims[axis].as_int();
    let by_entering = !cx.over_threads && are_entered(k, size);
    let by_counting = !cx.over_threads && k > FEW_ENTERED && size.is_none_or(|size| size > k);
    if k > 0 {
        dims[axis] = PrimExpr::from(k);
    }
    let first = |name: &str, t: &te::Tensor| te::compute(name, &dims, |out| t.at(out));
    let (values, indices) = if by_entering || by_counting {
        let select = if by_entering { select::first_in_order } else { select::first_by_counting };
        let [values, places] = select(x, axis, k, cx.bool("largest")?);
        let index = cx.dtype("dtype").unwrap_or(DataType::int(32));
        let indices = te::compute("T_topk_indices", &dims, |out| cast(index, places.at(out)));
        (first("T_topk", &values), indices)
    } else {
        let (values, indices) = sorted(cx, inputs)?;
        (first("T_topk", &values), first("T_topk_indices", &indices))
    };
    Ok(match cx.attrs.get("ret_type") {
        Some(AttrValue::Str(which)) if which == "values" => vec![values],
        Some(AttrValue::Str(which)) if which == "indices" => vec![indices],
        _ => vec![values, indices],
    })
}

fn median_type(cx: &CallCx) -> Result<Type, OpError> {
    let value = reduce::reduced(cx, None)?;
    match cx.attrs.get("axis") {
        Some(AttrValue::List(axes)) if axes.len() == 1 => {
            Ok(Type::tuple(vec![value, reduce::reduced(cx, Some(DataType::int(64)))?]))
        }
        _ => Ok(value),
    }
}

fn median(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axes = cx.axes("axis", x.ndim())?.unwrap_or_default();
    let keep = cx.bool("keepdims")?;
    let (x, axis, dims) = match axes.as_slice() {
        [] => {
            let dims = if keep { vec![PrimExpr::from(1); x.ndim()] } else { Vec::new() };
            (reshape_tensor("flatten", x, &[num_elements(x.shape())]), 0, dims)
        }
        [axis] => {
            let mut dims = x.shape().to_vec();
            if keep {
                dims[*axis] = PrimExpr::from(1);
            } else {
                dims.remove(*axis);
            }
            (x.clone(), *axis, dims)
        }
        _ => return cx.unsupported("is implemented over one dimension, or over all"),
    };
    let order = order(&x, axis, false, None);
    let middle = prim::floordiv(&x.shape()[axis] - 1, 2);
    let place = |out: &[PrimExpr]| {
        let mut index = if axes.is_empty() { Vec::new() } else { out.to_vec() };
        if keep && !axes.is_empty() {
            index.remove(axis);
        }
        index.insert(axis, middle.clone());
        index
    };
    let value = te::compute("T_median", &dims, |out| x.at(&taken(&order, axis, &place(out))));
    if axes.is_empty() {
        return Ok(vec![value]);
    }
    Ok(vec![value, te::compute("T_median_index", &dims, |out| order.at(&place(out)))])
}
