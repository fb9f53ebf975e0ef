//! Operators that read or write elements at places that indices name.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::arith::dims;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::{Scalar, Value};

pub const TABLE: Table = &[
    ("aten.select", select),
    ("aten.select_copy", select),
    ("aten.slice", slice),
    ("aten.slice_copy", slice),
    ("aten.narrow", narrow),
    ("aten.index_select", index_select),
    ("aten.embedding", embedding),
    ("aten.take", take),
    ("aten.gather", gather),
    ("aten.index", index),
    ("aten.index_put", index_put),
    ("aten._unsafe_index", index),
    ("aten._unsafe_index_put", index_put),
    ("aten.nonzero", nonzero),
    ("aten.masked_select", masked_select),
    ("aten.masked_scatter", |_| {
        Err(NodeError::unsupported("it takes as many elements as a mask names, one after the other"))
    }),
    ("aten.scatter", |cx| scatter(cx, "update")),
    ("aten.scatter_add", |cx| scatter(cx, "add")),
    ("aten.scatter_reduce", scatter_reduce),
    ("aten.index_add", |cx| index_rows(cx, "add", "source")),
    ("aten.index_copy", |cx| index_rows(cx, "update", "source")),
    ("aten.index_fill", index_fill),
    ("aten.slice_scatter", slice_scatter),
    ("aten.select_scatter", select_scatter),
];

/// An index from the front, from one that may count from the back.
fn axis_from_front(index: PrimExpr, dim: &PrimExpr) -> PrimExpr {
    prim::select(prim::lt(&index, 0), &index + dim, index)
}

fn indices(cx: &mut Cx<'_>, name: &str) -> Result<Expr> {
    let indices = cx.tensor(name)?;
    cx.cast(indices, DataType::int(64))
}

fn select(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let shape = cx.shape(&x)?;
    let axis = cx.axis("dim", 0, shape.len())?;
    let at = cx.dim("index")?.ok_or_else(|| NodeError::invalid("`index` is missing"))?;
    if let (Some(at), Some(dim)) = (at.as_int(), shape[axis].as_int()) {
        let at = cx.whole(if at < 0 { at + dim } else { at }, DataType::int(64))?;
        return one(cx.op("take", [x, at], Attrs::new().with("axis", axis as i64))?);
    }
    let known_side = at.as_int().map(|n| n >= 0).or_else(|| dims::non_negative(&at).then_some(true));
    let at = match known_side {
        Some(true) => at,
        Some(false) => &shape[axis] + at,
        None => axis_from_front(at, &shape[axis]),
    };
    one(cx.te("select", vec![x], |inputs| {
        vec![te::compute("select", &declared.dims, |place| {
            let mut index = place.to_vec();
            index.insert(axis, at.clone());
            inputs[0].at(&index)
        })]
    })?)
}

/// The bounds of a slice of an axis.
fn bounds(cx: &Cx<'_>, dim: &PrimExpr) -> Result<(PrimExpr, PrimExpr, i64)> {
    let start = cx.dim("start")?.map_or_else(|| prim::int(0), |start| dims::slice_bound(&start, dim));
    let end = cx.dim("end")?.map_or_else(|| dim.clone(), |end| dims::slice_bound(&end, dim));
    Ok((start, end, cx.int_or("step", 1)?))
}

fn slice(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let shape = cx.shape(&x)?;
    let axis = cx.axis("dim", 0, shape.len())?;
    let (start, end, step) = bounds(cx, &shape[axis])?;
    if start.is_int(0) && step == 1 && dims::equal(&end, &shape[axis]) {
        return one(x);
    }
    one(super::manipulate::part(cx, x, axis, start, end, step)?)
}

fn narrow(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let shape = cx.shape(&x)?;
    let axis = cx.axis("dim", 0, shape.len())?;
    let start = cx.dim("start")?.ok_or_else(|| NodeError::invalid("`start` is missing"))?;
    let start = dims::slice_bound(&start, &shape[axis]);
    let length = cx.dim("length")?.ok_or_else(|| NodeError::invalid("`length` is missing"))?;
    let end = dims::simplify(&(&start + length));
    one(super::manipulate::part(cx, x, axis, start, end, 1)?)
}

fn index_select(cx: &mut Cx<'_>) -> Outputs {
    let (x, places) = (cx.tensor("self")?, indices(cx, "index")?);
    let axis = cx.axis("dim", 0, cx.rank(&x)?)?;
    one(cx.op("take", [x, places], Attrs::new().with("axis", axis as i64))?)
}

fn embedding(cx: &mut Cx<'_>) -> Outputs {
    let (table, places) = (cx.tensor("weight")?, cx.tensor("indices")?);
    one(cx.op("take", [table, places], Attrs::new().with("axis", 0i64))?)
}

fn take(cx: &mut Cx<'_>) -> Outputs {
    let (x, places) = (cx.tensor("self")?, indices(cx, "index")?);
    let count = cx.shape(&x)?.into_iter().fold(prim::int(1), |n, d| n * d);
    let flat = cx.reshape(x, &[count])?;
    one(cx.op("take", [flat, places], Attrs::new().with("axis", 0i64))?)
}

fn gather(cx: &mut Cx<'_>) -> Outputs {
    let (x, places) = (cx.tensor("self")?, indices(cx, "index")?);
    let (shape, declared) = (cx.shape(&x)?, cx.result()?.clone());
    let axis = cx.axis("dim", 0, shape.len())?;
    if shape.is_empty() {
        return one(x);
    }
    one(cx.te("gather", vec![x, places], |inputs| {
        vec![te::compute("gathered", &declared.dims, |at| {
            let mut index = at.to_vec();
            index[axis] = inputs[1].at(at);
            inputs[0].at(&index)
        })]
    })?)
}

/// The indices of a node by axis, masks as the places that they name, and whether one of them is a mask.
fn by_axis(cx: &mut Cx<'_>) -> Result<(Vec<Option<Expr>>, bool)> {
    let mut out = Vec::new();
    let mut masked = false;
    for entry in cx.optional_tensors("indices")? {
        let Some(tensor) = entry else {
            out.push(None);
            continue;
        };
        if !cx.dtype(&tensor).is_bool() && cx.dtype(&tensor) != DataType::uint(8) {
            let wide = cx.cast(tensor, DataType::int(64))?;
            out.push(Some(wide));
            continue;
        }
        masked = true;
        let rank = cx.rank(&tensor)?;
        let places = places_of(cx, tensor)?;
        for axis in 0..rank {
            let column = cx.op(
                "take",
                [places.clone(), cx.whole(axis as i64, DataType::int(64))?],
                Attrs::new().with("axis", 1i64),
            )?;
            out.push(Some(column));
        }
    }
    Ok((out, masked))
}

/// What indices make of a tensor: the axes in front of them, their common dimensions, and where those stand in the result.
struct Selection {
    /// Axes with an index, in order.
    axes: Vec<usize>,
    /// Axes without one.
    rest: Vec<usize>,
    /// Dimensions of the indices, broadcast together.
    common: Vec<PrimExpr>,
    /// Where the common dimensions begin in the result.
    at: usize,
}

impl Selection {
    fn new(cx: &Cx<'_>, indices: &[Option<Expr>], rank: usize) -> Result<Selection> {
        let axes: Vec<usize> = (0..indices.len()).filter(|&i| indices[i].is_some()).collect();
        if axes.is_empty() || indices.len() > rank {
            return Err(NodeError::invalid(format!("{} indices for {rank} axes", indices.len())));
        }
        let shapes = indices.iter().flatten().map(|index| cx.shape(index)).collect::<Result<Vec<_>>>()?;
        let deepest = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let common = (0..deepest).map(|i| {
            let dims = shapes.iter().filter_map(|shape| shape.get((shape.len() + i).checked_sub(deepest)?));
            let open = dims.clone().find(|dim| !dim.is_int(1));
            open.cloned().unwrap_or_else(|| prim::int(1))
        });
        let together = axes.windows(2).all(|pair| pair[1] == pair[0] + 1);
        Ok(Selection {
            at: if together { axes[0] } else { 0 },
            rest: (0..rank).filter(|axis| !axes.contains(axis)).collect(),
            common: common.collect(),
            axes,
        })
    }

    /// Dimensions of the result.
    fn dims(&self, shape: &[PrimExpr]) -> Vec<PrimExpr> {
        let rest = |axes: &[usize]| axes.iter().map(|&axis| shape[axis].clone()).collect::<Vec<_>>();
        let (front, back) = self.rest.split_at(self.at.min(self.rest.len()));
        [rest(front), self.common.clone(), rest(back)].concat()
    }
}

/// An index tensor at a place of the common dimensions, along which it may have one element.
fn element(index: &te::Tensor, at: &[PrimExpr]) -> PrimExpr {
    let skip = at.len() - index.ndim();
    let place = at[skip..].iter().zip(index.shape());
    let place: Vec<PrimExpr> = place.map(|(i, dim)| if dim.is_int(1) { prim::int(0) } else { i.clone() }).collect();
    index.at(&place)
}

fn index(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let shape = cx.shape(&x)?;
    let (indices, masked) = by_axis(cx)?;
    let indices = if masked { bound_together(cx, indices)? } else { indices };
    let selection = Selection::new(cx, &indices, shape.len())?;
    let dims = selection.dims(&shape);
    let args: Vec<Expr> = std::iter::once(x).chain(indices.into_iter().flatten()).collect();
    one(cx.te("index", args, |inputs| {
        vec![te::compute("indexed", &dims, |at| {
            let depth = selection.common.len();
            let places = &at[selection.at..selection.at + depth];
            let mut others = at[..selection.at].iter().chain(&at[selection.at + depth..]);
            let mut chosen = selection
                .axes
                .iter()
                .zip(&inputs[1..])
                .map(|(&axis, index)| axis_from_front(element(index, places), &shape[axis]));
            let index: Vec<PrimExpr> = (0..shape.len())
                .map(|axis| if selection.axes.contains(&axis) { chosen.next() } else { others.next().cloned() })
                .map(|place| place.unwrap_or_else(|| prim::int(0)))
                .collect();
            inputs[0].at(&index)
        })]
    })?)
}

/// Index tensors whose length the program finds out, as those of the declared result.
fn bound_together(cx: &mut Cx<'_>, indices: Vec<Option<Expr>>) -> Result<Vec<Option<Expr>>> {
    let first = indices.iter().position(Option::is_some).unwrap_or(0);
    let length = cx.results.first().and_then(|r| r.dims.get(first)).cloned();
    let Some(length) = length else { return Ok(indices) };
    let mut out = Vec::new();
    for index in indices {
        out.push(match index {
            Some(index) if cx.rank(&index).is_ok_and(|rank| rank == 1) || cx.rank(&index).is_err() => {
                let dims = vec![length.clone()];
                Some(cx.declared(index, &crate::rule::Declared { dims, dtype: DataType::int(64) })?)
            }
            other => other,
        });
    }
    Ok(out)
}

/// The places of what is not zero: one row for each, one column for each axis.
fn places_of(cx: &mut Cx<'_>, x: Expr) -> Result<Expr> {
    let rank = cx.rank(&x)?;
    let columns = cx.call("nonzero", [x])?;
    let count = PrimExpr::Var(relaxide_ir::Var::dim("places"));
    let dims = vec![prim::int(rank as i64), count];
    let columns = cx.declared(columns, &crate::rule::Declared { dims, dtype: DataType::int(64) })?;
    cx.permute(columns, &[1, 0])
}

fn nonzero(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    one(places_of(cx, x)?)
}

/// `where` of a condition alone: the places along each axis.
pub fn nonzero_columns(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("condition")?;
    let rank = cx.rank(&x)?;
    let places = places_of(cx, x)?;
    let column = |axis: usize| {
        let at = cx.whole(axis as i64, DataType::int(64))?;
        Ok(Value::Tensor(cx.op("take", [places.clone(), at], Attrs::new().with("axis", 1i64))?))
    };
    (0..rank).map(column).collect()
}

fn masked_select(cx: &mut Cx<'_>) -> Outputs {
    let (x, mask) = (cx.tensor("self")?, cx.tensor("mask")?);
    let (a, b) = (cx.shape(&x)?, cx.shape(&mask)?);
    let to = if a.len() >= b.len() { a } else { b };
    let (x, mask) = (cx.broadcast(x, &to)?, cx.broadcast(mask, &to)?);
    let count = to.iter().fold(prim::int(1), |n, d| n * d);
    let (x, mask) = (cx.reshape(x, std::slice::from_ref(&count))?, cx.reshape(mask, std::slice::from_ref(&count))?);
    let places = places_of(cx, mask)?;
    let at = cx.op("squeeze", [places], Attrs::new().with("axis", vec![1i64]))?;
    one(cx.op("take", [x, at], Attrs::new().with("axis", 0i64))?)
}

fn index_put(cx: &mut Cx<'_>) -> Outputs {
    let (x, values) = (cx.tensor("self")?, cx.tensor("values")?);
    let accumulate = cx.flag("accumulate", false)?;
    let shape = cx.shape(&x)?;
    let given = cx.optional_tensors("indices")?;
    let values = cx.cast(values, cx.dtype(&x))?;
    // One value where a mask says so.
    if let ([Some(mask)], false, true) = (given.as_slice(), accumulate, cx.rank(&values)? == 0)
        && cx.dtype(mask).is_bool()
    {
        let mut dims = cx.shape(mask)?;
        dims.resize(shape.len(), prim::int(1));
        let mask = cx.reshape(mask.clone(), &dims)?;
        return one(cx.call("where", [mask, values, x])?);
    }
    let (indices, _) = by_axis(cx)?;
    let selection = Selection::new(cx, &indices, shape.len())?;
    let full = selection.dims(&shape);
    let values = cx.broadcast(values, &full)?;
    // Indexed axes go to the front of both, where the operator wants them.
    let depth = selection.common.len();
    let order: Vec<usize> =
        (selection.at..selection.at + depth).chain(0..selection.at).chain(selection.at + depth..full.len()).collect();
    let values = cx.permute(values, &order)?;
    let axes: Vec<usize> = selection.axes.iter().chain(&selection.rest).copied().collect();
    let front = cx.permute(x, &axes)?;
    // The operator wants an index for every axis: those without one become a single row, of which all places are named.
    let row = selection.rest.iter().fold(prim::int(1), |n, &axis| n * shape[axis].clone());
    let row = dims::simplify(&row);
    let places: Vec<PrimExpr> = selection.common.iter().cloned().chain([row.clone()]).collect();
    let mut flat: Vec<PrimExpr> = selection.axes.iter().map(|&axis| shape[axis].clone()).collect();
    flat.push(row.clone());
    let whole = cx.shape(&front)?;
    let front = cx.reshape(front, &flat)?;
    let values = cx.reshape(values, &places)?;
    let mut named = Vec::new();
    for (index, &axis) in indices.into_iter().flatten().zip(&selection.axes) {
        let index = wrapped(cx, index, shape[axis].clone())?;
        let mut column = cx.shape(&index)?;
        column.push(prim::int(1));
        let index = cx.reshape(index, &column)?;
        named.push(cx.broadcast(index, &places)?);
    }
    let range = [prim::int(0), row, prim::int(1)].map(Expr::prim);
    let range = cx.op("arange", range, Attrs::new().with("dtype", DataType::int(64)))?;
    named.push(cx.broadcast(range, &places)?);
    let attrs = Attrs::new().with("accumulate", accumulate);
    let put = cx.op("index_put", [front, Expr::tuple(named), values], attrs)?;
    let put = cx.reshape(put, &whole)?;
    let mut back = vec![0; axes.len()];
    for (i, &axis) in axes.iter().enumerate() {
        back[axis] = i;
    }
    one(cx.permute(put, &back)?)
}

/// Indices counted from the front.
fn wrapped(cx: &mut Cx<'_>, index: Expr, dim: PrimExpr) -> Result<Expr> {
    let zero = cx.whole(0, DataType::int(64))?;
    let length = cx.operand(Scalar::Int(dim), DataType::int(64))?;
    let negative = cx.call("less", [index.clone(), zero])?;
    let up = cx.call("add", [index.clone(), length])?;
    cx.call("where", [negative, up, index])
}

/// The updates of a scatter: as many as there are indices.
fn updates(cx: &mut Cx<'_>, places: &Expr, dtype: DataType) -> Result<Expr> {
    let to = cx.shape(places)?;
    let Some(Scalar::Tensor(mut source)) = cx.scalar("src")? else {
        let value = cx.scalar("value")?.ok_or_else(|| NodeError::invalid("neither `src` nor `value` is given"))?;
        let value = cx.operand(value, dtype)?;
        return cx.broadcast(value, &to);
    };
    for (axis, (own, wanted)) in cx.shape(&source)?.into_iter().zip(&to).enumerate() {
        if !dims::equal(&own, wanted) {
            source = super::manipulate::part(cx, source, axis, prim::int(0), wanted.clone(), 1)?;
        }
    }
    cx.cast(source, dtype)
}

fn scattered(cx: &mut Cx<'_>, x: Expr, reduction: &str) -> Outputs {
    let places = indices(cx, "index")?;
    let axis = cx.axis("dim", 0, cx.rank(&x)?)?;
    let source = updates(cx, &places, cx.dtype(&x))?;
    let attrs = Attrs::new().with("axis", axis as i64).with("reduction", reduction);
    one(cx.op("scatter_elements", [x, places, source], attrs)?)
}

fn scatter(cx: &mut Cx<'_>, reduction: &str) -> Outputs {
    let x = cx.tensor("self")?;
    let reduction = match cx.text_or("reduce", reduction)? {
        "multiply" => "mul".to_string(),
        other => other.to_string(),
    };
    scattered(cx, x, &reduction)
}

fn scatter_reduce(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let (reduction, start) = match cx.text_or("reduce", "")? {
        "sum" => ("add", 0.0),
        "prod" => ("mul", 1.0),
        "amax" => ("max", f64::NEG_INFINITY),
        "amin" => ("min", f64::INFINITY),
        other => return Err(NodeError::unsupported(format!("the reduction \"{other}\""))),
    };
    if cx.flag("include_self", true)? {
        return scattered(cx, x, reduction);
    }
    // What was there counts only where no update arrives.
    let (dtype, shape) = (cx.dtype(&x), cx.shape(&x)?);
    if !crate::dtype::is_float(dtype) && start.is_infinite() {
        return Err(NodeError::unsupported("extremes of integers without what was there"));
    }
    let places = indices(cx, "index")?;
    let axis = cx.axis("dim", 0, shape.len())?;
    let blank = cx.number(start, dtype)?;
    let blank = cx.broadcast(blank, &shape)?;
    let attrs = |reduction: &str| Attrs::new().with("axis", axis as i64).with("reduction", reduction);
    let source = updates(cx, &places, dtype)?;
    let reduced = cx.op("scatter_elements", [blank, places.clone(), source], attrs(reduction))?;
    let no = cx.number(0.0, DataType::uint(8))?;
    let no = cx.broadcast(no, &shape)?;
    let yes = cx.number(1.0, DataType::uint(8))?;
    let to = cx.shape(&places)?;
    let yes = cx.broadcast(yes, &to)?;
    let touched = cx.op("scatter_elements", [no, places, yes], attrs("update"))?;
    let touched = cx.cast(touched, DataType::bool())?;
    one(cx.call("where", [touched, reduced, x])?)
}

/// Rows along an axis, written at the places that a list names.
fn index_rows(cx: &mut Cx<'_>, reduction: &str, source: &str) -> Outputs {
    let x = cx.tensor("self")?;
    let mut source = cx.tensor(source)?;
    source = cx.cast(source, cx.dtype(&x))?;
    if reduction == "add" && cx.get("alpha").is_some() {
        let alpha = cx.float_or("alpha", 1.0)?;
        let alpha = cx.number(alpha, cx.dtype(&x))?;
        source = cx.call("multiply", [source, alpha])?;
    }
    rows_at(cx, x, source, reduction)
}

fn rows_at(cx: &mut Cx<'_>, x: Expr, source: Expr, reduction: &str) -> Outputs {
    let list = indices(cx, "index")?;
    let rank = cx.rank(&x)?;
    let axis = cx.axis("dim", 0, rank)?;
    let to = cx.shape(&source)?;
    let mut column = vec![prim::int(1); rank];
    column[axis] = to.get(axis).cloned().ok_or_else(|| NodeError::invalid("the source has too few axes"))?;
    let list = cx.reshape(list, &column)?;
    let places = cx.broadcast(list, &to)?;
    let attrs = Attrs::new().with("axis", axis as i64).with("reduction", reduction);
    one(cx.op("scatter_elements", [x, places, source], attrs)?)
}

fn index_fill(cx: &mut Cx<'_>) -> Outputs {
    let (x, list) = (cx.tensor("self")?, cx.tensor("index")?);
    let mut to = cx.shape(&x)?;
    let axis = cx.axis("dim", 0, to.len())?;
    to[axis] = cx.shape(&list)?.first().cloned().unwrap_or_else(|| prim::int(1));
    let value = cx.scalar("value")?.ok_or_else(|| NodeError::invalid("`value` is missing"))?;
    let value = cx.operand(value, cx.dtype(&x))?;
    let source = cx.broadcast(value, &to)?;
    rows_at(cx, x, source, "update")
}

fn slice_scatter(cx: &mut Cx<'_>) -> Outputs {
    let (x, source) = (cx.tensor("self")?, cx.tensor("src")?);
    let source = cx.cast(source, cx.dtype(&x))?;
    let shape = cx.shape(&x)?;
    let axis = cx.axis("dim", 0, shape.len())?;
    let (start, _, step) = bounds(cx, &shape[axis])?;
    written(cx, x, source, axis, start, step)
}

fn select_scatter(cx: &mut Cx<'_>) -> Outputs {
    let (x, source) = (cx.tensor("self")?, cx.tensor("src")?);
    let source = cx.cast(source, cx.dtype(&x))?;
    let shape = cx.shape(&x)?;
    let axis = cx.axis("dim", 0, shape.len())?;
    let at = cx.dim("index")?.ok_or_else(|| NodeError::invalid("`index` is missing"))?;
    let at = match at.as_int() {
        Some(at) if at >= 0 => prim::int(at),
        Some(at) => &shape[axis] + at,
        None => axis_from_front(at, &shape[axis]),
    };
    let mut row = cx.shape(&source)?;
    row.insert(axis, prim::int(1));
    let source = cx.reshape(source, &row)?;
    written(cx, x, source, axis, dims::simplify(&at), 1)
}

/// A tensor with others written over a part of an axis, which begins at a place and takes steps.
fn written(cx: &mut Cx<'_>, x: Expr, source: Expr, axis: usize, start: PrimExpr, step: i64) -> Outputs {
    let (shape, part) = (cx.shape(&x)?, cx.shape(&source)?);
    let count = part.get(axis).cloned().ok_or_else(|| NodeError::invalid("the source has too few axes"))?;
    one(cx.te("slice_scatter", vec![x, source], |inputs| {
        vec![te::compute("written", &shape, |at| {
            let past = &at[axis] - &start;
            let turn = prim::floordiv(&past, step);
            let inside = prim::and(prim::ge(&past, 0), prim::lt(&turn, &count));
            let hit = if step == 1 { inside } else { prim::and(inside, prim::eq(prim::floormod(past, step), 0)) };
            let mut index = at.to_vec();
            index[axis] = turn;
            prim::if_then_else(hit, inputs[1].at(&index), inputs[0].at(at))
        })]
    })?)
}
