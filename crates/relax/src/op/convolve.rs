//! The sums of convolutions: over the channels of a group and the taps of a window, with weights as they lie or in panels.

use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_tir::te;

use super::conv::{Geometry, convolution_dims, kernel_name, known, taps};
use super::window::{Image, compute};
use super::*;
use crate::shape::prove_equal;

/// The sums of a convolution.
pub(super) fn convolve(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let g = known(cx, "OI")?;
    let [data, weight] = inputs else { return cx.invalid("needs an image and a weight") };
    let weight = Image::new(cx, "weight", weight, &g.orders.weight)?;
    sums(cx, &g, data, weight.block(1), |place| weight.at(place)).map(|result| vec![result])
}

/// The sums of a convolution whose weight lies in panels of so many filters, `[panels, channels, window, filters of a panel]`.
pub(crate) fn convolve_in_panels(cx: &CallCx, inputs: &[te::Tensor], width: i64) -> Result<Vec<te::Tensor>, OpError> {
    let g = known(cx, "OI")?;
    let [data, panels] = inputs else { return cx.invalid("needs an image and the panels of a weight") };
    let element = |place: &[PrimExpr]| match place.split_first() {
        Some((filter, rest)) => {
            let (panel, inside) = (prim::floordiv(filter, width), prim::floormod(filter, width));
            panels.at(&[panel].into_iter().chain(rest.iter().cloned()).chain([inside]).collect::<Vec<_>>())
        }
        None => panels.at(place),
    };
    sums(cx, &g, data, None, element).map(|result| vec![result])
}

/// The sums over channels and windows, with the weight of each filter, channel and tap; its channels may lie in blocks.
fn sums(
    cx: &CallCx,
    g: &Geometry,
    data: &te::Tensor,
    block: Option<i64>,
    weight: impl Fn(&[PrimExpr]) -> PrimExpr,
) -> Result<te::Tensor, OpError> {
    let dims = convolution_dims(cx, g)?;
    let zero = prim::constant(data.dtype(), 0.0);
    let image = Image::new(cx, "data", data, &g.orders.data)?;
    let image = match cx.form {
        KernelForm::Fast => image.padded(&g.windows, zero),
        KernelForm::Plain => image.copied(&g.windows, zero),
    };
    let (out, per_group) = (&g.weight[0], &g.weight[1]);
    let tap = ChannelTap::new(per_group, image.block(1).or(block));
    let taps = taps(g.windows.iter().map(|w| w.kernel.clone()));
    let channels = prim::floordiv(out, g.groups);
    compute(cx, kernel_name(cx), &dims, &g.orders.out, |at| {
        let channel = match g.groups {
            1 => tap.index.clone(),
            _ if channels.is_int(1) && per_group.is_int(1) => at[1].clone(),
            _ => prim::floordiv(&at[1], &channels) * per_group + &tap.index,
        };
        let places = g.windows.iter().zip(&taps).zip(&at[2..]).map(|((w, tap), at)| w.element(at, &tap.var()));
        let place: Vec<PrimExpr> = [at[0].clone(), channel].into_iter().chain(places).collect();
        let filter: Vec<PrimExpr> =
            [at[1].clone(), tap.index.clone()].into_iter().chain(taps.iter().map(te::ReduceAxis::var)).collect();
        let product = cast(g.dtype, image.at(&place)) * cast(g.dtype, weight(&filter));
        // Plain kernels sum in the order in which the image lies.
        match cx.form == KernelForm::Plain && g.orders.data.place_of(1) > g.orders.data.place_of(2) {
            true => te::sum(product, taps.iter().chain(&tap.axes)),
            false => te::sum(product, tap.axes.iter().chain(&taps)),
        }
    })
}

/// The channels of a group, as they are summed over: where they lie in blocks, block by block, so that no index is divided.
struct ChannelTap {
    axes: Vec<te::ReduceAxis>,
    index: PrimExpr,
}

impl ChannelTap {
    fn new(channels: &PrimExpr, block: Option<i64>) -> ChannelTap {
        let blocks = block.map(|size| (size, Analyzer::new().simplify(&prim::floordiv(channels, size))));
        match blocks.filter(|(size, count)| prove_equal(channels, &(count * *size))) {
            Some((size, count)) => {
                let (outer, inner) = (te::reduce_axis_named("rco", count), te::reduce_axis_named("rci", size));
                let index = outer.var() * size + inner.var();
                ChannelTap { axes: vec![outer, inner], index }
            }
            None => {
                let axis = te::reduce_axis_named("rc", channels.clone());
                ChannelTap { index: axis.var(), axes: vec![axis] }
            }
        }
    }
}
