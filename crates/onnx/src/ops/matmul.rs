//! Matrix products.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::elementwise::{broadcast_call, with_number};
use super::{Outputs, one};
use crate::dims::{self, Relation};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// `MatMul`: matrices in the last two axes, the axes before them broadcast; a vector stands for a row or a column.
pub fn matmul(scope: &mut Scope, node: &Node) -> Outputs {
    let pair = [scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?];
    one(product(scope, pair)?)
}

/// The product of matrices. Those of narrow floats are summed in float32.
pub fn product(scope: &mut Scope, mut pair: [Expr; 2]) -> Result<Expr> {
    let ranks = [scope.dims(&pair[0])?.len(), scope.dims(&pair[1])?.len()];
    if ranks.contains(&0) {
        return Err(NodeError::invalid("an input has no axes"));
    }
    let summed = [ranks[0] - 1, ranks[1].saturating_sub(2)];
    scope.agree_on(&mut pair, &summed)?;
    agree_on_batch(scope, &mut pair)?;
    let dtype = scope.dtype(&pair[0]);
    if dtype.is_float() && dtype.bits < 32 {
        let wide = scope.op("matmul", pair, Attrs::new().with("out_dtype", DataType::float(32)))?;
        return scope.cast(wide, dtype);
    }
    scope.call("matmul", pair)
}

/// Makes the axes before the matrices one, or 1. Which of them is 1 may show only when the model runs.
fn agree_on_batch(scope: &mut Scope, pair: &mut [Expr; 2]) -> Result<()> {
    let shapes = [scope.dims(&pair[0])?, scope.dims(&pair[1])?];
    let batches = [0, 1].map(|i| shapes[i].len().saturating_sub(2));
    let mut spread = shapes.clone();
    for back in 1..=batches[0].min(batches[1]) {
        let axes = [batches[0] - back, batches[1] - back];
        let (a, b) = (shapes[0][axes[0]].clone(), shapes[1][axes[1]].clone());
        if a.is_int(1) || b.is_int(1) {
            continue;
        }
        match dims::relation(&a, &b) {
            Relation::Equal => continue,
            Relation::TakenAsEqual => {
                scope.take_as_equal_on(pair, &axes)?;
                continue;
            }
            Relation::Apart => {
                return Err(NodeError::invalid(format!("a dimension is {a} on one side, {b} on the other")));
            }
            Relation::Open => {}
        }
        let named = [scope.named_dim(&pair[0], axes[0]), scope.named_dim(&pair[1], axes[1])];
        let common = scope.common_dim(&named.into_iter().zip([a, b]).collect::<Vec<_>>())?;
        (spread[0][axes[0]], spread[1][axes[1]]) = (common.clone(), common);
    }
    for i in 0..2 {
        if !shapes[i].iter().zip(&spread[i]).all(|(a, b)| dims::equal(a, b)) {
            pair[i] = scope.spread(pair[i].clone(), spread[i].clone())?;
        }
    }
    Ok(())
}

/// `Gemm`: `alpha * A' * B' + beta * C`.
pub fn gemm(scope: &mut Scope, node: &Node) -> Outputs {
    let a = matrix(scope, node.input(0)?, node.flag("transA", false)?)?;
    let b = matrix(scope, node.input(1)?, node.flag("transB", false)?)?;
    let result = product(scope, [a, b])?;
    one(ending(scope, node, result)?)
}

/// What `Gemm` does with a product: `alpha` times it, and `beta` times its third input.
pub(crate) fn ending(scope: &mut Scope, node: &Node, mut result: Expr) -> Result<Expr> {
    let (alpha, beta) = (node.float_or("alpha", 1.0)?, node.float_or("beta", 1.0)?);
    if alpha != 1.0 {
        result = with_number(scope, "multiply", result, alpha)?;
    }
    if let Some(c) = node.optional(2) {
        let mut c = scope.tensor(c)?;
        if beta != 1.0 {
            c = with_number(scope, "multiply", c, beta)?;
        }
        result = broadcast_call(scope, "add", [result, c])?;
    }
    Ok(result)
}

/// A matrix, transposed if asked for; a constant is transposed here and now.
fn matrix(scope: &mut Scope, value: &Value, transposed: bool) -> Result<Expr> {
    if scope.value_dims(value)?.len() != 2 {
        return Err(NodeError::invalid("an input is not a matrix"));
    }
    match value {
        Value::Constant(tensor) if transposed && !tensor.dtype().is_packed() => {
            Ok(Expr::constant(transposed_constant(tensor)?))
        }
        other => {
            let x = scope.tensor(other)?;
            if transposed { scope.transpose(x, &[1, 0]) } else { Ok(x) }
        }
    }
}

/// A constant matrix, transposed. Elements of less than a byte are moved where the program is compiled, not here.
pub fn transposed_constant(matrix: &Tensor) -> Result<Tensor> {
    let (&[rows, columns], false) = (matrix.shape(), matrix.dtype().is_packed()) else {
        return Err(NodeError::invalid("a constant is not a matrix of whole bytes"));
    };
    let bytes = matrix.to_bytes().map_err(|e| NodeError::invalid(e.to_string()))?;
    let transposed = transpose(&bytes, rows as usize, columns as usize, matrix.dtype().bytes());
    relaxide_frontend::constant::from_bytes(&transposed, &[columns, rows], matrix.dtype())
}

fn transpose(bytes: &[u8], rows: usize, columns: usize, width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for column in 0..columns {
        for row in 0..rows {
            let at = (row * columns + column) * width;
            out.extend_from_slice(&bytes[at..at + width]);
        }
    }
    out
}
