//! Pooling that Relax has no operator for.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, fail};

/// The largest of each of so many parts of the image, which overlap where the sizes do not divide.
pub(super) fn adaptive_max_pool(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let layout = match cx.attrs.str("layout") {
        Some(layout) => layout.to_string(),
        None => "NCHW".into(),
    };
    let shape = cx.shape(&x)?;
    let places: Vec<usize> = layout.chars().enumerate().filter(|(_, c)| "DHW".contains(*c)).map(|(i, _)| i).collect();
    if layout.len() != shape.len() || places.is_empty() {
        return fail(format!(
            "{}: the layout {layout} does not fit a tensor of {} dimensions",
            cx.def.name,
            shape.len()
        ));
    }
    let known = |i: &usize| shape[*i].as_int();
    let Some(extents) = places.iter().map(known).collect::<Option<Vec<i64>>>() else {
        return fail(format!("{}: sizes of the image must be known", cx.def.name));
    };
    let sizes = match cx.attrs.ints("output_size").filter(|s| !s.is_empty()) {
        Some(sizes) if sizes.len() == 1 => vec![sizes[0]; places.len()],
        Some(sizes) => sizes,
        None => extents.clone(),
    };
    if sizes.len() != places.len() || sizes.iter().any(|s| *s <= 0) {
        return fail(format!("{}: output_size {sizes:?} is no size of {} dimensions", cx.def.name, places.len()));
    }
    let mut out = shape.clone();
    places.iter().zip(&sizes).for_each(|(place, size)| out[*place] = prim::int(*size));
    // A part is never longer than this.
    let windows: Vec<te::ReduceAxis> =
        extents.iter().zip(&sizes).map(|(e, s)| te::reduce_axis((e + s - 1) / s + 1)).collect();
    Ok(cx.builder.emit_te("adaptive_max_pool", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_adaptive_max_pool", out, |at: &[PrimExpr]| {
            let mut index = at.to_vec();
            for (((place, extent), size), window) in places.iter().zip(&extents).zip(&sizes).zip(&windows) {
                let first = prim::floordiv(at[*place].clone() * *extent, prim::int(*size));
                let end = prim::floordiv((at[*place].clone() + 1) * *extent + (size - 1), prim::int(*size));
                // The last element stands for what would lie behind the part.
                index[*place] = prim::min(first + window.var(), end - 1);
            }
            te::max(x.at(&index), windows.clone())
        })]
    })?)
}

/// Grey-scale dilation: the largest sum of an image and a kernel that moves over it.
pub(super) fn dilation2d(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, kernel) = (cx.arg(0)?, cx.arg(1)?);
    let (layout, kernel_layout) = (cx.str("data_layout"), cx.str("kernel_layout"));
    if (layout.as_str(), kernel_layout.as_str()) != ("NCHW", "IHW") {
        return fail(format!("image.dilation2d in layouts {layout} and {kernel_layout} cannot be compiled yet"));
    }
    let pair = |list: Vec<i64>| if list.len() == 1 { vec![list[0]; 2] } else { list };
    let (strides, dilations) = (pair(cx.ints("strides")?), pair(cx.ints("dilations")?));
    let padding = match cx.ints("padding")?.as_slice() {
        [all] => [*all; 4],
        [h, w] => [*h, *w, *h, *w],
        [t, l, b, r] => [*t, *l, *b, *r],
        _ => return fail("image.dilation2d: padding has one, two or four numbers"),
    };
    let (shape, window) = (cx.shape(&x)?, cx.shape(&kernel)?);
    let dtype = cx.dtype(&x)?;
    let known = |e: &PrimExpr| e.as_int().ok_or_else(|| LowerError("image.dilation2d needs known sizes".into()));
    let (height, width, kh, kw) = (known(&shape[2])?, known(&shape[3])?, known(&window[1])?, known(&window[2])?);
    let size = |extent: i64, pads: i64, k: i64, axis: usize| {
        (extent + pads - (k - 1) * dilations[axis] - 1) / strides[axis] + 1
    };
    let out = [
        shape[0].clone(),
        shape[1].clone(),
        prim::int(size(height, padding[0] + padding[2], kh, 0)),
        prim::int(size(width, padding[1] + padding[3], kw, 1)),
    ];
    let (ry, rx_axis) = (te::reduce_axis(kh), te::reduce_axis(kw));
    Ok(cx.builder.emit_te("dilation2d", vec![x, kernel], |inputs| {
        let (x, kernel) = (inputs[0].clone(), inputs[1].clone());
        vec![te::compute("T_dilation2d", out, |at: &[PrimExpr]| {
            let y = at[2].clone() * strides[0] + ry.var() * dilations[0] - padding[0];
            let z = at[3].clone() * strides[1] + rx_axis.var() * dilations[1] - padding[1];
            let inside = [
                prim::ge(&y, prim::int(0)),
                prim::lt(&y, prim::int(height)),
                prim::ge(&z, prim::int(0)),
                prim::lt(&z, prim::int(width)),
            ];
            let inside = inside.into_iter().reduce(prim::and).unwrap_or_else(|| prim::boolean(true));
            let value = x.at(&[at[0].clone(), at[1].clone(), y, z]);
            // The border is zero, and the kernel counts there too.
            let padded = prim::if_then_else(inside, value, prim::constant(dtype, 0.0));
            te::max(padded + kernel.at(&[at[1].clone(), ry.var(), rx_axis.var()]), [ry.clone(), rx_axis.clone()])
        })]
    })?)
}

/// A convolution in the packed layouts of the reference's x86 kernels, which here is one in plain layouts between changes of
/// layout; Relax takes those away where they meet their opposites.
pub(super) fn packed_conv2d(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight) = (cx.arg(0)?, cx.arg(1)?);
    let (data, kernel) = (cx.str("data_layout"), cx.str("kernel_layout"));
    let out = match cx.str("out_layout") {
        text if text.is_empty() => data.clone(),
        text => text,
    };
    let x = in_layout(cx, x, &data, "NCHW")?;
    let weight = in_layout(cx, weight, &kernel, "OIHW")?;
    let mut attrs = cx.attrs.clone();
    for (name, plain) in [("data_layout", "NCHW"), ("kernel_layout", "OIHW"), ("out_layout", "")] {
        attrs = attrs.with(name, plain);
    }
    let result = cx.relay("nn.conv2d", vec![x, weight], attrs)?;
    in_layout(cx, result, "NCHW", &out)
}

/// A dense layer whose weight is packed.
pub(super) fn packed_dense(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight) = (cx.arg(0)?, cx.arg(1)?);
    let layout = cx.attrs.str("weight_layout").unwrap_or("NC").to_string();
    let weight = in_layout(cx, weight, &layout, "NC")?;
    let attrs = relaxide_ir::Attrs::new()
        .with("units", cx.attrs.0.get("units").cloned().unwrap_or(relaxide_ir::AttrValue::None))
        .with("out_dtype", cx.attrs.0.get("out_dtype").cloned().unwrap_or(relaxide_ir::AttrValue::None));
    cx.relay("nn.dense", vec![x, weight], attrs)
}

fn in_layout(cx: &mut LowerCx<'_>, x: rx::Expr, from: &str, to: &str) -> Lowered {
    if from == to {
        return Ok(x);
    }
    let attrs = relaxide_ir::Attrs::new().with("src_layout", from).with("dst_layout", to);
    cx.relay("layout_transform", vec![x], attrs)
}
