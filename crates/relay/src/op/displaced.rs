//! Convolutions whose windows move, and the correlation of two images.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::cx::{LowerCx, Lowered, fail};
use super::gradient::{padding2d, pair};

fn inside(v: &PrimExpr, end: &PrimExpr) -> PrimExpr {
    prim::and(prim::ge(v, prim::int(0)), prim::lt(v, end.clone()))
}

fn near(v: PrimExpr, end: &PrimExpr) -> PrimExpr {
    prim::max(prim::min(v, end.clone() - 1), prim::int(0))
}

/// A convolution whose elements are read at places that a second image moves, and between pixels linearly. What lies outside
/// counts as zero.
pub(super) fn deformable_conv2d(cx: &mut LowerCx<'_>) -> Lowered {
    let (data, offset, weight) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    if cx.str("data_layout") != "NCHW" || cx.str("kernel_layout") != "OIHW" {
        return fail("nn.deformable_conv2d: the layouts must be NCHW and OIHW");
    }
    let ([sh, sw], [dh, dw], [top, left, ..]) = (pair(cx, "strides")?, pair(cx, "dilation")?, padding2d(cx)?);
    let (x, moves, w) = (cx.shape(&data)?, cx.shape(&offset)?, cx.shape(&weight)?);
    let number = |e: &PrimExpr| e.as_int();
    let (Some(channels), Some(outputs), Some(own), Some(kh), Some(kw)) =
        (number(&x[1]), number(&w[0]), number(&w[1]), number(&w[2]), number(&w[3]))
    else {
        return fail("nn.deformable_conv2d: channels and the kernel's size must be known");
    };
    let (groups, moved) = (cx.int("groups")?, cx.int("deformable_groups")?);
    if groups <= 0 || moved <= 0 || channels % moved != 0 || outputs % groups != 0 || own * groups != channels {
        return fail(format!(
            "nn.deformable_conv2d: {groups} groups and {moved} that move do not fit {channels} channels and {outputs}"
        ));
    }
    let (height, width, dtype) = (x[2].clone(), x[3].clone(), cx.dtype(&data)?);
    let out = [x[0].clone(), prim::int(outputs), moves[2].clone(), moves[3].clone()];
    let axes = [te::reduce_axis(own), te::reduce_axis(kh), te::reduce_axis(kw)];
    Ok(cx.builder.emit_te("deformable_conv2d", vec![data, offset, weight], |inputs| {
        let [data, offset, weight] = [0, 1, 2].map(|i| inputs[i].clone());
        let shape = [x[0].clone(), prim::int(channels), prim::int(kh), prim::int(kw), out[2].clone(), out[3].clone()];
        // What each window reads.
        let read = te::compute("T_deformed", shape, |at: &[PrimExpr]| {
            let [n, c, i, j, h, w] = [0, 1, 2, 3, 4, 5].map(|k: usize| at[k].clone());
            let group = prim::floordiv(c.clone(), prim::int(channels / moved));
            let first = (group * (kh * kw) + i.clone() * kw + j.clone()) * 2;
            let shift = |k: i64| offset.at(&[n.clone(), first.clone() + k, h.clone(), w.clone()]);
            let y = prim::cast(dtype, h.clone() * sh + i * dh - top) + shift(0);
            let z = prim::cast(dtype, w.clone() * sw + j * dw - left) + shift(1);
            let (y0, z0) = (prim::math("floor", y.clone()), prim::math("floor", z.clone()));
            let (fy, fz) = (y.clone() - y0.clone(), z.clone() - z0.clone());
            let whole = |e: PrimExpr| prim::cast(super::manipulate::PLACES, e);
            let (y0, z0) = (whole(y0), whole(z0));
            let pixel = |dy: i64, dz: i64| {
                let (y, z) = (near(y0.clone() + dy, &height), near(z0.clone() + dz, &width));
                data.at(&[n.clone(), c.clone(), y, z])
            };
            let one = prim::constant(dtype, 1.0);
            let line = |dy: i64| pixel(dy, 0) * (one.clone() - fz.clone()) + pixel(dy, 1) * fz.clone();
            let value = line(0) * (one.clone() - fy.clone()) + line(1) * fy.clone();
            let limit = |v: &PrimExpr, end: &PrimExpr| {
                let zero = prim::constant(dtype, 0.0);
                prim::and(prim::ge(v, zero), prim::lt(v, prim::cast(dtype, end.clone())))
            };
            prim::select(prim::and(limit(&y, &height), limit(&z, &width)), value, prim::constant(dtype, 0.0))
        });
        let made = te::compute("T_deformable_conv2d", out, |at: &[PrimExpr]| {
            let [c, i, j] = [0, 1, 2].map(|k: usize| axes[k].var());
            let group = prim::floordiv(at[1].clone(), prim::int(outputs / groups));
            let channel = group * own + c.clone();
            let value = read.at(&[at[0].clone(), channel, i.clone(), j.clone(), at[2].clone(), at[3].clone()]);
            te::sum(value * weight.at(&[at[1].clone(), c, i, j]), axes.clone())
        });
        vec![made]
    })?)
}

/// How two images agree where one of them is moved: the mean product, or difference, of their windows.
pub(super) fn correlation(cx: &mut LowerCx<'_>) -> Lowered {
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    if cx.str("layout") != "NCHW" {
        return fail("nn.correlation: the layout must be NCHW");
    }
    let (kernel, most) = (cx.int("kernel_size")?, cx.int("max_displacement")?);
    let (step, stride, product) = (cx.int("stride1")?, cx.int("stride2")?, cx.bool("is_multiply"));
    let [top, left, bottom, right] = padding2d(cx)?;
    if kernel < 1 || kernel % 2 == 0 || most < 0 || step < 1 || stride < 1 {
        return fail("nn.correlation: the kernel is odd, and strides are at least 1");
    }
    let x = cx.shape(&a)?;
    let (Some(channels), Some(height), Some(width)) = (x[1].as_int(), x[2].as_int(), x[3].as_int()) else {
        return fail("nn.correlation: channels and sizes must be known");
    };
    let border = most + (kernel - 1) / 2;
    let size = |extent: i64, pad: i64| (extent + pad - 2 * border + step - 1) / step;
    let (out_h, out_w) = (size(height, top + bottom), size(width, left + right));
    let radius = most / stride;
    let grid = 2 * radius + 1;
    if out_h <= 0 || out_w <= 0 {
        return fail("nn.correlation: the image is smaller than the displacement");
    }
    let (end_h, end_w, dtype) = (prim::int(height), prim::int(width), cx.dtype(&a)?);
    let axes = [te::reduce_axis(channels), te::reduce_axis(kernel), te::reduce_axis(kernel)];
    let out = [x[0].clone(), prim::int(grid * grid), prim::int(out_h), prim::int(out_w)];
    let count = (kernel * kernel * channels) as f64;
    Ok(cx.builder.emit_te("correlation", vec![a, b], |inputs| {
        let (a, b) = (inputs[0].clone(), inputs[1].clone());
        let summed = te::compute("T_correlated", out.clone(), |at: &[PrimExpr]| {
            let [c, i, j] = [0, 1, 2].map(|k: usize| axes[k].var());
            let dy = (prim::floordiv(at[1].clone(), prim::int(grid)) - radius) * stride;
            let dx = (prim::floormod(at[1].clone(), prim::int(grid)) - radius) * stride;
            let y = at[2].clone() * step + i - top + most;
            let z = at[3].clone() * step + j - left + most;
            let pixel = |image: &te::Tensor, y: PrimExpr, z: PrimExpr| {
                let within = prim::and(inside(&y, &end_h), inside(&z, &end_w));
                let value = image.at(&[at[0].clone(), c.clone(), near(y, &end_h), near(z, &end_w)]);
                prim::select(within, value, prim::constant(dtype, 0.0))
            };
            let (p, q) = (pixel(&a, y.clone(), z.clone()), pixel(&b, y + dy, z + dx));
            let apart = p.clone() - q.clone();
            let term = if product { p * q } else { prim::max(apart.clone(), prim::constant(dtype, 0.0) - apart) };
            te::sum(term, axes.clone())
        });
        vec![te::compute("T_correlation", out, |at: &[PrimExpr]| summed.at(at) * prim::constant(dtype, 1.0 / count))]
    })?)
}
