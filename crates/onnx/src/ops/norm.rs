//! Normalizations.
//!
//! Batch normalization at inference is one multiplication and one addition per channel; with constant parameters both
//! factors are computed here, in double precision. The others are written out as means and variances.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::elementwise::{broadcast_call, with_number};
use super::wide::widened;
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// Dimensions that line a vector of channels up with axis 1 of a tensor.
fn channel_dims(channels: PrimExpr, rank: usize) -> Vec<PrimExpr> {
    let mut dims = vec![PrimExpr::from(1); rank];
    dims[1] = channels;
    dims
}

/// `BatchNormalization` with the statistics of training, or of the batch where the node says that it trains.
pub fn batch(scope: &mut Scope, node: &Node) -> Outputs {
    // Up to opset 6 a flag says what later the number of outputs says, and since opset 14 a flag again.
    let old = node.opset < 7 && !node.flag("is_test", false)? || (7..14).contains(&node.opset) && node.outputs() > 1;
    if node.flag("training_mode", false)? || old {
        return batch_training(scope, node);
    }
    if node.opset < 9 && !node.flag("spatial", true)? {
        return batch_by_element(scope, node);
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
        None => {
            let channels = scope.dims(&x)?[1].clone();
            computed_factors(scope, node, epsilon, &channels, rank)?
        }
    };
    let dtype = scope.dtype(&x);
    let (scale, shift) = (scope.cast(scale, dtype)?, scope.cast(shift, dtype)?);
    let scaled = broadcast_call(scope, "multiply", [x, scale])?;
    one(broadcast_call(scope, "add", [scaled, shift])?)
}

/// By the batch's own statistics; the running ones follow them with `momentum`.
fn batch_training(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    if shape.len() < 2 {
        return Err(NodeError::invalid(format!("the input has {} axes; it needs a batch and channels", shape.len())));
    }
    let axes: Vec<i64> = (0..shape.len() as i64).filter(|a| *a != 1).collect();
    let attrs = Attrs::new().with("axis", axes).with("keepdims", true);
    let (x, own) = widened(scope, x)?;
    let mean = scope.op("mean", [x.clone()], attrs.clone())?;
    let centered = scope.call("subtract", [x, mean.clone()])?;
    let square = scope.call("multiply", [centered.clone(), centered.clone()])?;
    let variance = scope.op("mean", [square], attrs)?;
    let spread = with_number(scope, "add", variance.clone(), node.float_or("epsilon", 1e-5)?)?;
    let deviation = scope.call("sqrt", [spread])?;
    let normal = scope.call("divide", [centered, deviation])?;
    let normal = scope.cast(normal, own)?;
    let line = channel_dims(shape[1].clone(), shape.len());
    let y = scale_and_shift(scope, node, normal, Some(line))?;
    let momentum = node.float_or("momentum", 0.9)?;
    let mut outputs = vec![Value::Computed(y)];
    for (i, own) in [(3, mean), (4, variance)] {
        let running = scope.tensor(node.input(i)?)?;
        let dtype = scope.dtype(&running);
        let own = scope.reshape(own, vec![shape[1].clone()])?;
        let own = scope.cast(own, dtype)?;
        let kept = with_number(scope, "multiply", running, momentum)?;
        let new = with_number(scope, "multiply", own, 1.0 - momentum)?;
        outputs.push(Value::Computed(broadcast_call(scope, "add", [kept, new])?));
    }
    Ok(outputs)
}

/// Statistics for each element of an example, as opsets up to 8 had them with `spatial` 0.
fn batch_by_element(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let mut params = Vec::new();
    for i in 1..5 {
        params.push(scope.tensor(node.input(i)?)?);
    }
    let [gamma, beta, mean, variance] = params.try_into().map_err(|_| NodeError::invalid("4 parameters are needed"))?;
    let spread = with_number(scope, "add", variance, node.float_or("epsilon", 1e-5)?)?;
    let deviation = scope.call("sqrt", [spread])?;
    let centered = broadcast_call(scope, "subtract", [x, mean])?;
    let normal = broadcast_call(scope, "divide", [centered, deviation])?;
    let scaled = broadcast_call(scope, "multiply", [normal, gamma])?;
    one(broadcast_call(scope, "add", [scaled, beta])?)
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
fn computed_factors(
    scope: &mut Scope,
    node: &Node,
    epsilon: f64,
    channels: &PrimExpr,
    rank: usize,
) -> Result<(Expr, Expr)> {
    let mut params = Vec::new();
    for i in 1..5 {
        let param = scope.tensor(node.input(i)?)?;
        let own = dims::product(&scope.dims(&param)?);
        let line = scope.reshape(param, vec![own])?;
        let line = scope.agree(line, std::slice::from_ref(channels))?;
        params.push(scope.reshape(line, channel_dims(channels.clone(), rank))?);
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
    let (x, own) = widened(scope, x)?;
    let attrs = Attrs::new().with("axis", axes).with("keepdims", true);
    let mean = scope.op("mean", [x.clone()], attrs.clone())?;
    let centered = scope.call("subtract", [x, mean])?;
    let square = scope.call("multiply", [centered.clone(), centered.clone()])?;
    let variance = scope.op("mean", [square], attrs)?;
    let spread = with_number(scope, "add", variance, epsilon)?;
    let deviation = scope.call("sqrt", [spread])?;
    let normal = scope.call("divide", [centered, deviation])?;
    scope.cast(normal, own)
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
        result = broadcast_call(scope, name, [result, param])?;
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
    let (split, shape, _) = split_channels(scope, node)?;
    let axes = (2..=shape.len() as i64).collect();
    let result = standardize(scope, split, axes, node.float_or("epsilon", 1e-5)?)?;
    let result = scope.reshape(result, shape.clone())?;
    one(scale_and_shift(scope, node, result, Some(channel_dims(shape[1].clone(), shape.len())))?)
}

/// The input with its channels in groups, its own dimensions, and how many groups there are.
fn split_channels(scope: &mut Scope, node: &Node) -> Result<(Expr, Vec<PrimExpr>, i64)> {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let groups =
        node.int("num_groups")?.filter(|g| *g > 0).ok_or_else(|| NodeError::invalid("`num_groups` is missing"))?;
    let Some(channels) = shape.get(1).cloned() else {
        return Err(NodeError::invalid(format!("the input has {} axes; it needs at least 2", shape.len())));
    };
    let check = Check::new(
        prim::eq(prim::floormod(&channels, groups), 0),
        "the number of channels must be a multiple of `num_groups`",
    );
    let check =
        check.with([(scope.named_dim(&x, 1), channels.clone()), ("`num_groups`".to_owned(), prim::int(groups))]);
    match channels.as_int() {
        Some(known) if known % groups != 0 => return Err(NodeError::invalid(check.said())),
        Some(_) => {}
        None => scope.require(&[check])?,
    }
    let mut grouped = vec![shape[0].clone(), groups.into(), dims::floor_div(&channels, &groups.into())];
    grouped.extend(shape[2..].iter().cloned());
    Ok((scope.reshape(x, grouped)?, shape, groups))
}

/// `GroupNormalization` of opset 18: parameters for each group.
pub fn group_by_group(scope: &mut Scope, node: &Node) -> Outputs {
    let (split, shape, groups) = split_channels(scope, node)?;
    let rank = shape.len() + 1;
    let axes = (2..rank as i64).collect();
    let result = standardize(scope, split, axes, node.float_or("epsilon", 1e-5)?)?;
    let result = scale_and_shift(scope, node, result, Some(channel_dims(groups.into(), rank)))?;
    one(scope.reshape(result, shape)?)
}

/// The axes from `axis` on.
fn axes_from(scope: &Scope, node: &Node, x: &Expr) -> Result<Vec<i64>> {
    let (axis, rank) = (node.int_or("axis", -1)?, scope.dims(x)?.len());
    let first =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    Ok((first as i64..rank as i64).collect())
}

/// The element type that statistics are computed in.
fn stash(scope: &Scope, node: &Node, x: &Expr) -> Result<DataType> {
    let number = node.int_or("stash_type", 1)?;
    let stash = constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))?;
    // Nothing is gained by a type that is narrower than the input's.
    let own = scope.dtype(x);
    Ok(if own.bits > stash.bits { own } else { stash })
}

/// `LayerNormalization`: all axes from one on. The statistics are further outputs.
pub fn layer(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (axes, own, work) = (axes_from(scope, node, &x)?, scope.dtype(&x), stash(scope, node, &x)?);
    let x = scope.cast(x, work)?;
    let attrs = Attrs::new().with("axis", axes).with("keepdims", true);
    let mean = scope.op("mean", [x.clone()], attrs.clone())?;
    let centered = scope.call("subtract", [x, mean.clone()])?;
    let square = scope.call("multiply", [centered.clone(), centered.clone()])?;
    let variance = scope.op("mean", [square], attrs)?;
    let spread = with_number(scope, "add", variance, node.float_or("epsilon", 1e-5)?)?;
    let deviation = scope.call("sqrt", [spread])?;
    let normal = scope.call("divide", [centered, deviation.clone()])?;
    let normal = scope.cast(normal, own)?;
    let mut outputs = vec![Value::Computed(scale_and_shift(scope, node, normal, None)?)];
    if node.outputs() > 1 {
        let unit = scope.scalar(1.0, work)?;
        let inverse = scope.call("divide", [unit, deviation])?;
        outputs.extend([Value::Computed(mean), Value::Computed(inverse)]);
    }
    Ok(outputs)
}

/// `RMSNormalization`: divided by the root of the mean of squares.
pub fn root_mean_square(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (axes, own, work) = (axes_from(scope, node, &x)?, scope.dtype(&x), stash(scope, node, &x)?);
    let x = scope.cast(x, work)?;
    let square = scope.call("multiply", [x.clone(), x.clone()])?;
    let mean = scope.op("mean", [square], Attrs::new().with("axis", axes).with("keepdims", true))?;
    let spread = with_number(scope, "add", mean, node.float_or("epsilon", 1e-5)?)?;
    let root = scope.call("sqrt", [spread])?;
    let normal = scope.call("divide", [x, root])?;
    let normal = scope.cast(normal, own)?;
    one(scale_and_shift(scope, node, normal, None)?)
}

/// `MeanVarianceNormalization`.
pub fn mean_variance(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let axes = node.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    one(standardize(scope, x, axes, 1e-9)?)
}

/// `LpNormalization`: divided by the norm along an axis; what has none stays zero.
pub fn lp(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (x, own) = widened(scope, x)?;
    let attrs = Attrs::new().with("axis", vec![node.int_or("axis", -1)?]).with("keepdims", true);
    let size = scope.call("abs", [x.clone()])?;
    let norm = match node.int_or("p", 2)? {
        1 => scope.op("sum", [size], attrs)?,
        2 => {
            let square = scope.call("multiply", [size.clone(), size])?;
            let sum = scope.op("sum", [square], attrs)?;
            scope.call("sqrt", [sum])?
        }
        other => return Err(NodeError::invalid(format!("`p` is {other}, not 1 or 2"))),
    };
    let nothing = with_number(scope, "equal", norm.clone(), 0.0)?;
    let (zero, unit) = (scope.scalar(0.0, scope.dtype(&x))?, scope.scalar(1.0, scope.dtype(&x))?);
    let divisor = scope.call("where", [nothing.clone(), unit, norm])?;
    let normal = scope.call("divide", [x, divisor])?;
    let result = scope.call("where", [nothing, zero, normal])?;
    one(scope.cast(result, own)?)
}

/// `LRN`: divided by a power of the squares in neighbouring channels.
pub fn local_response(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (x, own) = widened(scope, x)?;
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let size = node.int("size")?.filter(|s| (1..=1 << 20).contains(s));
    let size = size.ok_or_else(|| NodeError::invalid("`size` must be a positive number"))?;
    if shape.len() < 2 {
        return Err(NodeError::invalid(format!("the input has {} axes; it needs a batch and channels", shape.len())));
    }
    let channels = shape[1].clone();
    let before = (size - 1) / 2;
    let sums = scope.te("neighbours", vec![x.clone()], |inputs| {
        vec![te::compute("squares", &shape, |at| {
            let k = te::reduce_axis(size);
            let channel = &at[1] + k.var() - before;
            let mut index = at.to_vec();
            index[1] = channel.clone();
            let element = inputs[0].at(&index);
            let within = prim::and(prim::ge(&channel, 0), prim::lt(&channel, &channels));
            te::sum(prim::if_then_else(within, element.clone() * element, prim::constant(dtype, 0.0)), [&k])
        })]
    })?;
    let share = node.float_or("alpha", 1e-4)? / size as f64;
    let scaled = with_number(scope, "multiply", sums, share)?;
    let base = with_number(scope, "add", scaled, node.float_or("bias", 1.0)?)?;
    let power = with_number(scope, "power", base, node.float_or("beta", 0.75)?)?;
    let result = scope.call("divide", [x, power])?;
    one(scope.cast(result, own)?)
}
