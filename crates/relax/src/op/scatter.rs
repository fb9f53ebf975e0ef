//! Operators that write updates into a copy of a tensor, one after another: the last one wins, or they are combined.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::{Stmt, te};

use super::index::{index_info, wrapped};
use super::loops::{axes, nest};
use super::manipulate::input;
use super::*;
use crate::display::tuple_text;

const ARGS: &[ArgDef] = &[
    ArgDef::tensor("data", "What is copied."),
    ArgDef::tensor("indices", "Where updates go; negative indices count from the end."),
    ArgDef::tensor("updates", "The updates."),
];
const REDUCTION: AttrDef =
    AttrDef::str("reduction", "update", "How an update meets what is there: update, add, mul, min, max.");

const fn row(
    name: &'static str,
    attrs: &'static [AttrDef],
    lower: fn(&CallCx, &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError>,
    doc: &'static str,
) -> OpDef {
    OpDef {
        name,
        doc,
        args: ARGS,
        attrs,
        infer: scatter_type,
        lower: Lowering::Compute(lower),
        pattern: OpPattern::Opaque,
        ..OpDef::BASE
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "scatter_elements",
        &[AttrDef::int("axis", 0, "The dimension that the indices index."), REDUCTION],
        scatter_elements,
        "Update i, j … goes to i, indices[i, j …] … along one dimension.",
    )
    .lengths(elements_agree)
    .layout(layout::along_axis),
    row(
        "scatter_nd",
        &[REDUCTION],
        scatter_nd,
        "Slices of updates go to the points whose coordinates lie in the last dimension of the indices.",
    )
    .lengths(points_agree)
    .layout(|cx| cx.unchanged()),
];

/// Indices and updates have one shape, no larger than the data but along the axis.
fn elements_agree(cx: &CallCx) -> Result<Vec<lengths::Lengths>, OpError> {
    let Some(ndim) = cx.tensor(0)?.ndim else { return Ok(Vec::new()) };
    let axis = cx.axis("axis", ndim)?;
    let same = (0..ndim as i64).flat_map(|i| lengths::equal_dims(cx, &[(1, i), (2, i)]));
    let within = (0..ndim as i64).filter(|i| *i != axis as i64);
    let within =
        within.filter_map(|i| lengths::pair(lengths::of(cx, 1, i), lengths::Relation::AtMost, lengths::of(cx, 0, i)));
    Ok(same.chain(within).collect())
}

/// Updates are as many as points, each of the shape that the coordinates leave of the data.
fn points_agree(cx: &CallCx) -> Result<Vec<lengths::Lengths>, OpError> {
    let (Some(ndim), Some(rank)) = (cx.tensor(0)?.ndim, cx.tensor(1)?.ndim) else { return Ok(Vec::new()) };
    let count = lengths::of(cx, 1, -1).and_then(|(_, n)| n.as_int()).and_then(|n| usize::try_from(n).ok());
    let Some(count) = count.filter(|n| *n <= ndim && rank > 0) else { return Ok(Vec::new()) };
    let points = (0..rank as i64 - 1).flat_map(|i| lengths::equal_dims(cx, &[(2, i), (1, i)]));
    let rest =
        (count..ndim).flat_map(|i| lengths::equal_dims(cx, &[(2, (rank - 1 + i - count) as i64), (0, i as i64)]));
    Ok(points.chain(rest).collect())
}

fn scatter_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, updates) = (cx.tensor(0)?, cx.tensor(2)?);
    let indices = index_info(cx, 1)?;
    combine(cx)?;
    let unknown = data.dtype.is_void() || updates.dtype.is_void();
    if data.dtype != updates.dtype && (!unknown || cx.name() == "scatter_nd") {
        return cx.wrong_dtype(format!(
            "the data have dtype {}, the updates {}; they must be one",
            data.dtype, updates.dtype
        ));
    }
    if cx.name() == "scatter_elements" {
        elements_fit(cx, &data, &indices, &updates)?;
    } else {
        points_fit(cx, &data, &indices, &updates)?;
    }
    Ok(data.ty())
}

fn elements_fit(cx: &CallCx, data: &TensorInfo, indices: &TensorInfo, updates: &TensorInfo) -> Result<(), OpError> {
    if let Some(ndim) = data.ndim {
        cx.axis("axis", ndim)?;
    }
    for other in [indices, updates] {
        if let Some((n, m)) = data.ndim.zip(other.ndim).filter(|(n, m)| n != m) {
            return cx.invalid(format!("data of {n} dimensions come with indices or updates of {m}"));
        }
    }
    match (&indices.dims, &updates.dims) {
        (Some(a), Some(b)) if !may_be_equal(a, b) => {
            cx.invalid(format!("indices of shape {} come with updates of shape {}", tuple_text(a), tuple_text(b)))
        }
        _ => Ok(()),
    }
}

fn points_fit(cx: &CallCx, data: &TensorInfo, indices: &TensorInfo, updates: &TensorInfo) -> Result<(), OpError> {
    let (Some(dims), Some(points), Some(given)) = (&data.dims, &indices.dims, &updates.dims) else { return Ok(()) };
    let Some((count, lead)) = points.split_last() else { return cx.invalid("the indices have no dimensions") };
    let Some(count) = count.as_int().and_then(|n| usize::try_from(n).ok()) else { return Ok(()) };
    let Some(rest) = dims.get(count..) else {
        return cx.invalid(format!("points of {count} coordinates come with data of {} dimensions", dims.len()));
    };
    let want: Vec<PrimExpr> = lead.iter().chain(rest).cloned().collect();
    match may_be_equal(&want, given) {
        true => Ok(()),
        false => cx.invalid(format!("the updates have shape {}, not {}", tuple_text(given), tuple_text(&want))),
    }
}

/// Whether shapes are not known to differ.
fn may_be_equal(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && !a.iter().zip(b).filter_map(|(a, b)| a.as_int().zip(b.as_int())).any(|(a, b)| a != b)
}

type Combine = fn(PrimExpr, PrimExpr) -> PrimExpr;

fn combine(cx: &CallCx) -> Result<Combine, OpError> {
    Ok(match cx.str("reduction")? {
        "update" => |_, new| new,
        "add" => |old, new| old + new,
        "mul" => |old, new| old * new,
        "min" => |old, new| prim::min(old, new),
        "max" => |old, new| prim::max(old, new),
        other => return cx.invalid(format!("reduction is {other}; there are update, add, mul, min, max")),
    })
}

/// Copies the data, then writes the updates: `target` says where the update at an index goes.
fn scatter(
    cx: &CallCx,
    inputs: &[te::Tensor],
    target: impl Fn(&dyn Fn(&[PrimExpr]) -> PrimExpr, &[PrimExpr]) -> Vec<PrimExpr>,
) -> Result<Vec<te::Tensor>, OpError> {
    let (data, updates) = (input(cx, inputs, 0)?, input(cx, inputs, 2)?);
    let combine = combine(cx)?;
    let out = [("T_scatter".to_string(), data.shape().to_vec(), data.dtype())];
    Ok(te::extern_stage("scatter", inputs, out, |source, result| {
        let (copy_vars, at) = axes(data.shape(), "i");
        let copy = Stmt::store(&result[0], at.clone(), prim::load(&source[0], at));
        let (vars, at) = axes(updates.shape(), "j");
        let to = target(&|i| prim::load(&source[1], i), &at);
        let new = combine(prim::load(&result[0], to.clone()), prim::load(&source[2], at));
        let write = Stmt::store(&result[0], to, new);
        Stmt::seq([nest(&copy_vars, data.shape(), copy), nest(&vars, updates.shape(), write)])
    }))
}

fn scatter_elements(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let data = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", data.ndim())?;
    scatter(cx, inputs, |indices, at| {
        let mut to = at.to_vec();
        to[axis] = wrapped(indices(at), &data.shape()[axis]);
        to
    })
}

fn scatter_nd(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (data, indices) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let count = indices.shape().last().and_then(PrimExpr::as_int).and_then(|v| usize::try_from(v).ok());
    let Some(count) = count.filter(|c| *c <= data.ndim()) else {
        return cx.invalid("the last dimension of the indices must be a constant, at most the rank of the data");
    };
    let lead = indices.ndim() - 1;
    scatter(cx, inputs, |load, at| {
        let coordinate = |i: usize| {
            let point: Vec<PrimExpr> = at[..lead].iter().cloned().chain([PrimExpr::from(i as i64)]).collect();
            wrapped(load(&point), &data.shape()[i])
        };
        (0..count).map(coordinate).chain(at[lead..].iter().cloned()).collect()
    })
}
