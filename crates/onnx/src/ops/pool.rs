//! Pooling.
//!
//! Where an image is smaller than the window, but by less than a stride, the text of ONNX has no position for the window
//! and ONNX Runtime, which rounds the count of steps towards zero, has one. Models that people use rely on the latter, so
//! such images are extended ([`extended`]); whether they are so small is often known at run time only.

use relaxide_ir::Attrs;
use relaxide_ir::prim;
use relaxide_relax::Expr;
use relaxide_relax::op::window::all;
use relaxide_tir::te;

use super::conv::{Window, as_2d, from_2d, lift, lift_pads};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// `MaxPool` over one or two spatial axes; the indices of the maxima are not supported.
pub fn max(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("storage_order", 0)?;
    windowed(scope, node, "nn.max_pool2d", Attrs::new(), extended)
}

/// `AveragePool` over one or two spatial axes.
pub fn average(scope: &mut Scope, node: &Node) -> Outputs {
    let attrs = Attrs::new().with("count_include_pad", node.flag("count_include_pad", false)?);
    windowed(scope, node, "nn.avg_pool2d", attrs, |_, x, _| Ok(x))
}

/// `extend` makes an image that the window fits into.
fn windowed(
    scope: &mut Scope,
    node: &Node,
    name: &str,
    attrs: Attrs,
    extend: impl FnOnce(&mut Scope, Expr, &Window) -> Result<Expr, NodeError>,
) -> Outputs {
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
    let ceil_mode = node.flag("ceil_mode", false)?;
    let x = if ceil_mode { x } else { extend(scope, x, &window)? };
    let x = as_2d(scope, x)?;
    let attrs = attrs
        .with("pool_size", lift(&window.kernel, 1))
        .with("strides", lift(&window.strides, 1))
        .with("padding", lift_pads(&window.pads))
        .with("dilation", lift(&window.dilations, 1))
        .with("ceil_mode", ceil_mode);
    let y = scope.op(name, [x], attrs)?;
    one(from_2d(scope, y, rank)?)
}

/// An image for a maximum under a window, with elements that never win added behind an axis that is too short for one
/// position of the window and long enough for a step of the count that is rounded towards zero.
fn extended(scope: &mut Scope, x: Expr, window: &Window) -> Result<Expr, NodeError> {
    let old = scope.dims(&x)?;
    let rank = window.kernel.len();
    let mut new = old.clone();
    for axis in 0..rank {
        let reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
        let needed = reach - window.pads[axis] - window.pads[axis + rank];
        let dim = &old[axis + 2];
        if !dims::at_least(dim, needed) {
            let grown = prim::max(dim, prim::int(needed));
            let counted = prim::gt(dim.clone(), prim::int(needed - window.strides[axis]));
            new[axis + 2] = dims::simplify(&if window.strides[axis] >= needed {
                grown
            } else {
                prim::select(counted, grown, dim.clone())
            });
        }
    }
    if old.iter().zip(&new).all(|(a, b)| dims::equal(a, b)) {
        return Ok(x);
    }
    let least = prim::lowest(scope.dtype(&x));
    scope.te("extend", vec![x], |inputs| {
        let image = &inputs[0];
        vec![te::compute("extend", new, |at| {
            let within = at.iter().zip(image.shape()).skip(2).map(|(i, n)| prim::lt(i.clone(), n.clone()));
            prim::if_then_else(all(within), image.at(at), least.clone())
        })]
    })
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
