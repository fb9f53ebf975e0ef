//! Gradients of pooling and of convolutions.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::cx::{LowerCx, Lowered, fail};

/// Padding of one, of a dimension each, or of both sides each: top, left, bottom, right.
pub(super) fn padding2d(cx: &LowerCx<'_>) -> Result<[i64; 4], super::LowerError> {
    match cx.ints("padding")?.as_slice() {
        [p] => Ok([*p; 4]),
        [h, w] => Ok([*h, *w, *h, *w]),
        [t, l, b, r] => Ok([*t, *l, *b, *r]),
        other => fail(format!("{}: padding {other:?} has neither one, two nor four numbers", cx.def.name)),
    }
}

/// Two numbers, of which one may stand for both.
pub(super) fn pair(cx: &LowerCx<'_>, name: &str) -> Result<[i64; 2], super::LowerError> {
    match cx.ints(name)?.as_slice() {
        [v] => Ok([*v; 2]),
        [h, w] => Ok([*h, *w]),
        other => fail(format!("{}: {name} {other:?} has neither one nor two numbers", cx.def.name)),
    }
}

/// The gradient of pooling. The gradient of the result comes first, whatever the names of the operands say in the registration.
pub(super) fn pool(cx: &mut LowerCx<'_>) -> Lowered {
    let (grad, data) = (cx.arg(0)?, cx.arg(1)?);
    let name = match cx.def.name {
        "nn.avg_pool2d_grad" => "grad.avg_pool2d_backward",
        _ => "grad.max_pool2d_backward",
    };
    let mut pairs = Attrs::new();
    for name in ["pool_size", "strides", "padding", "dilation"] {
        pairs = pairs.with(name, cx.ints(name)?);
    }
    let pairs = pairs
        .with("ceil_mode", cx.bool("ceil_mode"))
        .with("layout", cx.str("layout"))
        .with("count_include_pad", cx.bool("count_include_pad"));
    cx.emit(name, [grad, data], pairs)
}

/// The gradient of a convolution for its kernel: the sum over all windows of what came in times what comes back.
pub(super) fn conv2d_weight(cx: &mut LowerCx<'_>) -> Lowered {
    let (grad, data) = (cx.arg(0)?, cx.arg(1)?);
    if cx.str("data_layout") != "NCHW" || cx.str("kernel_layout") != "OIHW" {
        return fail("nn.conv2d_backward_weight: the layouts must be NCHW and OIHW");
    }
    let ([sh, sw], [dh, dw]) = (pair(cx, "strides")?, pair(cx, "dilation")?);
    let ([top, left, ..], groups) = (padding2d(cx)?, cx.int("groups")?);
    let (g, x) = (cx.shape(&grad)?, cx.shape(&data)?);
    let [kh, kw] = match cx.attrs.ints("kernel_size").as_deref() {
        Some([kh, kw]) => [*kh, *kw],
        _ => return fail("nn.conv2d_backward_weight: kernel_size must be given"),
    };
    let (Some(outputs), Some(inputs)) = (g[1].as_int(), x[1].as_int()) else {
        return fail("nn.conv2d_backward_weight: channels must be known");
    };
    if groups <= 0 || outputs % groups != 0 || inputs % groups != 0 {
        return fail(format!(
            "nn.conv2d_backward_weight: {groups} groups do not divide {outputs} and {inputs} channels"
        ));
    }
    let (own, of) = (inputs / groups, outputs / groups);
    let (height, width) = (x[2].clone(), x[3].clone());
    let axes: Vec<te::ReduceAxis> = [&g[0], &g[2], &g[3]].into_iter().map(|d| te::reduce_axis(d.clone())).collect();
    let dtype = cx.dtype(&data)?;
    Ok(cx.builder.emit_te("conv2d_backward_weight", vec![grad, data], |tensors| {
        let (grad, data) = (tensors[0].clone(), tensors[1].clone());
        vec![te::compute("T_conv2d_weight", [outputs, own, kh, kw], |at: &[PrimExpr]| {
            let [n, h, w] = [0, 1, 2].map(|i| axes[i].var());
            let channel = prim::floordiv(at[0].clone(), prim::int(of)) * own + at[1].clone();
            let y = h.clone() * sh + at[2].clone() * dh - top;
            let x = w.clone() * sw + at[3].clone() * dw - left;
            let inside = |v: &PrimExpr, end: &PrimExpr| prim::and(prim::ge(v, prim::int(0)), prim::lt(v, end.clone()));
            let within = prim::and(inside(&y, &height), inside(&x, &width));
            let near = |v: PrimExpr, end: &PrimExpr| prim::max(prim::min(v, end.clone() - 1), prim::int(0));
            let value = data.at(&[n.clone(), channel, near(y, &height), near(x, &width)]);
            let value = prim::select(within, value, prim::constant(dtype, 0.0));
            te::sum(grad.at(&[n, at[0].clone(), h, w]) * value, axes.clone())
        })]
    })?)
}
