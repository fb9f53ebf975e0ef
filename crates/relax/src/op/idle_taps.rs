//! A convolution without the taps of its window that meet nothing but padding.
//!
//! Where the distance of taps is about the size of the image (the wide rates of atrous pyramids), most of them lie outside at every
//! place. They are cut off the weight, once where it is a constant, and the padding shrinks with them.

use relaxide_ir::Attrs;
use relaxide_ir::prim::PrimExpr;

use super::conv::{Geometry, known};
use super::window::{Partial, Window};
use super::*;
use crate::BlockBuilder;

/// The taps along an axis of known length that meet the image somewhere: from the first, to behind the last.
fn busy(window: &Window, size: &PrimExpr) -> Option<(i64, i64)> {
    let (kernel, image) = (window.kernel.as_int()?, size.as_int()?);
    let places = window.positions(size, Partial::Dropped).as_int()?;
    let meets = |tap: &i64| {
        let first = tap * window.dilation - window.before;
        // Of the places `first, first + stride, ..` one lies in the image.
        let skipped = if first >= 0 { 0 } else { (-first + window.stride - 1) / window.stride };
        skipped < places && first + skipped * window.stride < image
    };
    let (from, last) = ((0..kernel).find(meets)?, (0..kernel).rev().find(meets)?);
    let padding = (window.before - from * window.dilation, window.after - (kernel - 1 - last) * window.dilation);
    (padding.0 >= 0 && padding.1 >= 0).then_some((from, last + 1))
}

/// The convolution with fewer taps, where some are idle.
pub fn without<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let Ok(g) = known(cx, "OI") else { return Ok(None) };
    let Some(taps) = g.windows.iter().zip(&g.data[2..]).map(|(w, n)| busy(w, n)).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let is_whole = |(w, (from, to)): (&Window, &(i64, i64))| *from == 0 && w.kernel.is_int(*to);
    if !g.are_orders_plain() || g.windows.iter().zip(&taps).all(is_whole) {
        return Ok(None);
    }
    Ok(Some(Box::new(move |b| with_taps(cx, &g, &taps, b))))
}

/// The convolution with so many taps of each axis, from the first to behind the last.
fn with_taps(cx: &CallCx, g: &Geometry, taps: &[(i64, i64)], b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let list = |values: &mut dyn Iterator<Item = i64>| Expr::tuple(values.map(Expr::prim).collect::<Vec<_>>());
    let n = taps.len() as i64;
    let (axes, begin, end) =
        (list(&mut (2..2 + n)), list(&mut taps.iter().map(|t| t.0)), list(&mut taps.iter().map(|t| t.1)));
    let sliced = Attrs::new().with("assume_inbound", true);
    let weight = b.op("strided_slice", [cx.arg(1)?.clone(), axes, begin, end], sliced);
    let weight = weight.map_err(|e| OpError::of_build(cx.name(), e))?;
    let front = g.windows.iter().zip(taps).map(|(w, t)| w.before - t.0 * w.dilation);
    let back = g.windows.iter().zip(taps).map(|(w, t)| w.after - (w.kernel.as_int().unwrap_or(t.1) - t.1) * w.dilation);
    let attrs = cx.attrs.clone().with("padding", front.chain(back).collect::<Vec<i64>>());
    call(cx.def.name, [cx.arg(0)?.clone(), weight], attrs)
}
