//! Pooling over windows of images in planes (NCHW).

use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::window::{Partial, Window, all, windows};
use super::*;

const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The image.")];
const ATTRS: &[AttrDef] = &[
    AttrDef::ints_of("pool_size", 2, &[1, 1], "Extents of the window along height and width."),
    AttrDef::ints_of("strides", 2, &[1, 1], "Step of the window along height and width."),
    AttrDef::ints_of(
        "padding",
        4,
        &[0, 0, 0, 0],
        "Elements around the image: top, left, bottom, right; two numbers serve both sides.",
    ),
    AttrDef::ints_of("dilation", 2, &[1, 1], "Distance of neighbours in the window."),
    AttrDef::bool("ceil_mode", false, "Whether a last window that is only partly filled counts."),
    AttrDef::bool("count_include_pad", false, "Whether padding counts in an average."),
    AttrDef::str("layout", "NCHW", "Order of the image's axes."),
    AttrDef::new("out_layout", AttrKind::Str, AttrDefault::None, "Order of the result's axes; the image's if absent."),
];

const fn pooling(
    name: &'static str,
    lower: fn(&CallCx, &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError>,
    doc: &'static str,
) -> OpDef {
    OpDef {
        name,
        doc,
        args: DATA,
        attrs: ATTRS,
        infer: pool_type,
        lower: Lowering::Compute(lower),
        pattern: OpPattern::OutFusable,
        ..OpDef::BASE
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    pooling(
        "nn.max_pool2d",
        max_pool2d,
        "The largest element under a window that slides over an image. ONNX: MaxPool.",
    ),
    pooling(
        "nn.avg_pool2d",
        avg_pool2d,
        "The mean of the elements under a window that slides over an image. ONNX: AveragePool.",
    ),
];

fn pool_windows(cx: &CallCx) -> Result<[Window; 2], OpError> {
    cx.layout("layout", &["NCHW"])?;
    if cx.attrs.get("out_layout").is_some() {
        cx.layout("out_layout", &["NCHW"])?;
    }
    let &[kh, kw] = &cx.ints("pool_size")?[..] else { return cx.invalid("needs a window of two extents") };
    windows(cx, [kh, kw])
}

fn partial(cx: &CallCx) -> Result<Partial, OpError> {
    Ok(if cx.bool("ceil_mode")? { Partial::Counted } else { Partial::Dropped })
}

fn pool_type(cx: &CallCx) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    let windows = pool_windows(cx)?;
    match data.dims {
        None => Ok(tensor_type(None, Some(4), data.dtype)),
        Some(dims) => Ok(Type::tensor(pool_dims(cx, &dims, windows)?, data.dtype)),
    }
}

fn pool_dims(cx: &CallCx, dims: &[PrimExpr], [y, x]: [Window; 2]) -> Result<Vec<PrimExpr>, OpError> {
    let [n, c, h, w] = dims else { return cx.invalid(format!("`data` has {} dimensions, not 4", dims.len())) };
    let partial = partial(cx)?;
    Ok(vec![n.clone(), c.clone(), y.positions(h, partial), x.positions(w, partial)])
}

/// A window at a position: how to reach its elements, and which of them lie in the image.
struct Under<'a> {
    data: &'a te::Tensor,
    windows: [Window; 2],
    /// Whether a window may reach beyond the image.
    beyond: bool,
}

impl Under<'_> {
    /// The element under a tap of the window at an output element, or `outside` where that is padding.
    fn element(&self, at: &[PrimExpr], taps: [&PrimExpr; 2], outside: PrimExpr) -> PrimExpr {
        let [y, x] = self.windows;
        let row = y.element(&at[2], taps[0]) - y.before;
        let column = x.element(&at[3], taps[1]) - x.before;
        let value = self.data.at(&[at[0].clone(), at[1].clone(), row.clone(), column.clone()]);
        if !self.beyond {
            return value;
        }
        let within = |e: &PrimExpr, axis: usize| [prim::ge(e, 0), prim::lt(e, &self.data.shape()[axis])];
        prim::if_then_else(all(within(&row, 2).into_iter().chain(within(&column, 3))), value, outside)
    }
}

fn under<'a>(cx: &CallCx, inputs: &'a [te::Tensor]) -> Result<Under<'a>, OpError> {
    let [data] = inputs else { return cx.invalid("needs an image") };
    let windows = pool_windows(cx)?;
    let beyond = windows.iter().any(Window::padded) || partial(cx)? == Partial::Counted;
    Ok(Under { data, windows, beyond })
}

fn max_pool2d(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let under = under(cx, inputs)?;
    let dims = pool_dims(cx, under.data.shape(), under.windows)?;
    let (ry, rx) = taps(&under);
    Ok(vec![te::compute("max_pool2d", dims, |at| {
        let outside = prim::lowest(under.data.dtype());
        te::max(under.element(at, [&ry.var(), &rx.var()], outside), [&ry, &rx])
    })])
}

fn taps(under: &Under) -> (te::ReduceAxis, te::ReduceAxis) {
    let [y, x] = under.windows;
    (te::reduce_axis_named("ry", y.kernel), te::reduce_axis_named("rx", x.kernel))
}

fn avg_pool2d(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let under = under(cx, inputs)?;
    let dtype = under.data.dtype();
    if !dtype.is_float() {
        return cx.unsupported(format!("means of {dtype} are not implemented; convert the image with astype"));
    }
    let dims = pool_dims(cx, under.data.shape(), under.windows)?;
    let (ry, rx) = taps(&under);
    let total = te::compute("pool_sum", &dims, |at| {
        te::sum(under.element(at, [&ry.var(), &rx.var()], prim::constant(dtype, 0.0)), [&ry, &rx])
    });
    let [y, x] = under.windows;
    let with_padding = cx.bool("count_include_pad")?;
    let fixed = !under.beyond || (with_padding && partial(cx)? == Partial::Dropped);
    Ok(vec![te::compute("avg_pool2d", dims, |at| {
        if fixed {
            return total.at(at) * prim::constant(dtype, 1.0 / (y.kernel * x.kernel) as f64);
        }
        let shape = under.data.shape();
        let rows = covered(&y, &at[2], &shape[2], with_padding);
        let columns = covered(&x, &at[3], &shape[3], with_padding);
        prim::div(total.at(at), prim::cast(dtype, prim::max(rows * columns, 1)))
    })])
}

/// How many taps of a window meet the image, or the image and its padding.
fn covered(w: &Window, position: &PrimExpr, size: &PrimExpr, with_padding: bool) -> PrimExpr {
    let start = position * w.stride - w.before;
    let (low, high) = if with_padding { (prim::int(-w.before), size + w.after) } else { (prim::int(0), size.clone()) };
    // Taps lie at start, start + dilation, …; those before `low` and from `high` on do not count.
    let taps_before = |limit: PrimExpr| prim::floordiv(limit - &start + (w.dilation - 1), w.dilation);
    let first = prim::max(taps_before(low), 0);
    let last = prim::min(taps_before(high), w.kernel);
    prim::max(last - first, 0)
}
