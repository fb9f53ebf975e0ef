//! Operators that work element by element, and those of several tensors that are broadcast.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim;
use relaxide_relax::Expr;

use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// A Relax operator of one tensor.
pub fn unary(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    one(scope.call(name, [x])?)
}

/// A Relax operator of two tensors that are broadcast.
pub fn binary(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let pair = [scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?];
    one(broadcast_call(scope, name, pair)?)
}

/// A call of an operator on tensors that are broadcast.
pub fn broadcast_call<const N: usize>(scope: &mut Scope, name: &str, mut args: [Expr; N]) -> Result<Expr, NodeError> {
    scope.broadcastable(&mut args)?;
    scope.call(name, args)
}

/// A call of an operator on a tensor and a number.
pub fn with_number(scope: &mut Scope, name: &str, x: Expr, number: f64) -> Result<Expr, NodeError> {
    let number = scope.scalar(number, scope.dtype(&x))?;
    scope.call(name, [x, number])
}

/// Folds all inputs by a binary operator.
fn fold(scope: &mut Scope, node: &Node, name: &str) -> Result<Expr, NodeError> {
    let mut result = scope.tensor(node.input(0)?)?;
    for i in 1..node.inputs.len() {
        let next = scope.tensor(node.input(i)?)?;
        result = broadcast_call(scope, name, [result, next])?;
    }
    Ok(result)
}

/// `Max`: the largest of all inputs.
pub fn maximum(scope: &mut Scope, node: &Node) -> Outputs {
    one(fold(scope, node, "maximum")?)
}

/// `Min`: the smallest of all inputs.
pub fn minimum(scope: &mut Scope, node: &Node) -> Outputs {
    one(fold(scope, node, "minimum")?)
}

/// `Sum` of all inputs.
pub fn sum(scope: &mut Scope, node: &Node) -> Outputs {
    one(fold(scope, node, "add")?)
}

/// `Mean` of all inputs.
pub fn mean(scope: &mut Scope, node: &Node) -> Outputs {
    let total = fold(scope, node, "add")?;
    one(with_number(scope, "divide", total, node.inputs.len() as f64)?)
}

/// `Where`.
pub fn where_(scope: &mut Scope, node: &Node) -> Outputs {
    let args = [scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?];
    one(broadcast_call(scope, "where", args)?)
}

/// `Reciprocal`.
pub fn reciprocal(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let number = scope.scalar(1.0, scope.dtype(&x))?;
    one(scope.call("divide", [number, x])?)
}

/// `Pow`: the exponent may have another element type; the result has the base's. Squares and roots get their own operators.
///
/// Integers to the power of integers are exact and wrap around. With a float as exponent they are computed as floats, and
/// what is behind the point is cut.
pub fn power(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let dtype = scope.dtype(&x);
    let exponent = node.input(1)?;
    if exponent.constant().is_some_and(|t| t.shape().is_empty()) {
        match node.known_scalar(1, "the exponent")? {
            Some(2.0) => return one(scope.call("multiply", [x.clone(), x])?),
            Some(0.5) if dtype.is_float() => return one(scope.call("sqrt", [x])?),
            _ => {}
        }
    }
    let exponent = scope.tensor(exponent)?;
    if dtype.is_float() {
        let exponent = scope.cast(exponent, dtype)?;
        return one(broadcast_call(scope, "power", [x, exponent])?);
    }
    let wide = if scope.dtype(&exponent).is_float() { DataType::float(64) } else { DataType::int(64) };
    let pair = [scope.cast(x, wide)?, scope.cast(exponent, wide)?];
    let power = broadcast_call(scope, "power", pair)?;
    one(scope.cast(power, dtype)?)
}

/// `Mod`: with `fmod` the sign is the dividend's, otherwise the divisor's.
pub fn modulo(scope: &mut Scope, node: &Node) -> Outputs {
    let mut pair = [scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?];
    let truncated = node.flag("fmod", false)?;
    if !scope.dtype(&pair[0]).is_float() {
        return one(broadcast_call(scope, if truncated { "mod" } else { "floor_mod" }, pair)?);
    }
    // Of infinite divisors the quotient is no use; the remainder is.
    scope.broadcastable(&mut pair)?;
    let [a, b] = pair;
    let rest = scope.call("mod", [a.clone(), b.clone()])?;
    let infinite = scope.call("isinf", [b.clone()])?;
    let finite = scope.call("isfinite", [a.clone()])?;
    let whole = scope.call("logical_and", [infinite, finite])?;
    let rest = scope.call("where", [whole, a, rest])?;
    if truncated {
        return one(rest);
    }
    let zero = scope.scalar(0.0, scope.dtype(&b))?;
    let below = |scope: &mut Scope, x: &Expr| scope.call("less", [x.clone(), zero.clone()]);
    let (rest_below, b_below) = (below(scope, &rest)?, below(scope, &b)?);
    let other_sign = scope.call("logical_xor", [rest_below, b_below])?;
    let some = scope.call("not_equal", [rest.clone(), zero.clone()])?;
    let crossed = scope.call("logical_and", [other_sign, some])?;
    let moved = scope.call("add", [rest.clone(), b])?;
    one(scope.call("where", [crossed, moved, rest])?)
}

/// `IsInf`, of both signs or one.
pub fn is_inf(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    match (node.flag("detect_negative", true)?, node.flag("detect_positive", true)?) {
        (true, true) => one(scope.call("isinf", [x])?),
        (true, false) => one(with_number(scope, "equal", x, f64::NEG_INFINITY)?),
        (false, true) => one(with_number(scope, "equal", x, f64::INFINITY)?),
        (false, false) => one(with_number(scope, "less", x.clone(), f64::NEG_INFINITY)?),
    }
}

/// `Clip` before opset 11: the bounds are attributes.
pub fn clip_attrs(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (low, high) = (node.float("min")?, node.float("max")?);
    one(clip_between(scope, x, low, high)?)
}

/// `Clip`: the bounds are inputs, constant or computed.
pub fn clip(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let known = |i: usize| node.optional(i).is_none_or(|v| v.constant().is_some());
    // Bounds of integers may have more digits than a number of the compiler's; as tensors they keep them.
    if known(1) && known(2) && scope.dtype(&x).is_float() {
        let (low, high) = (node.known_scalar(1, "min")?, node.known_scalar(2, "max")?);
        return one(clip_between(scope, x, low, high)?);
    }
    let mut result = x;
    for (i, name) in [(1, "maximum"), (2, "minimum")] {
        if let Some(bound) = node.optional(i) {
            let bound = scope.tensor(bound)?;
            result = broadcast_call(scope, name, [result, bound])?;
        }
    }
    one(result)
}

/// Elements no smaller and no larger than two numbers.
pub fn clip_between(scope: &mut Scope, x: Expr, low: Option<f64>, high: Option<f64>) -> Result<Expr, NodeError> {
    let dtype = scope.dtype(&x);
    match (low, high) {
        (None, None) => Ok(x),
        (Some(low), None) => with_number(scope, "maximum", x, low),
        (None, Some(high)) => with_number(scope, "minimum", x, high),
        (Some(low), Some(high)) => {
            let bound = |v: f64| Expr::prim(prim::constant(dtype, v));
            scope.op("clip", [x, bound(low), bound(high)], Attrs::new())
        }
    }
}
