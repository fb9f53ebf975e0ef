//! Averages over windows that divide an image into a given number of parts.

use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::window::{Image, compute, compute_by_rule, layout_of, out_layout_of, packed, unpacked};
use super::*;

const fn row(
    name: &'static str,
    attrs: &'static [AttrDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    lower: fn(&CallCx, &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError>,
    doc: &'static str,
) -> OpDef {
    OpDef::compute(name, DATA, attrs, infer, lower, doc).pattern(OpPattern::OutFusable)
}

const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The image.")];
const OUT_LAYOUT: AttrDef = AttrDef::new(
    "out_layout",
    AttrKind::Str,
    AttrDefault::Same("layout"),
    "Order of the result's axes; the image's if absent.",
);
const SIZE: AttrDef =
    AttrDef::axes("output_size", "How many parts along each axis; one number serves all; the image's size if absent.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "nn.adaptive_avg_pool1d",
        &[SIZE, AttrDef::str("layout", "NCW", "Order of the axes."), OUT_LAYOUT],
        |cx| infer(cx, 1, "NCW"),
        |cx, t| lower(cx, t, "NCW"),
        "Part i of n along an axis of size s averages elements floor(i * s / n) up to ceil((i + 1) * s / n).",
    )
    .follow()
    .layout(layout::windowed),
    row(
        "nn.adaptive_avg_pool2d",
        &[SIZE, AttrDef::str("layout", "NCHW", "Order of the axes."), OUT_LAYOUT],
        |cx| infer(cx, 2, "NCHW"),
        |cx, t| lower(cx, t, "NCHW"),
        "Part i of n along an axis of size s averages elements floor(i * s / n) up to ceil((i + 1) * s / n).",
    )
    .follow()
    .layout(layout::windowed),
    row(
        "nn.adaptive_avg_pool3d",
        &[SIZE, AttrDef::str("layout", "NCDHW", "Order of the axes."), OUT_LAYOUT],
        |cx| infer(cx, 3, "NCDHW"),
        |cx, t| lower(cx, t, "NCDHW"),
        "Part i of n along an axis of size s averages elements floor(i * s / n) up to ceil((i + 1) * s / n).",
    )
    .follow()
    .layout(layout::windowed),
];

fn infer(cx: &CallCx, spatial: usize, layout: &str) -> Result<Type, OpError> {
    let order = layout_of(cx, "layout", layout)?;
    let out = out_layout_of(cx, layout, &order)?;
    let x = cx.tensor(0)?;
    if let Some(n) = x.ndim.filter(|n| *n != order.rank()) {
        return cx.invalid(format!("needs an image of {} dimensions, not {n}", order.rank()));
    }
    let Some(dims) = x.dims else { return Ok(tensor_type(None, Some(out.rank()), x.dtype)) };
    let mut dims = unpacked(cx, "data", &order, &dims)?;
    if cx.attrs.get("output_size").is_some() {
        let size = cx.ints("output_size")?;
        if size.is_empty() || !spatial.is_multiple_of(size.len()) || size.iter().any(|s| *s < 1) {
            return cx.invalid(format!("output_size must be one or {spatial} positive numbers"));
        }
        for (dim, parts) in dims.iter_mut().skip(2).zip(size.iter().cycle()) {
            *dim = PrimExpr::from(*parts);
        }
    }
    Ok(Type::tensor(packed(cx, &out, &dims)?, x.dtype))
}

/// The window of one part of one axis: where it begins, how many elements it may have at most, and how many it has.
struct AxisWindow {
    begin: PrimExpr,
    size: PrimExpr,
    tap: te::ReduceAxis,
    /// Whether every window has the same size, so that no tap is outside.
    regular: bool,
}

fn lower(cx: &CallCx, inputs: &[te::Tensor], letters: &str) -> Result<Vec<te::Tensor>, OpError> {
    let order = layout_of(cx, "layout", letters)?;
    let out_order = out_layout_of(cx, letters, &order)?;
    let x = Image::new(cx, "data", input(cx, inputs, 0)?, &order)?;
    let sizes = x.dims();
    let dims = unpacked(cx, "the result", &out_order, &result_dims(cx)?)?;
    let taps: Vec<(te::ReduceAxis, bool)> = sizes.iter().zip(&dims).skip(2).map(|(s, n)| tap(s, n)).collect();
    let part = |out: &[PrimExpr], i: usize| {
        let ((tap, regular), s, n) = (&taps[i], &sizes[i + 2], &dims[i + 2]);
        let begin = prim::floordiv(&out[i + 2] * s, n);
        let end = prim::floordiv((&out[i + 2] + 1) * s + (n - 1), n);
        let size = if *regular { tap.extent().clone() } else { end - &begin };
        AxisWindow { begin, size, tap: tap.clone(), regular: *regular }
    };
    let axes: Vec<te::ReduceAxis> = taps.iter().map(|(t, _)| t.clone()).collect();
    let total = compute(cx, "adaptive_pool_sum", &dims, &out_order, |out| {
        let mut index = out[..2].to_vec();
        let mut inside = prim::boolean(true);
        for part in (0..taps.len()).map(|i| part(out, i)) {
            index.push(&part.begin + part.tap.var());
            if !part.regular {
                inside = prim::and(inside, prim::lt(part.tap.var(), &part.size));
            }
        }
        te::sum(prim::if_then_else(inside, x.at(&index), constant(x.dtype(), 0.0)), &axes)
    })?;
    let total = Image::new(cx, "data", &total, &out_order)?;
    let mean = |out: &[PrimExpr]| {
        let count = (0..taps.len()).map(|i| part(out, i).size).fold(PrimExpr::from(1), |n, s| n * s);
        prim::div(total.at(out), cast(x.dtype(), count))
    };
    let name = "adaptive_pool_avg";
    let result = match cx.form {
        KernelForm::Plain => compute_by_rule(cx, name, &dims, &out_order, mean),
        KernelForm::Fast => compute(cx, name, &dims, &out_order, mean),
    };
    Ok(vec![result?])
}

/// The axis over a window along a dimension of size `s` that is divided into `n` parts.
fn tap(s: &PrimExpr, n: &PrimExpr) -> (te::ReduceAxis, bool) {
    match (s.as_int(), n.as_int()) {
        (_, Some(1)) => (te::reduce_axis(s.clone()), true),
        (Some(size), Some(parts)) if parts > 0 && size % parts == 0 => (te::reduce_axis(size / parts), true),
        _ => (te::reduce_axis(prim::floordiv(s + (n - 1), n) + 1), false),
    }
}
