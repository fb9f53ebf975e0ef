//! Activations with a bias, and approximations of them.

use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use relaxide_relax::Expr;

type Result<T> = std::result::Result<T, crate::error::NodeError>;

/// The input with its bias, if there is one.
fn biased(scope: &mut Scope, node: &Node) -> Result<Expr> {
    let x = scope.tensor(node.input(0)?)?;
    match node.optional(1) {
        Some(bias) => {
            let bias = scope.tensor(bias)?;
            broadcast_call(scope, "add", [x, bias])
        }
        None => Ok(x),
    }
}

/// `BiasGelu`.
pub fn bias_gelu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = biased(scope, node)?;
    one(scope.call("nn.gelu", [x])?)
}

/// `FastGelu`: by tanh.
pub fn fast_gelu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = biased(scope, node)?;
    one(scope.call("nn.gelu_tanh", [x])?)
}

/// `QuickGelu`: `x * sigmoid(alpha * x)`.
pub fn quick_gelu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let inner = with_number(scope, "multiply", x.clone(), node.float_or("alpha", 1.702)?)?;
    let gate = scope.call("sigmoid", [inner])?;
    one(scope.call("multiply", [x, gate])?)
}

/// The activation that an operator ends with, by its attribute `activation`.
pub fn ending(scope: &mut Scope, node: &Node, x: Expr) -> Result<Expr> {
    let parameters = node.floats("activation_params")?.unwrap_or_default();
    let number = |i: usize, default: f64| parameters.get(i).map_or(default, |v| f64::from(*v));
    match node.str_or("activation", "")? {
        "" => Ok(x),
        "Relu" => scope.call("nn.relu", [x]),
        "Sigmoid" => scope.call("sigmoid", [x]),
        "Tanh" => scope.call("tanh", [x]),
        "LeakyRelu" => {
            let scaled =
                with_number(scope, "multiply", x.clone(), number(0, node.float_or("activation_alpha", 0.01)?))?;
            let positive = with_number(scope, "greater_equal", x.clone(), 0.0)?;
            scope.call("where", [positive, x, scaled])
        }
        "Clip" => crate::ops::elementwise::clip_between(scope, x, Some(number(0, f64::MIN)), Some(number(1, f64::MAX))),
        "HardSigmoid" => {
            let line = with_number(scope, "multiply", x, number(0, 0.2))?;
            let line = with_number(scope, "add", line, number(1, 0.5))?;
            crate::ops::elementwise::clip_between(scope, line, Some(0.0), Some(1.0))
        }
        other => Err(crate::error::NodeError::unsupported(format!("the activation `{other}` is not supported"))),
    }
}
