//! Activations and softmax.

use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::elementwise::{broadcast_call, clip_between, with_number};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

fn x_of(scope: &mut Scope, node: &Node) -> Result<Expr> {
    scope.tensor(node.input(0)?)
}

/// `a` where the input is above zero, `b` elsewhere.
fn by_sign(scope: &mut Scope, x: Expr, a: Expr, b: Expr) -> Result<Expr> {
    let positive = with_number(scope, "greater", x, 0.0)?;
    scope.call("where", [positive, a, b])
}

/// `HardSigmoid`: a line clipped to 0 and 1.
pub fn hard_sigmoid(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let (alpha, beta) = (node.float_or("alpha", 0.2)?, node.float_or("beta", 0.5)?);
    one(clipped_line(scope, x, alpha, beta)?)
}

/// `alpha * x + beta`.
pub fn line(scope: &mut Scope, x: Expr, alpha: f64, beta: f64) -> Result<Expr> {
    let scaled = with_number(scope, "multiply", x, alpha)?;
    with_number(scope, "add", scaled, beta)
}

/// `alpha * x + beta`, between 0 and 1.
pub fn clipped_line(scope: &mut Scope, x: Expr, alpha: f64, beta: f64) -> Result<Expr> {
    let line = line(scope, x, alpha, beta)?;
    clip_between(scope, line, Some(0.0), Some(1.0))
}

/// `HardSwish`: `x * HardSigmoid(x)` with slope 1/6.
pub fn hard_swish(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let gate = clipped_line(scope, x.clone(), 1.0 / 6.0, 0.5)?;
    one(scope.call("multiply", [x, gate])?)
}

/// `Swish`: `x * sigmoid(alpha * x)`.
pub fn swish(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let scaled = with_number(scope, "multiply", x.clone(), node.float_or("alpha", 1.0)?)?;
    let gate = scope.call("sigmoid", [scaled])?;
    one(scope.call("multiply", [x, gate])?)
}

/// `SwiGLU`: the first input's `Swish` times the second.
pub fn swiglu(scope: &mut Scope, node: &Node) -> Outputs {
    let linear = scope.tensor(node.input(1)?)?;
    let gate = match swish(scope, node)?.pop() {
        Some(gate) => scope.tensor(&gate)?,
        None => return Err(NodeError::invalid("there is no gate")),
    };
    one(broadcast_call(scope, "multiply", [gate, linear])?)
}

/// `Shrink`: what is near zero becomes zero, the rest comes nearer by `bias`.
pub fn shrink(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let (bias, lambda) = (node.float_or("bias", 0.0)?, node.float_or("lambd", 0.5)?);
    let low = with_number(scope, "less", x.clone(), -lambda)?;
    let high = with_number(scope, "greater", x.clone(), lambda)?;
    let (up, down) = (with_number(scope, "add", x.clone(), bias)?, with_number(scope, "subtract", x.clone(), bias)?);
    let zero = scope.scalar(0.0, scope.dtype(&x))?;
    let above = scope.call("where", [high, down, zero])?;
    one(scope.call("where", [low, up, above])?)
}

/// `LeakyRelu`: negative elements times `alpha`.
pub fn leaky_relu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    one(leaky(scope, x, node.float_or("alpha", 0.01)?)?)
}

/// Negative elements times `alpha`.
pub fn leaky(scope: &mut Scope, x: Expr, alpha: f64) -> Result<Expr> {
    let scaled = with_number(scope, "multiply", x.clone(), alpha)?;
    by_sign(scope, x.clone(), x, scaled)
}

/// `PRelu`: negative elements times a slope, which is broadcast to the input.
pub fn prelu(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, slope) = (x_of(scope, node)?, scope.tensor(node.input(1)?)?);
    by_slope(scope, x, slope)
}

/// Negative elements times a slope.
pub fn by_slope(scope: &mut Scope, x: Expr, slope: Expr) -> Outputs {
    let mut pair = [x, slope];
    scope.broadcastable(&mut pair)?;
    let [x, slope] = pair;
    let scaled = scope.call("multiply", [x.clone(), slope])?;
    one(by_sign(scope, x.clone(), x, scaled)?)
}

/// `ThresholdedRelu`: zero up to `alpha`.
pub fn thresholded_relu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    one(above(scope, x, node.float_or("alpha", 1.0)?)?)
}

/// Elements above a threshold, and zero for the others.
pub fn above(scope: &mut Scope, x: Expr, threshold: f64) -> Result<Expr> {
    let above = with_number(scope, "greater", x.clone(), threshold)?;
    let zero = scope.scalar(0.0, scope.dtype(&x))?;
    scope.call("where", [above, x, zero])
}

/// `scale * (exp(x / width) - 1)`, computed where the input is negative only, so that it does not overflow.
fn exponential_part(scope: &mut Scope, x: Expr, scale: f64, width: f64) -> Result<Expr> {
    let low = with_number(scope, "minimum", x, 0.0)?;
    let narrowed = if width == 1.0 { low } else { with_number(scope, "divide", low, width)? };
    let power = scope.call("exp", [narrowed])?;
    let shifted = with_number(scope, "subtract", power, 1.0)?;
    with_number(scope, "multiply", shifted, scale)
}

/// `Elu`.
pub fn elu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    one(exponential(scope, x, node.float_or("alpha", 1.0)?, 1.0)?)
}

/// The input where it is positive, `scale * (exp(x / width) - 1)` elsewhere.
pub fn exponential(scope: &mut Scope, x: Expr, scale: f64, width: f64) -> Result<Expr> {
    let negative = exponential_part(scope, x.clone(), scale, width)?;
    by_sign(scope, x.clone(), x, negative)
}

/// `Celu`.
pub fn celu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let alpha = node.float_or("alpha", 1.0)?;
    if alpha == 0.0 {
        return Err(NodeError::invalid("`alpha` must not be 0"));
    }
    one(exponential(scope, x, alpha, alpha)?)
}

/// `Selu`.
pub fn selu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let alpha = node.float_or("alpha", 1.673_263_192_176_818_8)?;
    let gamma = node.float_or("gamma", 1.050_701_022_148_132_3)?;
    let chosen = exponential(scope, x, alpha, 1.0)?;
    one(with_number(scope, "multiply", chosen, gamma)?)
}

/// `log(1 + exp(x))`.
pub fn soft_plus(scope: &mut Scope, x: Expr) -> Result<Expr> {
    // Beyond the threshold the result is the argument, also in double precision.
    scope.op("nn.softplus", [x], Attrs::new().with("threshold", 40.0))
}

/// `Softplus`.
pub fn softplus(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    one(soft_plus(scope, x)?)
}

/// `Mish`: `x * tanh(softplus(x))`.
pub fn mish(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    let soft = soft_plus(scope, x.clone())?;
    let gate = scope.call("tanh", [soft])?;
    one(scope.call("multiply", [x, gate])?)
}

/// `Softsign`: `x / (1 + |x|)`.
pub fn softsign(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    one(soft_sign(scope, x)?)
}

/// `x / (1 + |x|)`.
pub fn soft_sign(scope: &mut Scope, x: Expr) -> Result<Expr> {
    let size = scope.call("abs", [x.clone()])?;
    let shifted = with_number(scope, "add", size, 1.0)?;
    scope.call("divide", [x, shifted])
}

/// `Gelu`, exact or by tanh.
pub fn gelu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = x_of(scope, node)?;
    match node.str_or("approximate", "none")? {
        "none" => one(scope.call("nn.gelu", [x])?),
        "tanh" => one(scope.call("nn.gelu_tanh", [x])?),
        other => Err(NodeError::invalid(format!("`approximate` is \"{other}\", not \"none\" or \"tanh\""))),
    }
}

/// `Softmax` since opset 13: over one axis.
pub fn softmax(scope: &mut Scope, node: &Node) -> Outputs {
    over_axis(scope, node, "nn.softmax")
}

/// `LogSoftmax` since opset 13: over one axis.
pub fn log_softmax(scope: &mut Scope, node: &Node) -> Outputs {
    over_axis(scope, node, "nn.log_softmax")
}

/// `Softmax` before opset 13: over all axes from one on.
pub fn softmax_flat(scope: &mut Scope, node: &Node) -> Outputs {
    over_rest(scope, node, "nn.softmax")
}

/// `LogSoftmax` before opset 13: over all axes from one on.
pub fn log_softmax_flat(scope: &mut Scope, node: &Node) -> Outputs {
    over_rest(scope, node, "nn.log_softmax")
}

fn over_axis(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x = x_of(scope, node)?;
    let axis = node.int_or("axis", -1)?;
    let dtype = scope.dtype(&x);
    if dtype.is_float() && dtype.bits < 32 && name == "nn.softmax" {
        return one(super::attention::narrow_softmax(scope, x, axis)?);
    }
    one(scope.op(name, [x], Attrs::new().with("axis", axis))?)
}

fn over_rest(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x = x_of(scope, node)?;
    let shape = scope.dims(&x)?;
    let axis = node.int_or("axis", 1)?;
    let first = dims::axis(axis, shape.len())
        .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {} axes", shape.len())))?;
    if first + 1 == shape.len() {
        return one(scope.op(name, [x], Attrs::new().with("axis", -1i64))?);
    }
    let flat = vec![dims::product(&shape[..first]), dims::product(&shape[first..])];
    let flat = scope.reshape(x, flat)?;
    let result = scope.op(name, [flat], Attrs::new().with("axis", -1i64))?;
    one(scope.reshape(result, shape)?)
}
