//! `DFT` and `STFT`.
//!
//! A length that is known is transformed by products with constant matrices, in as many steps as it has factors
//! ([`super::fft`]). One that the program computes is transformed by sums as they are written, over a table of the sines and cosines:
//! quadratic in the length.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::gather_scatter::scalar_dim;
use super::{Outputs, fft, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// What a transform is.
struct Transform {
    axis: usize,
    /// How many elements of the input count; those that it lacks are zero.
    length: PrimExpr,
    inverse: bool,
    /// Whether only half of a spectrum is kept or given.
    onesided: bool,
}

/// `DFT`.
pub fn dft(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let rank = shape.len();
    let axis = if node.opset < 20 {
        node.int_or("axis", 1)?
    } else {
        match node.known_ints(2, "`axis`") {
            Ok(axis) => axis.and_then(|a| a.first().copied()).unwrap_or(-2),
            Err(_) => return chosen_axis(scope, node, x),
        }
    };
    let axis = dims::axis(axis, rank).filter(|a| a + 1 < rank);
    let axis = axis.ok_or_else(|| NodeError::invalid("`axis` is none of the signal's axes"))?;
    let transform = transform(scope, node, &shape, axis)?;
    one(transformed(scope, x, &transform)?)
}

fn transform(scope: &mut Scope, node: &Node, shape: &[PrimExpr], axis: usize) -> Result<Transform> {
    let (inverse, onesided) = (node.flag("inverse", false)?, node.flag("onesided", false)?);
    let length = match node.optional(1) {
        Some(value) => scalar_dim(scope, value)?,
        None if inverse && onesided => dims::simplify(&((&shape[axis] - 1) * 2)),
        None => shape[axis].clone(),
    };
    Ok(Transform { axis, length, inverse, onesided })
}

/// Where the program computes the axis, the transform along each is made and one is taken: they have one shape only if all
/// axes keep their extent.
fn chosen_axis(scope: &mut Scope, node: &Node, x: Expr) -> Outputs {
    let shape = scope.dims(&x)?;
    let candidates = shape.len().saturating_sub(1);
    let axis = scope.tensor(node.input(2)?)?;
    let axis = scope.cast(axis, DataType::int(64))?;
    let axis = scope.reshape(axis, Vec::new())?;
    if node.flag("onesided", false)? || node.optional(1).is_some() {
        // The result's extents depend on the axis, so each candidate is brought to the shape that the axis gives.
        return chosen_extents(scope, node, x, axis);
    }
    let mut result: Option<Expr> = None;
    for candidate in 0..candidates {
        let how = transform(scope, node, &shape, candidate)?;
        let along = transformed(scope, x.clone(), &how)?;
        result = Some(match result {
            None => along,
            Some(other) => {
                let chosen = is_axis(scope, &axis, candidate, shape.len())?;
                scope.call("where", [chosen, along, other])?
            }
        });
    }
    one(result.ok_or_else(|| NodeError::invalid("the input has no signal axes"))?)
}

fn is_axis(scope: &mut Scope, axis: &Expr, candidate: usize, rank: usize) -> Result<Expr> {
    let front = super::elementwise::with_number(scope, "equal", axis.clone(), candidate as f64)?;
    let back = super::elementwise::with_number(scope, "equal", axis.clone(), candidate as f64 - rank as f64)?;
    scope.call("logical_or", [front, back])
}

fn chosen_extents(scope: &mut Scope, node: &Node, x: Expr, axis: Expr) -> Outputs {
    use super::computed::{Args, ShapePlan};
    let shape = scope.dims(&x)?;
    let rank = shape.len();
    let mut parts = Vec::new();
    for candidate in 0..rank - 1 {
        let how = transform(scope, node, &shape, candidate)?;
        parts.push(transformed(scope, x.clone(), &how)?);
    }
    let extents = parts.iter().map(|p| scope.dims(p)).collect::<Result<Vec<_>>>()?;
    let mut args = Args::default();
    args.tensor(axis.clone());
    let place = |inputs: &[te::Tensor]| super::computed::from_front(&inputs[0].at(&[]), rank as i64);
    let dims = ShapePlan::bind(scope, "dft", &args, |inputs| {
        let dim = |i: usize| {
            let own: Vec<PrimExpr> = extents.iter().map(|e| e[i].clone()).collect();
            super::computed::choose(&place(inputs), &own)
        };
        ShapePlan { dims: (0..rank).map(dim).collect(), ..ShapePlan::default() }
    })?;
    let mut inputs = vec![axis];
    inputs.extend(parts);
    one(scope.te("dft_chosen", inputs, |inputs| {
        vec![te::compute("chosen", &dims, |at| {
            let element = |i: usize| {
                let inside: Vec<PrimExpr> =
                    at.iter().zip(&extents[i]).map(|(i, n)| super::computed::clamp(i.clone(), 0, n - 1)).collect();
                inputs[i + 1].at(&inside)
            };
            let elements: Vec<PrimExpr> = (0..rank - 1).map(element).collect();
            super::computed::choose(&place(inputs), &elements)
        })]
    })?)
}

/// The transform of a tensor whose last axis holds real and imaginary parts, or real parts alone.
fn transformed(scope: &mut Scope, x: Expr, how: &Transform) -> Result<Expr> {
    let shape = scope.dims(&x)?;
    let last = shape.len() - 1;
    let parts = shape[last].as_int().filter(|n| (1..=2).contains(n));
    let parts = parts.ok_or_else(|| NodeError::invalid("the last axis must hold 1 or 2 numbers"))?;
    let mut out = shape.clone();
    let n = &how.length;
    out[how.axis] = if how.is_half_kept() { dims::floor_div(n, &prim::int(2)) + 1 } else { n.clone() };
    out[last] = prim::int(if how.is_half_given() { 1 } else { 2 });
    let out: Vec<PrimExpr> = out.iter().map(dims::simplify).collect();
    match n.as_int().and_then(|n| usize::try_from(n).ok()) {
        Some(length) if length > 0 => by_products(scope, x, how, length, parts, &out),
        _ => by_sums(scope, x, how, parts, &out),
    }
}

impl Transform {
    /// Whether the second half of the spectrum, the conjugate of the first, is left out.
    fn is_half_kept(&self) -> bool {
        self.onesided && !self.inverse
    }

    /// Whether only the first half of the spectrum is given, and the signal is real.
    fn is_half_given(&self) -> bool {
        self.onesided && self.inverse
    }

    /// A part of the signal's element `k`; zero beyond its end. Of half a spectrum the other half is the conjugate.
    fn element(&self, x: &te::Tensor, at: &[PrimExpr], k: &PrimExpr, part: i64, work: DataType) -> PrimExpr {
        let (n, own) = (&self.length, x.shape()[self.axis].clone());
        let mirrored = prim::gt(k * 2, n);
        let source = if self.is_half_given() { prim::select(mirrored.clone(), n - k, k.clone()) } else { k.clone() };
        let mut index = at.to_vec();
        index[self.axis] = source.clone();
        index[at.len() - 1] = prim::int(part);
        let zero = prim::constant(work, 0.0);
        let value = prim::if_then_else(prim::lt(&source, &own), prim::cast(work, x.at(&index)), zero.clone());
        if self.is_half_given() && part == 1 { prim::select(mirrored, zero - value.clone(), value) } else { value }
    }
}

/// A transform of known length.
fn by_products(
    scope: &mut Scope,
    x: Expr,
    how: &Transform,
    length: usize,
    parts: i64,
    out: &[PrimExpr],
) -> Result<Expr> {
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let work = fft::work_type(dtype, length);
    let (axis, last) = (how.axis, shape.len() - 1);
    let lead: Vec<PrimExpr> = (0..last).filter(|i| *i != axis).map(|i| shape[i].clone()).collect();
    let outer = lead.len();
    // Real parts in one row, imaginary ones in the next.
    let rows: Vec<PrimExpr> = lead.iter().cloned().chain([prim::int(parts), how.length.clone()]).collect();
    let rows = scope.te("signal", vec![x], |inputs| {
        vec![te::compute("signal", &rows, |at| {
            let mut place = at[..outer].to_vec();
            place.insert(axis, prim::int(0));
            place.push(prim::int(0));
            let element = |part| how.element(&inputs[0], &place, &at[outer + 1], part, work);
            if parts == 1 { element(0) } else { prim::if_then_else(prim::eq(&at[outer], 0), element(0), element(1)) }
        })]
    })?;
    let wanted = if how.is_half_kept() { length / 2 + 1 } else { length };
    let plan = fft::FftPlan { length, wanted, inverse: how.inverse, work };
    let spectrum = fft::transform(scope, rows, &lead, parts == 1, &plan)?;
    let scale = prim::constant(work, if how.inverse { 1.0 / length as f64 } else { 1.0 });
    scope.te("spectrum", vec![spectrum], |inputs| {
        vec![te::compute("spectrum", out, |at| {
            let mut place: Vec<PrimExpr> = (0..last).filter(|i| *i != axis).map(|i| at[i].clone()).collect();
            place.extend([at[last].clone(), at[axis].clone()]);
            prim::cast(dtype, inputs[0].at(&place) * scale.clone())
        })]
    })
}

/// A transform whose length the program computes.
fn by_sums(scope: &mut Scope, x: Expr, how: &Transform, parts: i64, out: &[PrimExpr]) -> Result<Expr> {
    let dtype = scope.dtype(&x);
    // In double precision: of sums that cancel, what remains would otherwise be rounding.
    let work = DataType::float(64);
    let number = |v: f64| prim::constant(work, v);
    let real = |e: PrimExpr| prim::cast(work, e);
    let (axis, last, n) = (how.axis, out.len() - 1, how.length.clone());
    let turn = if how.inverse { std::f64::consts::TAU } else { -std::f64::consts::TAU };
    scope.te("dft", vec![x], |inputs| {
        let angle = |at: &[PrimExpr]| prim::div(real(at[0].clone()) * number(turn), real(prim::max(&n, 1)));
        let cosines = te::compute("cosines", [n.clone()], |at| prim::math("cos", angle(at)));
        let sines = te::compute("sines", [n.clone()], |at| prim::math("sin", angle(at)));
        let sums = te::compute("sums", out, |at| {
            let k = te::reduce_axis(n.clone());
            let turns = [prim::floormod(&at[axis] * k.var(), &n)];
            let (cos, sin) = (cosines.at(&turns), sines.at(&turns));
            let element = |part| how.element(&inputs[0], at, &k.var(), part, work);
            let (re, im) = (element(0), if parts == 2 { element(1) } else { number(0.0) });
            let real_part = re.clone() * cos.clone() - im.clone() * sin.clone();
            let imaginary = re * sin + im * cos;
            te::sum(prim::select(prim::eq(&at[last], 0), real_part, imaginary), [&k])
        });
        let scale = if how.inverse { prim::div(number(1.0), real(n.clone())) } else { number(1.0) };
        vec![te::compute("spectrum", out, |at| prim::cast(dtype, sums.at(at) * scale.clone()))]
    })
}

/// `STFT`: transforms of windows that slide over a signal.
pub fn stft(scope: &mut Scope, node: &Node) -> Outputs {
    let mut x = scope.tensor(node.input(0)?)?;
    let (mut shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    if shape.len() == 2 {
        // PyTorch exports real signals without their axis of parts, which ONNX Runtime takes.
        shape.push(prim::int(1));
        x = scope.reshape(x, shape.clone())?;
    }
    let [batch, signal, parts] = <[PrimExpr; 3]>::try_from(shape)
        .map_err(|dims| NodeError::invalid(format!("the signal has {} axes, not 2 or 3", dims.len())))?;
    let step = scalar_dim(scope, node.input(1)?)?;
    let moving =
        Check::new(prim::ge(&step, 1), "the step of frames must be positive").with([("it".to_owned(), step.clone())]);
    match step.as_int() {
        Some(known) if known < 1 => return Err(NodeError::invalid(moving.said())),
        Some(_) => {}
        None => scope.require(&[moving])?,
    }
    let window = node.optional(2).map(|v| scope.tensor(v)).transpose()?;
    let length = match (node.optional(3), &window) {
        (Some(value), _) => scalar_dim(scope, value)?,
        (None, Some(window)) => dims::product(&scope.dims(window)?),
        (None, None) => signal.clone(),
    };
    let count = dims::simplify(&(prim::floordiv(&signal - &length, prim::max(&step, 1)) + 1));
    let mut args = vec![x];
    if let Some(window) = window {
        args.push(scope.agree(window, std::slice::from_ref(&length))?);
    }
    let out = vec![batch, dims::simplify(&prim::max(count, 0)), length.clone(), parts];
    let frames = scope.te("frames", args, |inputs| {
        vec![te::compute("frames", &out, |at| {
            let place = super::computed::clamp(&at[1] * &step + &at[2], 0, &signal - 1);
            let element = inputs[0].at(&[at[0].clone(), place, at[3].clone()]);
            match inputs.get(1) {
                Some(window) => element * prim::cast(dtype, window.at(&at[2..3])),
                None => element,
            }
        })]
    })?;
    let how = Transform { axis: 2, length, inverse: false, onesided: node.flag("onesided", true)? };
    one(transformed(scope, frames, &how)?)
}
