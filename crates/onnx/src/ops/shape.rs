//! Operators about shapes: reading them, changing them, and making tensors of them.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::computed::{self, Ints};
use super::{Outputs, one};
use crate::constant as constants;
use crate::dims;
use crate::error::NodeError;
use crate::node::{Node, depends_on_data};
use crate::scope::Scope;
use crate::symbolic::{MAX_ELEMENTS, Symbolic};
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// `Shape`, or the part of it between `start` and `end`.
pub fn shape(scope: &mut Scope, node: &Node) -> Outputs {
    let dims = scope.value_dims(node.input(0)?)?;
    let n = dims.len() as i64;
    let clamp = |i: i64| if i < 0 { i.saturating_add(n).max(0) } else { i.min(n) } as usize;
    let (start, end) = (clamp(node.int_or("start", 0)?), clamp(node.int_or("end", n)?));
    let part = dims.get(start..end.max(start)).unwrap_or_default();
    Ok(vec![Value::Symbolic(Symbolic::shape_of(part))])
}

/// `Size`: how many elements there are.
pub fn size(scope: &mut Scope, node: &Node) -> Outputs {
    let dims = scope.value_dims(node.input(0)?)?;
    Ok(vec![Value::Symbolic(Symbolic::scalar(dims::product(&dims)))])
}

/// `Constant` in any of its spellings.
pub fn constant(_: &mut Scope, node: &Node) -> Outputs {
    let invalid = |e: crate::error::TensorError| NodeError::invalid(e.to_string());
    let make = |values: Vec<f64>, dims: Vec<i64>, dtype| relaxide_frontend::constant::filled(&values, &dims, dtype);
    if let Some(proto) = node.tensor("value")?.filter(|proto| crate::text::is_text(proto)) {
        return Ok(vec![crate::text::constant(proto)?]);
    }
    if let Some(text) = node.text("value_string")? {
        return Ok(vec![crate::text::listed(vec![text], &[])?]);
    }
    if let Some(texts) = node.strings("value_strings")? {
        let count = texts.len() as i64;
        return Ok(vec![crate::text::listed(texts, &[count])?]);
    }
    let tensor = if let Some(proto) = node.tensor("value")? {
        constants::from_proto(proto, None).map_err(invalid)?
    } else if let Some(v) = node.float("value_float")? {
        make(vec![v], vec![], DataType::float(32))?
    } else if let Some(v) = node.floats("value_floats")? {
        make(v.iter().map(|&v| f64::from(v)).collect(), vec![v.len() as i64], DataType::float(32))?
    } else if let Some(v) = node.int("value_int")? {
        relaxide_frontend::constant::from_bytes(&v.to_le_bytes(), &[], DataType::int(64))?
    } else if let Some(v) = node.ints("value_ints")? {
        let bytes: Vec<u8> = v.iter().flat_map(|v| v.to_le_bytes()).collect();
        relaxide_frontend::constant::from_bytes(&bytes, &[v.len() as i64], DataType::int(64))?
    } else {
        return Err(NodeError::unsupported("only numeric constants are supported"));
    };
    Ok(vec![Value::Constant(tensor)])
}

/// `Identity`.
pub fn identity(_: &mut Scope, node: &Node) -> Outputs {
    Ok(vec![node.input(0)?.clone()])
}

/// The dimensions that an input holds.
fn dims_input(scope: &mut Scope, node: &Node, i: usize, what: &str) -> Result<Vec<PrimExpr>> {
    let value = node.input(i)?;
    if let Some(dims) = value.symbolic().and_then(|s| s.ints()) {
        return Ok(dims);
    }
    bound_dims(scope, value).map_err(|_| depends_on_data(what))
}

/// Dimensions that the program computes as a tensor: they get symbolic variables, bound when the program gets there.
fn bound_dims(scope: &mut Scope, value: &Value) -> Result<Vec<PrimExpr>> {
    let count = match &scope.value_dims(value)?[..] {
        [n] => n.as_int().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_ELEMENTS),
        _ => None,
    };
    let count = count.ok_or_else(|| NodeError::unsupported("the rank of the result is not known"))?;
    let tensor = scope.tensor(value)?;
    computed::sizes(scope, tensor, count)
}

/// The new dimensions of a `Reshape`: 0 copies the input's (unless it is allowed), -1 is what remains.
fn reshape_dims(own: &[PrimExpr], target: Vec<PrimExpr>, zero_is_zero: bool) -> Result<Vec<PrimExpr>> {
    let mut dims = Vec::with_capacity(target.len());
    let mut open = None;
    for (i, dim) in target.into_iter().enumerate() {
        match dim.as_int() {
            Some(0) if !zero_is_zero => {
                let copied = own
                    .get(i)
                    .ok_or_else(|| NodeError::invalid(format!("dimension {i} is 0, but the input has no axis {i}")))?;
                dims.push(copied.clone());
            }
            Some(-1) if open.is_none() => {
                open = Some(i);
                dims.push(prim::int(1));
            }
            Some(n) if n < 0 => return Err(NodeError::invalid(format!("dimension {i} is {n}"))),
            _ => dims.push(dim),
        }
    }
    if let Some(i) = open {
        let rest: Vec<PrimExpr> = dims.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, d)| d.clone()).collect();
        dims[i] = quotient(own, &rest);
    }
    Ok(dims)
}

/// The product of some dimensions over that of others, factors that both have cancelled.
fn quotient(num: &[PrimExpr], den: &[PrimExpr]) -> PrimExpr {
    let mut num = num.to_vec();
    let mut rest = Vec::new();
    for factor in den {
        match num.iter().position(|n| dims::equal(n, factor)) {
            Some(i) => drop(num.remove(i)),
            None => rest.push(factor.clone()),
        }
    }
    dims::floor_div(&dims::product(&num), &dims::product(&rest))
}

/// `Reshape`.
pub fn reshape(scope: &mut Scope, node: &Node) -> Outputs {
    let value = node.input(0)?;
    let own = scope.value_dims(value)?;
    let target = match Ints::attr_or_input(scope, node, "shape", 1)? {
        Some(Ints::Known(target)) => target,
        Some(computed) => {
            let x = scope.tensor(value)?;
            return one(computed::reshaped(scope, x, computed, node.flag("allowzero", false)?)?);
        }
        None => return Err(NodeError::invalid("the new shape is missing")),
    };
    let dims = reshape_dims(&own, target, node.flag("allowzero", false)?)?;
    reshaped(scope, value, dims)
}

/// A value in other dimensions; a constant stays one.
fn reshaped(scope: &mut Scope, value: &Value, dims: Vec<PrimExpr>) -> Outputs {
    let fixed = dims.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    if let (Value::Constant(tensor), Some(fixed)) = (value, fixed) {
        return Ok(vec![Value::Constant(scope.reshaped_constant(tensor, &fixed)?)]);
    }
    let x = scope.tensor(value)?;
    one(scope.reshape(x, dims)?)
}

/// `Flatten`: two axes, split before one of the input's.
pub fn flatten(scope: &mut Scope, node: &Node) -> Outputs {
    let value = node.input(0)?;
    let own = scope.value_dims(value)?;
    let axis = node.int_or("axis", 1)?;
    let rank = own.len() as i64;
    let at = if axis < 0 { axis + rank } else { axis };
    if !(0..=rank).contains(&at) {
        return Err(NodeError::invalid(format!("axis {axis} is not one of {rank} axes")));
    }
    let (front, back) = own.split_at(at as usize);
    reshaped(scope, value, vec![dims::product(front), dims::product(back)])
}

/// Axes of an attribute or, since opset 13, an input, counted from the front of a rank.
fn axes_of(node: &Node, rank: usize) -> Result<Option<Vec<usize>>> {
    let Some(axes) = node.ints_attr_or_input("axes", 1)? else { return Ok(None) };
    let front =
        |a: i64| dims::axis(a, rank).ok_or_else(|| NodeError::invalid(format!("axis {a} is not one of {rank} axes")));
    axes.into_iter().map(front).collect::<Result<Vec<_>>>().map(Some)
}

/// `Squeeze`: axes of extent 1 go away.
pub fn squeeze(scope: &mut Scope, node: &Node) -> Outputs {
    let mut value = node.input(0)?.clone();
    let own = scope.value_dims(&value)?;
    if let Some(computed @ Ints::Computed(..)) = Ints::attr_or_input(scope, node, "axes", 1)? {
        let x = scope.tensor(&value)?;
        return one(computed::squeezed(scope, x, computed)?);
    }
    let gone = match axes_of(node, own.len())? {
        Some(axes) => axes,
        None => {
            let x = scope.tensor(&value)?;
            value = Value::Computed(scope.none_is_one(x)?);
            (0..own.len()).filter(|&i| own[i].is_int(1)).collect()
        }
    };
    if gone.iter().any(|&i| !own[i].is_int(1)) {
        let mut wanted = own.clone();
        gone.iter().for_each(|&i| wanted[i] = prim::int(1));
        let x = scope.tensor(&value)?;
        value = Value::Computed(scope.agree(x, &wanted)?);
    }
    let kept = own.into_iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, d)| d).collect();
    reshaped(scope, &value, kept)
}

/// `Unsqueeze`: axes of extent 1 come in, at places in the result.
pub fn unsqueeze(scope: &mut Scope, node: &Node) -> Outputs {
    let value = node.input(0)?;
    let own = scope.value_dims(value)?;
    if let Some(computed @ Ints::Computed(..)) = Ints::attr_or_input(scope, node, "axes", 1)? {
        let x = scope.tensor(value)?;
        return one(computed::unsqueezed(scope, x, computed)?);
    }
    let count = node.ints_attr_or_input("axes", 1)?.map_or(0, |axes| axes.len());
    let rank = own.len() + count;
    let new = axes_of(node, rank)?.ok_or_else(|| NodeError::invalid("`axes` is missing"))?;
    let mut rest = own.into_iter();
    let dims: Option<Vec<_>> =
        (0..rank).map(|i| if new.contains(&i) { Some(prim::int(1)) } else { rest.next() }).collect();
    let dims =
        dims.filter(|_| rest.next().is_none()).ok_or_else(|| NodeError::invalid("`axes` names an axis twice"))?;
    reshaped(scope, value, dims)
}

/// `Expand`: a broadcast to a shape.
pub fn expand(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let own = scope.dims(&x)?;
    let target = match Ints::of(scope, node.input(1)?)? {
        Ints::Known(target) => target,
        computed => return one(computed::expanded(scope, x, computed)?),
    };
    let rank = own.len().max(target.len());
    let at = |dims: &[PrimExpr], i: usize| (i + dims.len()).checked_sub(rank).map_or(prim::int(1), |j| dims[j].clone());
    let mut result = Vec::with_capacity(rank);
    for i in 0..rank {
        let (from, to) = (at(&own, i), at(&target, i));
        result.push(match () {
            () if to.is_int(1) || dims::equal(&from, &to) => from,
            () if from.is_int(1) => to,
            () if dims::differ(&from, &to) && from.as_int().is_some() && to.as_int().is_some() => {
                return Err(NodeError::invalid(format!("dimension {i} is {from}, which does not spread to {to}")));
            }
            // Either may be 1 when the model runs.
            () => {
                let name = format!("dimension {i}");
                scope.common_dim(&[(name, from), (format!("size {i} of the new shape"), to)])?
            }
        });
    }
    if rank == own.len() && own.iter().zip(&result).all(|(a, b)| dims::equal(a, b)) {
        return one(x);
    }
    let plain = |i: usize| own[i].is_int(1) || dims::equal(&own[i], &result[i + rank - own.len()]);
    if (0..own.len()).all(plain) {
        return one(scope.call("broadcast_to", [x, Expr::shape(result)])?);
    }
    one(scope.spread(x, result)?)
}

/// `ConstantOfShape`: one number everywhere.
pub fn constant_of_shape(scope: &mut Scope, node: &Node) -> Outputs {
    let fill = match node.tensor("value")? {
        Some(proto) => constants::from_proto(proto, None).map_err(|e| NodeError::invalid(e.to_string()))?,
        None => relaxide_frontend::constant::filled(&[0.0], &[1], DataType::float(32))?,
    };
    if fill.numel() != 1 {
        return Err(NodeError::invalid("`value` must be one number"));
    }
    let dims = dims_input(scope, node, 0, "the shape")?;
    let fixed = dims.iter().map(|d| d.as_int().and_then(|d| usize::try_from(d).ok())).collect::<Option<Vec<_>>>();
    let count = fixed.as_ref().and_then(|dims| dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)));
    let known = || Symbolic::from_tensor(&fill)?.elements.first().cloned();
    if let (Some(shape), Some(count), Some(number)) = (fixed, count.filter(|c| *c <= MAX_ELEMENTS), known()) {
        return Ok(vec![Value::Symbolic(Symbolic { dtype: fill.dtype(), shape, elements: vec![number; count] })]);
    }
    let number = Expr::constant(scope.reshaped_constant(&fill, &[])?);
    one(scope.op("full", [Expr::shape(dims), number], Attrs::new().with("dtype", fill.dtype()))?)
}

/// `Range`, over expressions where the bounds are whole and known.
pub fn range(scope: &mut Scope, node: &Node) -> Outputs {
    let mut bounds = Vec::new();
    let mut dtype = DataType::int(64);
    for i in 0..3 {
        let value = node.input(i)?.symbolic().filter(|s| s.elements.len() == 1);
        let whole = value.as_ref().and_then(|v| v.elements.first()?.as_whole().cloned());
        let (Some(value), Some(whole)) = (value, whole) else { return computed_range(scope, node) };
        dtype = value.dtype;
        bounds.push(Expr::prim(whole));
    }
    let indices = scope.op("arange", bounds, Attrs::new().with("dtype", DataType::int(64)))?;
    one(scope.cast(indices, dtype)?)
}

fn computed_range(scope: &mut Scope, node: &Node) -> Outputs {
    let mut bounds = Vec::new();
    for i in 0..3 {
        let tensor = scope.tensor(node.input(i)?)?;
        bounds.push(scope.reshape(tensor, Vec::new())?);
    }
    let [start, limit, step] = bounds.try_into().map_err(|_| NodeError::invalid("3 bounds are needed"))?;
    one(computed::ranged(scope, start, limit, step)?)
}
