//! Products with what is done before and behind them, and products with packed weights.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::activation::ending;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, conv, matmul, one};
use crate::quantized::integer::{centred, only, requantized};
use crate::quantized::linear::{dtype_of, dynamic_of, parameters, zero_point};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// A matrix with its last two axes exchanged, where an attribute asks for it.
fn turned(scope: &mut Scope, x: Expr, turn: bool) -> Result<Expr> {
    let rank = scope.dims(&x)?.len();
    if !turn || rank < 2 {
        return Ok(x);
    }
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(rank - 1, rank - 2);
    scope.transpose(x, &axes)
}

fn product(scope: &mut Scope, node: &Node, a: Expr, b: Expr) -> Result<Expr> {
    only(matmul::matmul(scope, &node.with_inputs([a, b]))?)
}

/// `FusedMatMul`.
pub fn fused_matmul(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("transBatchA", 0)?;
    node.only_int("transBatchB", 0)?;
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let a = turned(scope, a, node.flag("transA", false)?)?;
    let b = turned(scope, b, node.flag("transB", false)?)?;
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

/// `NhwcConv`: a convolution of images and weights whose channels are the last axis.
pub fn nhwc_conv(scope: &mut Scope, node: &Node) -> Outputs {
    let mut inputs = Vec::new();
    for i in 0..2 {
        let x = scope.tensor(node.input(i)?)?;
        let rank = scope.dims(&x)?.len();
        if rank < 3 {
            return Err(NodeError::invalid(format!("input {i} has {rank} axes where 3 or more are needed")));
        }
        let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        inputs.push(scope.transpose(x, &order)?);
    }
    if let Some(bias) = node.optional(2) {
        inputs.push(scope.tensor(bias)?);
    }
    let y = only(conv::conv(scope, &node.with_inputs(inputs))?)?;
    let rank = scope.dims(&y)?.len();
    let order: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    one(scope.transpose(y, &order)?)
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
    (a, zero_a): (Expr, Option<Expr>),
    (b, zero_b): (Expr, Option<Expr>),
    (scale, bias): (Expr, usize),
) -> Outputs {
    let (a, b) = (centred(scope, a, zero_a)?, centred(scope, b, zero_b)?);
    let sum = product(scope, node, a, b)?;
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
    let (zero_a, zero_b) = (zero_point(scope, node, 4)?, zero_point(scope, node, 5)?);
    let scale = broadcast_call(scope, "multiply", [scale_a, scale_b])?;
    integer_to_float(scope, node, (a, zero_a), (b, zero_b), (scale, 6))
}

/// `DynamicQuantizeMatMul`.
pub fn dynamic_quantize_matmul(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let scale_b = scope.tensor(node.input(2)?)?;
    let zero_b = zero_point(scope, node, 3)?;
    let (a, scale_a, zero_a) = dynamic_of(scope, a)?;
    let scale = broadcast_call(scope, "multiply", [scale_a, scale_b])?;
    integer_to_float(scope, node, (a, Some(zero_a)), (b, zero_b), (scale, 4))
}

/// `QGemm`: `alpha * A' * B' + C` on integers; numbers come out where the result has no scale.
pub fn q_gemm(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(3)?)?);
    let ((scale_a, zero_a), (scale_b, zero_b)) = (parameters(scope, node, 1)?, parameters(scope, node, 4)?);
    let a = centred(scope, a, zero_a)?;
    let a = turned(scope, a, node.flag("transA", false)?)?;
    let transposed = node.flag("transB", false)?;
    // One zero for each column of the product, which is a row of a matrix that is turned over.
    let zero_b = match zero_b {
        Some(zero) if transposed && scope.dims(&zero)?.first().is_some_and(|n| !n.is_int(1)) => {
            let rows = scope.dims(&zero)?[0].clone();
            Some(scope.reshape(zero, vec![rows, prim::int(1)])?)
        }
        zero => zero,
    };
    let b = centred(scope, b, zero_b)?;
    let b = turned(scope, b, transposed)?;
    let mut sum = product(scope, node, a, b)?;
    if let Some(bias) = node.optional(6) {
        let bias = scope.tensor(bias)?;
        sum = broadcast_call(scope, "add", [sum, bias])?;
    }
    let scale = broadcast_call(scope, "multiply", [scale_a, scale_b])?;
    let scale = with_number(scope, "multiply", scale, node.float_or("alpha", 1.0)?)?;
    if node.optional(7).is_some() {
        let out = parameters(scope, node, 7)?;
        let dtype = dtype_of(scope, node, 8)?.unwrap_or(DataType::uint(8));
        return one(requantized(scope, sum, scale, out, dtype)?);
    }
    let real = scope.cast(sum, DataType::float(32))?;
    one(broadcast_call(scope, "multiply", [real, scale])?)
}

/// `MatMulNBits`: a weight of few bits, several to a byte, with a scale for each block of a column. `g_idx` says for each row
/// whose block's scale and zero it has.
pub fn matmul_n_bits(scope: &mut Scope, node: &Node) -> Outputs {
    let whole = |name: &str| {
        node.int(name)?.filter(|v| *v > 0).ok_or_else(|| NodeError::invalid(format!("`{name}` is missing")))
    };
    let (k, n, bits, block) = (whole("K")?, whole("N")?, node.int_or("bits", 4)?, whole("block_size")?);
    if !matches!(bits, 2 | 4 | 8) {
        return Err(NodeError::unsupported(format!(
            "weights of {bits} bits are not supported; of 2, 4 and 8 they are"
        )));
    }
    let x = scope.tensor(node.input(0)?)?;
    let (packed, scales) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let blocks = (k + block - 1) / block;
    let bytes = (block * bits + 7) / 8;
    let packed = scope.reshape(packed, [n, blocks, bytes].map(prim::int).to_vec())?;
    let scales = scope.reshape(scales, [n, blocks].map(prim::int).to_vec())?;
    let dtype = scope.dtype(&x);
    let mut args = vec![packed, scales];
    let mut zeros_are_packed = false;
    if let Some(zeros) = node.optional(3) {
        let zeros = scope.tensor(zeros)?;
        zeros_are_packed = scope.dtype(&zeros) == DataType::uint(8);
        let columns = if zeros_are_packed { (blocks * bits + 7) / 8 } else { blocks };
        args.push(scope.reshape(zeros, [n, columns].map(prim::int).to_vec())?);
    }
    // Which block's scale a row has, where they were reordered.
    let with_zeros = args.len() > 2;
    let groups = node.optional(4).map(|groups| scope.tensor(groups)).transpose()?;
    if let Some(groups) = &groups
        && !matches!(&scope.dims(groups)?[..], [n] if n.as_int().is_some_and(|n| n >= k))
    {
        return Err(NodeError::invalid(format!("`g_idx` must have {k} elements")));
    }
    let reordered = groups.is_some();
    args.extend(groups);
    let per_byte = 8 / bits;
    let weight = scope.te("unpack", args, |inputs| {
        let (packed, scales) = (inputs[0].clone(), inputs[1].clone());
        let zeros = inputs.get(2).filter(|_| with_zeros).cloned();
        let groups = inputs.last().filter(|_| reordered).cloned();
        let int = DataType::int(32);
        // Field `i` of those that share a byte, the first in the lowest bits.
        let field = |byte: PrimExpr, i: PrimExpr| {
            let shift = prim::cast(int, prim::floormod(i, prim::int(per_byte))) * prim::constant(int, bits as f64);
            let shifted = prim::call(int, "tirx.shift_right", vec![prim::cast(int, byte), shift]);
            prim::call(int, "tirx.bitwise_and", vec![shifted, prim::constant(int, ((1 << bits) - 1) as f64)])
        };
        vec![te::compute("unpack", vec![prim::int(k), prim::int(n)], |at: &[PrimExpr]| {
            let (row, column) = (at[0].clone(), at[1].clone());
            let (of, inside) = (prim::floordiv(&row, prim::int(block)), prim::floormod(&row, prim::int(block)));
            let byte = packed.at(&[column.clone(), of.clone(), prim::floordiv(&inside, prim::int(per_byte))]);
            let value = prim::cast(dtype, field(byte, inside));
            let of = match &groups {
                Some(groups) => {
                    let group = prim::cast(DataType::int(64), groups.at(&[row]));
                    prim::max(prim::min(group, prim::int(blocks - 1)), prim::int(0))
                }
                None => of,
            };
            let zero = match &zeros {
                None => prim::constant(dtype, 2f64.powi(bits as i32 - 1)),
                Some(zeros) if zeros_are_packed => {
                    let byte = zeros.at(&[column.clone(), prim::floordiv(&of, prim::int(per_byte))]);
                    prim::cast(dtype, field(byte, of.clone()))
                }
                Some(zeros) => prim::cast(dtype, zeros.at(&[column.clone(), of.clone()])),
            };
            (value - zero) * prim::cast(dtype, scales.at(&[column, of]))
        })]
    })?;
    let mut y = product(scope, node, x, weight)?;
    if let Some(bias) = node.optional(5) {
        let bias = scope.tensor(bias)?;
        y = broadcast_call(scope, "add", [y, bias])?;
    }
    one(y)
}
