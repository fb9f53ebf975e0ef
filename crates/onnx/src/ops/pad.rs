//! Padding.

use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::computed::{self, Ints};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// `Pad` before opset 11: everything is an attribute.
pub fn pad_attrs(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let pads = node.ints("pads")?.ok_or_else(|| NodeError::invalid("attribute `pads` is missing"))?;
    let value = node.float_or("value", 0.0)?;
    padded(scope, node, x, pads, value)
}

/// `Pad`: widths and value are inputs; since opset 18 they may be for some axes only.
pub fn pad(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len();
    let axes = Ints::input(scope, node, 3)?.unwrap_or_else(|| Ints::fixed(0..rank as i64));
    let given = node.optional(1).ok_or_else(|| NodeError::invalid("the padding is missing"))?;
    let given = Ints::of_length(scope, given, 2 * axes.count())?;
    // Beyond these, a number of the compiler's has not all digits of an integer.
    let exact = |v: &Option<f64>| scope.dtype(&x).is_float() || v.is_none_or(|v| v.abs() < (1u64 << 53) as f64);
    let value = node.known_scalar(2, "the padding's value").ok().filter(exact);
    let widths = match (given.literals(), axes.literals(), value) {
        (Some(widths), Some(axes), Some(value)) if widths.iter().all(|w| *w >= 0) => Some((widths, axes, value)),
        _ => None,
    };
    let Some((widths, axes, value)) = widths else {
        let dtype = scope.dtype(&x);
        let value = match node.optional(2) {
            Some(value) => scope.tensor(value)?,
            None => scope.scalar(0.0, dtype)?,
        };
        let value = scope.reshape(value, Vec::new())?;
        return one(computed::padded(scope, x, given, axes, value, node.str_or("mode", "constant")?)?);
    };
    let mut pads = vec![0; 2 * rank];
    for (i, &axis) in axes.iter().enumerate() {
        let (axis, before, after) = (dims::axis(axis, rank), widths.get(i), widths.get(i + axes.len()));
        let (Some(axis), Some(before), Some(after)) = (axis, before, after) else {
            return Err(NodeError::invalid(format!("{widths:?} is no padding for the axes {axes:?}")));
        };
        (pads[axis], pads[axis + rank]) = (*before, *after);
    }
    padded(scope, node, x, pads, value.unwrap_or(0.0))
}

fn padded(scope: &mut Scope, node: &Node, x: Expr, pads: Vec<i64>, value: f64) -> Outputs {
    let rank = scope.dims(&x)?.len();
    if pads.len() != 2 * rank {
        return Err(NodeError::invalid(format!("{pads:?} is no padding for {rank} axes")));
    }
    if pads.iter().any(|p| *p < 0) {
        let value = scope.scalar(value, scope.dtype(&x))?;
        let (pads, axes) = (Ints::fixed(pads), Ints::fixed(0..rank as i64));
        return one(computed::padded(scope, x, pads, axes, value, node.str_or("mode", "constant")?)?);
    }
    if pads.iter().all(|p| *p == 0) {
        return one(x);
    }
    let mode = match node.str_or("mode", "constant")? {
        "constant" => "constant",
        "reflect" => "reflect",
        "edge" => "replicate",
        "wrap" => "circular",
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    };
    // Before and behind, axis by axis.
    let widths: Vec<i64> = (0..rank).flat_map(|axis| [pads[axis], pads[axis + rank]]).collect();
    let attrs = Attrs::new().with("pad_width", widths).with("pad_mode", mode).with("pad_value", value);
    one(scope.op("nn.pad", [x], attrs)?)
}
