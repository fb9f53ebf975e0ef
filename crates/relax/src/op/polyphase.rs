//! Transposed convolution as a convolution.
//!
//! Along an axis with stride `s`, the elements of the result whose places have the same remainder by `s` (a phase) see the same taps
//! of the window, at the same elements of the image. So all phases together are one convolution with stride one and `s` times as
//! many channels, whose window is `s` times shorter; the phases of a row are then put one between the others.
//!
//! ```text
//! y[o, s m + q] = sum over c, u of x[c, m + first + u] * w[c, o, q + before - s (first + u)]
//! ```
//!
//! Nothing is multiplied by the zeros that a window on a spread image would meet; where the window is no multiple of the stride, the
//! last taps of some phases are zero. Where these are many (3 taps, stride 2: 7 of 16 in two dimensions), each phase has a convolution
//! of its own, with its taps only. Groups of channels stay groups, each with its phases. An image of one pixel meets each window once: a row
//! of channels times the windows of all filters, a product. Serves windows without dilation, of known lengths.

use relaxide_ir::Attrs;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::conv::{Geometry, known, transpose_dims};
use super::window::Window;
use super::*;
use crate::BlockBuilder;

/// The most phases of an axis that a kernel puts one between the others in registers; more are a transposition.
const FEW: i64 = 4;

/// Phases that have a convolution each, at most, and filters from which such a one has enough to do.
const MOST_APART: i64 = 9;
const LEAST_FILTERS: i64 = 16;

/// What becomes of one axis.
struct PolyphaseAxis {
    stride: i64,
    /// Taps of the shorter window.
    taps: i64,
    /// Zeros in front of the reversed window, so that its length becomes `taps * stride`; those behind it.
    zeros: [i64; 2],
    /// Padding of the image.
    padding: [i64; 2],
    /// The length of the result before the ends are cut.
    length: PrimExpr,
    /// How many elements are cut in front.
    cut: i64,
}

impl PolyphaseAxis {
    /// The axis of an image of some length and a result of another; none where padding exceeds the window.
    fn new(window: &Window, image: &PrimExpr, result: &PrimExpr) -> Option<PolyphaseAxis> {
        let (kernel, s) = (window.kernel.as_int()?, window.stride);
        let ceil = |a: i64, b: i64| -(-a).div_euclid(b);
        let shortest = ceil(kernel, s);
        // Cutting elements in front shifts the phases, and the fewest taps are those where the first phase begins a window.
        for cut in 0..s.min(window.before + 1) {
            let before = window.before - cut;
            let (first, last) = (ceil(before - kernel + 1, s), (s - 1 + before).div_euclid(s));
            let taps = last - first + 1;
            if taps != shortest || first > 0 {
                continue;
            }
            let left = before - s * first + s - kernel;
            // The result has (image - 1) * s + rest elements.
            let rest = Analyzer::new().simplify(&(result - (image - 1) * s)).as_int()?;
            let positions = ceil(rest + cut, s);
            let behind = (positions - 1 + first + taps - 1).max(0);
            let length = (image + (behind - first - taps + 1)) * s;
            return Some(PolyphaseAxis {
                stride: s,
                taps,
                zeros: [left, taps * s - kernel - left],
                padding: [-first, behind],
                length: Analyzer::new().simplify(&length),
                cut,
            });
        }
        None
    }

    /// The taps of a phase that are none of the zeros: from the first, to behind the last.
    fn busy(&self, phase: i64) -> [i64; 2] {
        let of_window = self.zeros[0]..self.taps * self.stride - self.zeros[1];
        let is_busy = |tap: &i64| of_window.contains(&(tap * self.stride + self.stride - 1 - phase));
        let first = (0..self.taps).find(is_busy).unwrap_or(0);
        [first, (0..self.taps).rfind(is_busy).map_or(first, |last| last + 1)]
    }

    /// The padding of the image under a phase's own taps.
    fn padding_of(&self, phase: i64) -> [i64; 2] {
        let [from, to] = self.busy(phase);
        [self.padding[0] - from, self.padding[1] - (self.taps - to)]
    }
}

/// A transposed convolution as a convolution, where it can be one.
pub fn as_convolution<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let Ok(g) = known(cx, "IO") else { return Ok(None) };
    let plain = g.windows.iter().all(|w| w.dilation == 1) && g.are_orders_plain();
    let (Some(channels), Some(filters)) = (g.weight[0].as_int(), g.weight[1].as_int()) else { return Ok(None) };
    let shares = Shares { groups: g.groups, channels: channels / g.groups.max(1), filters };
    let dims = transpose_dims(cx, &g)?;
    if plain && let Some(cut) = of_one_pixel(&g, &dims) {
        return Ok(Some(Box::new(move |b| written_as_product(cx, b, &g, &dims, &cut))));
    }
    let axes =
        g.windows.iter().zip(&g.data[2..]).zip(&dims[2..]).map(|((w, from), to)| PolyphaseAxis::new(w, from, to));
    let Some(axes) = axes.collect::<Option<Vec<_>>>().filter(|_| plain) else { return Ok(None) };
    Ok(Some(Box::new(move |b| PolyphaseCalls { b, cx, axes: &axes }.written(&g, &shares, &dims))))
}

/// Where the window of an image of one pixel is the result, but for what is cut in front of it along each axis; `None` of other images, and where
/// the result is larger than the window.
fn of_one_pixel(g: &Geometry, dims: &[PrimExpr]) -> Option<Vec<[i64; 2]>> {
    let is_pixel = g.groups == 1 && g.data[2..].iter().all(|dim| dim.is_int(1));
    let cut = |(window, to): (&Window, &PrimExpr)| {
        let (kernel, to) = (window.kernel.as_int()?, to.as_int()?);
        (window.before >= 0 && window.before + to <= kernel).then_some([window.before, window.before + to])
    };
    if is_pixel { g.windows.iter().zip(&dims[2..]).map(cut).collect() } else { None }
}

/// The transposed convolution of one pixel: a row of channels times the windows of all filters.
fn written_as_product(
    cx: &CallCx,
    b: &mut BlockBuilder,
    g: &Geometry,
    dims: &[PrimExpr],
    cut: &[[i64; 2]],
) -> Result<Expr, OpError> {
    let mut op = |name: &str, args: Vec<Expr>, attrs: Attrs| {
        b.op(name, args, attrs).map_err(|e| OpError::of_build(cx.name(), e))
    };
    let list = |values: Vec<i64>| Expr::tuple(values.into_iter().map(Expr::prim).collect::<Vec<_>>());
    let mut weight = cx.arg(1)?.clone();
    let is_whole = g.windows.iter().zip(cut).all(|(w, [from, to])| *from == 0 && w.kernel.is_int(*to));
    if !is_whole {
        let axes = (0..cut.len()).map(|axis| axis as i64 + 2).collect();
        let (from, to) = (cut.iter().map(|c| c[0]).collect(), cut.iter().map(|c| c[1]).collect());
        let attrs = Attrs::new().with("assume_inbound", true);
        weight = op("strided_slice", vec![weight, list(axes), list(from), list(to)], attrs)?;
    }
    let columns = dims[1..].iter().fold(PrimExpr::from(1), |all, dim| all * dim);
    let matrix = Expr::shape([g.weight[0].clone(), Analyzer::new().simplify(&columns)]);
    let matrix = op("reshape", vec![weight, matrix], Attrs::new())?;
    let row =
        op("reshape", vec![cx.arg(0)?.clone(), Expr::shape([g.data[0].clone(), g.weight[0].clone()])], Attrs::new())?;
    let product = op("matmul", vec![row, matrix], Attrs::new().with("out_dtype", g.dtype))?;
    op("reshape", vec![product, Expr::shape(dims.to_vec())], Attrs::new())
}

/// Of each `stride` elements the one of a phase.
fn chosen(elements: &[PrimExpr], stride: i64, phase: &PrimExpr) -> Vec<PrimExpr> {
    let of = |elements: &[PrimExpr]| {
        let mut all = elements.iter().cloned().enumerate().rev();
        let last = all.next().map_or_else(|| PrimExpr::from(0), |(_, element)| element);
        all.fold(last, |rest, (i, element)| prim::if_then_else(prim::eq(phase, i as i64), element, rest))
    };
    elements.chunks(stride as usize).map(of).collect()
}

/// How many channels of the image and filters each group has.
struct Shares {
    groups: i64,
    channels: i64,
    filters: i64,
}

struct PolyphaseCalls<'a> {
    b: &'a mut BlockBuilder,
    cx: &'a CallCx<'a>,
    axes: &'a [PolyphaseAxis],
}

impl PolyphaseCalls<'_> {
    /// All of it.
    fn written(&mut self, g: &Geometry, shares: &Shares, dims: &[PrimExpr]) -> Result<Expr, OpError> {
        let weight = self.phases_of_weight(self.cx.arg(1)?.clone(), shares)?;
        if self.is_apart(shares) {
            let phases = self.phase_by_phase(&weight, g, shares)?;
            return self.interleaved(phases, dims);
        }
        let count: i64 = self.axes.iter().map(|a| a.stride).product();
        let taps = self.axes.iter().map(|a| a.taps);
        let all = [shares.groups * shares.filters * count, shares.channels].into_iter().chain(taps);
        let weight = self.reshape(weight, all.map(PrimExpr::from).collect())?;
        let padding = self.axes.iter().map(|a| a.padding).collect();
        let phases = self.convolution(weight, g, padding)?;
        if self.axes.iter().all(|a| a.stride == 1) {
            return self.cut(phases, dims);
        }
        if self.axes.iter().all(|a| a.stride <= FEW) {
            return self.interleaved(vec![phases], dims);
        }
        let whole = self.together(phases, g, shares.groups * shares.filters)?;
        self.cut(whole, dims)
    }

    fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr, OpError> {
        self.b.op(name, args, attrs).map_err(|e| OpError::of_build(self.cx.name(), e))
    }

    fn reshape(&mut self, x: Expr, dims: Vec<PrimExpr>) -> Result<Expr, OpError> {
        self.op("reshape", [x, Expr::shape(dims)], Attrs::new())
    }

    fn permute(&mut self, x: Expr, axes: Vec<usize>) -> Result<Expr, OpError> {
        let axes: Vec<i64> = axes.into_iter().map(|axis| axis as i64).collect();
        self.op("permute_dims", [x], Attrs::new().with("axes", axes))
    }

    /// Whether each phase has a convolution of its own: a fifth of all taps or more are zeros, and none of the images would have to be cut.
    fn is_apart(&self, shares: &Shares) -> bool {
        let count: i64 = self.axes.iter().map(|a| a.stride).product();
        let all: i64 = self.axes.iter().map(|a| a.taps * a.stride).product();
        let busy: i64 = self.axes.iter().map(|a| a.taps * a.stride - a.zeros[0] - a.zeros[1]).product();
        let mut phases = self.axes.iter().flat_map(|a| (0..a.stride).map(move |phase| (a, phase)));
        let is_few = shares.groups == 1 && count <= MOST_APART && self.axes.iter().all(|a| a.stride <= FEW);
        let can_be = phases.all(|(axis, phase)| {
            let [from, to] = axis.busy(phase);
            from < to && axis.padding_of(phase).iter().all(|padding| *padding >= 0)
        });
        is_few && shares.filters >= LEAST_FILTERS && 5 * busy <= 4 * all && can_be
    }

    /// A convolution for each phase: `[n, o, positions..]`.
    fn phase_by_phase(&mut self, weight: &Expr, g: &Geometry, shares: &Shares) -> Result<Vec<Expr>, OpError> {
        let axes = self.axes;
        let n = axes.len();
        let mut parts = Vec::new();
        for number in 0..axes.iter().map(|a| a.stride).product() {
            let mut phase = vec![0; n];
            let mut rest: i64 = number;
            for (phase, axis) in phase.iter_mut().zip(axes).rev() {
                (*phase, rest) = (rest % axis.stride, rest / axis.stride);
            }
            let taps: Vec<[i64; 2]> = axes.iter().zip(&phase).map(|(a, phase)| a.busy(*phase)).collect();
            let list = |values: Vec<i64>| Expr::tuple(values.into_iter().map(Expr::prim).collect::<Vec<_>>());
            let at = (0..n).map(|axis| 2 + axis as i64).chain((0..n).map(|axis| (3 + n + axis) as i64)).collect();
            let begin = phase.iter().copied().chain(taps.iter().map(|t| t[0])).collect();
            let end = phase.iter().map(|p| p + 1).chain(taps.iter().map(|t| t[1])).collect();
            let attrs = Attrs::new().with("assume_inbound", true);
            let own = self.op("strided_slice", [weight.clone(), list(at), list(begin), list(end)], attrs)?;
            let dims = [shares.filters, shares.channels].into_iter().chain(taps.iter().map(|t| t[1] - t[0]));
            let own = self.reshape(own, dims.map(PrimExpr::from).collect())?;
            let padding = axes.iter().zip(&phase).map(|(a, phase)| a.padding_of(*phase)).collect();
            parts.push(self.convolution(own, g, padding)?);
        }
        Ok(parts)
    }

    /// The weight `[groups * c, o, k..]` by phases: `[groups, o, phases.., c, taps..]`.
    fn phases_of_weight(&mut self, weight: Expr, shares: &Shares) -> Result<Expr, OpError> {
        let n = self.axes.len();
        let mut weight = weight;
        for axis in 0..n {
            weight = self.op("flip", [weight], Attrs::new().with("axis", 2 + axis as i64))?;
        }
        let zeros: Vec<i64> = [0; 4].into_iter().chain(self.axes.iter().flat_map(|a| a.zeros)).collect();
        if zeros.iter().any(|z| *z != 0) {
            weight = self.op("nn.pad", [weight], Attrs::new().with("pad_width", zeros))?;
        }
        // A reversed window has its phases in reverse as well.
        let mut dims = vec![shares.groups, shares.channels, shares.filters];
        dims.extend(self.axes.iter().flat_map(|a| [a.taps, a.stride]));
        weight = self.reshape(weight, dims.into_iter().map(PrimExpr::from).collect())?;
        for (axis, _) in self.axes.iter().enumerate().filter(|(_, a)| a.stride > 1) {
            weight = self.op("flip", [weight], Attrs::new().with("axis", 4 + 2 * axis as i64))?;
        }
        let phases = (0..n).map(|axis| 4 + 2 * axis);
        let taps = (0..n).map(|axis| 3 + 2 * axis);
        self.permute(weight, [0, 2].into_iter().chain(phases).chain([1]).chain(taps).collect())
    }

    fn convolution(&mut self, weight: Expr, g: &Geometry, padding: Vec<[i64; 2]>) -> Result<Expr, OpError> {
        let n = self.axes.len();
        let (front, behind) = (padding.iter().map(|p| p[0]), padding.iter().map(|p| p[1]));
        let attrs = Attrs::new()
            .with("strides", vec![1i64; n])
            .with("dilation", vec![1i64; n])
            .with("padding", front.chain(behind).collect::<Vec<i64>>())
            .with("groups", g.groups)
            .with("out_dtype", g.dtype);
        let name = ["nn.conv1d", "nn.conv2d", "nn.conv3d"][n - 1];
        self.op(name, [self.cx.arg(0)?.clone(), weight], attrs)
    }

    /// The result, each element from its phase, without what is too much at the ends. Phases are channels of one tensor, or tensors.
    fn interleaved(&mut self, parts: Vec<Expr>, dims: &[PrimExpr]) -> Result<Expr, OpError> {
        let axes = self.axes;
        let made = self.b.emit_te("interleave_phases", parts, |parts| {
            vec![te::compute("T_interleaved", dims, |at| {
                let (mut phases, mut positions) = (Vec::new(), Vec::new());
                for (axis, at) in axes.iter().zip(&at[2..]) {
                    let (place, stride) = (at + axis.cut, PrimExpr::from(axis.stride));
                    phases.push(prim::floormod(&place, &stride));
                    positions.push(prim::floordiv(&place, &stride));
                }
                let element = |part: &te::Tensor, channel: PrimExpr| {
                    part.at(&[at[0].clone(), channel].into_iter().chain(positions.iter().cloned()).collect::<Vec<_>>())
                };
                if let [all] = parts {
                    let channel =
                        axes.iter().zip(phases).fold(at[1].clone(), |c, (axis, phase)| c * axis.stride + phase);
                    return element(all, channel);
                }
                let mut elements: Vec<PrimExpr> = parts.iter().map(|part| element(part, at[1].clone())).collect();
                for (axis, phase) in axes.iter().zip(&phases).rev() {
                    elements = chosen(&elements, axis.stride, phase);
                }
                elements.remove(0)
            })]
        });
        made.map_err(|e| OpError::of_build(self.cx.name(), e))
    }

    /// The phases `[n, o * phases, positions..]` one between the others: `[n, o, length..]`.
    fn together(&mut self, phases: Expr, g: &Geometry, filters: i64) -> Result<Expr, OpError> {
        let n = self.axes.len();
        let lead = || [g.data[0].clone(), PrimExpr::from(filters)];
        let whole: Vec<PrimExpr> = lead().into_iter().chain(self.axes.iter().map(|a| a.length.clone())).collect();
        let strides = self.axes.iter().map(|a| PrimExpr::from(a.stride));
        let positions =
            self.axes.iter().map(|a| Analyzer::new().simplify(&prim::floordiv(&a.length, PrimExpr::from(a.stride))));
        let apart = lead().into_iter().chain(strides).chain(positions).collect();
        let apart = self.reshape(phases, apart)?;
        let order = [0, 1].into_iter().chain((0..n).flat_map(|axis| [2 + n + axis, 2 + axis])).collect();
        let mixed = self.permute(apart, order)?;
        self.reshape(mixed, whole)
    }

    /// The result without what is too much at its ends.
    fn cut(&mut self, whole: Expr, dims: &[PrimExpr]) -> Result<Expr, OpError> {
        let cut: Vec<(usize, &PolyphaseAxis)> = (self.axes.iter().enumerate())
            .filter(|(i, a)| a.cut != 0 || !crate::shape::prove_equal(&a.length, &dims[i + 2]))
            .collect();
        if cut.is_empty() {
            return Ok(whole);
        }
        let list = |values: Vec<PrimExpr>| Expr::tuple(values.into_iter().map(Expr::prim).collect::<Vec<_>>());
        let axes = cut.iter().map(|(i, _)| PrimExpr::from(*i as i64 + 2)).collect();
        let begin = cut.iter().map(|(_, a)| PrimExpr::from(a.cut)).collect();
        let end = cut.iter().map(|(i, a)| Analyzer::new().simplify(&(&dims[i + 2] + a.cut))).collect();
        let attrs = Attrs::new().with("assume_inbound", true);
        self.op("strided_slice", [whole, list(axes), list(begin), list(end)], attrs)
    }
}
