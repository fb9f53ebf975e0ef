//! Normalizations.
//!
//! Batch normalization at inference is one multiplication and one addition per channel; with constant parameters both
//! factors are computed here, in double precision. The others are written out as means and variances.

use relaxide_ir::Attrs;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::Expr;

use super::elementwise::with_number;
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// Dimensions that line a vector of channels up with axis 1 of a tensor.
fn channel_dims(channels: PrimExpr, rank: usize) -> Vec<PrimExpr> {
    let mut dims = vec![PrimExpr::from(1); rank];
    dims[1] = channels;
    dims
}

/// `BatchNormalization` with the statistics of training.
pub fn batch(scope: &mut Scope, node: &Node) -> Outputs {
    if node.flag("training_mode", false)? {
        return Err(NodeError::unsupported("`training_mode` is not supported").help("export the model for inference"));
    }
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    if rank < 2 {
        return Err(NodeError::invalid(format!("the input has {rank} axes; it needs a batch and channels")));
    }
    let epsilon = node.float_or("epsilon", 1e-5)?;
    let (scale, shift) = match constant_factors(node, epsilon)? {
        Some((scale, shift)) => {
            let mut dims = vec![1i64; rank];
            dims[1] = scale.len() as i64;
            let dtype = scope.dtype(&x);
            (scope.constant(&scale, &dims, dtype)?, scope.constant(&shift, &dims, dtype)?)
        }
        None => computed_factors(scope, node, epsilon, rank)?,
    };
    let scaled = super::elementwise::broadcast_call(scope, "multiply", [x, scale])?;
    one(super::elementwise::broadcast_call(scope, "add", [scaled, shift])?)
}

/// Factor and summand for each channel, where the parameters are constants.
fn constant_factors(node: &Node, epsilon: f64) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
    let mut lists = Vec::new();
    for i in 1..5 {
        let Some(tensor) = node.input(i)?.constant() else { return Ok(None) };
        lists.push(constant::floats(tensor).map_err(|e| NodeError::invalid(e.to_string()))?);
    }
    let [gamma, beta, mean, variance] = &lists[..] else { return Ok(None) };
    if [beta, mean, variance].iter().any(|list| list.len() != gamma.len()) {
        return Err(NodeError::invalid("scale, bias, mean and variance have different lengths"));
    }
    let scale: Vec<f64> = gamma.iter().zip(variance).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
    let shift = beta.iter().zip(mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
    Ok(Some((scale, shift)))
}

/// The same as operations of the program.
fn computed_factors(scope: &mut Scope, node: &Node, epsilon: f64, rank: usize) -> Result<(Expr, Expr)> {
    let mut params = Vec::new();
    for i in 1..5 {
        let param = scope.tensor(node.input(i)?)?;
        let channels = dims::product(&scope.dims(&param)?);
        params.push(scope.reshape(param, channel_dims(channels, rank))?);
    }
    let [gamma, beta, mean, variance] = params.try_into().map_err(|_| NodeError::invalid("4 parameters are needed"))?;
    let spread = with_number(scope, "add", variance, epsilon)?;
    let deviation = scope.call("sqrt", [spread])?;
    let scale = scope.call("divide", [gamma, deviation])?;
    let offset = scope.call("multiply", [mean, scale.clone()])?;
    Ok((scale, scope.call("subtract", [beta, offset])?))
}

/// `(x - mean) / sqrt(variance + epsilon)` over axes.
fn standardize(scope: &mut Scope, x: Expr, axes: Vec<i64>, epsilon: f64) -> Result<Expr> {
    let attrs = Attrs::new().with("axis", axes).with("keepdims", true);
    let mean = scope.op("mean", [x.clone()], attrs.clone())?;
    let centered = scope.call("subtract", [x, mean])?;
    let square = scope.call("multiply", [centered.clone(), centered.clone()])?;
    let variance = scope.op("mean", [square], attrs)?;
    let spread = with_number(scope, "add", variance, epsilon)?;
    let deviation = scope.call("sqrt", [spread])?;
    scope.call("divide", [centered, deviation])
}

/// Multiplies by input 1 and adds input 2, if there is one, each as `dims` (or as it is).
fn scale_and_shift(scope: &mut Scope, node: &Node, x: Expr, dims: Option<Vec<PrimExpr>>) -> Result<Expr> {
    let mut result = x;
    for (i, name) in [(1, "multiply"), (2, "add")] {
        let Some(param) = node.optional(i) else { continue };
        let mut param = scope.tensor(param)?;
        if let Some(dims) = &dims {
            param = scope.reshape(param, dims.clone())?;
        }
        result = super::elementwise::broadcast_call(scope, name, [result, param])?;
    }
    Ok(result)
}

/// `InstanceNormalization`: each channel of each example by its own statistics.
pub fn instance(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    if shape.len() < 3 {
        return Err(NodeError::invalid(format!("the input has {} axes; it needs at least 3", shape.len())));
    }
    let axes = (2..shape.len() as i64).collect();
    let result = standardize(scope, x, axes, node.float_or("epsilon", 1e-5)?)?;
    one(scale_and_shift(scope, node, result, Some(channel_dims(shape[1].clone(), shape.len())))?)
}

/// `GroupNormalization` since opset 21: groups of channels by their own statistics, parameters per channel.
pub fn group(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let groups =
        node.int("num_groups")?.filter(|g| *g > 0).ok_or_else(|| NodeError::invalid("`num_groups` is missing"))?;
    let channels = match shape.get(1).and_then(PrimExpr::as_int) {
        Some(channels) if channels % groups == 0 => channels,
        _ => return Err(NodeError::unsupported("the number of channels must be fixed and a multiple of `num_groups`")),
    };
    let mut grouped = vec![shape[0].clone(), groups.into(), (channels / groups).into()];
    grouped.extend(shape[2..].iter().cloned());
    let axes = (2..grouped.len() as i64).collect();
    let split = scope.reshape(x, grouped)?;
    let result = standardize(scope, split, axes, node.float_or("epsilon", 1e-5)?)?;
    let result = scope.reshape(result, shape.clone())?;
    one(scale_and_shift(scope, node, result, Some(channel_dims(channels.into(), shape.len())))?)
}

/// `LayerNormalization`: all axes from one on.
pub fn layer(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("stash_type", 1)?;
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let axis = node.int_or("axis", -1)?;
    let first =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    let axes = (first as i64..rank as i64).collect();
    let result = standardize(scope, x, axes, node.float_or("epsilon", 1e-5)?)?;
    one(scale_and_shift(scope, node, result, None)?)
}
