//! Products of integers: `MatMulInteger`, `ConvInteger`, `QLinearMatMul`, `QLinearConv`.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::exact::{Kept, Sides, sum_type};
use super::linear::{Scaling, Sharing, dtype_of, quantize_to, scaling, zero_point};
use super::words;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::ops::{Outputs, conv, matmul, one};
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// Integers, and which of them stands for zero.
pub struct Integers {
    /// The integers.
    pub values: Expr,
    /// One number, or several that are lined up with them; zero where there is none.
    pub zero: Option<Expr>,
}

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
    let a = Integers { values: a, zero: row_zero(scope, za)? };
    if let Some(sum) = words::matmul(scope, node, &a, [1, 3])? {
        return one(sum);
    }
    let dtype = sum_type(scope, node, &a.values, &Sides { zero: Some(2), weight: [1, 3], kept: Kept::Last });
    let (a, b) = (centred_as(scope, a.values, a.zero, dtype)?, centred_as(scope, b, zb, dtype)?);
    let sum = only(matmul::matmul(scope, &node.with_inputs([a, b]))?)?;
    one(scope.cast(sum, DataType::int(32))?)
}

/// A scale of a product: one number for both sides, perhaps one for each column or row.
pub fn product_scale(scope: &mut Scope, a: Expr, b: Expr) -> Result<Expr> {
    let (a, b) = (scope.cast(a, DataType::float(32))?, scope.cast(b, DataType::float(32))?);
    broadcast_call(scope, "multiply", [a, b])
}

/// A sum of products as integers of 8 bits: scaled by what both sides' steps and the result's are worth.
pub fn requantized(scope: &mut Scope, sum: Expr, scale: Expr, out: Scaling, dtype: DataType) -> Result<Expr> {
    // Scales may be float16, whose products and quotients leave its range.
    let real = scope.cast(sum, DataType::float(32))?;
    let out_scale = scope.cast(out.scale, DataType::float(32))?;
    let scale = broadcast_call(scope, "divide", [scale, out_scale])?;
    let real = broadcast_call(scope, "multiply", [real, scale])?;
    let unit = scope.scalar(1.0, DataType::float(32))?;
    quantize_to(scope, real, Scaling { scale: unit, zero: out.zero }, dtype, Sharing::default())
}

/// `QLinearMatMul`.
pub fn qlinear_matmul(scope: &mut Scope, node: &Node) -> Outputs {
    let (a, b) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(3)?)?);
    let [of_a, of_b, out] = [scaling(scope, node, 1)?, scaling(scope, node, 4)?, scaling(scope, node, 6)?];
    let scale_a = row_zero(scope, Some(of_a.scale))?.ok_or_else(|| NodeError::invalid("a scale is missing"))?;
    let a = Integers { values: a, zero: row_zero(scope, of_a.zero)? };
    let dtype = dtype_of(scope, node, 7)?.unwrap_or(DataType::uint(8));
    let sum = match words::matmul(scope, node, &a, [3, 5])? {
        Some(sum) => sum,
        None => {
            let sum_dtype =
                sum_type(scope, node, &a.values, &Sides { zero: Some(2), weight: [3, 5], kept: Kept::Last });
            let a = centred_as(scope, a.values, a.zero, sum_dtype)?;
            let b = centred_as(scope, b, of_b.zero, sum_dtype)?;
            only(matmul::matmul(scope, &node.with_inputs([a, b]))?)?
        }
    };
    let scale = product_scale(scope, scale_a, of_b.scale)?;
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
fn conv_sum(scope: &mut Scope, node: &Node, sides: &Sides, zx: Option<Expr>, zw: Option<Expr>) -> Result<Expr> {
    let x = Integers { values: scope.tensor(node.input(0)?)?, zero: zx };
    let weight = scope.tensor(node.input(sides.weight[0])?)?;
    if let Some(sum) = words::convolution(scope, node, &x, sides.weight)? {
        return Ok(sum);
    }
    let dtype = sum_type(scope, node, &x.values, sides);
    let rank = scope.dims(&weight)?.len();
    let zw = zw.map(|zero| per_channel(scope, zero, 0, rank)).transpose()?;
    let zx = x.zero.map(|zero| per_channel(scope, zero, 0, rank)).transpose()?;
    let (x, weight) = (centred_as(scope, x.values, zx, dtype)?, centred_as(scope, weight, zw, dtype)?);
    only(conv::conv(scope, &node.with_inputs([x, weight]))?)
}

/// `ConvInteger`.
pub fn conv_integer(scope: &mut Scope, node: &Node) -> Outputs {
    let (zx, zw) = (zero_point(scope, node, 2)?, zero_point(scope, node, 3)?);
    let sum = conv_sum(scope, node, &Sides { zero: Some(2), weight: [1, 3], kept: Kept::First }, zx, zw)?;
    one(scope.cast(sum, DataType::int(32))?)
}

/// `QLinearConv`.
pub fn qlinear_conv(scope: &mut Scope, node: &Node) -> Outputs {
    let [of_x, of_w, out] = [scaling(scope, node, 1)?, scaling(scope, node, 4)?, scaling(scope, node, 6)?];
    let dtype = dtype_of(scope, node, 7)?.unwrap_or(DataType::uint(8));
    let sides = Sides { zero: Some(2), weight: [3, 5], kept: Kept::First };
    let mut sum = conv_sum(scope, node, &sides, of_x.zero, of_w.zero)?;
    let rank = scope.dims(&sum)?.len();
    if let Some(bias) = node.optional(8) {
        let bias = scope.tensor(bias)?;
        let bias = per_channel(scope, bias, 1, rank)?;
        // A bias may be any integer of 32 bits.
        sum = scope.cast(sum, DataType::int(32))?;
        sum = broadcast_call(scope, "add", [sum, bias])?;
    }
    let scale_w = per_channel(scope, of_w.scale, 1, rank)?;
    let scale_x = scope.reshape(of_x.scale, Vec::new())?;
    let scale = product_scale(scope, scale_x, scale_w)?;
    let out = Scaling { scale: scope.reshape(out.scale, Vec::new())?, zero: out.zero };
    one(requantized(scope, sum, scale, out, dtype)?)
}
