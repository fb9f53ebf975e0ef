//! Products of integers: `MatMulInteger`, `ConvInteger`, `QLinearMatMul`, `QLinearConv`.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::exact::{Kept, Sides, sum_type};
use super::linear::{dtype_of, parameters, quantize_to, zero_point};
use super::words;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::ops::{Outputs, conv, matmul, one};
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The one output of another operator.
pub fn only(values: Vec<Value>) -> Result<Expr> {
    match values.into_iter().next() {
        Some(Value::Computed(expr)) => Ok(expr),
        _ => Err(NodeError::invalid("an operator gives nothing")),
    }
}

/// Integers less their zero, in 32 bits.
pub fn centred(scope: &mut Scope, x: Expr, zero: Option<Expr>) -> Result<Expr> {
    centred_as(scope, x, zero, DataType::int(32))
}

/// The same in a type that holds them.
pub fn centred_as(scope: &mut Scope, x: Expr, zero: Option<Expr>, dtype: DataType) -> Result<Expr> {
    let wide = scope.cast(x, dtype)?;
    match zero {
        Some(zero) => {
            let zero = scope.cast(zero, dtype)?;
            broadcast_call(scope, "subtract", [wide, zero])
        }
        None => Ok(wide),
    }
}

/// A zero point for each row of a left matrix, as a column.
fn row_zero(scope: &mut Scope, zero: Option<Expr>) -> Result<Option<Expr>> {
    let Some(zero) = zero else { return Ok(None) };
    let mut dims = scope.dims(&zero)?;
    if dims.len() == 1 && !dims[0].is_int(1) {
        dims.push(prim::int(1));
    }
    scope.reshape(zero, dims).map(Some)
}

/// `MatMulInteger`.
pub fn matmul_integer(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let (za, zb) = (zero_point(scope, node, 2)?, zero_point(scope, node, 3)?);
    let za = row_zero(scope, za)?;
    if let Some(sum) = words::matmul(scope, node, (&a, za.as_ref()), [1, 3])? {
        return one(sum);
    }
    let dtype = sum_type(scope, node, &a, &Sides { zero: Some(2), weight: [1, 3], kept: Kept::Last });
    let (a, b) = (centred_as(scope, a, za, dtype)?, centred_as(scope, b, zb, dtype)?);
    let sum = only(matmul::matmul(scope, &node.with_inputs([a, b]))?)?;
    one(scope.cast(sum, DataType::int(32))?)
}

/// A scale of a product: one number for both sides, perhaps one for each column or row.
pub fn product_scale(scope: &mut Scope, a: Expr, b: Expr) -> Result<Expr> {
    let (a, b) = (scope.cast(a, DataType::float(32))?, scope.cast(b, DataType::float(32))?);
    broadcast_call(scope, "multiply", [a, b])
}

/// A sum of products as integers of 8 bits: scaled by what both sides' steps and the result's are worth.
pub fn requantized(
    scope: &mut Scope,
    sum: Expr,
    scale: Expr,
    (out_scale, out_zero): (Expr, Option<Expr>),
    dtype: DataType,
) -> Result<Expr> {
    // Scales may be float16, whose products and quotients leave its range.
    let real = scope.cast(sum, DataType::float(32))?;
    let out_scale = scope.cast(out_scale, DataType::float(32))?;
    let scale = broadcast_call(scope, "divide", [scale, out_scale])?;
    let real = broadcast_call(scope, "multiply", [real, scale])?;
    let unit = scope.scalar(1.0, DataType::float(32))?;
    quantize_to(scope, real, (unit, out_zero), dtype, (0, 0))
}

/// `QLinearMatMul`.
pub fn qlinear_matmul(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(3)?)?);
    let (scale_a, zero_a) = parameters(scope, node, 1)?;
    let (scale_b, zero_b) = parameters(scope, node, 4)?;
    let scale_a = row_zero(scope, Some(scale_a))?.ok_or_else(|| NodeError::invalid("a scale is missing"))?;
    let zero_a = row_zero(scope, zero_a)?;
    let out = parameters(scope, node, 6)?;
    let dtype = dtype_of(scope, node, 7)?.unwrap_or(DataType::uint(8));
    let sum = match words::matmul(scope, node, (&a, zero_a.as_ref()), [3, 5])? {
        Some(sum) => sum,
        None => {
            let sum_dtype = sum_type(scope, node, &a, &Sides { zero: Some(2), weight: [3, 5], kept: Kept::Last });
            let (a, b) = (centred_as(scope, a, zero_a, sum_dtype)?, centred_as(scope, b, zero_b, sum_dtype)?);
            only(matmul::matmul(scope, &node.with_inputs([a, b]))?)?
        }
    };
    let scale = product_scale(scope, scale_a, scale_b)?;
    one(requantized(scope, sum, scale, out, dtype)?)
}

/// A parameter for each output channel, in line with axis `axis` of a tensor of `rank` axes.
pub fn per_channel(scope: &mut Scope, parameter: Expr, axis: usize, rank: usize) -> Result<Expr> {
    let dims = scope.dims(&parameter)?;
    match &dims[..] {
        [n] if !n.is_int(1) => {
            let mut lined = vec![prim::int(1); rank];
            lined[axis] = n.clone();
            scope.reshape(parameter, lined)
        }
        _ => scope.reshape(parameter, Vec::<PrimExpr>::new()),
    }
}

/// A convolution of integers less the zero points of input and weight, whose places the sides say; its result is of any type that holds it.
fn conv_sum(scope: &mut Scope, node: &Node, sides: &Sides, (zx, zw): (Option<Expr>, Option<Expr>)) -> Result<Expr> {
    let (x, weight) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(sides.weight[0])?)?);
    if let Some(sum) = words::convolution(scope, node, (&x, zx.as_ref()), sides.weight)? {
        return Ok(sum);
    }
    let dtype = sum_type(scope, node, &x, sides);
    let rank = scope.dims(&weight)?.len();
    let zw = zw.map(|zero| per_channel(scope, zero, 0, rank)).transpose()?;
    let zx = zx.map(|zero| per_channel(scope, zero, 0, rank)).transpose()?;
    let (x, weight) = (centred_as(scope, x, zx, dtype)?, centred_as(scope, weight, zw, dtype)?);
    only(conv::conv(scope, &node.with_inputs([x, weight]))?)
}

/// `ConvInteger`.
pub fn conv_integer(scope: &mut Scope, node: &Node) -> Outputs {
    let zeros = (zero_point(scope, node, 2)?, zero_point(scope, node, 3)?);
    let sum = conv_sum(scope, node, &Sides { zero: Some(2), weight: [1, 3], kept: Kept::First }, zeros)?;
    one(scope.cast(sum, DataType::int(32))?)
}

/// `QLinearConv`.
pub fn qlinear_conv(scope: &mut Scope, node: &Node) -> Outputs {
    let (scale_x, zero_x) = parameters(scope, node, 1)?;
    let (scale_w, zero_w) = parameters(scope, node, 4)?;
    let out = parameters(scope, node, 6)?;
    let dtype = dtype_of(scope, node, 7)?.unwrap_or(DataType::uint(8));
    let sides = Sides { zero: Some(2), weight: [3, 5], kept: Kept::First };
    let mut sum = conv_sum(scope, node, &sides, (zero_x, zero_w))?;
    let rank = scope.dims(&sum)?.len();
    if let Some(bias) = node.optional(8) {
        let bias = scope.tensor(bias)?;
        let bias = per_channel(scope, bias, 1, rank)?;
        // A bias may be any integer of 32 bits.
        sum = scope.cast(sum, DataType::int(32))?;
        sum = broadcast_call(scope, "add", [sum, bias])?;
    }
    let scale_w = per_channel(scope, scale_w, 1, rank)?;
    let scale_x = scope.reshape(scale_x, Vec::new())?;
    let scale = product_scale(scope, scale_x, scale_w)?;
    let out_scale = scope.reshape(out.0, Vec::new())?;
    one(requantized(scope, sum, scale, (out_scale, out.1), dtype)?)
}
