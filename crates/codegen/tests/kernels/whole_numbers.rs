//! Quantized numbers: what is rounded, bounded and narrowed in vectors is what it is number by number, whatever the order of the bounds is, and
//! where there is no number, or one that no integer holds.

use relaxide_ir::prim::{BinaryOp, binary, cast, constant, load, math, select};
use relaxide_ir::{DataType, PrimExpr, Ref};
use relaxide_tir::{ForKind, PrimFunc, Stmt};

use super::{buffer, kernel};
use crate::harness::{Kernels, Tensor};

const F32: DataType = DataType::float(32);
const COUNT: i64 = 64;

/// The ways in which a bound is written.
const FORMS: usize = 3;

/// A value at most, or at least, a number.
fn bounded(op: BinaryOp, value: PrimExpr, bound: f64, form: usize) -> PrimExpr {
    let number = constant(F32, bound);
    match (form, op) {
        (0, _) => binary(op, value, number),
        (1, _) => binary(op, number, value),
        (_, BinaryOp::Max) => select(binary(BinaryOp::Lt, number.clone(), value.clone()), value, number),
        _ => select(binary(BinaryOp::Lt, value.clone(), number.clone()), value, number),
    }
}

/// What is quantized: whole numbers, and others that only look so.
fn sources(x: &PrimExpr) -> Vec<PrimExpr> {
    let round = || math("round", x.clone());
    let number = |value| constant(F32, value);
    vec![
        round(),
        round() + number(3.0),
        round() + number(0.5),
        math("floor", x.clone()) * number(3.0),
        cast(F32, cast(DataType::int(32), x.clone())),
        x.clone(),
    ]
}

/// Each way to write a number of a type, in vectors of some lanes.
fn kernels(dtype: DataType, lanes: i64) -> Vec<PrimFunc> {
    let bits = i32::from(dtype.bits);
    let (least, most) = match dtype.is_uint() {
        true => (0.0, 2f64.powi(bits) - 1.0),
        false => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0),
    };
    let (min, max) = (BinaryOp::Min, BinaryOp::Max);
    // The type's own bounds, narrower ones in the other order, bounds that are not whole, wider ones, and one alone.
    let chains: [&[(BinaryOp, f64)]; 5] = [
        &[(max, least), (min, most)],
        &[(min, most - 2.0), (max, least + 2.0)],
        &[(max, least + 0.25), (min, most - 0.25)],
        &[(max, least - 2.0), (min, most + 2.0)],
        &[(max, least)],
    ];
    let mut funcs = Vec::new();
    for chain in chains {
        for form in 0..FORMS {
            for source in 0..sources(&constant(F32, 0.0)).len() {
                let buffers = [buffer("A", F32, &[COUNT]), buffer("B", dtype, &[COUNT])];
                funcs.push(converted(&format!("q{}", funcs.len()), &buffers, lanes, |x| {
                    let value = sources(&x).swap_remove(source);
                    chain.iter().fold(value, |value, (op, bound)| bounded(*op, value, *bound, form))
                }));
            }
        }
    }
    funcs
}

fn converted(
    name: &str,
    buffers: &[Ref<relaxide_ir::Buffer>; 2],
    lanes: i64,
    value: impl FnOnce(PrimExpr) -> PrimExpr,
) -> PrimFunc {
    let (outer, inner) = (relaxide_ir::Var::dim("i"), relaxide_ir::Var::dim("j"));
    let at = PrimExpr::from(&outer) * lanes + PrimExpr::from(&inner);
    let value = cast(buffers[1].dtype, value(load(&buffers[0], [at.clone()])));
    let store = Stmt::store(&buffers[1], [at], value);
    let kind = if lanes == 1 { ForKind::Serial } else { ForKind::Vectorized };
    let body = Stmt::for_loop(ForKind::Serial, outer, COUNT / lanes, Stmt::for_loop(kind, inner, lanes, store));
    kernel(name, buffers, &[], body)
}

/// Numbers around the bounds and halves between them, and those that are none.
fn numbers() -> Vec<f32> {
    let edges = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        3e9,
        -3e9,
        1e30,
        -1e30,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
    ];
    let bounds = [0.0f32, 127.0, 128.0, -128.0, 255.0, 32767.0, -32768.0, 65535.0];
    let around = bounds.into_iter().flat_map(|bound| [-2.5, -0.5, -0.49, 0.0, 0.5, 1.5].map(|step| bound + step));
    edges.into_iter().chain(around).chain([7.25, -7.75]).collect()
}

#[test]
fn vectors_are_quantized_as_single_numbers_are() {
    let numbers = numbers();
    assert_eq!(numbers.len() as i64, COUNT);
    for dtype in [DataType::uint(8), DataType::int(8), DataType::uint(16), DataType::int(16), DataType::int(32)] {
        let run = |lanes: i64| -> Vec<Vec<u8>> {
            let funcs = kernels(dtype, lanes);
            let compiled = Kernels::compile(&funcs);
            let result = |n: usize| {
                let mut tensors = [Tensor::f32(&numbers, &[COUNT]), Tensor::zeros(dtype, &[COUNT])];
                compiled.run(&format!("q{n}"), &mut tensors);
                tensors[1].bytes().to_vec()
            };
            (0..funcs.len()).map(result).collect()
        };
        let single = run(1);
        for lanes in [8, 16, 64] {
            for (n, (found, wanted)) in run(lanes).iter().zip(&single).enumerate() {
                assert_eq!(found, wanted, "kernel {n} of {dtype} in {lanes} lanes");
            }
        }
    }
}
