//! Signals: windows, and weights of mel bands.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::gather_scatter::scalar_dim;
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

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
