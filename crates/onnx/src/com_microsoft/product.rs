//! Products with what is done before and behind them.

use relaxide_ffi::DataType;
use relaxide_ir::prim;
use relaxide_relax::Expr;

use super::activation::ending;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, conv, matmul, one};
use crate::quantized::exact::{Kept, Sides, sum_type};
use crate::quantized::integer::{Integers, centred, centred_as, only, requantized};
use crate::quantized::linear::{dtype_of, dynamic_of, scaling, zero_point};
use crate::quantized::words::{self, Lies};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// A matrix with its last two axes exchanged, where an attribute asks for it.
fn transposed(scope: &mut Scope, x: Expr, transpose: bool) -> Result<Expr> {
    let rank = scope.dims(&x)?.len();
    if !transpose || rank < 2 {
        return Ok(x);
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(rank - 1, rank - 2);
    scope.transpose(x, &axes)
}

pub(super) fn product(scope: &mut Scope, node: &Node, a: Expr, b: Expr) -> Result<Expr> {
    only(matmul::matmul(scope, &node.with_inputs([a, b]))?)
}

/// `FusedMatMul`, and `TransposeMatMul`, which is what it was called before it could exchange batches.
pub fn fused_matmul(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("transBatchA", 0)?;
    node.only_int("transBatchB", 0)?;
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let a = transposed(scope, a, node.flag("transA", false)?)?;
    let b = transposed(scope, b, node.flag("transB", false)?)?;
    let y = product(scope, node, a, b)?;
    let alpha = node.float_or("alpha", 1.0)?;
    one(if alpha == 1.0 { y } else { with_number(scope, "multiply", y, alpha)? })
}

/// `FusedConv`: a convolution, perhaps a sum with another tensor, an activation.
pub fn fused_conv(scope: &mut Scope, node: &Node) -> Outputs {
    let inputs = node.inputs.iter().take(3).cloned().collect();
    let plain = Node { proto: node.proto, inputs, opset: node.opset };
    let mut y = only(conv::conv(scope, &plain)?)?;
    if let Some(other) = node.optional(3) {
        let other = scope.tensor(other)?;
        y = broadcast_call(scope, "add", [y, other])?;
    }
    one(ending(scope, node, y)?)
}

/// `FusedGemm`.
pub fn fused_gemm(scope: &mut Scope, node: &Node) -> Outputs {
    let y = only(matmul::gemm(scope, node)?)?;
    one(ending(scope, node, y)?)
}

/// A product of integers as numbers, with an optional bias.
fn integer_to_float(
    scope: &mut Scope,
    node: &Node,
    a: Integers,
    b: Integers,
    scale: Expr,
    bias: usize,
    sides: &Sides,
) -> Outputs {
    let sum = match words::matmul(scope, node, &a, sides.weight)? {
        Some(sum) => sum,
        None => {
            let dtype = sum_type(scope, node, &a.values, sides);
            let a = centred_as(scope, a.values, a.zero, dtype)?;
            let b = centred_as(scope, b.values, b.zero, dtype)?;
            product(scope, node, a, b)?
        }
    };
    let real = scope.cast(sum, DataType::float(32))?;
    let mut y = broadcast_call(scope, "multiply", [real, scale])?;
    if let Some(bias) = node.optional(bias) {
        let bias = scope.tensor(bias)?;
        y = broadcast_call(scope, "add", [y, bias])?;
    }
    one(y)
}

/// `MatMulIntegerToFloat`.
pub fn matmul_integer_to_float(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let (scale_a, scale_b) = (scope.tensor(node.input(2)?)?, scope.tensor(node.input(3)?)?);
    let a = Integers { values: a, zero: zero_point(scope, node, 4)? };
    let b = Integers { values: b, zero: zero_point(scope, node, 5)? };
    let scale = broadcast_call(scope, "multiply", [scale_a, scale_b])?;
    let sides = Sides { zero: Some(4), weight: [1, 5], kept: Kept::Last };
    integer_to_float(scope, node, a, b, scale, 6, &sides)
}

/// `DynamicQuantizeMatMul`.
pub fn dynamic_quantize_matmul(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let scale_b = scope.tensor(node.input(2)?)?;
    let b = Integers { values: b, zero: zero_point(scope, node, 3)? };
    let (a, scale_a, zero_a) = dynamic_of(scope, a)?;
    let a = Integers { values: a, zero: Some(zero_a) };
    let scale = broadcast_call(scope, "multiply", [scale_a, scale_b])?;
    let sides = Sides { zero: None, weight: [1, 3], kept: Kept::Last };
    integer_to_float(scope, node, a, b, scale, 4, &sides)
}

/// `QGemm`: `alpha * A' * B' + C` on integers; numbers come out where the result has no scale.
pub fn q_gemm(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(3)?)?);
    let (of_a, of_b) = (scaling(scope, node, 1)?, scaling(scope, node, 4)?);
    let a = Integers { values: transposed(scope, a, node.flag("transA", false)?)?, zero: of_a.zero };
    let b = Integers { values: b, zero: of_b.zero };
    let lies = if node.flag("transB", false)? { Lies::ByColumns } else { Lies::ByTerms };
    let packed = match words::Matrix::of(node, [3, 5], lies) {
        Some(matrix) => matrix.packed(scope)?,
        None => None,
    };
    let by_words = match packed {
        Some(packed) => packed.product(scope, &a)?,
        None => None,
    };
    let mut sum = match by_words {
        Some(sum) => sum,
        None => product_of_centred(scope, node, a, b, lies)?,
    };
    if let Some(bias) = node.optional(6) {
        let bias = scope.tensor(bias)?;
        sum = broadcast_call(scope, "add", [sum, bias])?;
    }
    let scale = broadcast_call(scope, "multiply", [of_a.scale, of_b.scale])?;
    let scale = with_number(scope, "multiply", scale, node.float_or("alpha", 1.0)?)?;
    if node.optional(7).is_some() {
        let out = scaling(scope, node, 7)?;
        let dtype = dtype_of(scope, node, 8)?.unwrap_or(DataType::uint(8));
        return one(requantized(scope, sum, scale, out, dtype)?);
    }
    let real = scope.cast(sum, DataType::float(32))?;
    one(broadcast_call(scope, "multiply", [real, scale])?)
}

/// The product of two matrices of integers less their zero points, in int32.
fn product_of_centred(scope: &mut Scope, node: &Node, a: Integers, b: Integers, lies: Lies) -> Result<Expr> {
    let a = centred(scope, a.values, a.zero)?;
    let by_columns = lies == Lies::ByColumns;
    // One zero for each column of the product, which is a row of a transposed matrix.
    let zero_b = match b.zero {
        Some(zero) if by_columns && scope.dims(&zero)?.first().is_some_and(|n| !n.is_int(1)) => {
            let rows = scope.dims(&zero)?[0].clone();
            Some(scope.reshape(zero, vec![rows, prim::int(1)])?)
        }
        zero => zero,
    };
    let b = centred(scope, b.values, zero_b)?;
    let b = transposed(scope, b, by_columns)?;
    product(scope, node, a, b)
}
