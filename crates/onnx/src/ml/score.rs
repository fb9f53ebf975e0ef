//! What becomes of scores: the transformation that a node asks for, and the label of the best class.

use std::f64::consts::{PI, SQRT_2};

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// What is done to scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Nothing.
    None,
    /// Shares of the exponentials.
    Softmax,
    /// The logistic function of each.
    Logistic,
    /// Shares of the exponentials, where a zero has none.
    SoftmaxZero,
    /// The quantile of the normal distribution.
    Probit,
}

const NAMES: [(&str, Transform); 5] = [
    ("NONE", Transform::None),
    ("SOFTMAX", Transform::Softmax),
    ("LOGISTIC", Transform::Logistic),
    ("SOFTMAX_ZERO", Transform::SoftmaxZero),
    ("PROBIT", Transform::Probit),
];

impl Transform {
    /// What a node's `post_transform` says by name.
    pub fn of(node: &Node) -> Result<Transform> {
        let name = node.str_or("post_transform", "NONE")?;
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, t)| *t).ok_or_else(|| NodeError::invalid(format!("`post_transform` is \"{name}\"")))
    }

    /// What a node's `post_transform` says by number.
    pub fn numbered(node: &Node) -> Result<Transform> {
        let number = node.int_or("post_transform", 0)?;
        let found = usize::try_from(number).ok().and_then(|i| NAMES.get(i));
        found.map(|(_, t)| *t).ok_or_else(|| NodeError::invalid(format!("`post_transform` is {number}")))
    }

    /// The transformation of scores: a row for each example, a column for each target.
    pub fn apply(self, scope: &mut Scope, scores: Expr) -> Result<Expr> {
        match self {
            Transform::None => Ok(scores),
            Transform::Softmax => scope.op("nn.softmax", [scores], Attrs::new().with("axis", -1i64)),
            Transform::Logistic => scope.call("sigmoid", [scores]),
            Transform::SoftmaxZero => softmax_zero(scope, scores),
            Transform::Probit => probit(scope, scores),
        }
    }
}

/// The exponentials of scores that are not zero, beside zeros, as shares of their sum.
fn softmax_zero(scope: &mut Scope, scores: Expr) -> Result<Expr> {
    const NEAR_ZERO: f64 = 1e-7;
    let rows = || Attrs::new().with("axis", vec![-1i64]).with("keepdims", true);
    let top = scope.op("max", [scores.clone()], rows())?;
    let less = scope.call("subtract", [scores.clone(), top.clone()])?;
    let powers = scope.call("exp", [less])?;
    let down = scope.call("negative", [top])?;
    let down = scope.call("exp", [down])?;
    let near = scope.call("multiply", [scores.clone(), down])?;
    let size = scope.call("abs", [scores])?;
    let some = with_number(scope, "greater", size, NEAR_ZERO)?;
    let weights = scope.call("where", [some, powers, near])?;
    let sum = scope.op("sum", [weights.clone()], rows())?;
    let shares = scope.call("divide", [weights, sum.clone()])?;
    // Where nothing has weight, no class is better than another.
    let none = with_number(scope, "equal", sum, 0.0)?;
    let half = scope.scalar(0.5, scope.dtype(&shares))?;
    scope.call("where", [none, half, shares])
}

/// `sqrt(2) * erf⁻¹(2 p - 1)`, with Winitzki's approximation of the inverse error function, which is what ONNX Runtime has.
fn probit(scope: &mut Scope, p: Expr) -> Result<Expr> {
    const A: f64 = 0.147;
    let twice = with_number(scope, "multiply", p, 2.0)?;
    let x = with_number(scope, "subtract", twice, 1.0)?;
    let square = scope.call("multiply", [x.clone(), x.clone()])?;
    let rest = scope.call("negative", [square])?;
    let rest = with_number(scope, "add", rest, 1.0)?;
    let log = scope.call("log", [rest])?;
    let half = with_number(scope, "multiply", log.clone(), 0.5)?;
    let middle = with_number(scope, "add", half, 2.0 / (PI * A))?;
    let scaled = with_number(scope, "multiply", log, 1.0 / A)?;
    let square = scope.call("multiply", [middle.clone(), middle.clone()])?;
    let inner = scope.call("subtract", [square, scaled])?;
    let root = scope.call("sqrt", [inner])?;
    let size = scope.call("subtract", [root, middle])?;
    let size = scope.call("sqrt", [size])?;
    let size = with_number(scope, "multiply", size, SQRT_2)?;
    let sign = scope.call("sign", [x])?;
    scope.call("multiply", [size, sign])
}

/// How the score of a class tells that of the only other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// It is a probability: the other's is the rest.
    Rest,
    /// It is a distance: the other's is on the other side.
    Opposite,
}

/// Scores of two classes from a column with that of the second. Of the transformations the logistic function is what makes
/// probabilities of distances; others would be the same for every score and its opposite, and are left out.
pub fn both(scope: &mut Scope, score: Expr, other: Other, transform: Transform) -> Result<Expr> {
    if transform == Transform::Probit {
        return transform.apply(scope, score);
    }
    let first = scope.call("negative", [score.clone()])?;
    let (first, transform) = match other {
        _ if transform == Transform::Logistic => (first, transform),
        Other::Rest => (with_number(scope, "add", first, 1.0)?, Transform::None),
        Other::Opposite => (first, Transform::None),
    };
    let scores = scope.op("concat", [Expr::tuple([first, score])], Attrs::new().with("axis", 1i64))?;
    transform.apply(scope, scores)
}

/// The column with the largest score of each row, the first of several.
pub fn best(scope: &mut Scope, scores: Expr) -> Result<Expr> {
    scope.op("argmax", [scores], Attrs::new().with("axis", 1i64).with("keepdims", false))
}

/// The labels of classes that indices name.
pub fn named(scope: &mut Scope, index: Expr, labels: &[i64]) -> Result<Expr> {
    let table = Expr::constant(whole(labels)?);
    scope.op("take", [table, index], Attrs::new().with("axis", 0i64))
}

/// One label where a condition holds, another elsewhere.
pub fn either(scope: &mut Scope, condition: Expr, yes: i64, no: i64) -> Result<Expr> {
    let dims = scope.dims(&condition)?;
    let rows = dims.first().cloned().into_iter().collect();
    let condition = scope.reshape(condition, rows)?;
    let label = |value: i64| whole(&[value]).map(Expr::constant);
    broadcast_call(scope, "where", [condition, label(yes)?, label(no)?])
}

/// A vector of int64.
pub fn whole(values: &[i64]) -> Result<Tensor> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    relaxide_frontend::constant::from_bytes(&bytes, &[values.len() as i64], DataType::int(64))
}
