//! Convolutions and pooling.

use relaxide_ir::{AttrValue, Attrs};
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};

fn opt(text: String) -> AttrValue {
    if text.is_empty() { AttrValue::None } else { text.into() }
}

/// Padding of one, of a dimension each, or of both sides each: Relax takes what it is given if it divides.
fn shared(cx: &LowerCx<'_>) -> Result<Attrs, LowerError> {
    let mut out = Attrs::new();
    for name in ["strides", "padding", "dilation"] {
        out = out.with(name, cx.ints(name)?);
    }
    out = out.with("groups", cx.int("groups")?);
    for name in ["data_layout", "kernel_layout"] {
        out = out.with(name, cx.str(name));
    }
    Ok(out.with("out_layout", opt(cx.str("out_layout"))))
}

pub(super) fn conv(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight) = (cx.arg(0)?, cx.arg(1)?);
    convolution(cx, x, weight)
}

pub(super) fn convolution(cx: &mut LowerCx<'_>, x: rx::Expr, weight: rx::Expr) -> Lowered {
    let dtype = cx.dtype(&x)?;
    let out = cx.dtype_attr("out_dtype", dtype);
    let name = cx.def.name.strip_prefix("qnn.").map_or_else(|| cx.def.name.to_string(), |rest| format!("nn.{rest}"));
    let mut pairs = shared(cx)?;
    // A depthwise kernel in the layout of the reference's HWOI is Relax's with groups.
    if name == "nn.conv2d" && pairs.str("kernel_layout") == Some("HWOI") {
        pairs = pairs.with("kernel_layout", "HWOI");
    }
    if out != dtype {
        pairs = pairs.with("out_dtype", out);
    }
    cx.emit(&name, [x, weight], pairs)
}

pub(super) fn conv_transpose(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight) = (cx.arg(0)?, cx.arg(1)?);
    let pairs = shared(cx)?.with("output_padding", cx.ints("output_padding")?);
    let name = cx.def.name;
    cx.emit(name, [x, weight], pairs)
}

pub(super) fn pool(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let mut pairs = Attrs::new();
    for name in ["pool_size", "strides", "padding", "dilation"] {
        pairs = pairs.with(name, cx.ints(name)?);
    }
    pairs = pairs.with("ceil_mode", cx.bool("ceil_mode")).with("layout", cx.str("layout"));
    if cx.attrs.get("count_include_pad").is_some() {
        pairs = pairs.with("count_include_pad", cx.bool("count_include_pad"));
    }
    pairs = pairs.with("out_layout", opt(cx.str("out_layout")));
    let name = cx.def.name;
    cx.emit(name, [x], pairs)
}

pub(super) fn adaptive_avg_pool(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let size: AttrValue = cx.attrs.ints("output_size").filter(|s| !s.is_empty()).into();
    let pairs = [("output_size", size), ("layout", cx.str("layout").into()), ("out_layout", opt(cx.str("out_layout")))];
    let name = cx.def.name;
    cx.emit(name, [x], attrs(pairs))
}

pub(super) fn global_avg_pool(cx: &mut LowerCx<'_>) -> Lowered {
    global(cx, "mean")
}

pub(super) fn global_max_pool(cx: &mut LowerCx<'_>) -> Lowered {
    global(cx, "max")
}

fn global(cx: &mut LowerCx<'_>, name: &str) -> Lowered {
    let x = cx.arg(0)?;
    let axes = match cx.str("layout").as_str() {
        "NCHW" => vec![2, 3],
        "NHWC" => vec![1, 2],
        other => return fail(format!("{}: there is no layout {other}", cx.def.name)),
    };
    cx.emit(name, [x], attrs([("axis", axes.into()), ("keepdims", true.into())]))
}
