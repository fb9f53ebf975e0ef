//! Signals: Fourier transforms, windows, weights of mel bands.
//!
//! Transforms are sums as they are written, with angles reduced to one turn before their sine is taken: quadratic in the
//! length, which is short where these operators occur.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::places::scalar_dim;
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

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
    use super::computed::{Args, Plan};
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
    let dims = Plan::bind(scope, "dft", &args, |inputs| {
        let dim = |i: usize| {
            let own: Vec<PrimExpr> = extents.iter().map(|e| e[i].clone()).collect();
            super::computed::choose(&place(inputs), &own)
        };
        Plan { dims: (0..rank).map(dim).collect(), ..Plan::default() }
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
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let last = shape.len() - 1;
    let parts = shape[last].as_int().filter(|n| (1..=2).contains(n));
    let parts = parts.ok_or_else(|| NodeError::invalid("the last axis must hold 1 or 2 numbers"))?;
    let half = how.onesided && !how.inverse;
    let from_half = how.onesided && how.inverse;
    let mut out = shape.clone();
    let n = how.length.clone();
    out[how.axis] = if half { dims::floor_div(&n, &prim::int(2)) + 1 } else { n.clone() };
    out[last] = prim::int(if from_half { 1 } else { 2 });
    let out: Vec<PrimExpr> = out.iter().map(dims::simplify).collect();
    let (axis, own) = (how.axis, shape[how.axis].clone());
    // In double precision: of sums that cancel, what remains would otherwise be rounding.
    let work = DataType::float(64);
    let number = |v: f64| prim::constant(work, v);
    let real = |e: PrimExpr| prim::cast(work, e);
    let sign = if how.inverse { 1.0 } else { -1.0 };
    scope.te("dft", vec![x], |inputs| {
        let sums = te::compute("sums", &out, |at| {
            let k = te::reduce_axis(n.clone());
            let turn = prim::floormod(&at[axis] * k.var(), &n);
            let angle = prim::div(real(turn) * number(sign * std::f64::consts::TAU), real(n.clone()));
            let (cos, sin) = (prim::math("cos", angle.clone()), prim::math("sin", angle));
            // Of half a spectrum the other half is the conjugate.
            let mirrored = prim::gt(k.var() * 2, &n);
            let source = if from_half { prim::select(mirrored.clone(), &n - k.var(), k.var()) } else { k.var() };
            let element = |part: i64| {
                let mut index = at.to_vec();
                index[axis] = source.clone();
                index[last] = prim::int(part);
                let within = prim::lt(&source, &own);
                prim::if_then_else(within, real(inputs[0].at(&index)), number(0.0))
            };
            let re = element(0);
            let im = if parts == 2 { element(1) } else { number(0.0) };
            let im = if from_half { prim::select(mirrored, number(0.0) - im.clone(), im) } else { im };
            let real_part = re.clone() * cos.clone() - im.clone() * sin.clone();
            let imaginary = re * sin + im * cos;
            te::sum(prim::select(prim::eq(&at[last], 0), real_part, imaginary), [&k])
        });
        let scale = if how.inverse { prim::div(number(1.0), real(n.clone())) } else { number(1.0) };
        vec![te::compute("spectrum", &out, |at| prim::cast(dtype, sums.at(at) * scale.clone()))]
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

/// `HannWindow`.
pub fn hann(scope: &mut Scope, node: &Node) -> Outputs {
    cosine_window(scope, node, [0.5, -0.5, 0.0])
}

/// `HammingWindow`, with 25/46 as ONNX has it.
pub fn hamming(scope: &mut Scope, node: &Node) -> Outputs {
    cosine_window(scope, node, [25.0 / 46.0, 25.0 / 46.0 - 1.0, 0.0])
}

/// `BlackmanWindow`.
pub fn blackman(scope: &mut Scope, node: &Node) -> Outputs {
    cosine_window(scope, node, [0.42, -0.5, 0.08])
}

fn output_type(node: &Node) -> Result<DataType> {
    let number = node.int_or("output_datatype", 1)?;
    constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))
}

/// A sum of cosines of none, one and two turns.
fn cosine_window(scope: &mut Scope, node: &Node, factors: [f64; 3]) -> Outputs {
    let dtype = output_type(node)?;
    let work = if dtype == DataType::float(64) { dtype } else { DataType::float(32) };
    let size = scalar_dim(scope, node.input(0)?)?;
    let span = if node.flag("periodic", true)? { size.clone() } else { &size - 1 };
    one(scope.te("window", vec![], |_| {
        vec![te::compute("window", [size], |at| {
            let angle = prim::div(
                prim::cast(work, at[0].clone()) * prim::constant(work, std::f64::consts::TAU),
                prim::cast(work, prim::max(&span, 1)),
            );
            let cosine = |turns: f64| prim::math("cos", angle.clone() * prim::constant(work, turns));
            let mut sum = prim::constant(work, factors[0]) + cosine(1.0) * prim::constant(work, factors[1]);
            if factors[2] != 0.0 {
                sum = sum + cosine(2.0) * prim::constant(work, factors[2]);
            }
            prim::cast(dtype, sum)
        })]
    })?)
}

/// `MelWeightMatrix`: triangles over the bins of a spectrum, evenly spaced by ear.
pub fn mel_weights(scope: &mut Scope, node: &Node) -> Outputs {
    let dtype = output_type(node)?;
    let work = DataType::float(64);
    let bands = scalar_dim(scope, node.input(0)?)?;
    let length = scalar_dim(scope, node.input(1)?)?;
    let rate = scalar_dim(scope, node.input(2)?)?;
    let mut edges = Vec::new();
    for i in 3..5 {
        let edge = scope.tensor(node.input(i)?)?;
        let edge = scope.cast(edge, work)?;
        edges.push(scope.reshape(edge, Vec::new())?);
    }
    let number = |v: f64| prim::constant(work, v);
    let real = |e: PrimExpr| prim::cast(work, e);
    let bins = vec![dims::simplify(&(prim::floordiv(&length, 2) + 1)), bands.clone()];
    one(scope.te("mel_weights", edges, |inputs| {
        let mel = |hertz: PrimExpr| {
            prim::math("log", number(1.0) + prim::div(hertz, number(700.0))) * number(2595.0 / std::f64::consts::LN_10)
        };
        let (low, high) = (mel(inputs[0].at(&[])), mel(inputs[1].at(&[])));
        let step = prim::div(high - low.clone(), real(&bands + 2));
        // The bin that each edge of a band falls into.
        let edges = te::compute("edges", [&bands + 2], |at| {
            let place = real(at[0].clone()) * step.clone() + low.clone();
            let power = prim::math("exp", place * number(std::f64::consts::LN_10 / 2595.0));
            let hertz = number(700.0) * (power - number(1.0));
            let exact = prim::div(real(&length + 1) * hertz, real(rate.clone()));
            prim::cast(DataType::int(64), prim::math("floor", exact))
        });
        vec![te::compute("weights", &bins, |at| {
            let (bin, band) = (&at[0], &at[1]);
            let edge = |i: i64| edges.at(&[band + i]);
            let (left, centre, right) = (edge(0), edge(1), edge(2));
            let slope = |part: PrimExpr, whole: PrimExpr| prim::div(real(part), real(prim::max(whole, 1)));
            let flat = prim::and(prim::eq(&left, &centre), prim::eq(bin, &centre));
            let rising = prim::and(prim::ge(bin, &left), prim::le(bin, &centre));
            let rising = prim::and(rising, prim::gt(&centre, &left));
            let falling = prim::and(prim::ge(bin, &centre), prim::lt(bin, &right));
            let up = prim::select(rising, slope(bin - &left, &centre - &left), number(0.0));
            let up = prim::select(flat, number(1.0), up);
            prim::cast(dtype, prim::select(falling, slope(&right - bin, &right - &centre), up))
        })]
    })?)
}
