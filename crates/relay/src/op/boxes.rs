//! Boxes, anchors, and parts of images.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::AttrValue;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, fail};
use super::manipulate::PLACES;

/// Anchors of sizes and ratios around every point of an image; only the image's size matters, so they are a constant.
pub(super) fn multibox_prior(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dims = rx::shape::const_dims(&cx.shape(&x)?);
    let Some([_, _, height, width]) = dims.as_deref() else {
        return fail("vision.multibox_prior takes an image of known size, in NCHW");
    };
    let floats = |name: &str| floats(cx, name);
    let (sizes, ratios, steps, offsets) = (floats("sizes")?, floats("ratios")?, floats("steps")?, floats("offsets")?);
    if sizes.is_empty() || ratios.is_empty() || steps.len() != 2 || offsets.len() != 2 {
        return fail("vision.multibox_prior needs a size, a ratio, two steps and two offsets");
    }
    let (rows, columns) = (*height as f64, *width as f64);
    let step = |given: f64, count: f64| if given > 0.0 { given } else { 1.0 / count };
    let (step_y, step_x) = (step(steps[0], rows), step(steps[1], columns));
    let plain = sizes.iter().map(|s| (s * rows / columns / 2.0, s / 2.0));
    let others = ratios.iter().skip(1).map(|r| (sizes[0] * rows / columns * r.sqrt() / 2.0, sizes[0] / r.sqrt() / 2.0));
    let halves: Vec<(f64, f64)> = plain.chain(others).collect();
    let count = height.checked_mul(*width).and_then(|n| n.checked_mul(halves.len() as i64)).filter(|n| *n <= 1 << 24);
    let Some(count) = count else { return fail("vision.multibox_prior: the image is too large") };
    let clip = cx.bool("clip");
    let mut out: Vec<f32> = Vec::new();
    for i in 0..*height {
        for j in 0..*width {
            let (y, x) = ((i as f64 + offsets[0]) * step_y, (j as f64 + offsets[1]) * step_x);
            for (w, h) in &halves {
                let corners = [x - w, y - h, x + w, y + h];
                out.extend(corners.map(|v| if clip { v.clamp(0.0, 1.0) as f32 } else { v as f32 }));
            }
        }
    }
    Ok(rx::Expr::constant(Tensor::from_slice(&out, &[1, count, 4])?))
}

/// Every other point of each block of an image becomes a channel.
pub(super) fn yolo_reorg(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (shape, stride) = (cx.shape(&x)?, cx.int("stride")?);
    let dims = rx::shape::const_dims(&shape);
    let Some([batch, channels, height, width]) = dims.as_deref().map(|d| [d[0], d[1], d[2], d[3]]) else {
        return fail("vision.yolo_reorg takes an image of known size");
    };
    let square = stride.checked_mul(stride).unwrap_or(0);
    if square <= 0 || channels % square != 0 || height % stride != 0 || width % stride != 0 {
        return fail(format!(
            "vision.yolo_reorg: a stride of {stride} does not divide {channels} channels of {height} by {width}"
        ));
    }
    // The result is the transpose of depth and space, as the reference's kernel reads the flat tensor.
    let inner = channels / square;
    let out = [batch, channels * square, height / stride, width / stride];
    Ok(cx.builder.emit_te("yolo_reorg", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_yolo_reorg", out, |at: &[PrimExpr]| {
            // The flat place in a tensor of the input's sizes.
            let flat = (at[1].clone() * (height / stride) + at[2].clone()) * (width / stride) + at[3].clone();
            let c = prim::floordiv(flat.clone(), prim::int(height * width));
            let y = prim::floormod(prim::floordiv(flat.clone(), prim::int(width)), prim::int(height));
            let z = prim::floormod(flat, prim::int(width));
            let channel = prim::floormod(c.clone(), prim::int(inner));
            let offset = prim::floordiv(c, prim::int(inner));
            let row = y * stride + prim::floordiv(offset.clone(), prim::int(stride));
            let column = z * stride + prim::floormod(offset, prim::int(stride));
            let place = (channel * (height * stride) + row) * (width * stride) + column;
            let source = [
                prim::floordiv(place.clone(), prim::int(height * width)),
                prim::floormod(prim::floordiv(place.clone(), prim::int(width)), prim::int(height)),
                prim::floormod(place, prim::int(width)),
            ];
            x.at(&[at[0].clone(), source[0].clone(), source[1].clone(), source[2].clone()])
        })]
    })?)
}

/// Boxes of images, each brought to one size. Boxes are parts of an image between 0 and 1.
pub(super) fn crop_and_resize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, boxes, owners) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (layout, method) = (cx.str("layout"), cx.str("method"));
    let (size, outside) = (cx.ints("crop_size")?, cx.float("extrapolation_value")?);
    let [crop_h, crop_w] = size.as_slice() else { return fail("image.crop_and_resize: crop_size has two numbers") };
    let (crop_h, crop_w) = (*crop_h, *crop_w);
    let nchw = match layout.as_str() {
        "NCHW" => true,
        "NHWC" => false,
        other => return fail(format!("image.crop_and_resize: there is no layout {other}")),
    };
    if method != "bilinear" && method != "nearest_neighbor" {
        return fail(format!("image.crop_and_resize: there is no method {method:?}"));
    }
    let shape = cx.shape(&x)?;
    let (batch, height, width, channels) = match nchw {
        true => (shape[0].clone(), shape[2].clone(), shape[3].clone(), shape[1].clone()),
        false => (shape[0].clone(), shape[1].clone(), shape[2].clone(), shape[3].clone()),
    };
    let count = cx.shape(&boxes)?[0].clone();
    let out = match nchw {
        true => [count, channels, prim::int(crop_h), prim::int(crop_w)],
        false => [count, prim::int(crop_h), prim::int(crop_w), channels],
    };
    let dtype = cx.dtype_attr("out_dtype", cx.dtype(&x)?);
    let float = DataType::float(32);
    Ok(cx.builder.emit_te("crop_and_resize", vec![x, boxes, owners], |inputs| {
        let [x, boxes, owners] = [0, 1, 2].map(|i| inputs[i].clone());
        vec![te::compute("T_crop_and_resize", out, |at: &[PrimExpr]| {
            let (c, i, j) = if nchw { (&at[1], &at[2], &at[3]) } else { (&at[3], &at[1], &at[2]) };
            let corner = |k: i64| prim::cast(float, boxes.at(&[at[0].clone(), prim::int(k)]));
            let owner = prim::cast(PLACES, owners.at(&[at[0].clone()]));
            let owner = prim::max(prim::min(owner, batch.clone() - 1), prim::int(0));
            let along = |low: PrimExpr, high: PrimExpr, extent: &PrimExpr, place: &PrimExpr, size: i64| {
                let last = prim::cast(float, extent.clone() - 1);
                if size > 1 {
                    let step = prim::div((high - low.clone()) * last.clone(), prim::constant(float, (size - 1) as f64));
                    low * last + prim::cast(float, place.clone()) * step
                } else {
                    (low + high) * prim::constant(float, 0.5) * last
                }
            };
            let y = along(corner(0), corner(2), &height, i, crop_h);
            let z = along(corner(1), corner(3), &width, j, crop_w);
            let bound = |v: &PrimExpr, extent: &PrimExpr| {
                let inside = prim::ge(v, prim::constant(float, 0.0));
                prim::and(inside, prim::le(v, prim::cast(float, extent.clone() - 1)))
            };
            let inside = prim::and(bound(&y, &height), bound(&z, &width));
            let index = |v: PrimExpr, extent: &PrimExpr| {
                prim::max(prim::min(prim::cast(PLACES, v), extent.clone() - 1), prim::int(0))
            };
            let pixel = |row: PrimExpr, column: PrimExpr| {
                let (row, column) = (index(row, &height), index(column, &width));
                let value = match nchw {
                    true => x.at(&[owner.clone(), c.clone(), row, column]),
                    false => x.at(&[owner.clone(), row, column, c.clone()]),
                };
                prim::cast(float, value)
            };
            let value = if method == "bilinear" {
                let (top, left) = (prim::math("floor", y.clone()), prim::math("floor", z.clone()));
                let (bottom, right) = (prim::math("ceil", y.clone()), prim::math("ceil", z.clone()));
                let (dy, dz) = (y - top.clone(), z - left.clone());
                let mix = |a: PrimExpr, b: PrimExpr, t: &PrimExpr| a.clone() + (b - a) * t.clone();
                let upper = mix(pixel(top.clone(), left.clone()), pixel(top, right.clone()), &dz);
                let lower = mix(pixel(bottom.clone(), left), pixel(bottom, right), &dz);
                mix(upper, lower, &dy)
            } else {
                let half = prim::constant(float, 0.5);
                pixel(prim::math("floor", y + half.clone()), prim::math("floor", z + half))
            };
            prim::cast(dtype, prim::select(inside, value, prim::constant(float, outside)))
        })]
    })?)
}

/// Boxes of each class without those that overlap better ones: Relax's, with its constants as attributes.
pub(super) fn all_class_non_max_suppression(cx: &mut LowerCx<'_>) -> Lowered {
    let args: Vec<rx::Expr> = (0..5).map(|i| cx.arg(i)).collect::<Result<_, _>>()?;
    let format = cx.str("output_format");
    let attrs = relaxide_ir::Attrs::new().with("output_format", format);
    cx.emit("vision.all_class_non_max_suppression", args, attrs)
}

/// Numbers of an attribute.
pub(super) fn floats(cx: &LowerCx<'_>, name: &str) -> Result<Vec<f64>, LowerError> {
    let number = |value: &AttrValue| match value {
        AttrValue::Float(v) => Some(*v),
        AttrValue::Int(v) => Some(*v as f64),
        _ => None,
    };
    let list = match cx.attrs.get(name) {
        Some(AttrValue::List(list)) => list.iter().map(number).collect::<Option<Vec<f64>>>(),
        _ => None,
    };
    list.ok_or_else(|| LowerError(format!("{}: the attribute `{name}` holds numbers", cx.def.name)))
}
