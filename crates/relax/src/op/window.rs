//! The geometry of operators that slide a window over an image: layouts, extents, padding, the elements under a window.
//!
//! Computes are written in one order of axes (batch, channels, then space), whatever the layout of the tensors: an [`Image`]
//! is a tensor that is indexed in that order.

use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::{AxisOrder, CallCx, OpError, Packing};

/// The window along one spatial axis.
#[derive(Clone, Debug)]
pub struct Window {
    /// Extent.
    pub kernel: PrimExpr,
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

/// The windows of the spatial axes, from the attributes `strides`, `padding` (all fronts, then all backs) and `dilation`.
pub fn windows(cx: &CallCx, kernel: &[PrimExpr]) -> Result<Vec<Window>, OpError> {
    let (strides, padding, dilation) = (cx.ints("strides")?, cx.ints("padding")?, cx.ints("dilation")?);
    let n = kernel.len();
    if (strides.len(), padding.len(), dilation.len()) != (n, 2 * n, n) {
        return cx.invalid(format!("needs {n} strides, {} paddings and {n} dilations", 2 * n));
    }
    if strides.iter().chain(&dilation).any(|v| *v < 1) || kernel.iter().any(|k| k.as_int().is_some_and(|k| k < 1)) {
        return cx.invalid("strides, dilations and the window's extents must be positive");
    }
    if padding.iter().any(|p| *p < 0) {
        return cx.invalid("padding must not be negative");
    }
    let window = |(i, kernel): (usize, &PrimExpr)| Window {
        kernel: kernel.clone(),
        stride: strides[i],
        dilation: dilation[i],
        before: padding[i],
        after: padding[n + i],
    };
    Ok(kernel.iter().enumerate().map(window).collect())
}

impl Window {
    /// Elements of the image under the window, from the first to the last.
    pub fn dilated_extent(&self) -> PrimExpr {
        match self.kernel.as_int() {
            Some(kernel) => PrimExpr::from(self.dilation.saturating_mul(kernel - 1).saturating_add(1)),
            None => (&self.kernel - 1) * self.dilation + 1,
        }
    }

    /// How many positions the window takes over an image of `size` elements.
    pub fn positions(&self, size: &PrimExpr, partial: Partial) -> PrimExpr {
        let spare = PrimExpr::from(self.before + self.after) - self.dilated_extent();
        let rounding = if partial == Partial::Counted { self.stride - 1 } else { 0 };
        let mut analyzer = Analyzer::new();
        let count = analyzer.simplify(&(prim::floordiv(size + (spare + rounding), self.stride) + 1));
        if partial == Partial::Dropped {
            return count;
        }
        // A last window that would begin behind the image does not count.
        let begins_inside = prim::lt((&count - 1) * self.stride, size + self.before);
        match begins_inside.as_int() {
            Some(0) => count - 1,
            Some(_) => count,
            None if analyzer.can_prove(&begins_inside) => count,
            None if self.stride == 1 => analyzer.simplify(&prim::min(count, size + self.before)),
            None => {
                let begins = prim::floordiv(size + (self.before - 1), self.stride) + 1;
                analyzer.simplify(&prim::min(count, begins))
            }
        }
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

/// How axes lie by a layout attribute, given the letters in the order of the computes.
pub fn layout_of(cx: &CallCx, attr: &str, letters: &str) -> Result<Packing, OpError> {
    let layout = cx.str(attr)?;
    match Packing::between(letters, layout) {
        Some(packing) => Ok(packing),
        None => cx.invalid(format!("`{attr}` is {layout}, which is no layout of the axes {letters}")),
    }
}

/// As [`layout_of`], where axes are not split.
pub fn layout_order(cx: &CallCx, attr: &str, letters: &str) -> Result<AxisOrder, OpError> {
    let packing = layout_of(cx, attr, letters)?;
    match packing.order() {
        Some(order) => Ok(order.clone()),
        None => cx.unsupported(format!("`{attr}` splits an axis, which is not implemented here")),
    }
}

/// As [`layout_of`], of a result's layout, which is another one where nothing is said.
pub fn out_layout_of(cx: &CallCx, letters: &str, default: &Packing) -> Result<Packing, OpError> {
    match cx.attrs.str("out_layout") {
        None | Some("") => Ok(default.clone()),
        Some(_) => layout_of(cx, "out_layout", letters),
    }
}

/// The dimensions of a tensor that lies in some way, in the order of the computes.
pub fn unpacked(cx: &CallCx, name: &str, packing: &Packing, dims: &[PrimExpr]) -> Result<Vec<PrimExpr>, OpError> {
    match packing.unpack(dims) {
        Some(dims) => Ok(dims),
        None => cx.invalid(format!("the blocks of `{name}` are not of the size that its layout says")),
    }
}

/// The dimensions of a result, given in the order of the computes, as it lies.
pub fn packed(cx: &CallCx, packing: &Packing, dims: &[PrimExpr]) -> Result<Vec<PrimExpr>, OpError> {
    match packing.pack(dims) {
        Some(dims) => Ok(dims),
        None => {
            cx.invalid("the result's layout splits an axis whose length is not known to be a multiple of the block's")
        }
    }
}

/// A tensor that is indexed in the order of the computes, whatever its layout.
#[derive(Clone, Debug)]
pub struct Image {
    tensor: te::Tensor,
    packing: Packing,
    dims: Vec<PrimExpr>,
}

impl Image {
    /// The tensor that is argument `name`, whose axes lie in some way.
    pub fn new(cx: &CallCx, name: &str, tensor: &te::Tensor, packing: &Packing) -> Result<Image, OpError> {
        let dims = unpacked(cx, name, packing, tensor.shape())?;
        Ok(Image { tensor: tensor.clone(), packing: packing.clone(), dims })
    }

    /// The element type.
    pub fn dtype(&self) -> relaxide_ffi::DataType {
        self.tensor.dtype()
    }

    /// The dimensions, in the order of the computes.
    pub fn dims(&self) -> Vec<PrimExpr> {
        self.dims.clone()
    }

    /// How many elements a block of an axis has, if it is split.
    pub fn block(&self, axis: usize) -> Option<i64> {
        self.packing.block(axis)
    }

    /// The element at an index in the order of the computes.
    pub fn at(&self, index: &[PrimExpr]) -> PrimExpr {
        self.tensor.at(&self.packing.place(index))
    }

    /// The image with a value around it; the image itself where there is no padding. Windows are of the axes behind the
    /// first two.
    pub fn padded(&self, windows: &[Window], value: PrimExpr) -> Image {
        if windows.iter().any(Window::padded) { self.copied(windows, value) } else { self.clone() }
    }

    /// As [`padded`](Self::padded), a copy where there is no padding.
    pub fn copied(&self, windows: &[Window], value: PrimExpr) -> Image {
        let mut shape = self.dims();
        for (dim, w) in shape.iter_mut().skip(2).zip(windows) {
            *dim = &*dim + (w.before + w.after);
        }
        // Where padding leaves no whole blocks, the padded image is not split.
        let whole = self.packing.pack(&shape).is_some();
        let packing = if whole { self.packing.clone() } else { AxisOrder::identity(shape.len()).into() };
        let place = packing.pack(&shape).unwrap_or_else(|| shape.clone());
        let tensor = packing.compute("pad_temp", place).build(|place| {
            let at = packing.index(place);
            let mut index = at.clone();
            let mut inside = Vec::new();
            for (i, w) in windows.iter().enumerate() {
                let (axis, size) = (&at[i + 2], &self.dims[i + 2]);
                if w.before > 0 {
                    inside.push(prim::ge(axis, w.before));
                }
                if w.after > 0 {
                    inside.push(prim::lt(axis, size + w.before));
                }
                index[i + 2] = axis - w.before;
            }
            if inside.is_empty() { self.at(&index) } else { prim::if_then_else(all(inside), self.at(&index), value) }
        });
        Image { tensor, packing, dims: shape }
    }
}

/// A compute written in one order of axes, whose result lies in another.
pub fn compute<B: Into<te::Body>>(
    cx: &CallCx,
    name: &str,
    dims: &[PrimExpr],
    packing: &Packing,
    f: impl FnOnce(&[PrimExpr]) -> B,
) -> Result<te::Tensor, OpError> {
    let shape = packed(cx, packing, dims)?;
    Ok(packing.compute(name, shape).build(|place| f(&packing.index(place))))
}

/// As [`compute`], with TVM's name of the rule by which the block is scheduled.
pub fn compute_by_rule<B: Into<te::Body>>(
    cx: &CallCx,
    name: &str,
    dims: &[PrimExpr],
    packing: &Packing,
    f: impl FnOnce(&[PrimExpr]) -> B,
) -> Result<te::Tensor, OpError> {
    let compute = packing.compute(name, packed(cx, packing, dims)?);
    let rule = format!("meta_schedule.{name}");
    Ok(compute.annotate("schedule_rule", rule).build(|place| f(&packing.index(place))))
}
