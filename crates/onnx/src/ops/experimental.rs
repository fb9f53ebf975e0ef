//! Operators that ONNX had on trial and dropped, which image models of that time have and ONNX Runtime still runs.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::activation::{line, soft_plus};
use super::elementwise::{broadcast_call, with_number};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// `Affine`: `alpha * x + beta`.
pub fn affine(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    one(line(scope, x, node.float_or("alpha", 1.0)?, node.float_or("beta", 0.0)?)?)
}

/// `ScaledTanh`: `alpha * tanh(beta * x)`.
pub fn scaled_tanh(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let inner = with_number(scope, "multiply", x, node.float_or("beta", 1.0)?)?;
    let tanh = scope.call("tanh", [inner])?;
    one(with_number(scope, "multiply", tanh, node.float_or("alpha", 1.0)?)?)
}

/// `ParametricSoftplus`: `alpha * softplus(beta * x)`.
pub fn parametric_softplus(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let inner = with_number(scope, "multiply", x, node.float_or("beta", 1.0)?)?;
    let soft = soft_plus(scope, inner)?;
    one(with_number(scope, "multiply", soft, node.float_or("alpha", 1.0)?)?)
}

/// `ImageScaler`: all of an image by one factor, and a summand for each channel.
pub fn image_scaler(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let bias = node.floats("bias")?.ok_or_else(|| NodeError::invalid("attribute `bias` is missing"))?;
    if rank != 4 {
        return Err(NodeError::invalid(format!("the input has {rank} axes, not 4")));
    }
    let bias: Vec<f64> = bias.into_iter().map(f64::from).collect();
    let bias = scope.constant(&bias, &[1, bias.len() as i64, 1, 1], scope.dtype(&x))?;
    let scaled = with_number(scope, "multiply", x, node.float_or("scale", 1.0)?)?;
    one(broadcast_call(scope, "add", [scaled, bias])?)
}

/// `Crop`: what is left between borders (left, top, right, bottom), or the height and width `scale` from the first two on.
pub fn crop(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let [batch, channels, height, width] = &shape[..] else {
        return Err(NodeError::invalid(format!("the input has {} axes, not 4", shape.len())));
    };
    let border = node.ints("border")?.unwrap_or_default();
    let &[left, top, right, bottom] = &border[..] else {
        return Err(NodeError::invalid(format!("`border` has {} numbers, not 4", border.len())));
    };
    let (rows, columns) = match node.ints("scale")?.as_deref() {
        Some(&[rows, columns]) => (prim::int(rows), prim::int(columns)),
        None | Some([]) => (height - top - bottom, width - left - right),
        Some(scale) => return Err(NodeError::invalid(format!("`scale` has {} numbers, not 2", scale.len()))),
    };
    for (first, length, own, what) in [(top, &rows, height, "rows"), (left, &columns, width, "columns")] {
        let length = dims::simplify(length);
        let fits = length.as_int().is_none_or(|n| n > 0)
            && own.as_int().zip(length.as_int()).is_none_or(|(a, n)| first + n <= a);
        if first < 0 || !fits {
            return Err(NodeError::invalid(format!(
                "{length} {what} from {first} on are not in an image that has {own}"
            )));
        }
    }
    let out: Vec<PrimExpr> = vec![batch.clone(), channels.clone(), dims::simplify(&rows), dims::simplify(&columns)];
    one(scope.te("crop", vec![x], |inputs| {
        vec![te::compute("crop", &out, |at| inputs[0].at(&[at[0].clone(), at[1].clone(), &at[2] + top, &at[3] + left]))]
    })?)
}
