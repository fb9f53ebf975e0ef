//! Padding.

use relaxide_ir::Attrs;
use relaxide_relax::Expr;

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
    let given = node.known_ints(1, "the padding")?.ok_or_else(|| NodeError::invalid("the padding is missing"))?;
    let value = node.known_scalar(2, "the padding's value")?.unwrap_or(0.0);
    let pads = match node.known_ints(3, "`axes`")? {
        None => given,
        Some(axes) => {
            let mut pads = vec![0; 2 * rank];
            for (i, &axis) in axes.iter().enumerate() {
                let (axis, before, after) = (dims::axis(axis, rank), given.get(i), given.get(i + axes.len()));
                let (Some(axis), Some(before), Some(after)) = (axis, before, after) else {
                    return Err(NodeError::invalid(format!("{given:?} is no padding for the axes {axes:?}")));
                };
                (pads[axis], pads[axis + rank]) = (*before, *after);
            }
            pads
        }
    };
    padded(scope, node, x, pads, value)
}

fn padded(scope: &mut Scope, node: &Node, x: Expr, pads: Vec<i64>, value: f64) -> Outputs {
    let rank = scope.dims(&x)?.len();
    if pads.len() != 2 * rank {
        return Err(NodeError::invalid(format!("{pads:?} is no padding for {rank} axes")));
    }
    if pads.iter().any(|p| *p < 0) {
        return Err(
            NodeError::unsupported("negative padding is not supported").help("use `Slice` to take elements away")
        );
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
