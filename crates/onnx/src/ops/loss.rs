//! Losses: the negative logarithm of the probability of the right class, averaged or summed.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::wide::widened;
use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// `NegativeLogLikelihoodLoss`: the input holds logarithms.
pub fn negative_log_likelihood(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    one(loss(scope, node, x)?)
}

/// `SoftmaxCrossEntropyLoss`: the logarithms are computed along axis 1; they are the second output.
pub fn softmax_cross_entropy(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let logs = scope.op("nn.log_softmax", [x], Attrs::new().with("axis", 1i64))?;
    let loss = loss(scope, node, logs.clone())?;
    Ok(vec![Value::Computed(loss), Value::Computed(logs)])
}

fn loss(scope: &mut Scope, node: &Node, logs: Expr) -> Result<Expr> {
    let target = scope.tensor(node.input(1)?)?;
    let mut weight = node.optional(2).map(|v| scope.tensor(v)).transpose()?;
    let ignored = node.int("ignore_index")?;
    let classes = match &scope.dims(&logs)?[..] {
        [_, classes, ..] => classes.clone(),
        _ => return Err(NodeError::invalid("the input needs a batch and classes")),
    };
    if let Some(own) = weight.take() {
        weight = Some(scope.agree(own, std::slice::from_ref(&classes))?);
    }
    // The target has the input's shape without classes.
    let mut wanted = scope.dims(&logs)?;
    wanted.remove(1);
    let target = scope.agree(target, &wanted)?;
    let target = scope.cast(target, DataType::int(64))?;
    let dtype = scope.dtype(&logs);
    let weighed = weight.is_some();
    let class = |target: &te::Tensor, at: &[PrimExpr]| target.at(at);
    let counts = |target: &te::Tensor, at: &[PrimExpr]| ignored.map(|i| prim::ne(target.at(at), i));
    let weights = scope.te("class_weights", std::iter::once(target.clone()).chain(weight).collect(), |inputs| {
        vec![te::compute("weights", &wanted, |at| {
            let own = match inputs.get(1) {
                Some(weight) => weight.at(&[class(&inputs[0], at)]),
                None => prim::constant(dtype, 1.0),
            };
            match counts(&inputs[0], at) {
                Some(counts) => prim::if_then_else(counts, own, prim::constant(dtype, 0.0)),
                None => own,
            }
        })]
    })?;
    let losses_of_targets = scope.te("losses_of_targets", vec![logs, target], |inputs| {
        vec![te::compute("losses_of_targets", &wanted, |at| {
            let mut index = at.to_vec();
            index.insert(1, class(&inputs[1], at));
            let loss = prim::constant(dtype, 0.0) - inputs[0].at(&index);
            match counts(&inputs[1], at) {
                Some(counts) => prim::if_then_else(counts, loss, prim::constant(dtype, 0.0)),
                None => loss,
            }
        })]
    })?;
    let losses = scope.call("multiply", [losses_of_targets, weights.clone()])?;
    let reduction = node.str_or("reduction", "mean")?;
    if reduction == "none" {
        return Ok(losses);
    }
    let ((losses, own), (weights, _)) = (widened(scope, losses)?, widened(scope, weights)?);
    let total = |scope: &mut Scope, x: Expr| scope.op("sum", [x], Attrs::new().with("keepdims", false));
    let result = match reduction {
        "sum" => total(scope, losses),
        "mean" if !weighed && ignored.is_none() => scope.op("mean", [losses], Attrs::new().with("keepdims", false)),
        "mean" => {
            let (sum, count) = (total(scope, losses)?, total(scope, weights)?);
            scope.call("divide", [sum, count])
        }
        other => Err(NodeError::invalid(format!("`reduction` is \"{other}\""))),
    };
    scope.cast(result?, own)
}
