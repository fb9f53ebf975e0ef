//! Convolutions whose filters lie in panels: their loops have vectors along the filters of a panel, and not along rows of pixels
//! (`panels` of the schedule rule `conv`).
//!
//! Which ones gain was measured (`docs/performance/convolutions.md`): those of enough terms that the way of sums through memory, and back to rows of pixels,
//! costs little. Of windows of one pixel only those of small images, whose rows fill vectors badly, and of many terms: other long ones are read as
//! they lie. Convolutions that become other operators have become those before (`DecomposeOps`).

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;

use super::matrix::floats;
use super::{F32, Layout, Pack};
use crate::blocks::{Panels, Widths};
use crate::op::convolve::convolve_in_panels;
use crate::op::{CallCx, lookup};
use crate::transform::dispatch::kind_of;
use crate::transform::plain_conv::is_plain;
use crate::*;

/// Terms of a sum from which panels pay: of windows of several pixels, and of one.
const LEAST_TERMS: i64 = 256;
const LEAST_TERMS_OF_A_PIXEL: i64 = 192;
/// Pixels up to which windows of one gain, and terms from which they gain whatever the pixels are. An image of unknown size is taken to be small: of few
/// pixels they gain much more than they lose of many.
const MOST_PIXELS: i64 = 400;
const MANY_TERMS_OF_A_PIXEL: i64 = 512;

/// A convolution with constant filters as one with their panels.
pub(super) fn convolution(
    pack: &mut Pack<'_>,
    b: &mut BlockBuilder,
    call: &Ref<Call>,
) -> Result<Option<Expr>, BuildError> {
    let [image, filters] = call.args.as_slice() else { return Ok(None) };
    let is_f32 = |ty: &Type| ty.as_tensor().is_some_and(|ty| ty.dtype == F32);
    let is_gpu = kind_of(&call.ty).is_some_and(|kind| kind.is_gpu());
    if is_gpu || !is_plain(call) || !is_f32(&image.ty()) || !is_f32(&call.ty) || !gains(call) {
        return Ok(None);
    }
    let Some(panels) = pack.panels(filters, Layout::Filters, in_panels) else { return Ok(None) };
    let width = panels.ty().as_tensor().and_then(|ty| ty.shape.as_ref()?.last()?.as_int());
    let (Some(width), Some(def)) = (width, call.op_name().and_then(lookup)) else { return Ok(None) };
    let mut refused = None;
    let new = b.call_te("conv2d", vec![image.clone(), panels], |inputs| {
        convolve_in_panels(&CallCx::of(def, call), inputs, width).unwrap_or_else(|error| {
            refused = Some(error);
            Vec::new()
        })
    });
    match refused {
        Some(error) => Err(error.into()),
        None => new.map(Some),
    }
}

/// Whether panels make it faster, if its filters divide into some.
fn gains(call: &Call) -> bool {
    let dims = |ty: &Type| ty.as_tensor().and_then(|ty| ty.shape.clone());
    let Some((filters, result)) = dims(&call.args[1].ty()).zip(dims(&call.ty)) else { return false };
    let numbers = |dims: &[PrimExpr]| dims.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let Some(&[_, channels, height, width]) = numbers(&filters).as_deref() else { return false };
    let pixels = numbers(&result[2..]).map(|sides| sides.iter().product());
    gain(height.saturating_mul(width), channels, pixels)
}

/// Whether panels make sums faster over so many taps and channels, for so many pixels, if these are known.
pub(super) fn gain(taps: i64, channels: i64, pixels: Option<i64>) -> bool {
    let terms = channels.saturating_mul(taps);
    match taps {
        1 => {
            let is_small = pixels.is_none_or(|pixels| pixels <= MOST_PIXELS);
            terms >= MANY_TERMS_OF_A_PIXEL || terms >= LEAST_TERMS_OF_A_PIXEL && is_small
        }
        _ => terms >= LEAST_TERMS,
    }
}

/// The panels of filters, `[panels, channels, height, width, filters of a panel]`, with zeros behind the last one; none where they are
/// to stay.
fn in_panels(filters: &Tensor, widths: Widths) -> Option<Tensor> {
    let [count, channels, height, across] = *filters.shape() else { return None };
    let panels = Panels::of_filters(count, widths)?;
    if filters.dtype() != F32 {
        return None;
    }
    let (elements, terms) = (floats(filters)?, channels * height * across);
    let laid_out = panels.laid_out(terms, 0.0, |term, filter| elements[filter * terms as usize + term]);
    Tensor::from_slice(&laid_out, &[panels.count(), channels, height, across, panels.width()]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_a_panel_follow_each_other() {
        let (filters, channels) = (100, 3);
        let elements: Vec<f32> = (0..filters * channels * 2).map(|i| i as f32).collect();
        let panels = in_panels(&Tensor::from_slice(&elements, &[filters, channels, 2, 1]).unwrap(), Widths::LONGEST);
        assert!(panels.is_none(), "panels of 16 alone leave little of the last one empty");
        let filters = 126;
        let elements: Vec<f32> = (0..filters * channels * 2).map(|i| i as f32).collect();
        let panels =
            in_panels(&Tensor::from_slice(&elements, &[filters, channels, 2, 1]).unwrap(), Widths::LONGEST).unwrap();
        assert_eq!(panels.shape(), [2, channels, 2, 1, 64]);
        let packed = panels.to_vec::<f32>().unwrap();
        for (filter, channel, tap) in [(0, 0, 0), (63, 2, 1), (64, 1, 0), (125, 2, 1)] {
            let at = (((filter / 64) * channels + channel) * 2 + tap) * 64 + filter % 64;
            assert_eq!(packed[at as usize], elements[((filter * channels + channel) * 2 + tap) as usize]);
        }
        assert_eq!(packed.last(), Some(&0.0));
    }
}
