//! Pooling of regions of images. A region is a row (image, left, top, right, bottom), in the units of `spatial_scale`.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::{Stmt, te};

use super::loops::{Cell, axes, nest};
use super::manipulate::input;
use super::window::{all, layout_order};
use super::*;

const ARGS: &[ArgDef] = &[
    ArgDef::tensor("data", "The images."),
    ArgDef::tensor("rois", "The regions: (image, left, top, right, bottom) each."),
];
const SIZE: AttrDef =
    AttrDef::new("pooled_size", AttrKind::IntsOf(2), AttrDefault::Required, "Height and width of the result.");
const SCALE: AttrDef =
    AttrDef::required("spatial_scale", AttrKind::Float, "Elements of the image for one unit of the regions.");
const LAYOUT: AttrDef = AttrDef::str("layout", "NCHW", "Order of the images' axes.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef {
        instead: Some(roi_samples::tabulated),
        ..OpDef::compute(
            "vision.roi_align",
            ARGS,
            &[
                SIZE,
                SCALE,
                AttrDef::int("sample_ratio", -1, "Places that are read along each axis of a bin; as many as it has elements if not positive."),
                AttrDef::bool("aligned", false, "Whether regions may be smaller than one element."),
                LAYOUT,
                AttrDef::str("mode", "avg", "avg, max, or max_corner: the largest of the four weighted elements of all places, as ONNX defines a maximum."),
            ],
            roi_type,
            roi_align,
            "Each region divided into bins; a bin's value is the mean, or the largest, of the image at places in it, mixed from \
             the four elements around. ONNX: RoiAlign.",
        )
        .follow()
    },
    OpDef::compute(
        "vision.roi_pool",
        ARGS,
        &[SIZE, SCALE, LAYOUT],
        roi_type,
        roi_pool,
        "Each region divided into bins of whole elements; a bin's value is the largest of them, zero for an empty one. ONNX: \
         MaxRoiPool.",
    )
    .follow(),
];

fn roi_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, rois) = (cx.tensor(0)?, cx.tensor(1)?);
    let order = layout_order(cx, "layout", "NCHW")?;
    if cx.name() == "vision.roi_pool" && !order.is_identity() {
        return cx.invalid("there is the layout NCHW only");
    }
    if cx.attrs.str("mode").is_some_and(|m| !matches!(m, "avg" | "max" | "max_corner")) {
        return cx.invalid("mode is none of avg, max and max_corner");
    }
    if let Some(n) = data.ndim.filter(|n| *n != 4) {
        return cx.invalid(format!("`data` has {n} dimensions, not 4"));
    }
    if let Some(n) = rois.ndim.filter(|n| *n != 2) {
        return cx.invalid(format!("`rois` has {n} dimensions, not 2"));
    }
    if rois.dims.as_ref().and_then(|d| d[1].as_int()).is_some_and(|n| n != 5) {
        return cx.invalid("each region has 5 numbers");
    }
    let size = cx.ints("pooled_size")?;
    let dims = data.dims.zip(rois.dims).map(|(data, rois)| {
        let image = order.inverse().apply(&data);
        let dims = [rois[0].clone(), image[1].clone(), PrimExpr::from(size[0]), PrimExpr::from(size[1])];
        order.apply(&dims)
    });
    Ok(tensor_type(dims, Some(4), data.dtype))
}

/// Numbers of one region, kept while its bins are computed.
struct Region<'a> {
    source: &'a Ref<relaxide_ir::Buffer>,
    row: PrimExpr,
    dtype: DataType,
    scale: f64,
}

impl Region<'_> {
    fn number(&self, value: f64) -> PrimExpr {
        constant(self.dtype, value)
    }

    fn image(&self) -> PrimExpr {
        cast(DataType::int(64), prim::load(self.source, [self.row.clone(), PrimExpr::from(0)]))
    }

    /// Where it begins and ends along axis 0 (rows) or 1 (columns), in elements.
    fn span(&self, axis: usize) -> (PrimExpr, PrimExpr) {
        let at = |i: i64| prim::load(self.source, [self.row.clone(), PrimExpr::from(i)]) * self.number(self.scale);
        let first = 2 - axis as i64;
        (at(first), at(first + 2))
    }
}

/// What is computed for each bin of each region and channel, by statements over memory of their own.
fn each_bin(
    cx: &CallCx,
    inputs: &[te::Tensor],
    body: impl FnOnce(&Region, &[PrimExpr], &dyn Fn(&[PrimExpr]) -> PrimExpr, &Cell) -> (Stmt, PrimExpr),
) -> Result<Vec<te::Tensor>, OpError> {
    let (data, rois) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let order = layout_order(cx, "layout", "NCHW")?;
    let size = cx.ints("pooled_size")?;
    let channels = order.inverse().apply(data.shape())[1].clone();
    let dims = [rois.shape()[0].clone(), channels, PrimExpr::from(size[0]), PrimExpr::from(size[1])];
    let scale = cx.float("spatial_scale")?;
    let outs = [
        ("T_roi".to_string(), order.apply(&dims), data.dtype()),
        ("sum".to_string(), vec![PrimExpr::from(1)], data.dtype()),
    ];
    let mut outs = te::extern_stage("roi", &[data.clone(), rois.clone()], outs, |source, target| {
        let (vars, at) = axes(&dims, "i");
        let region = Region { source: &source[1], row: at[0].clone(), dtype: rois.dtype(), scale };
        let element = |index: &[PrimExpr]| prim::load(&source[0], order.apply(index));
        let (work, result) = body(&region, &at, &element, &Cell::new(&target[1], 0));
        nest(&vars, &dims, Stmt::seq([work, Stmt::store(&target[0], order.apply(&at), result)]))
    });
    Ok(vec![outs.swap_remove(0)])
}

fn image_sizes(cx: &CallCx, inputs: &[te::Tensor]) -> Result<[PrimExpr; 2], OpError> {
    let order = layout_order(cx, "layout", "NCHW")?;
    let dims = order.inverse().apply(input(cx, inputs, 0)?.shape());
    Ok([dims[2].clone(), dims[3].clone()])
}

/// A bin along one axis: where it begins, how long it is, and how many places are read in it.
struct Bin {
    start: PrimExpr,
    length: PrimExpr,
    places: PrimExpr,
}

fn roi_align(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let size = cx.ints("pooled_size")?;
    let (ratio, aligned, mode) = (cx.int("sample_ratio")?, cx.bool("aligned")?, cx.str("mode")?);
    let (mean, corners) = (mode == "avg", mode == "max_corner");
    let limits = image_sizes(cx, inputs)?;
    let dtype = input(cx, inputs, 0)?.dtype();
    each_bin(cx, inputs, |region, at, element, total| {
        let wide = DataType::int(64);
        let bins: Vec<Bin> = (0..2)
            .map(|axis| {
                let (start, end) = region.span(axis);
                let length = &end - &start;
                let length = if aligned { length } else { prim::max(length, region.number(1.0)) };
                let bin = prim::div(length, region.number(size[axis] as f64));
                let places = if ratio > 0 { PrimExpr::from(ratio) } else { cast(wide, math("ceil", bin.clone())) };
                Bin { start: start + cast(region.dtype, &at[axis + 2]) * &bin, length: bin, places }
            })
            .collect();
        let place = |axis: usize, tap: &PrimExpr| {
            let Bin { start, length, places } = &bins[axis];
            start + (cast(region.dtype, tap) + region.number(0.5)) * prim::div(length, cast(region.dtype, places))
        };
        // Places beyond the image count as zeros and are many where a region is much larger than the image: they are left out.
        let near: Vec<(PrimExpr, PrimExpr)> = (0..2).map(|axis| near(region, &bins[axis], &limits[axis])).collect();
        let some_beyond =
            (0..2).map(|axis| prim::lt(&near[axis].1, &bins[axis].places)).fold(prim::boolean(false), prim::or);
        let zero = constant(dtype, 0.0);
        let lowest = prim::select(some_beyond, zero.clone(), prim::lowest(dtype));
        let begin = total.set(if mean { zero } else { lowest });
        let rows = Stmt::each("y", near[0].1.clone(), |y| {
            Stmt::each("x", near[1].1.clone(), |x| {
                let places = [place(0, &(y + &near[0].0)), place(1, &(x + &near[1].0))];
                let value = mixed(region, at, element, places, &limits, corners);
                total.set(if mean { total.get() + value } else { prim::max(total.get(), value) })
            })
        });
        let count = prim::max(&bins[0].places * &bins[1].places, 1);
        let result = if mean { prim::div(total.get(), cast(dtype, count)) } else { total.get() };
        (Stmt::seq([begin, rows]), result)
    })
}

/// Of the places in a bin, counted from 0, those that can be inside of the image: the first of them, and how many.
fn near(region: &Region, bin: &Bin, limit: &PrimExpr) -> (PrimExpr, PrimExpr) {
    let Bin { start, length, places } = bin;
    let wide = DataType::int(64);
    let per_element = prim::div(cast(region.dtype, places), length);
    // One more on either side makes up for rounding.
    let count_to = |edge: PrimExpr, how: &str| cast(wide, math(how, (edge - start) * &per_element));
    let clamped = |e: PrimExpr| prim::max(prim::min(e, places), 0);
    let first = clamped(count_to(region.number(-1.0), "floor") - 2);
    let end = clamped(count_to(cast(region.dtype, limit), "ceil") + 2);
    // A bin without extent, or one that is no number, has all its places at one point.
    let plain = prim::not(prim::gt(length, region.number(0.0)));
    let first = prim::select(plain.clone(), PrimExpr::from(0), first);
    let count = prim::select(plain, prim::max(places, 0), prim::max(end - &first, 0));
    (first, count)
}

/// The image at a place, mixed from the four elements around it, or the largest of the four parts (`corners`); zero beyond its edges.
fn mixed(
    region: &Region,
    at: &[PrimExpr],
    element: &dyn Fn(&[PrimExpr]) -> PrimExpr,
    places: [PrimExpr; 2],
    limits: &[PrimExpr; 2],
    corners: bool,
) -> PrimExpr {
    let (wide, dtype) = (DataType::int(64), element(&[0, 0, 0, 0].map(PrimExpr::from)).dtype());
    let real = |e: &PrimExpr| cast(region.dtype, e);
    let inside =
        all((0..2).flat_map(|i| [prim::ge(&places[i], region.number(-1.0)), prim::le(&places[i], real(&limits[i]))]));
    let axis = |i: usize| {
        let clamped = prim::min(prim::max(&places[i], region.number(0.0)), real(&(&limits[i] - 1)));
        let low = cast(wide, math("floor", clamped.clone()));
        let part = cast(dtype, clamped - real(&low));
        let high = prim::min(&low + 1, &limits[i] - 1);
        (low, high, part)
    };
    let ((top, bottom, down), (left, right, across)) = (axis(0), axis(1));
    let one = constant(dtype, 1.0);
    let of = |y: &PrimExpr, x: &PrimExpr| element(&[region.image(), at[1].clone(), y.clone(), x.clone()]);
    let line = |y: &PrimExpr| [of(y, &left) * (&one - &across), of(y, &right) * &across];
    let (above, below, up) = (line(&top), line(&bottom), &one - &down);
    let value = if corners {
        let largest = |[a, b]: [PrimExpr; 2], weight: &PrimExpr| prim::max(a * weight, b * weight);
        prim::max(largest(above, &up), largest(below, &down))
    } else {
        let sum = |[a, b]: [PrimExpr; 2]| a + b;
        sum(above) * up + sum(below) * down
    };
    prim::if_then_else(inside, value, constant(dtype, 0.0))
}

fn roi_pool(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let size = cx.ints("pooled_size")?;
    let limits = image_sizes(cx, inputs)?;
    let dtype = input(cx, inputs, 0)?.dtype();
    each_bin(cx, inputs, |region, at, element, best| {
        let wide = DataType::int(64);
        let rounded = |e: PrimExpr| cast(wide, math("floor", e + region.number(0.5)));
        let bounds: Vec<(PrimExpr, PrimExpr)> = (0..2)
            .map(|axis| {
                let (start, end) = region.span(axis);
                let (start, end) = (rounded(start), rounded(end));
                let length = cast(region.dtype, prim::max(end - &start + 1, 1));
                let bin = prim::div(length, region.number(size[axis] as f64));
                let edge = |e: &PrimExpr, how: &str| {
                    let place = cast(wide, math(how, cast(region.dtype, e) * &bin)) + &start;
                    prim::min(prim::max(place, 0), &limits[axis])
                };
                (edge(&at[axis + 2], "floor"), edge(&(&at[axis + 2] + 1), "ceil"))
            })
            .collect();
        let extent = |axis: usize| prim::max(&bounds[axis].1 - &bounds[axis].0, 0);
        let rows = Stmt::each("y", extent(0), |y| {
            Stmt::each("x", extent(1), |x| {
                let place = [region.image(), at[1].clone(), &bounds[0].0 + y, &bounds[1].0 + x];
                best.set(prim::max(best.get(), element(&place)))
            })
        });
        let empty = prim::or(prim::le(extent(0), 0), prim::le(extent(1), 0));
        let result = prim::select(empty, constant(dtype, 0.0), best.get());
        (Stmt::seq([best.set(prim::lowest(dtype)), rows]), result)
    })
}
