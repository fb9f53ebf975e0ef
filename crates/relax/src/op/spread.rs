//! Transposed convolution as TVM writes it: the image spread out, padded, and convolved with the window flipped around.
//!
//! ```text
//! data_dilate[n, c, y]      = data[n, c, y // stride] where stride divides y, else 0
//! data_pad[n, c, y]         = data_dilate with a border of kernel - 1 - padding
//! kernel_transform[o, c, y] = weight[c, o, kernel - 1 - y]
//! compute[n, o, y]          = sum over c, k of data_pad[n, c, y + k] * kernel_transform[o, c, k]
//! ```
//!
//! It multiplies many zeros, and is for programs that go on with the kernel themselves ([`KernelForm::Plain`]); the others take
//! [`polyphase`](super::polyphase) or the sum over what meets. Tensors lie in the order of the computes.

use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_tir::te;

use super::conv::Geometry;
use super::window::{Window, all};
use super::*;

/// Whether all lies in the order of the computes, and no padding is wider than its window, which would cut the image.
pub(super) fn serves(g: &Geometry) -> bool {
    let fits = |w: &Window| w.dilated_extent().as_int().is_none_or(|extent| w.before.max(w.after) < extent);
    g.are_orders_plain() && g.windows.iter().all(fits)
}

/// The kernel of a call that says what `g` holds, over a result of `dims`.
pub(super) fn convolve_spread(
    cx: &CallCx,
    g: &Geometry,
    data: &te::Tensor,
    weight: &te::Tensor,
    dims: &[PrimExpr],
) -> Result<te::Tensor, OpError> {
    let extra = cx.ints("output_padding")?;
    let strides: Vec<i64> = g.windows.iter().map(|w| w.stride).collect();
    let dilations: Vec<i64> = g.windows.iter().map(|w| w.dilation).collect();
    let spread = dilate("data_dilate", data, &strides);
    let weight =
        if dilations.iter().all(|d| *d == 1) { weight.clone() } else { dilate("kernel_dilate", weight, &dilations) };
    let borders: Vec<[PrimExpr; 2]> =
        g.windows.iter().zip(&weight.shape()[2..]).zip(&extra).map(|((w, k), extra)| border(w, k, *extra)).collect();
    let padded = pad(&spread, &borders);
    let flipped = flip(&weight);
    let (groups, per_group) = (g.groups, &g.weight[1]);
    let channels = simple(prim::floordiv(&g.weight[0], groups));
    let rc = te::reduce_axis_named("dc", channels.clone());
    let names = ["dd", "dh", "dw"].into_iter().skip(3 - g.windows.len());
    let taps: Vec<te::ReduceAxis> =
        names.zip(&weight.shape()[2..]).map(|(name, k)| te::reduce_axis_named(name, k.clone())).collect();
    Ok(te::compute("compute", dims, |at| {
        let (channel, filter) = match groups {
            1 => (rc.var(), at[1].clone()),
            _ => (prim::floordiv(&at[1], per_group) * &channels + rc.var(), prim::floormod(&at[1], per_group)),
        };
        let along = at[2..].iter().zip(&taps).map(|(at, tap)| at + tap.var());
        let place: Vec<PrimExpr> = [at[0].clone(), channel.clone()].into_iter().chain(along).collect();
        let factor: Vec<PrimExpr> = [filter, channel].into_iter().chain(taps.iter().map(te::ReduceAxis::var)).collect();
        let product = cast(g.dtype, padded.at(&place)) * cast(g.dtype, flipped.at(&factor));
        te::sum(product, std::iter::once(&rc).chain(&taps))
    }))
}

fn simple(e: PrimExpr) -> PrimExpr {
    Analyzer::new().simplify(&e)
}

/// A tensor with `step - 1` zeros between neighbours of each axis behind the first two.
fn dilate(name: &str, x: &te::Tensor, steps: &[i64]) -> te::Tensor {
    let mut shape = x.shape().to_vec();
    for (dim, step) in shape.iter_mut().skip(2).zip(steps) {
        *dim = simple((&*dim - 1) * *step + 1);
    }
    te::compute(name, shape, |at| {
        let mut place = at.to_vec();
        let mut meets = Vec::new();
        for (i, step) in steps.iter().enumerate().filter(|(_, step)| **step != 1) {
            place[i + 2] = prim::floordiv(&at[i + 2], *step);
            meets.push(prim::eq(prim::floormod(&at[i + 2], *step), 0));
        }
        let zero = prim::constant(x.dtype(), 0.0);
        if meets.is_empty() { x.at(&place) } else { prim::if_then_else(all(meets), x.at(&place), zero) }
    })
}

/// The zeros in front of a spread image and behind it, along one axis.
fn border(w: &Window, kernel: &PrimExpr, extra: i64) -> [PrimExpr; 2] {
    [simple(kernel - 1 - w.before), simple(kernel - 1 - w.after + extra)]
}

fn pad(x: &te::Tensor, borders: &[[PrimExpr; 2]]) -> te::Tensor {
    let mut shape = x.shape().to_vec();
    for (dim, [front, behind]) in shape.iter_mut().skip(2).zip(borders) {
        *dim = simple(&*dim + front + behind);
    }
    te::compute("data_pad", shape, |at| {
        let mut place = at.to_vec();
        let mut inside = Vec::new();
        for (i, [front, behind]) in borders.iter().enumerate() {
            let axis = &at[i + 2];
            if !front.is_int(0) {
                inside.push(prim::ge(axis, front));
                place[i + 2] = axis - front;
            }
            if !behind.is_int(0) {
                inside.push(prim::lt(axis, &x.shape()[i + 2] + front));
            }
        }
        let zero = prim::constant(x.dtype(), 0.0);
        if inside.is_empty() { x.at(&place) } else { prim::if_then_else(all(inside), x.at(&place), zero) }
    })
}

/// The window backwards, with the channels of the result first.
fn flip(weight: &te::Tensor) -> te::Tensor {
    let mut shape = weight.shape().to_vec();
    shape.swap(0, 1);
    te::compute("kernel_transform", shape, |at| {
        let backwards = at[2..].iter().zip(&weight.shape()[2..]).map(|(at, k)| simple(k - 1) - at);
        let place: Vec<PrimExpr> = [at[1].clone(), at[0].clone()].into_iter().chain(backwards).collect();
        weight.at(&place)
    })
}
