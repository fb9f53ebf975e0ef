//! Normalizations of a layer's input and what it adds to it.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// An input that is added, if it is there.
fn added(scope: &mut Scope, node: &Node, x: Expr, i: usize) -> Result<Expr> {
    match node.optional(i) {
        Some(value) => {
            let value = scope.tensor(value)?;
            broadcast_call(scope, "add", [x, value])
        }
        None => Ok(x),
    }
}

/// An input that is multiplied by, if it is there.
fn scaled(scope: &mut Scope, node: &Node, x: Expr, i: usize) -> Result<Expr> {
    match node.optional(i) {
        Some(value) => {
            let value = scope.tensor(value)?;
            broadcast_call(scope, "multiply", [x, value])
        }
        None => Ok(x),
    }
}

/// What becomes of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mean {
    /// It becomes zero.
    Zero,
    /// It stays.
    AsIs,
}

/// Mean zero, variance one along the axes from one on; without a mean, only the size becomes one. Computed in 32 bits.
pub(super) fn normalized(scope: &mut Scope, x: Expr, first: usize, mean: Mean, epsilon: f64) -> Result<Expr> {
    let rank = scope.dims(&x)?.len();
    let dtype = scope.dtype(&x);
    let mut x = if dtype.bits < 32 { scope.cast(x, DataType::float(32))? } else { x };
    let axes: Vec<i64> = (first as i64..rank as i64).collect();
    let average = |scope: &mut Scope, x: Expr| {
        scope.op("mean", [x], Attrs::new().with("axis", axes.clone()).with("keepdims", true))
    };
    if mean == Mean::Zero {
        let middle = average(scope, x.clone())?;
        x = scope.call("subtract", [x, middle])?;
    }
    let squares = scope.call("multiply", [x.clone(), x.clone()])?;
    let variance = average(scope, squares)?;
    let variance = with_number(scope, "add", variance, epsilon)?;
    let width = scope.call("sqrt", [variance])?;
    let result = scope.call("divide", [x, width])?;
    scope.cast(result, dtype)
}

/// The last axis.
fn last(scope: &Scope, x: &Expr) -> Result<usize> {
    scope.dims(x)?.len().checked_sub(1).ok_or_else(|| NodeError::invalid("the input has no axes"))
}

/// `SimplifiedLayerNormalization`: without a mean.
pub fn simplified(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let axis = node.int_or("axis", -1)?;
    let axis = dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank}")))?;
    let y = normalized(scope, x, axis, Mean::AsIs, node.float_or("epsilon", 1e-5)?)?;
    one(scaled(scope, node, y, 1)?)
}

/// The outputs of a sum and its normalization. The mean and deviation between them are of use in training only.
fn with_sum(node: &Node, y: Expr, sum: Expr) -> Outputs {
    if node.proto.output.iter().skip(1).take(2).any(|name| !name.is_empty()) {
        return Err(NodeError::unsupported("the mean and the deviation are outputs of training only"));
    }
    Ok(vec![y.clone(), y.clone(), y, sum].into_iter().map(Value::Computed).collect())
}

/// `SkipLayerNormalization`.
pub fn skip(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let x = added(scope, node, x, 1)?;
    let sum = added(scope, node, x, 4)?;
    let axis = last(scope, &sum)?;
    let y = normalized(scope, sum.clone(), axis, Mean::Zero, node.float_or("epsilon", 1e-12)?)?;
    let y = scaled(scope, node, y, 2)?;
    let y = added(scope, node, y, 3)?;
    with_sum(node, y, sum)
}

/// `SkipSimplifiedLayerNormalization`.
pub fn skip_simplified(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let x = added(scope, node, x, 1)?;
    let sum = added(scope, node, x, 3)?;
    let axis = last(scope, &sum)?;
    let y = normalized(scope, sum.clone(), axis, Mean::AsIs, node.float_or("epsilon", 1e-5)?)?;
    let y = scaled(scope, node, y, 2)?;
    with_sum(node, y, sum)
}
