//! `LinearRegressor` and `LinearClassifier`: a product with coefficients, an intercept, a transformation.

use relaxide_relax::Expr;

use super::score::{self, Other, Transform};
use super::{matrix, numbers, rows_of};
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::text::Labels;
use crate::value::Value;
use relaxide_ffi::DataType;

type Result<T> = std::result::Result<T, NodeError>;

/// The product of the input with coefficients, a row for each of `count` targets, and their intercepts.
fn scores(scope: &mut Scope, node: &Node, count: usize) -> Result<Expr> {
    let float = DataType::float(32);
    let (weight, features) = matrix(scope, &numbers(node, "coefficients")?, count, float)?;
    let x = rows_of(scope, node, features)?;
    let x = scope.cast(x, float)?;
    let weight = scope.transpose(weight, &[1, 0])?;
    let product = scope.call("matmul", [x, weight])?;
    let intercepts = node.floats("intercepts")?.unwrap_or_default();
    if intercepts.is_empty() {
        return Ok(product);
    }
    if intercepts.len() != count {
        let given = intercepts.len();
        return Err(NodeError::invalid(format!("{given} intercepts are given for {count} targets")));
    }
    let values: Vec<f64> = intercepts.into_iter().map(f64::from).collect();
    let bias = scope.constant(&values, &[count as i64], float)?;
    broadcast_call(scope, "add", [product, bias])
}

/// `LinearRegressor`.
pub fn regressor(scope: &mut Scope, node: &Node) -> Outputs {
    let targets = node.int_or("targets", 1)?;
    let targets = usize::try_from(targets).ok().filter(|n| *n > 0);
    let targets = targets.ok_or_else(|| NodeError::invalid("`targets` must be a positive number"))?;
    let y = scores(scope, node, targets)?;
    one(Transform::of(node)?.apply(scope, y)?)
}

/// `LinearClassifier`: the label of each row's best class, and the scores of all.
pub fn classifier(scope: &mut Scope, node: &Node) -> Outputs {
    let labels = Labels::of(node, "classlabels_ints", "classlabels_strings")?;
    let outputs = classified(scope, node, &labels.numbers)?;
    Ok(labels.put(outputs))
}

fn classified(scope: &mut Scope, node: &Node, labels: &[i64]) -> Outputs {
    let intercepts = node.floats("intercepts")?.unwrap_or_default().len();
    let count = if intercepts > 0 { intercepts } else { labels.len() };
    if count == 0 {
        return Err(NodeError::invalid("it has neither labels nor intercepts, so nobody knows how many classes"));
    }
    let transform = Transform::of(node)?;
    let y = scores(scope, node, count)?;
    if count == 1 {
        let (no, yes) = if let [no, yes] = labels[..] { (no, yes) } else { (0, 1) };
        let positive = with_number(scope, "greater", y.clone(), 0.0)?;
        let label = score::either(scope, positive, yes, no)?;
        let y = if labels.len() == 2 {
            score::both(scope, y, Other::Rest, transform)?
        } else {
            transform.apply(scope, y)?
        };
        return Ok(vec![Value::Computed(label), Value::Computed(y)]);
    }
    if labels.len() != count {
        let given = labels.len();
        return Err(NodeError::invalid(format!("{given} labels are given for {count} classes")));
    }
    let best = score::best(scope, y.clone())?;
    let label = score::named(scope, best, labels)?;
    Ok(vec![Value::Computed(label), Value::Computed(transform.apply(scope, y)?)])
}
