//! `ConvTranspose`.
//!
//! The natural extent of a transposed convolution is `(n - 1) * stride + dilated_extent`. What a node takes away at both ends, or adds behind,
//! is fixed where it is said by `pads` and `output_padding`, or follows from fixed sizes: that is the operator's own business. Else
//! (`output_shape` of an image without fixed sizes, `auto_pad` with a window that the weight brings) the natural result is made and
//! its middle taken.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_relax::op::window::all;
use relaxide_tir::te;

use super::conv::{
    Window, add_bias, agree_on_channels, as_2d, from_2d, group, input, is_divided, lift, lift_pads, weight,
};
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// What becomes of an axis of the natural result.
struct TransposedAxis {
    /// How many elements go in front.
    front: PrimExpr,
    /// How long the result is; what lies behind the natural extent is zero.
    length: PrimExpr,
    /// How long it would be.
    natural: PrimExpr,
}

impl TransposedAxis {
    /// Elements that go behind, and such as are added there, where the operator can do both.
    fn fixed(&self, stride: i64) -> Option<(i64, i64, i64)> {
        let front = self.front.as_int()?;
        let behind = dims::simplify(&(&self.natural - &self.front - &self.length)).as_int()?;
        let (behind, extra) = (behind.max(0), (-behind).max(0));
        (extra < stride).then_some((front, behind, extra))
    }
}

/// The axes that a node asks for, by `pads`, by the shape that its output is to have, or by `auto_pad`.
fn axes(node: &Node, window: &Window<PrimExpr>, spatial: &[PrimExpr]) -> Result<Vec<TransposedAxis>> {
    let rank = spatial.len();
    let extra = node.ints("output_padding")?.unwrap_or_else(|| vec![0; rank]);
    if extra.len() != rank || extra.iter().any(|e| !(0..1 << 31).contains(e)) {
        return Err(NodeError::invalid(format!("`output_padding` is {extra:?}, not {rank} numbers")));
    }
    let auto = node.str_or("auto_pad", "NOTSET")?;
    let shape = node.ints("output_shape")?.filter(|s| !s.is_empty());
    if let Some(shape) = &shape
        && (shape.len() < rank || shape.iter().any(|n| !(1..1 << 31).contains(n)))
    {
        return Err(NodeError::invalid(format!("`output_shape` is {shape:?}, not {rank} positive numbers")));
    }
    let along = |i: usize| {
        let stride = window.strides[i];
        let natural = dims::simplify(&((&spatial[i] - 1) * stride + window.dilated_extent(i)));
        let length = match &shape {
            Some(shape) => prim::int(shape[shape.len() - rank + i]),
            None if auto.starts_with("SAME") => dims::simplify(&(&spatial[i] * stride)),
            None => {
                let length = &natural + (extra[i] - window.pads[i] - window.pads[i + rank]);
                return TransposedAxis { front: window.pads[i].into(), length: dims::simplify(&length), natural };
            }
        };
        let total = prim::max(&natural + extra[i] - &length, 0);
        let front = if auto == "SAME_UPPER" { prim::floordiv(total, 2) } else { prim::floordiv(total + 1, 2) };
        TransposedAxis { front: dims::simplify(&front), length, natural }
    };
    Ok((0..rank).map(along).collect())
}

/// The middle of the natural result.
fn middle(scope: &mut Scope, y: Expr, axes: &[TransposedAxis]) -> Result<Expr> {
    let own = scope.dims(&y)?;
    let dtype = scope.dtype(&y);
    let dims: Vec<PrimExpr> = own[..2].iter().cloned().chain(axes.iter().map(|a| a.length.clone())).collect();
    scope.te("middle", vec![y], |inputs| {
        vec![te::compute("middle", &dims, |at| {
            let places = at[2..].iter().zip(axes).map(|(at, axis)| at + &axis.front);
            let index: Vec<PrimExpr> = at[..2].iter().cloned().chain(places).collect();
            let inside = all(index[2..].iter().zip(&own[2..]).map(|(place, n)| prim::lt(place, n)));
            prim::if_then_else(inside, inputs[0].at(&index), prim::constant(dtype, 0.0))
        })]
    })
}

/// `ConvTranspose` over one to three spatial axes.
pub fn conv_transpose(scope: &mut Scope, node: &Node) -> Outputs {
    let w = weight(scope, node)?;
    let (x, rank) = input(scope, node, &w)?;
    let group = group(node)?;
    let (x, w) = agree_on_channels(scope, x, w, 0, 1)?;
    is_divided(scope, &w, group)?;
    let spatial = scope.dims(&x)?[2..].to_vec();
    let window = Window::unpadded(node, scope.dims(&w)?[2..].to_vec(), rank)?;
    let axes = axes(node, &window, &spatial)?;
    let fixed = axes.iter().zip(&window.strides).map(|(axis, stride)| axis.fixed(*stride)).collect::<Option<Vec<_>>>();
    let margins = fixed.clone().unwrap_or_else(|| vec![(0, 0, 0); rank]);
    let pads: Vec<i64> = margins.iter().map(|m| m.0).chain(margins.iter().map(|m| m.1)).collect();
    let extra: Vec<i64> = margins.iter().map(|m| m.2).collect();
    let (x, w) = (as_2d(scope, x)?, as_2d(scope, w)?);
    let attrs = Attrs::new()
        .with("strides", lift(&window.strides, 1))
        .with("padding", lift_pads(&pads))
        .with("output_padding", lift(&extra, 0))
        .with("dilation", lift(&window.dilations, 1))
        .with("groups", group);
    let y = scope.op(if rank == 3 { "nn.conv3d_transpose" } else { "nn.conv2d_transpose" }, [x, w], attrs)?;
    let mut y = from_2d(scope, y, rank)?;
    if fixed.is_none() {
        y = middle(scope, y, &axes)?;
    }
    one(add_bias(scope, y, node.optional(2))?)
}
