//! Operators on quantized numbers whose results are no sums of products: they are computed on the numbers themselves.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::channels;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::ops::{Outputs, activation, layout, one, pool, reduce};
use crate::quantized::elementwise::result_dtype;
use crate::quantized::integer::only;
use crate::quantized::linear::{Scaling, Sharing, dequantize_to, dtype_of, quantize_to, scaling};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// Input `i`, whose scale and zero point follow it, as numbers.
fn real(scope: &mut Scope, node: &Node, i: usize) -> Result<Expr> {
    let x = scope.tensor(node.input(i)?)?;
    let own = scaling(scope, node, i + 1)?;
    dequantize_to(scope, x, own, DataType::float(32), Sharing::default())
}

/// Numbers with the scale and zero point in inputs `i` and `i + 1`.
fn quantized(scope: &mut Scope, node: &Node, y: Expr, i: usize) -> Outputs {
    let dtype = result_dtype(scope, node, i + 1)?;
    let own = scaling(scope, node, i)?;
    one(quantize_to(scope, y, own, dtype, Sharing::default())?)
}

/// `QLinearSigmoid`.
pub fn sigmoid(scope: &mut Scope, node: &Node) -> Outputs {
    by_table(scope, node, |scope, node| {
        let x = real(scope, node, 0)?;
        let y = scope.call("sigmoid", [x])?;
        quantized(scope, node, y, 3)
    })
}

/// A function of each byte by a table of what it gives for all 256, which is a constant where scales are. Functions that cost less than two loads
/// are better computed.
fn by_table(scope: &mut Scope, node: &Node, rule: impl FnOnce(&mut Scope, &Node) -> Outputs) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (dtype, dims) = (scope.dtype(&x), scope.dims(&x)?);
    let own = scaling(scope, node, 1)?;
    if dtype.bits != 8 || !scope.dims(&own.scale)?.iter().all(|dim| dim.is_int(1)) {
        return rule(scope, node);
    }
    let least = if dtype.is_uint() { 0 } else { i64::from(i8::MIN) };
    let all: Vec<i64> = (least..least + 256).collect();
    let all = scope.whole(&all, &[256], dtype)?;
    let table = only(rule(scope, &node.with_first(all))?)?;
    one(scope.te("look_up", vec![x, table], |inputs| {
        vec![te::compute("T_looked_up", &dims, |at| {
            let place = prim::cast(DataType::int(32), inputs[0].at(at)) - prim::int_of(DataType::int(32), least);
            inputs[1].at(&[place])
        })]
    })?)
}

/// `QLinearLeakyRelu`.
pub fn leaky_relu(scope: &mut Scope, node: &Node) -> Outputs {
    let x = real(scope, node, 0)?;
    let y = only(activation::leaky_relu(scope, &node.with_inputs([x]))?)?;
    quantized(scope, node, y, 3)
}

/// `QLinearSoftmax`, in the meaning that it has had since opset 13; before, all axes from one on are one.
pub fn softmax(scope: &mut Scope, node: &Node) -> Outputs {
    let x = real(scope, node, 0)?;
    let since = node.int_or("opset", 13)?;
    let inner = node.with_inputs([x]);
    let y = if since < 13 { activation::softmax_flat(scope, &inner)? } else { activation::softmax(scope, &inner)? };
    let y = only(y)?;
    quantized(scope, node, y, 3)
}

/// Applies a rule for tensors whose channels are axis 1, also where an attribute says that they are last.
fn by_channels(
    scope: &mut Scope,
    node: &Node,
    x: Expr,
    rule: impl FnOnce(&mut Scope, Expr) -> Result<Expr>,
) -> Result<Expr> {
    if !node.flag("channels_last", false)? || scope.dims(&x)?.len() < 3 {
        return rule(scope, x);
    }
    let x = channels::to_front(scope, x)?;
    let y = rule(scope, x)?;
    channels::to_back(scope, y)
}

/// `QLinearAveragePool`.
pub fn average_pool(scope: &mut Scope, node: &Node) -> Outputs {
    let x = real(scope, node, 0)?;
    let y = by_channels(scope, node, x, |scope, x| only(pool::average(scope, &node.with_inputs([x]))?))?;
    quantized(scope, node, y, 3)
}

/// `QLinearGlobalAveragePool`.
pub fn global_average_pool(scope: &mut Scope, node: &Node) -> Outputs {
    let x = real(scope, node, 0)?;
    let rank = scope.dims(&x)?.len() as i64;
    let attrs = Attrs::new().with("axis", (2..rank).collect::<Vec<i64>>()).with("keepdims", true);
    let y = by_channels(scope, node, x, |scope, x| scope.op("mean", [x], attrs))?;
    quantized(scope, node, y, 3)
}

/// `QLinearReduceMean`.
pub fn reduce_mean(scope: &mut Scope, node: &Node) -> Outputs {
    let x = real(scope, node, 0)?;
    let y = only(reduce::mean(scope, &node.with_inputs([x]))?)?;
    quantized(scope, node, y, 3)
}

/// `QLinearWhere`: between a condition and the result's parameters are two tensors with theirs.
pub fn where_(scope: &mut Scope, node: &Node) -> Outputs {
    node.input(8)?;
    let condition = scope.tensor(node.input(0)?)?;
    let (x, y) = (real(scope, node, 1)?, real(scope, node, 4)?);
    let z = broadcast_call(scope, "where", [condition, x, y])?;
    quantized(scope, node, z, 7)
}

/// `QLinearConcat`: the result's parameters come first.
pub fn concat(scope: &mut Scope, node: &Node) -> Outputs {
    let mut parts = Vec::new();
    for i in (2..node.inputs.len()).step_by(3) {
        parts.push(real(scope, node, i)?);
    }
    let joined = only(layout::concat(scope, &node.with_inputs(parts))?)?;
    let dtype = dtype_of(scope, node, 1)?.unwrap_or(DataType::uint(8));
    let scale = scope.tensor(node.input(0)?)?;
    let scale = scope.reshape(scale, Vec::<PrimExpr>::new())?;
    let zero = scope.tensor(node.input(1)?)?;
    let zero = scope.reshape(zero, Vec::<PrimExpr>::new())?;
    one(quantize_to(scope, joined, Scaling { scale, zero: Some(zero) }, dtype, Sharing::default())?)
}
