//! Operators that read or write elements at places that indices name.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::computed::{from_front, of_axis};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

pub(super) fn axis_of(scope: &Scope, node: &Node, x: &Expr, default: i64) -> Result<usize> {
    let (axis, rank) = (node.int_or("axis", default)?, scope.dims(x)?.len());
    dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))
}

/// `GatherElements`: one index for each element of the result.
pub fn gather_elements(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, indices) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let axis = axis_of(scope, node, &x, 0)?;
    let (shape, dims) = (scope.dims(&x)?, scope.dims(&indices)?);
    if shape.len() != dims.len() {
        return Err(NodeError::invalid(format!("the indices have {} axes, the input {}", dims.len(), shape.len())));
    }
    let indices = scope.cast(indices, DataType::int(64))?;
    one(scope.te("gather_elements", vec![x, indices], |inputs| {
        vec![te::compute("gathered", &dims, |at| {
            let mut index = at.to_vec();
            index[axis] = from_front(&inputs[1].at(at), shape[axis].clone());
            inputs[0].at(&index)
        })]
    })?)
}

/// `GatherND`: the last axis of the indices holds coordinates.
pub fn gather_nd(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, indices) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let indices = scope.cast(indices, DataType::int(64))?;
    let (shape, places) = (scope.dims(&x)?, scope.dims(&indices)?);
    let batch = usize::try_from(node.int_or("batch_dims", 0)?).unwrap_or(usize::MAX);
    let depth = coordinates(&places)?;
    if batch >= places.len() || batch.saturating_add(depth) > shape.len() {
        return Err(NodeError::invalid(format!("{depth} coordinates do not fit an input of {} axes", shape.len())));
    }
    let wanted: Vec<PrimExpr> = shape[..batch].iter().chain(&places[batch..]).cloned().collect();
    let (indices, places) = (scope.agree(indices, &wanted)?, wanted);
    let front = places.len() - 1;
    let out: Vec<PrimExpr> = places[..front].iter().chain(&shape[batch + depth..]).cloned().collect();
    one(scope.te("gather_nd", vec![x, indices], |inputs| {
        vec![te::compute("gathered", &out, |at| {
            let coordinate = |i: usize| {
                let mut place = at[..front].to_vec();
                place.push(prim::int(i as i64));
                from_front(&inputs[1].at(&place), shape[batch + i].clone())
            };
            let index: Vec<PrimExpr> =
                at[..batch].iter().cloned().chain((0..depth).map(coordinate)).chain(at[front..].to_vec()).collect();
            inputs[0].at(&index)
        })]
    })?)
}

/// How many coordinates an index has.
fn coordinates(places: &[PrimExpr]) -> Result<usize> {
    let depth = places.last().and_then(PrimExpr::as_int).and_then(|d| usize::try_from(d).ok());
    depth.ok_or_else(|| NodeError::unsupported("the number of coordinates of the indices is not fixed"))
}

/// The name that Relax has for what happens where several updates meet.
fn reduction(node: &Node) -> Result<&'static str> {
    match node.str_or("reduction", "none")? {
        "none" => Ok("update"),
        "add" => Ok("add"),
        "mul" => Ok("mul"),
        "max" => Ok("max"),
        "min" => Ok("min"),
        other => Err(NodeError::invalid(format!("`reduction` is \"{other}\""))),
    }
}

/// `ScatterElements`, and `Scatter`, which it has replaced.
pub fn scatter_elements(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, updates) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(2)?)?);
    let axis = axis_of(scope, node, &x, 0)?;
    let indices = scope.tensor(node.input(1)?)?;
    let attrs = Attrs::new().with("axis", axis as i64).with("reduction", reduction(node)?);
    let indices = scope.cast(indices, DataType::int(64))?;
    one(scope.op("scatter_elements", [x, indices, updates], attrs)?)
}

/// `ScatterND`.
pub fn scatter_nd(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, updates) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(2)?)?);
    let indices = scope.tensor(node.input(1)?)?;
    let indices = scope.cast(indices, DataType::int(64))?;
    let (shape, places) = (scope.dims(&x)?, scope.dims(&indices)?);
    let depth = coordinates(&places)?;
    if depth > shape.len() {
        return Err(NodeError::invalid(format!("{depth} coordinates do not fit an input of {} axes", shape.len())));
    }
    one(scope.op("scatter_nd", [x, indices, updates], Attrs::new().with("reduction", reduction(node)?))?)
}

/// `TensorScatter`: new rows of a cache, from a place for each example on.
pub fn tensor_scatter(scope: &mut Scope, node: &Node) -> Outputs {
    let (cache, update) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let axis = axis_of(scope, node, &cache, -2)?;
    if axis == 0 {
        return Err(NodeError::invalid("`axis` is that of the batch"));
    }
    let shape = scope.dims(&cache)?;
    let count = scope.dims(&update)?.get(axis).cloned();
    let count = count.ok_or_else(|| NodeError::invalid("the update has fewer axes than the cache"))?;
    let circular = match node.str_or("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    };
    let mut wanted = shape.clone();
    wanted[axis] = count.clone();
    let update = scope.agree(update, &wanted)?;
    let mut args = vec![cache, update];
    if let Some(starts) = node.optional(2) {
        let starts = scope.tensor(starts)?;
        let starts = scope.agree(starts, &shape[..1])?;
        args.push(scope.cast(starts, DataType::int(64))?);
    }
    one(scope.te("tensor_scatter", args, |inputs| {
        vec![te::compute("cache", &shape, |at| {
            let start = inputs.get(2).map_or(prim::int(0), |starts| starts.at(&at[..1]));
            let ahead = &at[axis] - start;
            let ahead = if circular { prim::floormod(ahead, &shape[axis]) } else { ahead };
            let new = prim::and(prim::ge(&ahead, 0), prim::lt(&ahead, &count));
            let mut index = at.to_vec();
            index[axis] = ahead;
            prim::if_then_else(new, inputs[1].at(&index), inputs[0].at(at))
        })]
    })?)
}

/// `OneHot`: the depth and the two values are inputs.
pub fn one_hot(scope: &mut Scope, node: &Node) -> Outputs {
    let indices = scope.tensor(node.input(0)?)?;
    let mut out = scope.dims(&indices)?;
    let axis = node.int_or("axis", -1)?;
    let at_axis = dims::axis(axis, out.len() + 1)
        .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {} axes", out.len() + 1)))?;
    let depth = scalar_dim(scope, node.input(1)?)?;
    out.insert(at_axis, depth.clone());
    let values = scope.tensor(node.input(2)?)?;
    let values = scope.agree(values, &[prim::int(2)])?;
    // Indices may be floats, which are then whole.
    let indices = scope.cast(indices, DataType::int(64))?;
    one(scope.te("one_hot", vec![indices, values], |inputs| {
        vec![te::compute("one_hot", &out, |at| {
            let mut index = at.to_vec();
            let place = index.remove(at_axis);
            let on = prim::eq(from_front(&inputs[0].at(&index), depth.clone()), place);
            prim::select(on, inputs[1].at(&[prim::int(1)]), inputs[1].at(&[prim::int(0)]))
        })]
    })?)
}

/// One dimension that an input holds, whatever number type it has.
pub(super) fn scalar_dim(scope: &mut Scope, value: &Value) -> Result<PrimExpr> {
    if let Some([dim]) = value.symbolic().and_then(|s| s.ints()).as_deref() {
        return match dim.as_int() {
            Some(size) if size < 0 => Err(NodeError::invalid(format!("a size is {size}"))),
            _ => Ok(dim.clone()),
        };
    }
    let tensor = scope.tensor(value)?;
    let dims = super::computed::sizes(scope, tensor, 1)?;
    dims.into_iter().next().ok_or_else(|| NodeError::invalid("a size is missing"))
}

/// `ReverseSequence`.
pub fn reverse_sequence(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, lengths) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let rank = scope.dims(&x)?.len();
    let axis = |name, default| {
        let axis = node.int_or(name, default)?;
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("`{name}` {axis} is not one of {rank} axes")))
    };
    let (time, batch) = (axis("time_axis", 0)?, axis("batch_axis", 1)?);
    let attrs = Attrs::new().with("seq_axis", time as i64).with("batch_axis", batch as i64);
    one(scope.op("reverse_sequence", [x, lengths], attrs)?)
}

/// `Trilu`: one triangle of matrices, zero elsewhere.
pub fn trilu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let Some(row) = shape.len().checked_sub(2) else { return Err(NodeError::invalid("the input is no matrix")) };
    let upper = node.flag("upper", true)?;
    let mut args = super::computed::Args::default();
    let k = match super::computed::Ints::input(scope, node, 1)? {
        Some(k) if k.count() == 1 => args.ints(k),
        Some(_) => return Err(NodeError::invalid("`k` must be one number")),
        None => args.ints(super::computed::Ints::fixed([0])),
    };
    let mut inputs = args.inputs();
    inputs.push(x);
    one(scope.te("trilu", inputs, |inputs| {
        let data = &inputs[inputs.len() - 1];
        vec![te::compute("trilu", &shape, |at| {
            let over = &at[row + 1] - &at[row];
            let kept = if upper { prim::ge(over, k.at(inputs, 0)) } else { prim::le(over, k.at(inputs, 0)) };
            prim::select(kept, data.at(at), prim::constant(dtype, 0.0))
        })]
    })?)
}

/// `EyeLike`: ones on a diagonal.
pub fn eye_like(scope: &mut Scope, node: &Node) -> Outputs {
    let value = node.input(0)?;
    let shape = scope.value_dims(value)?;
    let dtype = match node.int("dtype")? {
        Some(number) => crate::constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))?,
        None => {
            let x = scope.tensor(value)?;
            scope.dtype(&x)
        }
    };
    if shape.len() != 2 {
        return Err(NodeError::invalid(format!("the input has {} axes, not 2", shape.len())));
    }
    let k = node.int_or("k", 0)?;
    one(scope.te("eye", vec![], |_| {
        vec![te::compute("eye", &shape, |at| {
            prim::select(prim::eq(&at[1] - &at[0], k), prim::constant(dtype, 1.0), prim::constant(dtype, 0.0))
        })]
    })?)
}

/// `CenterCropPad`: axes cut or filled with zeros on both sides to given sizes.
pub fn center_crop_pad(scope: &mut Scope, node: &Node) -> Outputs {
    use super::computed::{Args, Ints, ShapePlan, all};
    let x = scope.tensor(node.input(0)?)?;
    let (own, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let rank = own.len();
    let axes = node.ints("axes")?.unwrap_or_else(|| (0..rank as i64).collect());
    let target = Ints::of_length(scope, node.input(1)?, axes.len())?;
    if axes.len() != target.count() {
        return Err(NodeError::invalid(format!("{} sizes are given for {} axes", target.count(), axes.len())));
    }
    let axes: Vec<PrimExpr> = axes.into_iter().map(prim::int).collect();
    let mut args = Args::default();
    let target = args.ints(target);
    let dims = ShapePlan::bind(scope, "center_crop_pad", &args, |inputs| {
        let sizes = target.all(inputs);
        let dim = |i: usize| prim::max(of_axis(&axes, &sizes, i, rank, own[i].clone()), 0);
        ShapePlan { dims: (0..rank).map(dim).collect(), ..ShapePlan::default() }
    })?;
    one(scope.te("center_crop_pad", vec![x], |inputs| {
        vec![te::compute("center_crop_pad", &dims, |at| {
            let place = |i: usize| {
                let (cut, added) = (&own[i] - &dims[i], &dims[i] - &own[i]);
                &at[i]
                    + prim::select(prim::gt(&cut, 0), prim::floordiv(&cut, 2), prim::int(0) - prim::floordiv(added, 2))
            };
            let index: Vec<PrimExpr> = (0..rank).map(place).collect();
            let within = all(index.iter().zip(&own).map(|(i, n)| prim::and(prim::ge(i, 0), prim::lt(i, n))));
            prim::if_then_else(within, inputs[0].at(&index), prim::constant(dtype, 0.0))
        })]
    })?)
}
