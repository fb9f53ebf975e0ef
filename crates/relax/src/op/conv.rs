//! Convolutions of images in planes (NCHW).

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_tir::te;

use super::window::{Partial, Window, all, pad_image, windows};
use super::*;
use crate::shape::prove_equal;

const STRIDES: AttrDef = AttrDef::ints_of("strides", 2, &[1, 1], "Step of the window along height and width.");
const PADDING: AttrDef = AttrDef::ints_of(
    "padding",
    4,
    &[0, 0, 0, 0],
    "Zeros around the image: top, left, bottom, right; two numbers serve both sides.",
);
const DILATION: AttrDef = AttrDef::ints_of("dilation", 2, &[1, 1], "Distance of neighbours in the window.");
const GROUPS: AttrDef =
    AttrDef::int("groups", 1, "Into how many parts channels are divided, each convolved on its own.");
const DATA_LAYOUT: AttrDef = AttrDef::str("data_layout", "NCHW", "Order of the image's axes.");
const OUT_LAYOUT: AttrDef =
    AttrDef::new("out_layout", AttrKind::Str, AttrDefault::None, "Order of the result's axes; the image's if absent.");
const OUT_DTYPE: AttrDef = AttrDef::dtype("out_dtype", "Element type of the result and of the sums.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef {
        name: "nn.conv2d",
        doc: "Sums of products of a window that slides over an image. ONNX: Conv; ATen: convolution.",
        args: &[ArgDef::tensor("data", "The image."), ArgDef::tensor("weight", "For each output channel, a window.")],
        attrs: &[
            STRIDES,
            PADDING,
            DILATION,
            GROUPS,
            DATA_LAYOUT,
            AttrDef::str("kernel_layout", "OIHW", "Order of the weight's axes."),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
        infer: conv2d_type,
        lower: Lowering::Compute(conv2d),
        pattern: OpPattern::OutFusable,
        ..OpDef::BASE
    },
    OpDef {
        name: "nn.conv2d_transpose",
        doc: "Each element of an image spreads over a window of the result, weighted; the gradient of a convolution. \
              ONNX: ConvTranspose; ATen: convolution with transposed=True.",
        args: &[ArgDef::tensor("data", "The image."), ArgDef::tensor("weight", "For each input channel, a window.")],
        attrs: &[
            STRIDES,
            PADDING,
            AttrDef::ints_of(
                "output_padding",
                2,
                &[0, 0],
                "Elements added to the result's end along height and width.",
            ),
            DILATION,
            GROUPS,
            DATA_LAYOUT,
            AttrDef::str("kernel_layout", "IOHW", "Order of the weight's axes."),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
        infer: transpose_type,
        lower: Lowering::Compute(conv2d_transpose),
        pattern: OpPattern::OutFusable,
        ..OpDef::BASE
    },
];

/// What a convolution's arguments and attributes say, once they fit.
struct Geometry {
    data: Vec<PrimExpr>,
    weight: [i64; 4],
    groups: i64,
    windows: [Window; 2],
    dtype: DataType,
}

/// Reads the call; `None` where dimensions are not known.
fn geometry(cx: &CallCx, kernel_layout: &str) -> Result<Option<Geometry>, OpError> {
    cx.layout("data_layout", &["NCHW"])?;
    cx.layout("kernel_layout", &[kernel_layout])?;
    if cx.attrs.get("out_layout").is_some() {
        cx.layout("out_layout", &["NCHW"])?;
    }
    let (data, weight) = (cx.tensor(0)?, cx.tensor(1)?);
    for (info, name) in [(&data, "data"), (&weight, "weight")] {
        if info.ndim.is_some_and(|n| n != 4) {
            return cx.invalid(format!("`{name}` has {} dimensions, not 4", info.ndim.unwrap_or_default()));
        }
    }
    if data.dtype != weight.dtype && !data.dtype.is_void() && !weight.dtype.is_void() {
        return cx.invalid(format!("`data` is {}, `weight` {}; convert one with astype", data.dtype, weight.dtype));
    }
    let dtype = cx.dtype("out_dtype").unwrap_or(data.dtype);
    let groups = cx.int("groups")?;
    if groups < 1 {
        return cx.invalid(format!("`groups` is {groups}"));
    }
    let (Some(data), Some(weight)) = (data.dims, weight.dims) else { return Ok(None) };
    let fixed: Option<Vec<i64>> = weight.iter().map(PrimExpr::as_int).collect();
    let Some(Ok(weight)) = fixed.map(<[i64; 4]>::try_from) else {
        return cx.unsupported("the weight's dimensions must be numbers");
    };
    let windows = windows(cx, [weight[2], weight[3]])?;
    Ok(Some(Geometry { data, weight, groups, windows, dtype }))
}

/// The type where dimensions are not known.
fn unknown(cx: &CallCx) -> Result<Type, OpError> {
    let dtype = match cx.dtype("out_dtype") {
        Some(dtype) => dtype,
        None => cx.tensor(0)?.dtype,
    };
    Ok(tensor_type(None, Some(4), dtype))
}

fn check_channels(cx: &CallCx, have: &PrimExpr, need: i64) -> Result<(), OpError> {
    match have.as_int() {
        Some(have) if have != need => cx.invalid(format!("the image has {have} channels, the weight is for {need}")),
        _ => Ok(()),
    }
}

fn known(cx: &CallCx, kernel_layout: &str) -> Result<Geometry, OpError> {
    match geometry(cx, kernel_layout)? {
        Some(geometry) => Ok(geometry),
        None => cx.unsupported("the shapes of its arguments are not known to the compiler; give them with match_cast"),
    }
}

// Convolution.

fn conv2d_type(cx: &CallCx) -> Result<Type, OpError> {
    let Some(g) = geometry(cx, "OIHW")? else { return unknown(cx) };
    Ok(Type::tensor(conv2d_dims(cx, &g)?, g.dtype))
}

fn conv2d_dims(cx: &CallCx, g: &Geometry) -> Result<Vec<PrimExpr>, OpError> {
    let [out, per_group, ..] = g.weight;
    let &[n, c, h, w] = &g.data.iter().collect::<Vec<_>>()[..] else {
        return cx.invalid("`data` has not 4 dimensions");
    };
    check_channels(cx, c, per_group.saturating_mul(g.groups))?;
    if out % g.groups != 0 {
        return cx.invalid(format!("{out} output channels cannot be divided into {} groups", g.groups));
    }
    let [y, x] = g.windows;
    Ok(vec![n.clone(), out.into(), y.positions(h, Partial::Dropped), x.positions(w, Partial::Dropped)])
}

fn conv2d(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let g = known(cx, "OIHW")?;
    let [data, weight] = inputs else { return cx.invalid("needs an image and a weight") };
    let dims = conv2d_dims(cx, &g)?;
    let [out, per_group, ..] = g.weight;
    let [y, x] = g.windows;
    let image = pad_image(data, g.windows, prim::constant(data.dtype(), 0.0));
    let (rc, ry, rx) = taps(&g, per_group);
    let channels = out / g.groups;
    Ok(vec![te::compute("conv2d", dims, |axes| {
        let channel = match (g.groups, channels, per_group) {
            (1, ..) => rc.var(),
            (_, 1, 1) => axes[1].clone(),
            _ => prim::floordiv(&axes[1], channels) * per_group + rc.var(),
        };
        let at = [axes[0].clone(), channel, y.element(&axes[2], &ry.var()), x.element(&axes[3], &rx.var())];
        let product =
            cast(g.dtype, image.at(&at)) * cast(g.dtype, weight.at(&[axes[1].clone(), rc.var(), ry.var(), rx.var()]));
        te::sum(product, [&rc, &ry, &rx])
    })])
}

/// The axes that are summed over: channels of a group, rows and columns of the window.
fn taps(g: &Geometry, channels: i64) -> (te::ReduceAxis, te::ReduceAxis, te::ReduceAxis) {
    let axis = |name: &str, extent: i64| te::reduce_axis_named(name, extent);
    (axis("rc", channels), axis("ry", g.windows[0].kernel), axis("rx", g.windows[1].kernel))
}

// Transposed convolution.

fn transpose_type(cx: &CallCx) -> Result<Type, OpError> {
    let Some(g) = geometry(cx, "IOHW")? else { return unknown(cx) };
    Ok(Type::tensor(transpose_dims(cx, &g)?, g.dtype))
}

fn transpose_dims(cx: &CallCx, g: &Geometry) -> Result<Vec<PrimExpr>, OpError> {
    let [channels, per_group, ..] = g.weight;
    let &[n, c, h, w] = &g.data.iter().collect::<Vec<_>>()[..] else {
        return cx.invalid("`data` has not 4 dimensions");
    };
    check_channels(cx, c, channels)?;
    if channels % g.groups != 0 {
        return cx.invalid(format!("{channels} channels cannot be divided into {} groups", g.groups));
    }
    let extra = cx.ints("output_padding")?;
    let &[extra_y, extra_x] = &extra[..] else { return cx.invalid("needs two output paddings") };
    let size = |dim: &PrimExpr, window: Window, extra: i64| {
        let spread = (dim - 1) * window.stride + (window.reach() + extra - window.before - window.after);
        Analyzer::new().simplify(&spread)
    };
    Ok(vec![n.clone(), (per_group * g.groups).into(), size(h, g.windows[0], extra_y), size(w, g.windows[1], extra_x)])
}

fn conv2d_transpose(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let g = known(cx, "IOHW")?;
    let [data, weight] = inputs else { return cx.invalid("needs an image and a weight") };
    let dims = transpose_dims(cx, &g)?;
    let tiles = |w: Window| w.kernel == w.stride && w.dilation == 1 && w.before == 0;
    let exact = (0..2).all(|i| {
        let image = g.data.get(i + 2).map(|d| d * g.windows[i].stride);
        image.is_some_and(|image| dims.get(i + 2).is_some_and(|d| prove_equal(d, &image)))
    });
    if g.groups == 1 && g.windows.into_iter().all(tiles) && exact {
        return Ok(vec![disjoint(&g, data, weight, &dims)]);
    }
    Ok(vec![overlapping(&g, data, weight, &dims)])
}

/// Windows that neither overlap nor leave gaps: a matrix product, whose rows are then put where they belong.
fn disjoint(g: &Geometry, data: &te::Tensor, weight: &te::Tensor, dims: &[PrimExpr]) -> te::Tensor {
    let [channels, out, kh, kw] = g.weight;
    let rc = te::reduce_axis_named("rc", channels);
    let shape = [g.data[0].clone(), out.into(), kh.into(), kw.into(), g.data[2].clone(), g.data[3].clone()];
    let spread = te::compute("spread", shape, |a| {
        let image = data.at(&[a[0].clone(), rc.var(), a[4].clone(), a[5].clone()]);
        let factor = weight.at(&[rc.var(), a[1].clone(), a[2].clone(), a[3].clone()]);
        te::sum(cast(g.dtype, factor) * cast(g.dtype, image), [&rc])
    });
    te::compute("conv2d_transpose", dims, |a| {
        let ((y, ry), (x, rx)) = (split(&a[2], kh), split(&a[3], kw));
        spread.at(&[a[0].clone(), a[1].clone(), ry, rx, y, x])
    })
}

fn split(e: &PrimExpr, by: i64) -> (PrimExpr, PrimExpr) {
    (prim::floordiv(e, by), prim::floormod(e, by))
}

/// The general case: for each element of the result, the elements of the image whose windows cover it.
///
/// Those along one axis are a `stride` apart in the window, so that only `kernel / stride` taps (rounded up) are visited. With
/// dilation all taps are visited, and those that meet no element add nothing.
fn overlapping(g: &Geometry, data: &te::Tensor, weight: &te::Tensor, dims: &[PrimExpr]) -> te::Tensor {
    let [channels, out, ..] = g.weight;
    let per_group = channels / g.groups;
    let count = |w: Window| if w.dilation == 1 { (w.kernel + w.stride - 1) / w.stride } else { w.kernel };
    let rc = te::reduce_axis_named("rc", per_group);
    let ry = te::reduce_axis_named("ry", count(g.windows[0]));
    let rx = te::reduce_axis_named("rx", count(g.windows[1]));
    te::compute("conv2d_transpose", dims, |a| {
        let (row, tap_y, covers_y) = source(&g.windows[0], &a[2], &ry.var(), &g.data[2]);
        let (column, tap_x, covers_x) = source(&g.windows[1], &a[3], &rx.var(), &g.data[3]);
        let (channel, filter) = if g.groups == 1 {
            (rc.var(), a[1].clone())
        } else {
            let (group, filter) = split(&a[1], out);
            (group * per_group + rc.var(), filter)
        };
        let image = cast(g.dtype, data.at(&[a[0].clone(), channel.clone(), row, column]));
        let factor = cast(g.dtype, weight.at(&[channel, filter, tap_y, tap_x]));
        let zero = prim::constant(g.dtype, 0.0);
        te::sum(prim::if_then_else(prim::and(covers_y, covers_x), image * factor, zero), [&rc, &ry, &rx])
    })
}

/// The image's element and the window's tap that meet at an element of the result, and whether there are such.
fn source(w: &Window, at: &PrimExpr, step: &PrimExpr, size: &PrimExpr) -> (PrimExpr, PrimExpr, PrimExpr) {
    let place = at + w.before;
    if w.dilation == 1 {
        let (element, phase) = split(&place, w.stride);
        let (element, tap) = (element - step, phase + step * w.stride);
        let covers = all([prim::lt(&tap, w.kernel), prim::ge(&element, 0), prim::lt(&element, size)]);
        return (element, tap, covers);
    }
    let (element, rest) = split(&(place - step * w.dilation), w.stride);
    let covers = all([prim::eq(rest, 0), prim::ge(&element, 0), prim::lt(&element, size)]);
    (element, step.clone(), covers)
}
