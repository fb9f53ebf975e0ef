//! Products and sums between `DequantizeLinear` and `QuantizeLinear`: of integers, scaled once, as `QLinearConv`, `QLinearMatMul`, `QLinearAdd` and
//! `QLinearMul` are.
//!
//! ```text
//! y = QuantizeLinear(Conv(DequantizeLinear(qx, sx, zx), DequantizeLinear(qw, sw, zw), b), sy, zy)
//!     →    y = QLinearConv(qx, sx, zx, qw, sw, zw, sy, zy, qb)        # b = DequantizeLinear(qb, sx * sw)
//! ```
//!
//! The file says that a sum of products is scaled by `sx * sw` and divided by `sy`; one factor for both takes no division, and gives the neighbouring
//! step where a number lies on the border between two, as it is in ONNX Runtime. A `Relu` in between is what rounding to the least integer
//! does, where that stands for zero. Both sides of a sum are counted in steps of the result. What the value is as a float is still there for whoever
//! else reads it.

use relaxide_ffi::DataType;
use relaxide_relax::Expr;

use super::dequantized::{Dequantized, is_one_step, is_served, is_single, is_whole_byte};
use super::{elementwise, integer};
use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::proto::NodeProto;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// How far the scale of a bias may be from the product of both sides' scales, as a part of that.
const NEAR: f64 = 1e-4;

/// A product, or a sum of two, of values that were dequantized.
#[derive(Clone, Debug)]
pub struct OfIntegers {
    proto: NodeProto,
    opset: i64,
    /// Both sides; of a convolution and a product of matrices the second is the weight.
    a: Dequantized,
    w: Dequantized,
    /// The integers of the bias, in the steps of the sum.
    bias: Option<Value>,
    /// Whether what is below zero has become zero.
    clipped: bool,
}

impl OfIntegers {
    /// A node whose sides were dequantized, and its bias, where it is such a product or sum.
    pub fn of(node: &Node, a: &Dequantized, w: &Dequantized, bias: Option<&Dequantized>) -> Option<OfIntegers> {
        let has_bias = node.optional(2).is_some();
        let bias = match (node.op(), has_bias, bias) {
            ("Conv" | "MatMul" | "Add" | "Mul", false, _) => None,
            ("Conv", true, Some(bias)) => Some(in_steps(bias, a, w)?),
            _ => return None,
        };
        Some(OfIntegers {
            proto: node.proto.clone(),
            opset: node.opset,
            a: a.clone(),
            w: w.clone(),
            bias,
            clipped: false,
        })
    }

    /// What `Relu` makes of it.
    pub fn clipped(&self) -> OfIntegers {
        OfIntegers { clipped: true, ..self.clone() }
    }

    /// What a `QuantizeLinear` makes of it; none where that has several scales, or other integers than those of 8 bits.
    pub fn quantized(&self, scope: &mut Scope, node: &Node) -> Result<Option<Expr>> {
        let served = Node { proto: &self.proto, inputs: Vec::new(), opset: self.opset };
        let by_element = ["Add", "Mul"].contains(&served.op());
        let is_served = match by_element {
            true => is_whole_byte(scope, &self.a)? && is_whole_byte(scope, &self.w)?,
            false => is_served(scope, &served, &self.a, &self.w)?,
        };
        if !is_served || !self.fits(scope, node)? {
            return Ok(None);
        }
        let own = |from: &Dequantized| [Some(from.x.clone()), Some(from.scale.clone()), from.zero.clone()];
        let (scale, zero) = (node.optional(1).cloned(), node.optional(2).cloned());
        let inputs = own(&self.a).into_iter().chain(own(&self.w)).chain([scale, zero, self.bias.clone()]).collect();
        let integers = Node { inputs, ..served };
        let outputs = match self.proto.op_type.as_str() {
            "Conv" => integer::qlinear_conv(scope, &integers)?,
            "Add" => elementwise::qlinear_add(scope, &integers)?,
            "Mul" => elementwise::qlinear_multiply(scope, &integers)?,
            _ => integer::qlinear_matmul(scope, &integers)?,
        };
        integer::only(outputs).map(Some)
    }

    /// Whether a `QuantizeLinear` makes integers of 8 bits by one scale, and of what was clipped the least ones.
    fn fits(&self, scope: &Scope, node: &Node) -> Result<bool> {
        let plain = node.int_or("block_size", 0)? == 0 && node.int_or("output_dtype", 0)? == 0;
        let (scale, zero) = (node.input(1)?, node.optional(2));
        if !plain || !is_one_step(scope, scale, zero)? || !is_single(scope, scale) {
            return Ok(false);
        }
        let (dtype, least) = match zero.map(|zero| (zero, zero.constant())) {
            None => (DataType::uint(8), Some(0)),
            Some((_, Some(known))) => (known.dtype(), constant::ints(known).ok().and_then(|z| z.first().copied())),
            Some((Value::Computed(expr), None)) => (scope.dtype(expr), None),
            Some(_) => return Ok(false),
        };
        let lowest = if dtype == DataType::int(8) { -128 } else { 0 };
        let is_byte = [DataType::int(8), DataType::uint(8)].contains(&dtype);
        Ok(is_byte && (!self.clipped || least == Some(lowest)))
    }
}

/// A bias as integers of 32 bits in the steps of the sum; none where it has others.
fn in_steps(bias: &Dequantized, a: &Dequantized, w: &Dequantized) -> Option<Value> {
    let numbers = |value: &Value| constant::floats(value.constant()?).ok();
    let integers = bias.x.constant().filter(|tensor| tensor.dtype() == DataType::int(32))?;
    let zeros = bias.zero.as_ref().map_or(Some(Vec::new()), numbers)?;
    let (own, of_a, of_w) = (numbers(&bias.scale)?, numbers(&a.scale)?, numbers(&w.scale)?);
    let ([of_a], count) = (of_a.as_slice(), integers.shape().iter().product::<i64>()) else { return None };
    let at = |scales: &[f64], i: usize| scales.get(if scales.len() == 1 { 0 } else { i }).copied();
    let is_step = |i: usize| {
        let (own, step) = (at(&own, i)?, of_a * at(&of_w, i)?);
        Some((own - step).abs() <= NEAR * step.abs())
    };
    let plain = zeros.iter().all(|zero| *zero == 0.0) && (0..count as usize).all(|i| is_step(i) == Some(true));
    plain.then(|| bias.x.clone())
}
