//! Products between `DequantizeLinear` and whatever follows: how most tools write quantized networks.
//!
//! ```text
//! a = DequantizeLinear(qa, sa, za)
//! w = DequantizeLinear(qw, sw, zw)     →    y = float32(sum of (qa - za) * (qw - zw)) * (sa * sw)
//! y = MatMul(a, w)
//! ```
//!
//! The sum is that of [`words`], exact in 32 bits, where the original rounds at every term; a `QuantizeLinear` behind it may so give the
//! neighbouring step. Served are `MatMul`, `Gemm` and `Conv` with weights that the program knows, one scale for the left side, and one
//! for the weight or one for each column or filter. Everything else is the product of numbers that the file says.

use relaxide_ffi::{DataType, Tensor};
use relaxide_relax::Expr;

use super::integer::{Integers, per_channel, product_scale};
use super::linear::zero_point;
use super::words;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::ops::{conv, matmul};
use crate::proto::ElementType;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// Terms up to which 32 bits hold every sum of products of two numbers of 8 bits less their zero points.
const MOST_TERMS: i64 = (1 << 31) / (255 * 255);

/// What a value was dequantized from.
#[derive(Clone, Debug)]
pub struct Dequantized {
    /// The integers.
    pub(super) x: Value,
    pub(super) scale: Value,
    pub(super) zero: Option<Value>,
    axis: i64,
}

impl Dequantized {
    /// What a node dequantizes to float32; none where it is another one, or has scales for blocks.
    pub fn of(node: &Node) -> Option<Dequantized> {
        let is_float = [0, ElementType::Float as i64].contains(&node.int_or("output_dtype", 0).ok()?);
        let plain = node.op() == "DequantizeLinear" && is_float && node.int_or("block_size", 0).ok()? == 0;
        let axis = node.int_or("axis", 1).ok()?;
        let (x, scale) = (node.optional(0).filter(|_| plain)?.clone(), node.optional(1)?.clone());
        Some(Dequantized { x, scale, zero: node.optional(2).cloned(), axis })
    }

    /// Whether there is one scale, and one zero point.
    fn is_whole(&self, scope: &Scope) -> Result<bool> {
        is_one_step(scope, &self.scale, self.zero.as_ref())
    }
}

/// Whether there is one scale, and one zero point.
pub(super) fn is_one_step(scope: &Scope, scale: &Value, zero: Option<&Value>) -> Result<bool> {
    let is_one = |value: &Value| Ok::<_, NodeError>(scope.value_dims(value)?.iter().all(|n| n.is_int(1)));
    Ok(is_one(scale)? && zero.map_or(Ok(true), is_one)?)
}

/// Whether scales are float32.
pub(super) fn is_single(scope: &Scope, scale: &Value) -> bool {
    let float = DataType::float(32);
    match scale {
        Value::Constant(tensor) => tensor.dtype() == float,
        Value::Computed(expr) => scope.dtype(expr) == float,
        _ => false,
    }
}

/// Whether a value was dequantized from integers of 8 bits by one scale.
pub(super) fn is_whole_byte(scope: &Scope, from: &Dequantized) -> Result<bool> {
    let dtype = match &from.x {
        Value::Constant(tensor) => tensor.dtype(),
        Value::Computed(expr) => scope.dtype(expr),
        _ => return Ok(false),
    };
    let is_byte = [DataType::int(8), DataType::uint(8)].contains(&dtype);
    Ok(is_byte && from.is_whole(scope)? && is_single(scope, &from.scale))
}

/// Whether a product of values that were dequantized has a weight that is known, one scale for its left side, and sums that 32 bits hold.
pub(super) fn is_served(scope: &Scope, node: &Node, a: &Dequantized, w: &Dequantized) -> Result<bool> {
    let Value::Constant(weight) = &w.x else { return Ok(false) };
    let terms = match (node.op(), weight.shape()) {
        ("Conv", [_, rest @ ..]) => rest.iter().product(),
        ("Gemm", [_, columns]) if node.flag("transB", false)? => *columns,
        (_, [rows, _]) => *rows,
        _ => return Ok(false),
    };
    let is_scaled = a.is_whole(scope)? && is_single(scope, &a.scale) && is_single(scope, &w.scale);
    let along = if node.op() == "Conv" { 0 } else { weight.shape().len() as i64 - 1 };
    let is_by_column =
        node.op() == "Gemm" || w.is_whole(scope)? || w.axis.rem_euclid(weight.shape().len() as i64) == along;
    Ok(weight.dtype().bits == 8 && terms <= MOST_TERMS && is_scaled && is_by_column)
}

/// `MatMul`, `Gemm` or `Conv` of values that were dequantized; none where it is not served.
pub fn product(scope: &mut Scope, node: &Node, a: &Dequantized, w: &Dequantized) -> Result<Option<Expr>> {
    let (true, Value::Constant(weight)) = (is_served(scope, node, a, w)?, &w.x) else { return Ok(None) };
    match node.op() {
        "Conv" => convolution(scope, node, a, w),
        "Gemm" if node.flag("transA", false)? || scope.value_dims(&a.x)?.len() != 2 => Ok(None),
        "Gemm" => {
            let transposed = node.flag("transB", false)?;
            let (weight, axis) =
                if transposed { (matmul::transposed_constant(weight)?, 0) } else { (weight.clone(), 1) };
            let Some(y) = matrix(scope, node, a, w, &weight, axis)? else { return Ok(None) };
            matmul::ending(scope, node, y).map(Some)
        }
        _ => matrix(scope, node, a, w, weight, 1),
    }
}

/// The node with the integers as its inputs: both sides, then their zero points.
fn integers<'n>(node: &Node<'n>, a: &Dequantized, w: &Dequantized, weight: &Tensor) -> Node<'n> {
    let inputs = vec![Some(a.x.clone()), Some(Value::Constant(weight.clone())), a.zero.clone(), w.zero.clone()];
    Node { proto: node.proto, inputs, opset: node.opset }
}

/// A product of matrices, of which the right one has its columns in the axis that says so.
fn matrix(
    scope: &mut Scope,
    node: &Node,
    a: &Dequantized,
    w: &Dequantized,
    weight: &Tensor,
    axis: i64,
) -> Result<Option<Expr>> {
    if !w.is_whole(scope)? && w.axis.rem_euclid(2) != axis {
        return Ok(None);
    }
    let node = integers(node, a, w, weight);
    let x = scope.tensor(node.input(0)?)?;
    let zero = match zero_point(scope, &node, 2)? {
        Some(zero) => Some(scope.reshape(zero, Vec::new())?),
        None => None,
    };
    let Some(sum) = words::matmul(scope, &node, &Integers { values: x, zero }, [1, 3])? else { return Ok(None) };
    let of_weight = scope.tensor(&w.scale)?;
    let of_weight = if w.is_whole(scope)? { scope.reshape(of_weight, Vec::new())? } else { of_weight };
    scaled(scope, sum, a, of_weight).map(Some)
}

fn convolution(scope: &mut Scope, node: &Node, a: &Dequantized, w: &Dequantized) -> Result<Option<Expr>> {
    let Value::Constant(weight) = &w.x else { return Ok(None) };
    let rank = weight.shape().len();
    if !w.is_whole(scope)? && w.axis.rem_euclid(rank as i64) != 0 {
        return Ok(None);
    }
    let integers = integers(node, a, w, weight);
    let x = scope.tensor(integers.input(0)?)?;
    let zero = zero_point(scope, &integers, 2)?;
    let Some(sum) = words::convolution(scope, &integers, &Integers { values: x, zero }, [1, 3])? else {
        return Ok(None);
    };
    let of_weight = scope.tensor(&w.scale)?;
    let of_weight = per_channel(scope, of_weight, 1, rank)?;
    let y = scaled(scope, sum, a, of_weight)?;
    conv::add_bias(scope, y, node.optional(2)).map(Some)
}

/// A sum of steps as numbers.
fn scaled(scope: &mut Scope, sum: Expr, a: &Dequantized, of_weight: Expr) -> Result<Expr> {
    let own = scope.tensor(&a.scale)?;
    let own = scope.reshape(own, Vec::new())?;
    let scale = product_scale(scope, own, of_weight)?;
    let real = scope.cast(sum, DataType::float(32))?;
    broadcast_call(scope, "multiply", [real, scale])
}
