//! The geometry of operators that slide a window over an image: extents, padding, the elements under a window.

use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::{CallCx, OpError};

/// The window along one spatial axis.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Extent.
    pub kernel: i64,
    /// Step.
    pub stride: i64,
    /// Distance of neighbours in the window.
    pub dilation: i64,
    /// Elements in front of the image.
    pub before: i64,
    /// Elements behind the image.
    pub after: i64,
}

/// Whether a last window that is only partly filled counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// It does not: sizes are rounded down.
    Dropped,
    /// It does: sizes are rounded up.
    Counted,
}

/// The windows of the two spatial axes, from the attributes `strides`, `padding` (top, left, bottom, right) and `dilation`.
pub fn windows(cx: &CallCx, kernel: [i64; 2]) -> Result<[Window; 2], OpError> {
    let (strides, padding, dilation) = (cx.ints("strides")?, cx.ints("padding")?, cx.ints("dilation")?);
    let (&[sy, sx], &[top, left, bottom, right], &[dy, dx]) = (&strides[..], &padding[..], &dilation[..]) else {
        return cx.invalid("needs two strides, four paddings and two dilations");
    };
    if strides.iter().chain(&dilation).chain(&kernel).any(|v| *v < 1) {
        return cx.invalid("strides, dilations and the window's extents must be positive");
    }
    if padding.iter().any(|p| *p < 0) {
        return cx.invalid("padding must not be negative");
    }
    Ok([
        Window { kernel: kernel[0], stride: sy, dilation: dy, before: top, after: bottom },
        Window { kernel: kernel[1], stride: sx, dilation: dx, before: left, after: right },
    ])
}

impl Window {
    /// Elements of the image under the window, from the first to the last.
    pub fn reach(&self) -> i64 {
        self.dilation.saturating_mul(self.kernel - 1).saturating_add(1)
    }

    /// How many positions the window takes over an image of `size` elements.
    pub fn positions(&self, size: &PrimExpr, partial: Partial) -> PrimExpr {
        let spare = self.before + self.after - self.reach();
        let rounding = if partial == Partial::Counted { self.stride - 1 } else { 0 };
        Analyzer::new().simplify(&(prim::floordiv(size + (spare + rounding), self.stride) + 1))
    }

    /// The element under tap `tap` of the window at `position`, counted with padding.
    pub fn element(&self, position: &PrimExpr, tap: &PrimExpr) -> PrimExpr {
        position * self.stride + tap * self.dilation
    }

    /// Whether there is padding.
    pub fn padded(&self) -> bool {
        self.before > 0 || self.after > 0
    }
}

/// Whether every condition holds.
pub fn all(conditions: impl IntoIterator<Item = PrimExpr>) -> PrimExpr {
    conditions.into_iter().reduce(prim::and).unwrap_or_else(|| prim::boolean(true))
}

/// An image (the last two of four axes) with a value around it; the image itself where there is no padding.
pub fn pad_image(image: &te::Tensor, [y, x]: [Window; 2], value: PrimExpr) -> te::Tensor {
    let &[n, c, h, w] = &image.shape().iter().collect::<Vec<_>>()[..] else { return image.clone() };
    if !y.padded() && !x.padded() {
        return image.clone();
    }
    let shape = [n.clone(), c.clone(), h + (y.before + y.after), w + (x.before + x.after)];
    te::compute("pad_temp", shape, |axes| {
        let mut inside = Vec::new();
        for (axis, window, size) in [(&axes[2], y, h), (&axes[3], x, w)] {
            if window.before > 0 {
                inside.push(prim::ge(axis, window.before));
            }
            if window.after > 0 {
                inside.push(prim::lt(axis, size + window.before));
            }
        }
        let index = [axes[0].clone(), axes[1].clone(), &axes[2] - y.before, &axes[3] - x.before];
        prim::if_then_else(all(inside), image.at(&index), value)
    })
}
