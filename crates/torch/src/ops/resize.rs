//! Images of another size, and samples of them.

use relaxide_ir::Attrs;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::Expr;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};

pub const TABLE: Table = &[
    ("aten.upsample_nearest1d", |cx| resized(cx, 1, "nearest_neighbor")),
    ("aten.upsample_nearest2d", |cx| resized(cx, 2, "nearest_neighbor")),
    ("aten.upsample_nearest3d", |cx| resized(cx, 3, "nearest_neighbor")),
    ("aten._upsample_nearest_exact1d", |cx| resized(cx, 1, "nearest_exact")),
    ("aten._upsample_nearest_exact2d", |cx| resized(cx, 2, "nearest_exact")),
    ("aten._upsample_nearest_exact3d", |cx| resized(cx, 3, "nearest_exact")),
    ("aten.upsample_linear1d", |cx| resized(cx, 1, "linear")),
    ("aten.upsample_bilinear2d", |cx| resized(cx, 2, "linear")),
    ("aten.upsample_trilinear3d", |cx| resized(cx, 3, "linear")),
    ("aten.upsample_bicubic2d", |cx| resized(cx, 2, "cubic")),
    ("aten._upsample_bilinear2d_aa", |_| Err(NodeError::unsupported("resizing with anti-aliasing"))),
    ("aten._upsample_bicubic2d_aa", |_| Err(NodeError::unsupported("resizing with anti-aliasing"))),
    ("aten.grid_sampler_2d", grid_sample),
    ("aten.grid_sampler", grid_sample),
    ("aten.affine_grid_generator", affine_grid),
];

/// The attributes of a resize of a method as PyTorch has it.
fn attrs(cx: &Cx<'_>, method: &str) -> Result<Attrs> {
    let align = cx.flag("align_corners", false)?;
    let (method, place, rounding) = match method {
        "nearest_neighbor" => ("nearest_neighbor", "asymmetric", "floor"),
        "nearest_exact" => ("nearest_neighbor", "half_pixel", "round_prefer_ceil"),
        other if align => (other, "align_corners", ""),
        other => (other, "half_pixel", ""),
    };
    let attrs = Attrs::new().with("method", method).with("coordinate_transformation_mode", place);
    let attrs = if rounding.is_empty() { attrs } else { attrs.with("rounding_method", rounding) };
    Ok(attrs.with("cubic_alpha", -0.75))
}

/// Whether the scale that the user gave is that of the sizes, as PyTorch uses the one that was given.
fn same_scale(cx: &Cx<'_>, own: &[PrimExpr], out: &[PrimExpr]) -> Result<bool> {
    if cx.flag("align_corners", false)? {
        return Ok(true);
    }
    let mut scales = cx.floats("scale_factors")?.unwrap_or_default();
    for name in ["scales", "scales_d", "scales_h", "scales_w"] {
        if cx.get(name).is_some() {
            scales.push(cx.float_or(name, 1.0)?);
        }
    }
    if scales.is_empty() {
        return Ok(true);
    }
    let exact = |((own, out), scale): ((&PrimExpr, &PrimExpr), &f64)| match (own.as_int(), out.as_int()) {
        (Some(own), Some(out)) => (own as f64 * scale - out as f64).abs() < 1e-9 * out as f64,
        _ => scale.fract() == 0.0,
    };
    Ok(scales.len() == own.len() && own.iter().zip(out).zip(&scales).all(exact))
}

fn resized(cx: &mut Cx<'_>, count: usize, method: &str) -> Outputs {
    let name = if cx.get("self").is_some() { "self" } else { "input" };
    let (x, declared) = (cx.tensor(name)?, cx.result()?.clone());
    let own = cx.shape(&x)?;
    let Some(front) = own.len().checked_sub(count) else {
        return Err(NodeError::invalid("the image has too few axes"));
    };
    let size = declared.dims[front..].to_vec();
    if !same_scale(cx, &own[front..], &size)? {
        return Err(NodeError::unsupported(
            "a scale that does not lead to the output's size; pass `recompute_scale_factor=True` to `interpolate`, or a size",
        ));
    }
    let attrs = attrs(cx, method)?;
    if count == 3 {
        return one(cx.op("image.resize3d", [x, Expr::shape(size)], attrs)?);
    }
    if count == 2 {
        return one(cx.op("image.resize2d", [x, Expr::shape(size)], attrs)?);
    }
    // A row is an image of one line.
    let x = cx.op("expand_dims", [x], Attrs::new().with("axis", vec![2i64]))?;
    let line = vec![relaxide_ir::prim::int(1), size[0].clone()];
    let y = cx.op("image.resize2d", [x, Expr::shape(line)], attrs)?;
    one(cx.op("squeeze", [y], Attrs::new().with("axis", vec![2i64]))?)
}

fn grid_sample(cx: &mut Cx<'_>) -> Outputs {
    let (x, grid) = (cx.tensor("input")?, cx.tensor("grid")?);
    if cx.rank(&x)? != 4 {
        return Err(NodeError::unsupported("samples of volumes"));
    }
    let method = match cx.int_or("interpolation_mode", 0)? {
        0 => "bilinear",
        1 => "nearest",
        2 => "bicubic",
        other => return Err(NodeError::invalid(format!("`interpolation_mode` is {other}"))),
    };
    let padding = match cx.int_or("padding_mode", 0)? {
        0 => "zeros",
        1 => "border",
        2 => "reflection",
        other => return Err(NodeError::invalid(format!("`padding_mode` is {other}"))),
    };
    let grid = cx.permute(grid, &[0, 3, 1, 2])?;
    let attrs = Attrs::new()
        .with("method", method)
        .with("padding_mode", padding)
        .with("align_corners", cx.flag("align_corners", false)?);
    one(cx.op("image.grid_sample", [x, grid], attrs)?)
}

fn affine_grid(cx: &mut Cx<'_>) -> Outputs {
    let (theta, declared) = (cx.tensor("theta")?, cx.result()?.clone());
    if declared.dims.len() != 4 {
        return Err(NodeError::unsupported("grids of volumes"));
    }
    let size = declared.dims[1..3].to_vec();
    let attrs = Attrs::new().with("align_corners", cx.flag("align_corners", false)?);
    let grid = cx.op("image.affine_grid", [theta, Expr::shape(size)], attrs)?;
    one(cx.permute(grid, &[0, 2, 3, 1])?)
}
