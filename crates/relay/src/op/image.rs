//! Images and boxes.

use relaxide_ffi::Tensor;
use relaxide_ir::prim;
use relaxide_ir::{AttrValue, Attrs};
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};

/// What resizing to any number of dimensions has in common.
fn resize_attrs(cx: &LowerCx<'_>) -> Result<Attrs, LowerError> {
    let transformation = cx.str("coordinate_transformation_mode");
    // Coordinates are not negative: away from zero is up.
    let rounding = match cx.str("rounding_method") {
        text if text.is_empty() || text == "round" => "round_prefer_ceil".to_string(),
        text => text,
    };
    Ok(attrs([
        ("layout", cx.str("layout").into()),
        ("method", cx.str("method").into()),
        ("coordinate_transformation_mode", transformation.into()),
        ("rounding_method", rounding.into()),
        ("cubic_alpha", cx.float("cubic_alpha")?.into()),
        ("cubic_exclude", cx.int("cubic_exclude")?.into()),
        ("extrapolation_value", cx.float("extrapolation_value")?.into()),
    ]))
}

fn no_region(cx: &LowerCx<'_>) -> Result<(), LowerError> {
    match cx.attrs.get("roi") {
        Some(AttrValue::List(list)) if list.iter().any(|v| !matches!(v, AttrValue::Float(0.0))) => {
            fail(format!("{}: a region of interest cannot be compiled yet", cx.def.name))
        }
        _ => Ok(()),
    }
}

pub(super) fn resize2d(cx: &mut LowerCx<'_>) -> Lowered {
    no_region(cx)?;
    let (x, size) = (cx.arg(0)?, rx::Expr::shape(cx.ints("size")?));
    let pairs = resize_attrs(cx)?;
    cx.emit("image.resize2d", [x, size], pairs)
}

/// The attributes of resizing as releases before 0.8 had them: methods have other names, and 0.6 says of places only whether
/// the corners lie on each other.
fn older_attrs(cx: &LowerCx<'_>) -> Attrs {
    let method = match cx.str("method").as_str() {
        "bilinear" => "linear".to_string(),
        "bicubic" => "cubic".to_string(),
        other => other.to_string(),
    };
    let places = match cx.attrs.get("align_corners") {
        Some(AttrValue::Bool(true)) => "align_corners".to_string(),
        Some(AttrValue::Bool(false)) => "asymmetric".to_string(),
        _ => cx.str("coordinate_transformation_mode"),
    };
    let keep = |attrs: Attrs, from: &str, to: &str| match cx.attrs.get(from) {
        Some(value) => attrs.with(to, value.clone()),
        None => attrs,
    };
    // The nearest of two as near was the lower one, but where corners lie on each other.
    let rounding = match cx.str("rounding_method").as_str() {
        "" if places == "align_corners" => "round".to_string(),
        "" => "floor".to_string(),
        other => other.to_string(),
    };
    let attrs = Attrs::new().with("method", method).with("coordinate_transformation_mode", places);
    let attrs = attrs.with("rounding_method", rounding);
    let same = ["layout", "out_dtype"].into_iter().fold(attrs, |attrs, name| keep(attrs, name, name));
    let cubic = keep(same, "bicubic_alpha", "cubic_alpha");
    keep(cubic, "bicubic_exclude", "cubic_exclude")
}

/// Resizing as releases before 0.8 had it.
pub(super) fn resize(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, attrs) = (cx.arg(0)?, older_attrs(cx).with("size", cx.ints("size")?));
    cx.relay("image.resize2d", vec![x], attrs)
}

/// The same in a size that is an expression.
pub(super) fn resize_to(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, size, attrs) = (cx.arg(0)?, cx.arg(1)?, older_attrs(cx));
    let whole = rx::Expr::constant(Tensor::from_slice(&[0f32; 4], &[4])?);
    cx.relay("dyn.image.resize2d", vec![x, size, whole], attrs)
}

/// An image in a size whose numbers may be expressions.
pub(super) fn resized(cx: &mut LowerCx<'_>, x: rx::Expr, size: Vec<prim::PrimExpr>) -> Lowered {
    let pairs = resize_attrs(cx)?;
    cx.emit("image.resize2d", [x, rx::Expr::shape(size)], pairs)
}

pub(super) fn resize3d(cx: &mut LowerCx<'_>) -> Lowered {
    no_region(cx)?;
    let (x, size) = (cx.arg(0)?, rx::Expr::shape(cx.ints("size")?));
    let pairs = resize_attrs(cx)?;
    cx.emit("image.resize3d", [x, size], pairs)
}

/// An image of one line.
pub(super) fn resize1d(cx: &mut LowerCx<'_>) -> Lowered {
    no_region(cx)?;
    let (x, size) = (cx.arg(0)?, cx.ints("size")?);
    let [width] = size.as_slice() else { return fail("image.resize1d takes one size") };
    let shape = cx.shape(&x)?;
    let (layout, place) = match cx.str("layout").as_str() {
        "NCW" => ("NCHW", 2),
        "NWC" => ("NHWC", 1),
        other => return fail(format!("image.resize1d: there is no layout {other}")),
    };
    let mut image = shape;
    image.insert(place, prim::int(1));
    let x = cx.reshape(x, image)?;
    let pairs = resize_attrs(cx)?.with("layout", layout);
    let resized = cx.emit("image.resize2d", [x, rx::Expr::shape([1, *width])], pairs)?;
    let mut shape = cx.shape(&resized)?;
    shape.remove(place);
    cx.reshape(resized, shape)
}

pub(super) fn affine_grid(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, size) = (cx.arg(0)?, rx::Expr::shape(cx.ints("target_shape")?));
    cx.op("image.affine_grid", [x, size])
}

/// Sizes times scales, in the words of the resizing operators.
fn scaled(cx: &mut LowerCx<'_>, name: &str, scales: &[f64], letters: &str) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.shape(&x)?;
    let layout = cx.str("layout");
    let mut size = Vec::new();
    for (letter, scale) in letters.chars().zip(scales) {
        let place = layout.find(letter).filter(|i| *i < shape.len());
        let place = place.ok_or_else(|| LowerError(format!("{}: the layout {layout} has no {letter}", cx.def.name)))?;
        size.push(match shape[place].as_int() {
            Some(dim) => prim::int((dim as f64 * scale).round() as i64),
            None if scale.fract() == 0.0 => &shape[place] * *scale as i64,
            None => return fail(format!("{}: an unknown size needs a whole scale", cx.def.name)),
        });
    }
    let method = match cx.str("method").as_str() {
        "nearest_neighbor" | "nearest" | "" => "nearest_neighbor",
        "bilinear" | "trilinear" | "linear" => "linear",
        "bicubic" | "cubic" => "cubic",
        other => return fail(format!("{}: there is no method {other:?}", cx.def.name)),
    };
    let mode = match cx.attrs.str("coordinate_transformation_mode") {
        Some(mode) => mode.to_string(),
        None if cx.bool("align_corners") => "align_corners".into(),
        None => "asymmetric".into(),
    };
    let rounding = if method == "nearest_neighbor" { "floor" } else { "round" };
    let pairs = attrs([
        ("layout", layout.into()),
        ("method", method.into()),
        ("coordinate_transformation_mode", mode.into()),
        ("rounding_method", rounding.into()),
        ("cubic_alpha", AttrValue::Float(-0.5)),
    ]);
    cx.emit(name, [x, rx::Expr::shape(size)], pairs)
}

pub(super) fn upsampling(cx: &mut LowerCx<'_>) -> Lowered {
    let scales = [cx.float("scale_h")?, cx.float("scale_w")?];
    scaled(cx, "image.resize2d", &scales, "HW")
}

pub(super) fn upsampling3d(cx: &mut LowerCx<'_>) -> Lowered {
    let scales = [cx.float("scale_d")?, cx.float("scale_h")?, cx.float("scale_w")?];
    scaled(cx, "image.resize3d", &scales, "DHW")
}

pub(super) fn get_valid_counts(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, threshold) = (cx.arg(0)?, cx.number(1)?);
    let pairs = [
        ("score_threshold", threshold.into()),
        ("id_index", cx.int("id_index")?.into()),
        ("score_index", cx.int("score_index")?.into()),
    ];
    cx.emit("vision.get_valid_counts", [x], attrs(pairs))
}

pub(super) fn non_max_suppression(cx: &mut LowerCx<'_>) -> Lowered {
    let (data, count, indices) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let pairs = [
        ("max_output_size", (cx.number(3)? as i64).into()),
        ("iou_threshold", cx.number(4)?.into()),
        ("force_suppress", cx.bool("force_suppress").into()),
        ("top_k", cx.int("top_k")?.into()),
        ("coord_start", cx.int("coord_start")?.into()),
        ("score_index", cx.int("score_index")?.into()),
        ("id_index", cx.int("id_index")?.into()),
        ("return_indices", cx.bool("return_indices").into()),
        ("invalid_to_bottom", cx.bool("invalid_to_bottom").into()),
    ];
    cx.emit("vision.non_max_suppression", [data, count, indices], attrs(pairs))
}

pub(super) fn roi_align(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, rois) = (cx.arg(0)?, cx.arg(1)?);
    let pairs = [
        ("pooled_size", cx.ints("pooled_size")?.into()),
        ("spatial_scale", cx.float("spatial_scale")?.into()),
        ("sample_ratio", cx.int("sample_ratio")?.into()),
        ("layout", cx.str("layout").into()),
        ("mode", cx.str("mode").into()),
    ];
    cx.emit("vision.roi_align", [x, rois], attrs(pairs))
}

pub(super) fn roi_pool(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, rois) = (cx.arg(0)?, cx.arg(1)?);
    let pairs = [
        ("pooled_size", cx.ints("pooled_size")?.into()),
        ("spatial_scale", cx.float("spatial_scale")?.into()),
        ("layout", cx.str("layout").into()),
    ];
    cx.emit("vision.roi_pool", [x, rois], attrs(pairs))
}
