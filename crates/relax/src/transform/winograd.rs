//! WinogradConv2D: convolutions of 3×3 with many channels take fewer multiplications.
//!
//! ```text
//! y = R.nn.conv2d(x, w, padding=[1, 1, 1, 1])
//!     ->  u = (a constant)                        U[i, j, m, c] = sum over k, l of  G(i, k) * G(j, l) * w[m, c, k, l]
//!         v = winograd_image(x)                   V[i, j, c, t] = sum over a, b of  B(i, a) * B(j, b) * x[c, tile t's element a, b]
//!         p = R.matmul(u, v)                      P[i, j, m, t] = sum over c of     U[i, j, m, c] * V[i, j, c, t]
//!         y = winograd_result(p)                  y[m, tile t's element r, s] = sum over i, j of  A(r, i) * A(s, j) * P[i, j, m, t]
//! ```
//!
//! A tile of `n` by `n` elements of the result is the product of two polynomials along each axis, and a polynomial of `n + 2` terms is known
//! by its values at as many points (Winograd 1980; Lavin and Gray 2016): `(n + 2)²` products a tile for each pair of channels instead of
//! `9 n²`, a quarter for tiles of four. The rule `separable` makes loops of the transforms, `matmul` those of the products, and what stands
//! behind the convolution is the epilogue of the last kernel. `u` is larger than `w`, by 4 for tiles of four and 16/9 for tiles of two.
//!
//! **Points.** The rounding of such sums grows with the spread of the points. For tiles of four they are 0, ±3/4, ±3/2 and infinity, all exact:
//! over 256 channels the error is 9e-7 (root of the mean square; of sums of about 0.6), half of that with 0, ±1, ±2; that of the direct
//! sum is 4e-7. The weight is transformed here, in double precision.
//!
//! **Distant taps** (`dilation`) are near in every `d`th row and column of the image: these are images of their own ([`polyphase`]), whose results
//! are interleaved.
//!
//! **Where** the weight is a constant (`FoldConstant` has run before), the stride is one, there is one group,
//! elements are float32, and [`cost`] is less than that of the direct sum. Other convolutions stay, and those whose weight is made of
//! integers alone: their sums are exact, which quantized networks rely on.
//!
//! **What differs.** An infinity or NaN of the image, and a sum that overflows, reaches all elements of the tiles that read it, which are as
//! far as five elements away, and is a NaN there; direct sums have it in the nine elements around. Who needs these leaves the pass out.

mod cost;
mod interpolation;
mod polyphase;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, constant, floordiv, floormod, free_vars, substitute};
use relaxide_ir::{Attrs, Type};
use relaxide_tir::te;

use self::cost::Extent;
use self::interpolation::Interpolation;
use super::dispatch::kind_of;
use super::plain_conv::is_plain;
use super::rules::{Known, apply};
use crate::constant::as_floats;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "WinogradConv2D",
    "Convolutions of 3 by 3 with many channels become products of matrices between transforms of tiles.",
    |module, context, _| if context.target.is_gpu() { Ok(module) } else { apply(PASS.name, module, replace) },
);

/// Taps of a window's side.
const TAPS: i64 = 3;
const F32: DataType = DataType::float(32);

fn replace(known: &Known, call: &Ref<Call>, b: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let Some(conv) = Convolution::of(call) else { return Ok(None) };
    let (false, Expr::Constant(weight)) =
        (kind_of(&call.ty).is_some_and(|kind| kind.is_gpu()), known.value(&call.args[1]))
    else {
        return Ok(None);
    };
    let Some(tile) = conv.extents().and_then(|extents| cost::tile(&extents)) else { return Ok(None) };
    let by = Interpolation::of(tile);
    let Some(weight) = of_weight(&by, &weight.value) else { return Ok(None) };
    let weight = Expr::constant(weight);
    if conv.dilation == [1, 1] { conv.in_tiles(b, &by, weight) } else { conv.by_phases(b, &by, weight) }.map(Some)
}

/// A convolution that may be computed in tiles.
struct Convolution {
    image: Expr,
    /// Batch, channels, height and width of the image.
    dims: [PrimExpr; 4],
    filters: i64,
    channels: i64,
    /// Rows above the image and columns before it.
    before: [i64; 2],
    /// Distances of taps.
    dilation: [i64; 2],
    /// Height and width of the result.
    size: [PrimExpr; 2],
}

impl Convolution {
    fn of(call: &Ref<Call>) -> Option<Convolution> {
        let [image, weight] = call.args.as_slice() else { return None };
        let attrs = &call.attrs;
        let is_dense = attrs.ints("strides").is_some_and(|values| values.iter().all(|v| *v == 1));
        if !is_plain(call) || !is_dense {
            return None;
        }
        let dilation = match attrs.ints("dilation")?.as_slice() {
            [both] => [*both; 2],
            [down, along] => [*down, *along],
            _ => return None,
        };
        let tensor = |ty: &Type| {
            let ty = ty.as_tensor().filter(|ty| ty.dtype == F32)?;
            <[PrimExpr; 4]>::try_from(ty.shape.clone()?).ok()
        };
        let (dims, window) = (tensor(&image.ty())?, tensor(&weight.ty())?);
        let [_, _, height, width] = tensor(&call.ty)?;
        let [filters, channels, taps_down, taps_along] = window.map(|dim| dim.as_int());
        let before = match attrs.ints("padding")?.as_slice() {
            [all] => [*all; 2],
            [down, along] | [down, along, _, _] => [*down, *along],
            _ => return None,
        };
        let is_three = taps_down == Some(TAPS) && taps_along == Some(TAPS);
        let (filters, channels) = (filters?, channels?);
        let (image, size) = (image.clone(), [height, width]);
        is_three.then_some(Convolution { image, dims, filters, channels, before, dilation, size })
    }

    /// The lengths. Where they have names, those that are to be expected.
    fn extents(&self) -> Option<Vec<Extent>> {
        let side = |size: &PrimExpr| {
            let names = free_vars(size).into_iter().map(|name| (name, PrimExpr::from(cost::USUAL)));
            Analyzer::new().simplify(&substitute(size, &names.collect())).as_int()
        };
        let [height, width] = &self.size;
        let size = [side(height)?, side(width)?];
        let of = |size| Extent {
            batch: self.dims[0].as_int().unwrap_or(1),
            size,
            channels: self.channels,
            filters: self.filters,
            dilation: self.dilation,
        };
        let has_names = self.size.iter().any(|size| size.as_int().is_none());
        Some(if has_names { of(size).expected() } else { vec![of(size)] })
    }

    /// The convolution by tiles, given the weight at the points.
    fn in_tiles(&self, b: &mut BlockBuilder, by: &Interpolation, weight: Expr) -> Result<Expr, BuildError> {
        let tile = by.tile();
        let points = tile + TAPS - 1;
        let [batch, ..] = &self.dims;
        let tiles = self.size.clone().map(|size| floordiv(size + (tile - 1), tile));
        let count = batch * &tiles[0] * &tiles[1];
        let all = PrimExpr::from(points * points);
        let reshape =
            |b: &mut BlockBuilder, x: Expr, dims: Vec<PrimExpr>| b.op("reshape", [x, Expr::shape(dims)], Attrs::new());
        let image =
            b.emit_te("winograd_image", vec![self.image.clone()], |t| vec![self.of_image(by, &tiles, &t[0])])?;
        let image = reshape(b, image, vec![all, self.channels.into(), count])?;
        let product = b.op("matmul", [weight, image], Attrs::new().with("out_dtype", F32))?;
        let [down, along] = tiles;
        let dims = vec![points.into(), points.into(), self.filters.into(), batch.clone(), down, along];
        let product = reshape(b, product, dims)?;
        b.call_te("winograd_result", vec![product], |t| vec![self.of_result(by, &t[0])])
    }

    /// The image's tiles at the points.
    fn of_image(&self, by: &Interpolation, tiles: &[PrimExpr; 2], image: &te::Tensor) -> te::Tensor {
        let points = by.image.len() as i64;
        let [batch, _, height, width] = image.shape() else { return image.clone() };
        let dims =
            [points.into(), points.into(), self.channels.into(), batch.clone(), tiles[0].clone(), tiles[1].clone()];
        let (down, along) = (te::reduce_axis_named("a", points), te::reduce_axis_named("b", points));
        te::compute("T_image", dims, |at| {
            let row = &at[4] * by.tile() + down.var() - self.before[0];
            let column = &at[5] * by.tile() + along.var() - self.before[1];
            let inside = [(&row, height), (&column, width)]
                .into_iter()
                .flat_map(|(place, size)| [prim::ge(place, 0), prim::lt(place, size)])
                .reduce(prim::and)
                .unwrap_or_else(|| prim::boolean(true));
            let element = image.at(&[at[3].clone(), at[2].clone(), row, column]);
            let element = prim::if_then_else(inside, element, constant(F32, 0.0));
            let factor = entry(&by.image, &at[0], &down.var()) * entry(&by.image, &at[1], &along.var());
            te::sum(factor * element, [&down, &along])
        })
    }

    /// The result's elements from the products at the points.
    fn of_result(&self, by: &Interpolation, product: &te::Tensor) -> te::Tensor {
        let points = by.image.len() as i64;
        let dims = [self.dims[0].clone(), self.filters.into(), self.size[0].clone(), self.size[1].clone()];
        let (down, along) = (te::reduce_axis_named("a", points), te::reduce_axis_named("b", points));
        te::compute("T_result", dims, |at| {
            let [y, x] = [&at[2], &at[3]];
            let (row, column) = (floordiv(y, by.tile()), floordiv(x, by.tile()));
            let element = product.at(&[down.var(), along.var(), at[1].clone(), at[0].clone(), row, column]);
            let factor = entry(&by.result, &floormod(y, by.tile()), &down.var())
                * entry(&by.result, &floormod(x, by.tile()), &along.var());
            te::sum(factor * element, [&down, &along])
        })
    }
}

/// The windows of a weight `[filters, channels, 3, 3]` at the points: `[points², filters, channels]`. None where all elements are
/// integers, or one is infinite or no number.
fn of_weight(by: &Interpolation, weight: &Tensor) -> Option<Tensor> {
    let values = as_floats(weight)?;
    let (windows, rest) = values.as_chunks::<{ (TAPS * TAPS) as usize }>();
    let [filters, channels, ..] = *weight.shape() else { return None };
    // Sums of integers are exact, and quantized networks rely on it; of tiles they are not. No window at all is such a weight, too.
    let stays = values.iter().all(|v| v.fract() == 0.0) || !values.iter().all(|v| v.is_finite());
    if stays || !rest.is_empty() {
        return None;
    }
    let points = by.weight.len();
    let mut all = vec![0.0; points * points * windows.len()];
    for (at, window) in windows.iter().enumerate() {
        let (lines, _) = window.as_chunks::<{ TAPS as usize }>();
        for (i, down) in by.weight.iter().enumerate() {
            let line = [0, 1, 2].map(|l| down.iter().zip(lines).map(|(c, line)| c * line[l]).sum::<f64>());
            for (j, along) in by.weight.iter().enumerate() {
                all[(i * points + j) * windows.len() + at] = along.iter().zip(line).map(|(c, v)| c * v).sum();
            }
        }
    }
    let bytes: Vec<u8> = all.into_iter().flat_map(|value: f64| (value as f32).to_le_bytes()).collect();
    Tensor::from_bytes(&bytes, &[(points * points) as i64, filters, channels], F32).ok()
}

/// An entry of a constant matrix.
fn entry(matrix: &[Vec<f64>], row: &PrimExpr, column: &PrimExpr) -> PrimExpr {
    let choose = |at: &PrimExpr, values: Vec<PrimExpr>| {
        let mut values = values.into_iter().enumerate().rev();
        let last = values.next().map_or_else(|| constant(F32, 0.0), |(_, value)| value);
        values.fold(last, |rest, (i, value)| prim::select(prim::eq(at, i as i64), value, rest))
    };
    let rows = matrix.iter().map(|row| choose(column, row.iter().map(|v| constant(F32, *v)).collect()));
    choose(row, rows.collect())
}
