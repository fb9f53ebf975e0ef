//! Proposals: anchors moved by what a network says of them, the best that do not overlap.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::limits::{MOST_PARTS, listed};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::boxes::floats;
use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};
use super::manipulate::PLACES;

const FLOAT: DataType = DataType::float(32);

/// The image and the anchors of a call.
struct Grid {
    batch: i64,
    height: i64,
    width: i64,
    anchors: i64,
    stride: i64,
}

impl Grid {
    fn of(cx: &LowerCx<'_>, scores: &rx::Expr, anchors: i64) -> Result<Grid, LowerError> {
        let dims = rx::shape::const_dims(&cx.shape(scores)?);
        let Some([batch, channels, height, width]) = dims.as_deref() else {
            return fail("vision.proposal takes scores of known size, (batch, 2 * anchors, height, width)");
        };
        if *channels != 2 * anchors {
            return fail(format!("vision.proposal: {channels} scores are not two for each of {anchors} anchors"));
        }
        let stride = cx.int("feature_stride")?;
        if stride <= 0 {
            return fail(format!("vision.proposal: a stride of {stride} is not positive"));
        }
        Ok(Grid { batch: *batch, height: *height, width: *width, anchors, stride })
    }

    fn count(&self) -> i64 {
        self.height * self.width * self.anchors
    }

    /// `(batch, numbers of each anchor, height, width)` as `(batch, boxes, numbers)`.
    fn by_box(&self, cx: &mut LowerCx<'_>, x: rx::Expr, numbers: i64) -> Lowered {
        let split = [self.batch, self.anchors, numbers, self.height, self.width].map(prim::int).to_vec();
        let x = cx.reshape(x, split)?;
        let x = cx.emit("permute_dims", [x], attrs([("axes", vec![0, 3, 4, 1, 2].into())]))?;
        cx.reshape(x, [self.batch, self.count(), numbers].map(prim::int).to_vec())
    }
}

/// The corners of the anchors of one place: each ratio in each scale.
fn anchors(scales: &[f64], ratios: &[f64], stride: f64) -> Vec<[f64; 4]> {
    let middle = 0.5 * (stride - 1.0);
    let corners = |ratio: f64, scale: f64| {
        let narrow = ((stride * stride / ratio).floor().sqrt() + 0.5).floor();
        let (w, h) = (narrow * scale, (narrow * ratio + 0.5).floor() * scale);
        [middle - 0.5 * (w - 1.0), middle - 0.5 * (h - 1.0), middle + 0.5 * (w - 1.0), middle + 0.5 * (h - 1.0)]
    };
    ratios.iter().flat_map(|ratio| scales.iter().map(move |scale| corners(*ratio, *scale))).collect()
}

/// The anchors of all places, `(boxes, 4)`.
fn placed(grid: &Grid, anchors: &[[f64; 4]]) -> Result<rx::Expr, LowerError> {
    let mut all = Vec::new();
    for y in 0..grid.height {
        for x in 0..grid.width {
            let (x, y) = ((x * grid.stride) as f32, (y * grid.stride) as f32);
            all.extend(
                anchors.iter().flat_map(|a| [a[0] as f32 + x, a[1] as f32 + y, a[2] as f32 + x, a[3] as f32 + y]),
            );
        }
    }
    Ok(rx::Expr::constant(Tensor::from_slice(&all, &[grid.count(), 4])?))
}

/// Rows `(image, left, top, right, bottom)` of the best boxes of each image that do not overlap a better one, again from the first
/// where they are fewer than are asked for.
pub(super) fn proposal(cx: &mut LowerCx<'_>) -> Lowered {
    let (scores, offsets, info) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (scales, ratios) = (floats(cx, "scales")?, floats(cx, "ratios")?);
    let shapes = anchors(&scales, &ratios, cx.int("feature_stride")? as f64);
    let grid = Grid::of(cx, &scores, shapes.len() as i64)?;
    let fits = grid.count().checked_mul(grid.batch).is_some_and(|all| all > 0 && all <= 1 << 24);
    if !fits || cx.dtype(&scores)? != FLOAT {
        return fail("vision.proposal takes float32, and at least one and at most 16 million boxes");
    }
    let places = placed(&grid, &shapes)?;
    let offsets = grid.by_box(cx, offsets, 4)?;
    let foreground =
        attrs([("axes", vec![1].into()), ("begin", vec![grid.anchors].into()), ("end", vec![2 * grid.anchors].into())]);
    let scores = cx.relay("strided_slice", vec![scores], foreground)?;
    let scores = grid.by_box(cx, scores, 1)?;
    let boxes = moved(cx, &grid, [places, offsets, scores, info])?;
    let (most, count) = (cx.int("rpn_pre_nms_top_n")?, grid.count());
    let most = if most > 0 { most.min(count) } else { count };
    let sorted = best(cx, &grid, boxes, most)?;
    let (kept, counts) = apart(cx, &grid, sorted.clone(), most)?;
    rows(cx, &grid, [sorted, kept, counts], most)
}

/// Boxes and scores, `(batch, boxes, 5)`: anchors moved by offsets, inside of the image. Too small ones are wider and have the score -1,
/// as have those beyond the image.
fn moved(cx: &mut LowerCx<'_>, grid: &Grid, parts: [rx::Expr; 4]) -> Lowered {
    let [places, offsets, scores, info] = parts;
    let grown = cx.op("exp", [offsets.clone()])?;
    let (is_plain, least) = (cx.bool("iou_loss"), cx.int("rpn_min_size")? as f64);
    let (anchors, width, stride) = (grid.anchors, grid.width, grid.stride as f64);
    let float = |value: f64| prim::constant(FLOAT, value);
    let shape = [grid.batch, grid.count(), 5];
    Ok(cx.builder.emit_te("proposal_boxes", vec![places, offsets, grown, scores, info], |t| {
        let [places, offsets, grown, scores, info] = [0, 1, 2, 3, 4].map(|i| t[i].clone());
        vec![te::compute("T_proposal_boxes", shape, |at: &[PrimExpr]| {
            let (image, box_) = (at[0].clone(), at[1].clone());
            let of_image = |i: i64| info.at(&[image.clone(), prim::int(i)]);
            let place = |i: i64| places.at(&[box_.clone(), prim::int(i)]);
            let offset = |i: i64| offsets.at(&[image.clone(), box_.clone(), prim::int(i)]);
            let scale = |i: i64| grown.at(&[image.clone(), box_.clone(), prim::int(i)]);
            // Along one axis: the first corner or the last.
            let corner = |axis: i64, is_last: bool| {
                let index = axis + 2 * i64::from(is_last);
                let moved = if is_plain {
                    place(index) + offset(index)
                } else {
                    let extent = place(axis + 2) - place(axis) + float(1.0);
                    let middle = place(axis) + float(0.5) * (extent.clone() - float(1.0));
                    let (middle, extent) = (offset(axis) * extent.clone() + middle, scale(axis + 2) * extent);
                    let half = float(0.5) * (extent - float(1.0));
                    if is_last { middle + half } else { middle - half }
                };
                // The image's height comes first in its description, and x first in a box.
                prim::max(prim::min(moved, of_image(1 - axis) - float(1.0)), float(0.0))
            };
            let extent = |axis: i64| corner(axis, true) - corner(axis, false) + float(1.0);
            let smallest = of_image(2) * float(least);
            let is_small = prim::or(prim::lt(extent(0), smallest.clone()), prim::lt(extent(1), smallest.clone()));
            let grow = prim::select(is_small.clone(), smallest * float(0.5), float(0.0));
            let cell = prim::floordiv(box_.clone(), prim::int(anchors));
            let (row, column) =
                (prim::floordiv(cell.clone(), prim::int(width)), prim::floormod(cell, prim::int(width)));
            let size = |i: i64| prim::cast(PLACES, prim::div(of_image(i), float(stride)));
            let beyond =
                prim::or(prim::ge(prim::cast(PLACES, row), size(0)), prim::ge(prim::cast(PLACES, column), size(1)));
            let score = scores.at(&[image.clone(), box_.clone(), prim::int(0)]);
            let score = prim::select(prim::or(is_small, beyond), float(-1.0), score);
            let numbers = [
                corner(0, false) - grow.clone(),
                corner(1, false) - grow.clone(),
                corner(0, true) + grow.clone(),
                corner(1, true) + grow,
            ];
            numbers.into_iter().enumerate().rev().fold(score, |other, (i, number)| {
                prim::select(prim::eq(at[2].clone(), prim::int(i as i64)), number, other)
            })
        })]
    })?)
}

/// The boxes of the best scores, in their order.
fn best(cx: &mut LowerCx<'_>, grid: &Grid, boxes: rx::Expr, most: i64) -> Lowered {
    let (batch, count) = (grid.batch, grid.count());
    let last = attrs([("axes", vec![2].into()), ("begin", vec![4].into()), ("end", vec![5].into())]);
    let scores = cx.relay("strided_slice", vec![boxes.clone()], last)?;
    let scores = cx.reshape(scores, [batch, count].map(prim::int).to_vec())?;
    let order = attrs([("axis", 1.into()), ("descending", true.into()), ("dtype", DataType::int(32).into())]);
    let order = cx.emit("argsort", [scores], order)?;
    Ok(cx.builder.emit_te("proposal_sorted", vec![boxes, order], |t| {
        let (boxes, order) = (t[0].clone(), t[1].clone());
        vec![te::compute("T_proposal_sorted", [batch, most, 5], |at: &[PrimExpr]| {
            let from = prim::cast(PLACES, order.at(&at[..2]));
            let from = prim::max(prim::min(from, prim::int(count - 1)), prim::int(0));
            boxes.at(&[at[0].clone(), from, at[2].clone()])
        })]
    })?)
}

/// Which of the sorted boxes stay, and how many those are. Right and bottom edges are part of a box, and one goes that overlaps by more
/// than the threshold: so edges are moved by one, and the threshold to the next number.
fn apart(cx: &mut LowerCx<'_>, grid: &Grid, sorted: rx::Expr, most: i64) -> Result<(rx::Expr, rx::Expr), LowerError> {
    let batch = grid.batch;
    let threshold = (cx.float("threshold")? as f32).next_up();
    let rated = cx.builder.emit_te("proposal_rated", vec![sorted], |t| {
        let sorted = t[0].clone();
        vec![te::compute("T_proposal_rated", [batch, most, 5], |at: &[PrimExpr]| {
            let number = sorted.at(&[at[0].clone(), at[1].clone(), prim::max(at[2].clone() - 1, prim::int(0))]);
            let edge =
                prim::select(prim::ge(&at[2], prim::int(3)), prim::constant(FLOAT, 1.0), prim::constant(FLOAT, 0.0));
            let rank = prim::cast(FLOAT, prim::int(most) - at[1].clone());
            prim::select(prim::eq(at[2].clone(), prim::int(0)), rank, number + edge)
        })]
    })?;
    if listed(batch, MOST_PARTS).and(listed(batch.saturating_mul(most), MOST_PARTS)).is_none() {
        return fail(format!("{}: {batch} images of {most} boxes, and there may be {MOST_PARTS} boxes", cx.def.name));
    }
    let places: Vec<i32> = (0..batch).flat_map(|_| 0..most as i32).collect();
    let places = rx::Expr::constant(Tensor::from_slice(&places, &[batch, most])?);
    let counts = rx::Expr::constant(Tensor::from_slice(&vec![most as i32; batch as usize], &[batch])?);
    let pairs = attrs([
        ("iou_threshold", f64::from(threshold).into()),
        ("force_suppress", true.into()),
        ("coord_start", 1.into()),
        ("score_index", 0.into()),
        ("id_index", (-1).into()),
        ("return_indices", true.into()),
    ]);
    let found = cx.emit("vision.non_max_suppression", [rated, counts, places], pairs)?;
    let field = |cx: &mut LowerCx<'_>, i| cx.builder.emit(rx::Expr::field(found.clone(), i));
    Ok((field(cx, 0)?, field(cx, 1)?))
}

fn rows(cx: &mut LowerCx<'_>, grid: &Grid, parts: [rx::Expr; 3], most: i64) -> Lowered {
    let wanted = cx.int("rpn_post_nms_top_n")?;
    let total = grid.batch.checked_mul(wanted).filter(|total| *total > 0);
    let Some(total) = total else { return fail(format!("vision.proposal: {wanted} boxes are none")) };
    Ok(cx.builder.emit_te("proposal", parts.to_vec(), |t| {
        let [sorted, kept, counts] = [0, 1, 2].map(|i| t[i].clone());
        vec![te::compute("T_proposal", [total, 5], |at: &[PrimExpr]| {
            let image = prim::floordiv(at[0].clone(), prim::int(wanted));
            let count = prim::cast(PLACES, counts.at(&[image.clone(), prim::int(0)]));
            let count = prim::max(prim::min(count, prim::int(most)), prim::int(1));
            let cyclic = prim::floormod(prim::cast(PLACES, prim::floormod(at[0].clone(), prim::int(wanted))), count);
            let cyclic = prim::max(prim::min(cyclic, prim::int(most - 1)), prim::int(0));
            let from = prim::cast(PLACES, kept.at(&[image.clone(), cyclic]));
            let from = prim::max(prim::min(from, prim::int(most - 1)), prim::int(0));
            let number = sorted.at(&[image.clone(), from, prim::max(at[1].clone() - 1, prim::int(0))]);
            prim::select(prim::eq(at[1].clone(), prim::int(0)), prim::cast(FLOAT, image), number)
        })]
    })?)
}
