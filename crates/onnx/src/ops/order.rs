//! Operators that go through an axis in order, put it in order, or look for elements.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::computed::{Args, Ints, ShapePlan};
use super::gather_scatter::axis_of;
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// `CumSum`.
pub fn cumulative_sum(scope: &mut Scope, node: &Node) -> Outputs {
    cumulative(scope, node, "cumsum")
}

/// `CumProd`.
pub fn cumulative_product(scope: &mut Scope, node: &Node) -> Outputs {
    cumulative(scope, node, "cumprod")
}

/// A running total along an axis. Where the program computes which, the totals along all of them are made and one is taken.
fn cumulative(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let axis_value = node.input(1)?;
    if let Some([axis]) = axis_value.symbolic().and_then(|s| s.literals()).as_deref() {
        let axis = dims::axis(*axis, rank)
            .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
        return one(running(scope, node, name, x, axis)?);
    }
    let axis = scope.tensor(axis_value)?;
    let axis = scope.cast(axis, DataType::int(64))?;
    let axis = scope.reshape(axis, Vec::new())?;
    super::computed::require(scope, axis.clone(), |axis| {
        let (given, rank) = (axis.at(&[]), rank as i64);
        let within = prim::and(prim::ge(&given, -rank), prim::lt(&given, rank));
        Check::new(within, format!("the axis must lie within {rank} dimensions")).with([("it".to_owned(), given)])
    })?;
    let mut result = running(scope, node, name, x.clone(), 0)?;
    for candidate in 1..rank {
        let along = running(scope, node, name, x.clone(), candidate)?;
        let front = super::elementwise::with_number(scope, "equal", axis.clone(), candidate as f64)?;
        let back = super::elementwise::with_number(scope, "equal", axis.clone(), candidate as f64 - rank as f64)?;
        let chosen = scope.call("logical_or", [front, back])?;
        result = scope.call("where", [chosen, along, result])?;
    }
    one(result)
}

fn running(scope: &mut Scope, node: &Node, name: &str, x: Expr, axis: usize) -> Result<Expr> {
    let reverse = node.flag("reverse", false)?;
    let flip = |scope: &mut Scope, x: Expr| scope.op("flip", [x], Attrs::new().with("axis", axis as i64));
    let x = if reverse { flip(scope, x)? } else { x };
    let attrs = Attrs::new().with("axis", axis as i64).with("exclusive", node.flag("exclusive", false)?);
    let total = scope.op(name, [x], attrs)?;
    if reverse { flip(scope, total) } else { Ok(total) }
}

/// `TopK`: `k` is an attribute in opset 1, an input since 10.
pub fn top_k(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let axis = axis_of(scope, node, &x, -1)?;
    let k = match node.int("k")? {
        Some(k) => prim::int(k),
        None => {
            // More than there are would be read from behind the input.
            let size = scope.dims(&x)?[axis].clone();
            let given = Ints::of_length(scope, node.input(1)?, 1)?;
            if given.count() != 1 {
                return Err(NodeError::invalid(format!("`k` is {} numbers, not one", given.count())));
            }
            let mut args = Args::default();
            let given = args.ints(given);
            let bound = ShapePlan::bind(scope, "top_k", &args, |inputs| {
                let k = given.at(inputs, 0);
                let fits = prim::and(prim::ge(&k, 0), prim::le(&k, &size));
                let values = [("`k`".to_owned(), k.clone()), (format!("dimension {axis}"), size.clone())];
                let check = Check::new(fits, "`k` must be no more than there are elements").with(values);
                ShapePlan { dims: vec![prim::max(k, 0)], checks: vec![check] }
            })?;
            bound.into_iter().next().ok_or_else(|| NodeError::invalid("`k` is missing"))?
        }
    };
    let found = top(scope, x, axis, k, node.flag("largest", true)?)?;
    Ok(found.into_iter().map(Value::Computed).collect())
}

/// The `k` largest or smallest elements along an axis, in order, and where they are.
pub fn top(scope: &mut Scope, x: Expr, axis: usize, k: PrimExpr, largest: bool) -> Result<[Expr; 2]> {
    let mut out = scope.dims(&x)?;
    if k.as_int().is_some_and(|k| k < 0 || out[axis].as_int().is_some_and(|n| n < k)) {
        return Err(NodeError::invalid(format!("{k} of {} elements cannot be taken", out[axis])));
    }
    let attrs = Attrs::new().with("axis", axis as i64).with("dtype", DataType::int(64));
    if let Some(k) = k.as_int().filter(|k| *k > 0) {
        let attrs = attrs.with("k", k).with("largest", largest).with("ret_type", "both");
        let both = scope.op("topk", [x], attrs)?;
        let [values, indices] = [0, 1].map(|i| scope.emit(Expr::field(both.clone(), i)));
        return Ok([values?, indices?]);
    }
    let attrs = attrs.with("descending", largest);
    let order = scope.op("argsort", [x.clone()], attrs)?;
    out[axis] = k;
    let first = |scope: &mut Scope, name: &str, args: Vec<Expr>| {
        scope.te(name, args, |inputs| {
            vec![te::compute("first", &out, |at| {
                let place = inputs[0].at(at);
                let Some(data) = inputs.get(1) else { return place };
                let mut index = at.to_vec();
                index[axis] = place;
                data.at(&index)
            })]
        })
    };
    Ok([first(scope, "top_values", vec![order.clone(), x])?, first(scope, "top_indices", vec![order])?])
}

/// `Hardmax` since opset 13: 1 at the first maximum of an axis, 0 elsewhere.
pub fn hardmax(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let axis = axis_of(scope, node, &x, -1)?;
    one(at_maximum(scope, x, axis)?)
}

/// `Hardmax` before opset 13: over all axes from one on.
pub fn hardmax_flat(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let axis = node.int_or("axis", 1)?;
    let first = dims::axis(axis, shape.len())
        .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {} axes", shape.len())))?;
    let flat = scope.reshape(x, vec![dims::product(&shape[..first]), dims::product(&shape[first..])])?;
    let result = at_maximum(scope, flat, 1)?;
    one(scope.reshape(result, shape)?)
}

fn at_maximum(scope: &mut Scope, x: Expr, axis: usize) -> Result<Expr> {
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let best = scope.op("argmax", [x], Attrs::new().with("axis", axis as i64).with("keepdims", true))?;
    scope.te("hardmax", vec![best], |inputs| {
        vec![te::compute("hardmax", &shape, |at| {
            let mut index = at.to_vec();
            index[axis] = prim::int(0);
            let here = prim::eq(inputs[0].at(&index), &at[axis]);
            prim::select(here, prim::constant(dtype, 1.0), prim::constant(dtype, 0.0))
        })]
    })
}

/// `NonZero`: the indices of what is not zero, a row for each axis.
pub fn non_zero(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let found = scope.call("nonzero", [x])?;
    let rows = prim::int(rank.max(1) as i64);
    one(scope.bind_dims(found, vec![Some(rows), None], DataType::int(64))?)
}

/// `Compress`: the slices along an axis, or the elements, whose condition holds.
pub fn compress(scope: &mut Scope, node: &Node) -> Outputs {
    let (mut x, condition) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let axis = match node.int("axis")? {
        Some(_) => axis_of(scope, node, &x, 0)?,
        None => {
            let count = dims::product(&scope.dims(&x)?);
            x = scope.reshape(x, vec![count])?;
            0
        }
    };
    let size = scope.dims(&x)?[axis].clone();
    let condition = within(scope, condition, &size)?;
    let found = scope.call("nonzero", [condition])?;
    let found = scope.bind_dims(found, vec![Some(prim::int(1)), None], DataType::int(64))?;
    let count = scope.dims(&found)?[1].clone();
    let places = scope.reshape(found, vec![count])?;
    one(scope.op("take", [x, places], Attrs::new().with("axis", axis as i64).with("mode", "clip"))?)
}

/// A list without what is more than `size` elements.
fn within(scope: &mut Scope, list: Expr, size: &PrimExpr) -> Result<Expr> {
    let own = scope.dims(&list)?;
    let [own] = &own[..] else { return Err(NodeError::invalid("the condition is not a list")) };
    if dims::non_negative(&(size - own)) {
        return Ok(list);
    }
    let kept = dims::simplify(&prim::min(own, size));
    scope.te("within", vec![list], |inputs| vec![te::compute("within", [kept], |at| inputs[0].at(at))])
}

/// `Unique`: elements, or slices along an axis, once each.
pub fn unique(scope: &mut Scope, node: &Node) -> Outputs {
    let sorted = node.flag("sorted", true)?;
    unique_in(scope, node, if sorted { Arrangement::Ascending } else { Arrangement::First })
}

/// The order of elements of which each is there once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// The least first.
    Ascending,
    /// That of their first occurrence.
    First,
}

/// Each element once, its first place, for each element the place of its like, and counts.
pub fn unique_in(scope: &mut Scope, node: &Node, arrangement: Arrangement) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let mut shape = scope.dims(&x)?;
    let flag = |value: bool| Expr::prim(prim::boolean(value));
    let yes = || flag(true);
    let mut args = vec![x.clone(), flag(arrangement == Arrangement::Ascending), yes(), yes(), yes()];
    let axis = match node.int("axis")? {
        Some(_) => {
            let axis = axis_of(scope, node, &x, 0)?;
            args.push(Expr::prim(prim::int(axis as i64)));
            axis
        }
        None => {
            shape = vec![dims::product(&shape)];
            0
        }
    };
    let found = scope.op("unique", args, Attrs::new())?;
    let field = |scope: &mut Scope, i: usize| scope.emit(Expr::field(found.clone(), i));
    let dtype = scope.dtype(&x);
    let elements = field(scope, 0)?;
    let open = shape.iter().enumerate().map(|(i, d)| if i == axis { None } else { Some(d.clone()) }).collect();
    let elements = scope.bind_dims(elements, open, dtype)?;
    let count = scope.dims(&elements)?[axis].clone();
    let total = shape[axis].clone();
    let mut outputs = vec![Value::Computed(elements)];
    for (i, n) in [(1, count.clone()), (2, total), (3, count)] {
        let part = field(scope, i)?;
        let part = scope.bind_dims(part, vec![Some(n)], DataType::int(64))?;
        outputs.push(Value::Computed(part));
    }
    Ok(outputs)
}

/// `ArgMax` and `ArgMin` of the last of equal elements: the axis is gone through backwards.
pub fn last_position(scope: &mut Scope, x: Expr, name: &str, axis: usize, keep: bool) -> Result<Expr> {
    let size: PrimExpr = scope.dims(&x)?[axis].clone();
    let flipped = scope.op("flip", [x], Attrs::new().with("axis", axis as i64))?;
    let attrs = Attrs::new().with("axis", axis as i64).with("keepdims", keep);
    let index = super::reduce::position_in_row(scope, flipped, name, attrs)?;
    let last = scope.dim_tensor(&dims::simplify(&(size - 1)), DataType::int(64))?;
    scope.call("subtract", [last, index])
}
