//! Pooling.

use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::conv::{Window, as_2d, from_2d, lift, lift_pads};
use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// `MaxPool` over one or two spatial axes; the indices of the maxima are not supported.
pub fn max(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("storage_order", 0)?;
    windowed(scope, node, "nn.max_pool2d", Attrs::new())
}

/// `AveragePool` over one or two spatial axes.
pub fn average(scope: &mut Scope, node: &Node) -> Outputs {
    let attrs = Attrs::new().with("count_include_pad", node.flag("count_include_pad", false)?);
    windowed(scope, node, "nn.avg_pool2d", attrs)
}

fn windowed(scope: &mut Scope, node: &Node, name: &str, attrs: Attrs) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let dims = scope.dims(&x)?;
    let rank = match dims.len().checked_sub(2) {
        Some(rank @ (1 | 2)) => rank,
        _ => {
            let n = dims.len();
            return Err(NodeError::unsupported(format!("inputs of {n} axes are not supported; of 3 or 4 they are")));
        }
    };
    let kernel = node.ints("kernel_shape")?.ok_or_else(|| NodeError::invalid("attribute `kernel_shape` is missing"))?;
    let window = Window::read(node, kernel, &dims[2..])?;
    let x = as_2d(scope, x)?;
    let attrs = attrs
        .with("pool_size", lift(&window.kernel, 1))
        .with("strides", lift(&window.strides, 1))
        .with("padding", lift_pads(&window.pads))
        .with("dilation", lift(&window.dilations, 1))
        .with("ceil_mode", node.flag("ceil_mode", false)?);
    let y = scope.op(name, [x], attrs)?;
    one(from_2d(scope, y, rank)?)
}

/// `GlobalAveragePool`: the mean over all spatial axes.
pub fn global_average(scope: &mut Scope, node: &Node) -> Outputs {
    global(scope, node, "mean")
}

/// `GlobalMaxPool`: the maximum over all spatial axes.
pub fn global_max(scope: &mut Scope, node: &Node) -> Outputs {
    global(scope, node, "max")
}

fn global(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x: Expr = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len() as i64;
    if rank < 3 {
        return Err(NodeError::invalid(format!("the input has {rank} axes; it needs at least 3")));
    }
    let attrs = Attrs::new().with("axis", (2..rank).collect::<Vec<_>>()).with("keepdims", true);
    one(scope.op(name, [x], attrs)?)
}
