//! A convolution with distant taps as a product for each tap.
//!
//! ```text
//! R[n, m, y, x] = sum over c, ky, kx of W[m, c, ky, kx] * D[n, c, y + ky*d - p, x + kx*d - p]
//!     ->  for each tap, over the places Y, X where it meets the image:  P[n, m, Y, X] = W[m, :, ky, kx] @ D[n, :, Y + .., X + ..]
//!         R[n, m, y, x] = sum over the taps whose places y, x is among of P[n, m, y, x]
//! ```
//!
//! The rule for convolutions keeps rows of an image with their padding and computes across it. Where taps are about as far apart as the
//! image is wide, as in atrous pyramids, most of that is padding, and few rows of the result need so many of the image that they exceed
//! the caches. A product has the places where its tap meets the image and no others: none, where the image is
//! smaller than the distance, also if that is known only when the program runs.

use relaxide_ir::Attrs;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::conv::{Geometry, known};
use super::window::{Partial, Window, all};
use super::*;
use crate::BlockBuilder;
use crate::shape::prove_equal;

/// Taps that have a product each, at most.
const MOST_TAPS: i64 = 9;
/// Channels and filters from which a product is more than what it reads and writes.
const LEAST: i64 = 32;
/// A row of unknown length is taken to be as long as those of the networks that have such taps.
const USUAL: i64 = 48;
/// Rows of the result that are computed together at least, and elements of the image under them that are too many for a cache.
const ROWS: i64 = 4;
const MANY: i64 = 256 << 10;

/// The places of the result at which a tap meets the image, along one axis.
struct TapRange {
    first: i64,
    count: PrimExpr,
    /// The image's element at the first.
    from: i64,
    /// Whether that are all places.
    are_all: bool,
}

impl TapRange {
    fn of(window: &Window, tap: i64, size: &PrimExpr) -> TapRange {
        let shift = tap * window.dilation - window.before;
        let (first, all) = ((-shift).max(0), window.positions(size, Partial::Dropped));
        let end = prim::min(all.clone(), size - shift);
        let count = Analyzer::new().simplify(&prim::max(end - first, 0));
        let are_all = first == 0 && prove_equal(&count, &all);
        TapRange { first, count, from: first + shift, are_all }
    }
}

/// Whether taps are so far apart that a row of the image is much longer than one of the result, or the rows under a few of the result
/// exceed the caches.
fn are_distant(g: &Geometry, channels: i64) -> bool {
    let [down, along] = &g.windows[..] else { return false };
    let (Some(below), Some(beside)) = (down.dilated_extent().as_int(), along.dilated_extent().as_int()) else {
        return false;
    };
    let width = along.positions(&g.data[3], Partial::Dropped).as_int().unwrap_or(USUAL);
    let elements = channels.saturating_mul(below.saturating_add(ROWS - 1)).saturating_mul(width.saturating_add(beside));
    (down.dilation > 1 || along.dilation > 1) && (4 * (beside - 1) >= width || elements >= MANY)
}

/// The products and their sum, where taps are distant.
pub fn as_products<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let Ok(g) = known(cx, "OI") else { return Ok(None) };
    let numbers = g.weight.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let Some(&[filters, channels, height, width]) = numbers.as_deref() else { return Ok(None) };
    let dtype = cx.tensor(0)?.dtype;
    let is_plain = g.groups == 1 && g.are_orders_plain() && g.windows.iter().all(|w| w.stride == 1);
    let is_wide = dtype == g.dtype && dtype.is_float() && dtype.bits >= 32;
    let pays = filters >= LEAST && channels >= LEAST && height > 1 && height.saturating_mul(width) <= MOST_TAPS;
    if !is_plain || !is_wide || !pays || !are_distant(&g, channels) {
        return Ok(None);
    }
    Ok(Some(Box::new(move |b| products(cx, &g, [height, width], b))))
}

/// The products of windows of so many taps, and their sum.
fn products(cx: &CallCx, g: &Geometry, [height, width]: [i64; 2], b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let (dtype, filters) = (g.dtype, &g.weight[0]);
    let failed = |error| OpError::of_build(cx.name(), error);
    let mut products = Vec::new();
    for tap in (0..height).flat_map(|y| (0..width).map(move |x| [y, x])) {
        let places = [0, 1].map(|axis| TapRange::of(&g.windows[axis], tap[axis], &g.data[2 + axis]));
        if places.iter().any(|p| p.count.is_int(0)) {
            continue;
        }
        let product = product_of(cx, b, g, tap, &places)?;
        products.push((product, places));
    }
    let sizes = g.windows.iter().zip(&g.data[2..]).map(|(w, size)| w.positions(size, Partial::Dropped));
    let dims: Vec<PrimExpr> = [g.data[0].clone(), filters.clone()].into_iter().chain(sizes).collect();
    let args = products.iter().map(|(product, _)| product.clone()).collect();
    let sum = b.emit_te("taps", args, |inputs| {
        vec![te::compute("T_taps", &dims, |at| {
            let zero = prim::constant(dtype, 0.0);
            let terms = inputs.iter().zip(&products).map(|(product, (_, places))| {
                let (mut index, mut inside) = (at[..2].to_vec(), Vec::new());
                for (p, at) in places.iter().zip(&at[2..]) {
                    let place = at - p.first;
                    if !p.are_all {
                        inside.extend([prim::ge(&place, 0), prim::lt(&place, &p.count)]);
                    }
                    index.push(place);
                }
                let term = product.at(&index);
                if inside.is_empty() { term } else { prim::if_then_else(all(inside), term, zero.clone()) }
            });
            terms.reduce(|a, b| a + b).unwrap_or(zero.clone())
        })]
    });
    sum.map_err(failed)
}

/// The product of one tap, over the places where it meets the image.
fn product_of(
    cx: &CallCx,
    b: &mut BlockBuilder,
    g: &Geometry,
    tap: [i64; 2],
    places: &[TapRange; 2],
) -> Result<Expr, OpError> {
    let failed = |error| OpError::of_build(cx.name(), error);
    let (batch, channels, filters) = (&g.data[0], &g.weight[1], &g.weight[0]);
    let dims = |rows: &PrimExpr| [batch.clone(), rows.clone(), places[0].count.clone(), places[1].count.clone()];
    let flat = Expr::shape([batch.clone(), channels.clone(), &places[0].count * &places[1].count]);
    let image = b.emit_te("under_tap", vec![cx.arg(0)?.clone()], |inputs| {
        vec![te::compute("under_tap", dims(channels), |at| {
            let [y, x] = [0, 1].map(|axis| &at[2 + axis] + places[axis].from);
            inputs[0].at(&[at[0].clone(), at[1].clone(), y, x])
        })]
    });
    let image = image.map_err(failed)?;
    let mut op = |name: &str, args: Vec<Expr>, attrs: Attrs| b.op(name, args, attrs).map_err(failed);
    let image = op("reshape", vec![image, flat], Attrs::new())?;
    let list = |values: [i64; 2]| Expr::tuple(values.map(Expr::prim));
    let (axes, begin, end) = (list([2, 3]), list(tap), list(tap.map(|t| t + 1)));
    let sliced = Attrs::new().with("assume_inbound", true);
    let weight = op("strided_slice", vec![cx.arg(1)?.clone(), axes, begin, end], sliced)?;
    let flat = Expr::shape([filters.clone(), channels.clone()]);
    let weight = op("reshape", vec![weight, flat], Attrs::new())?;
    let product = op("matmul", vec![weight, image], Attrs::new().with("out_dtype", g.dtype))?;
    op("reshape", vec![product, Expr::shape(dims(filters))], Attrs::new())
}
