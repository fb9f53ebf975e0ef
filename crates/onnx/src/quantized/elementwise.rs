//! Sums and products of quantized numbers element by element, on the integers themselves.

use relaxide_ffi::DataType;
use relaxide_relax::Expr;

use super::integer::{centred, product_scale, requantized};
use super::linear::{Scaling, Sharing, dtype_of, quantize_to, scaling};
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::ops::{Outputs, one};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// The element type of a result whose zero point is input `i`: that of the first input where there is none.
pub fn result_dtype(scope: &mut Scope, node: &Node, i: usize) -> Result<DataType> {
    match dtype_of(scope, node, i)? {
        Some(dtype) => Ok(dtype),
        None => Ok(dtype_of(scope, node, 0)?.unwrap_or(DataType::uint(8))),
    }
}

/// `QLinearAdd`: both sides in steps of the result, so that nothing is divided where scales are known.
pub fn qlinear_add(scope: &mut Scope, node: &Node) -> Outputs {
    let out = scaling(scope, node, 6)?;
    let pair = [in_steps(scope, node, 0, &out)?, in_steps(scope, node, 3, &out)?];
    let sum = broadcast_call(scope, "add", pair)?;
    let (unit, dtype) = (scope.scalar(1.0, DataType::float(32))?, result_dtype(scope, node, 7)?);
    one(quantize_to(scope, sum, Scaling { scale: unit, zero: out.zero }, dtype, Sharing::default())?)
}

/// Input `i`, whose scale and zero point follow it, counted in steps of a result.
fn in_steps(scope: &mut Scope, node: &Node, i: usize, out: &Scaling) -> Result<Expr> {
    let (x, own) = (scope.tensor(node.input(i)?)?, scaling(scope, node, i + 1)?);
    let whole = centred(scope, x, own.zero)?;
    let real = DataType::float(32);
    let [whole, own, out] = [whole, own.scale, out.scale.clone()].map(|e| scope.cast(e, real));
    let ratio = broadcast_call(scope, "divide", [own?, out?])?;
    broadcast_call(scope, "multiply", [whole?, ratio])
}

/// `QLinearMul`: a product of integers, scaled once. Each side as a number of its own might be infinite.
pub fn qlinear_multiply(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(3)?)?);
    let (of_a, of_b) = (scaling(scope, node, 1)?, scaling(scope, node, 4)?);
    let pair = [centred(scope, a, of_a.zero)?, centred(scope, b, of_b.zero)?];
    let product = broadcast_call(scope, "multiply", pair)?;
    let scale = product_scale(scope, of_a.scale, of_b.scale)?;
    let dtype = result_dtype(scope, node, 7)?;
    let out = scaling(scope, node, 6)?;
    one(requantized(scope, product, scale, out, dtype)?)
}
