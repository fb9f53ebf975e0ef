//! Images whose channels are the last axis: operators on them are those on images whose channels are axis 1, between two
//! transposes, which the compiler moves and cancels.

use relaxide_relax::Expr;

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::{Outputs, conv, one, pool};
use crate::quantized::integer::only;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// A tensor with its last axis behind the first.
pub(super) fn to_front(scope: &mut Scope, x: Expr) -> Result<Expr> {
    let rank = image_rank(scope, &x)?;
    let axes: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    scope.transpose(x, &axes)
}

/// And back.
pub(super) fn to_back(scope: &mut Scope, x: Expr) -> Result<Expr> {
    let rank = image_rank(scope, &x)?;
    let axes: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    scope.transpose(x, &axes)
}

fn image_rank(scope: &Scope, x: &Expr) -> Result<usize> {
    match scope.dims(x)?.len() {
        rank @ 3.. => Ok(rank),
        rank => Err(NodeError::invalid(format!("an image has {rank} axes where 3 or more are needed"))),
    }
}

/// `NhwcConv`: images and weights have their channels last.
pub fn conv(scope: &mut Scope, node: &Node) -> Outputs {
    let mut inputs = Vec::new();
    for i in 0..2 {
        let x = scope.tensor(node.input(i)?)?;
        inputs.push(to_front(scope, x)?);
    }
    if let Some(bias) = node.optional(2) {
        inputs.push(scope.tensor(bias)?);
    }
    let y = only(conv::conv(scope, &node.with_inputs(inputs))?)?;
    one(to_back(scope, y)?)
}

/// `NhwcMaxPool`.
pub fn max_pool(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let x = to_front(scope, x)?;
    let y = only(pool::max(scope, &node.with_inputs([x]))?)?;
    one(to_back(scope, y)?)
}
