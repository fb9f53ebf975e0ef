//! `roi_align` with a fixed number of places in a bin: tables of the places, and channels in vectors.
//!
//! ```text
//! row[r, i], down[r, i]       the element below the i-th place down a region, and how far behind it the place lies; -1 outside
//! column[r, j], across[r, j]  the same along it
//! R[r, y, x, c] = sum over i, j of the places in a bin of  a mixture of D[image[r], row.., column.., c] by down and across
//! ```
//!
//! Neither depends on the channel, and the channels of an image that is transposed once lie side by side: no element is gathered.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::te;

use super::names::Names;
use super::*;

/// Channels below which a vector is not full.
const LEAST_CHANNELS: i64 = 8;

/// What the call says.
struct Align {
    /// Bins along each axis.
    bins: [i64; 2],
    /// Places along each axis of a bin.
    ratio: i64,
    scale: f64,
    aligned: bool,
    /// Of the images.
    sizes: [PrimExpr; 2],
    /// Types of the regions and of the images.
    place: DataType,
    dtype: DataType,
}

/// The operator over images whose channels come last, where its places are so many in each bin.
pub fn tabulated<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let (data, rois) = (cx.tensor(0)?, cx.tensor(1)?);
    let (layout, ratio, mode) = (cx.str("layout")?, cx.int("sample_ratio")?, cx.str("mode")?);
    let (Some(dims), Some(regions)) = (data.dims, rois.dims) else { return Ok(None) };
    let is_first = layout == "NCHW";
    let [_, height, width, channels] = match (layout, &dims[..]) {
        ("NCHW", [n, c, h, w]) => [n, h, w, c],
        ("NHWC", [n, h, w, c]) => [n, h, w, c],
        _ => return Ok(None),
    };
    let is_wide = |dtype: DataType| dtype.is_float() && dtype.bits >= 32;
    let is_empty = |dim: &PrimExpr| dim.as_int().is_some_and(|n| n < 1);
    let many = channels.as_int().is_some_and(|n| n >= LEAST_CHANNELS);
    if ratio < 1 || !many || !is_wide(data.dtype) || !is_wide(rois.dtype) || is_empty(height) || is_empty(width) {
        return Ok(None);
    }
    let bins = cx.ints("pooled_size")?;
    let align = Align {
        bins: [bins[0], bins[1]],
        ratio,
        scale: cx.float("spatial_scale")?,
        aligned: cx.bool("aligned")?,
        sizes: [height.clone(), width.clone()],
        place: rois.dtype,
        dtype: data.dtype,
    };
    let (count, mode) = (regions[0].clone(), mode.to_string());
    Ok(Some(Box::new(move |b| {
        let failed = |error| OpError::of_build(cx.name(), error);
        let permuted = |order: [i64; 4]| Attrs::new().with("axes", order.to_vec());
        let image = cx.arg(0)?.clone();
        let image = match is_first {
            true => b.op("permute_dims", [image], permuted([0, 2, 3, 1])).map_err(failed)?,
            false => image,
        };
        let result = b.emit_te("roi_align", vec![image, cx.arg(1)?.clone()], |inputs| {
            vec![align.result(&inputs[0], &inputs[1], &count, &mode)]
        });
        let result = result.map_err(failed)?;
        match is_first {
            true => call("permute_dims", [result], permuted([0, 3, 1, 2])),
            false => Ok(result),
        }
    })))
}

impl Align {
    fn number(&self, value: f64) -> PrimExpr {
        constant(self.place, value)
    }

    /// The place of a number along an axis of a region.
    fn place(&self, names: &mut Names, rois: &te::Tensor, at: &[PrimExpr], axis: usize) -> PrimExpr {
        let edge = |i: usize| rois.at(&[at[0].clone(), PrimExpr::from(i as i64)]) * self.number(self.scale);
        let start = names.of("start", edge(2 - axis));
        let length = edge(4 - axis) - &start;
        let length = if self.aligned { length } else { prim::max(length, self.number(1.0)) };
        let bin = names.of("bin", prim::div(length, self.number(self.bins[axis] as f64)));
        let real = |e: PrimExpr| cast(self.place, e);
        let first = start + real(prim::floordiv(&at[1], self.ratio)) * &bin;
        let tap = real(prim::floormod(&at[1], self.ratio)) + self.number(0.5);
        let place = first + tap * prim::div(bin, self.number(self.ratio as f64));
        names.of("place", place)
    }

    /// The element below each place along an axis, -1 for a place outside, and how far behind it the place lies.
    fn tables(&self, rois: &te::Tensor, count: &PrimExpr, axis: usize) -> [te::Tensor; 2] {
        let dims = [count.clone(), PrimExpr::from(self.bins[axis].saturating_mul(self.ratio))];
        let size = &self.sizes[axis];
        let clamped = |place: &PrimExpr| {
            let last = cast(self.place, size - 1);
            prim::min(prim::max(place, self.number(0.0)), last)
        };
        let below = te::compute("below", &dims, |at| {
            let mut names = Names::default();
            let place = self.place(&mut names, rois, at, axis);
            let inside = prim::and(prim::ge(&place, self.number(-1.0)), prim::le(&place, cast(self.place, size)));
            let index = cast(DataType::int(32), math("floor", clamped(&place)));
            names.around(prim::select(inside, index, prim::int_of(DataType::int(32), -1)))
        });
        let part = te::compute("part", &dims, |at| {
            let mut names = Names::default();
            let place = self.place(&mut names, rois, at, axis);
            let inside = names.of("inside", clamped(&place));
            names.around(cast(self.dtype, &inside - math("floor", inside.clone())))
        });
        [below, part]
    }

    fn result(&self, image: &te::Tensor, rois: &te::Tensor, count: &PrimExpr, mode: &str) -> te::Tensor {
        let number = te::compute("image", [count.clone()], |at| {
            cast(DataType::int(64), rois.at(&[at[0].clone(), PrimExpr::from(0)]))
        });
        let tables = [0, 1].map(|axis| self.tables(rois, count, axis));
        let taps = ["sy", "sx"].map(|name| te::reduce_axis_named(name, self.ratio));
        let channels = image.shape()[3].clone();
        let dims = [count.clone(), self.bins[0].into(), self.bins[1].into(), channels];
        let one = constant(self.dtype, 1.0);
        let value = |at: &[PrimExpr]| {
            let mut names = Names::default();
            let image_of = names.of("image", number.at(&at[..1]));
            let mut along = |axis: usize| {
                let entry = [at[0].clone(), &at[1 + axis] * self.ratio + taps[axis].var()];
                let [below, part] = &tables[axis];
                let below = names.of("below", cast(DataType::int(64), below.at(&entry)));
                let last = &self.sizes[axis] - 1;
                let low = prim::max(prim::min(&below, &last), 0);
                let high = prim::max(prim::min(&below + 1, &last), 0);
                (prim::ge(below, 0), names.of("low", low), names.of("high", high), names.of("part", part.at(&entry)))
            };
            let ((in_rows, top, bottom, down), (in_columns, left, right, across)) = (along(0), along(1));
            let of = |y: &PrimExpr, x: &PrimExpr| image.at(&[image_of.clone(), y.clone(), x.clone(), at[3].clone()]);
            let line = |y: &PrimExpr| [of(y, &left) * (&one - &across), of(y, &right) * &across];
            let (above, under, up) = (line(&top), line(&bottom), &one - &down);
            let value = match mode {
                "max_corner" => {
                    let largest = |[a, b]: [PrimExpr; 2], weight: &PrimExpr| prim::max(a * weight, b * weight);
                    prim::max(largest(above, &up), largest(under, &down))
                }
                _ => {
                    let sum = |[a, b]: [PrimExpr; 2]| a + b;
                    sum(above) * up + sum(under) * down
                }
            };
            let value = prim::select(prim::and(in_rows, in_columns), value, constant(self.dtype, 0.0));
            names.around(value)
        };
        if mode != "avg" {
            return te::compute("T_roi_align", &dims, |at| te::max(value(at), &taps));
        }
        let total = te::compute("roi_sum", &dims, |at| te::sum(value(at), &taps));
        let places = constant(self.dtype, self.ratio.saturating_mul(self.ratio) as f64);
        te::compute("T_roi_align", &dims, |at| prim::div(total.at(at), places.clone()))
    }
}
