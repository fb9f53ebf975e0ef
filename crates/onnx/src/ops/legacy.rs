//! Operators of the oldest sets, before opset 7: two tensors are broadcast only if a node says so, and from an axis on.

use relaxide_ir::prim;
use relaxide_relax::Expr;

use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// A Relax operator of two tensors; with `broadcast` the axes of the second are those of the first from `axis` on, or the
/// last ones.
pub fn binary(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let pair = aligned(scope, node, 0, 1)?;
    one(super::elementwise::broadcast_call(scope, name, pair)?)
}

/// `Pow` before opset 7.
pub fn power(scope: &mut Scope, node: &Node) -> Outputs {
    binary(scope, node, "power")
}

/// Two inputs, the second with axes of extent 1 behind its own where the node aligns it with the front.
pub fn aligned(scope: &mut Scope, node: &Node, a: usize, b: usize) -> Result<[Expr; 2], NodeError> {
    let (x, y) = (scope.tensor(node.input(a)?)?, scope.tensor(node.input(b)?)?);
    let (rank, mut own) = (scope.dims(&x)?.len(), scope.dims(&y)?);
    let Some(axis) = node.int("axis")?.filter(|_| node.flag("broadcast", false).unwrap_or(false)) else {
        return Ok([x, y]);
    };
    let axis =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    let behind = rank.checked_sub(axis + own.len());
    let behind = behind.ok_or_else(|| NodeError::invalid("the second input has more axes than fit behind `axis`"))?;
    own.extend(vec![prim::int(1); behind]);
    let y = scope.reshape(y, own)?;
    Ok([x, y])
}

/// `Gemm` before opset 7.
pub fn gemm(scope: &mut Scope, node: &Node) -> Outputs {
    super::matmul::gemm(scope, node)
}

/// `PRelu` before opset 7: one slope for each channel, or one for all.
pub fn prelu(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, slope) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let rank = scope.dims(&x)?.len();
    let count = dims::product(&scope.dims(&slope)?);
    let mut shape = vec![prim::int(1); rank.max(1)];
    let at = if rank > 1 { 1 } else { 0 };
    shape[at] = count;
    let slope = scope.reshape(slope, shape)?;
    super::activation::by_slope(scope, x, slope)
}

/// `Tile` of opset 1: one axis, so many times.
pub fn tile(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let times = super::gather_scatter::scalar_dim(scope, node.input(1)?)?;
    let axis = node.known_ints(2, "`axis`")?.and_then(|a| a.first().copied()).unwrap_or(0);
    let axis =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    let mut repeats = vec![prim::int(1); rank];
    repeats[axis] = times;
    one(super::computed::tiled(scope, x, super::computed::Ints::Known(repeats))?)
}
