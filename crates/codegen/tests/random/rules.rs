//! Kernels by the schedule rules, for a machine with narrower vectors.

use relaxide_ir::{DataType, PrimExpr, Target, Var, prim};
use relaxide_tir::testing::{Options, Random, Sample, sample_from};
use relaxide_tir::{lower, schedule, te};

use super::{Case, count, named};
use crate::harness::{Kernels, emulated};

const F32: DataType = DataType::float(32);

/// Kernels by the schedule rules, among them products and reductions, for a machine with narrower vectors.
#[test]
fn rules_compute_the_same_on_an_emulated_aarch64_machine() {
    if let Some(reason) = emulated::unavailable() {
        return eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed");
    }
    let count = count(24, 400);
    let target: Target = emulated::TARGET.parse().unwrap();
    let samples = (0..count).map(|seed| sample_from(&mut Random::new(seed), Options::default()).unwrap());
    let cases = samples.chain([product(37, 45, 29), softmax(5, 33)]).enumerate().map(|(at, sample)| {
        let func = named(&sample.func, &format!("kernel{at}"));
        let scheduled = schedule::apply(&func, &target).unwrap();
        let (lowered, story) = (lower::lower(&scheduled.func).unwrap(), format!("{}\n{func}", scheduled.func));
        Case::of_sample(&format!("kernel{at}"), sample, lowered, story).unwrap()
    });
    let cases: Vec<Case> = cases.collect();
    let kernels = Kernels::compile_for(&cases.iter().map(|case| case.lowered.clone()).collect::<Vec<_>>(), &target);
    let failures: Vec<String> = cases.iter().filter_map(|case| (case.check)(&kernels).err()).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// A product of matrices with a dynamic number of rows.
fn product(m: i64, n: i64, k: i64) -> Sample {
    let rows = PrimExpr::Var(Var::dim("m"));
    let (a, b) = (te::placeholder("A", [rows.clone(), k.into()], F32), te::placeholder("B", [k, n], F32));
    let r = te::reduce_axis(k);
    let c = te::compute("C", [rows, n.into()], |i| {
        te::sum(a.at(&[i[0].clone(), r.var()]) * b.at(&[r.var(), i[1].clone()]), [&r])
    });
    let func = te::create_prim_func(&[a, b, c]).unwrap();
    Sample { func, inputs: vec![eighths(&[m, k]), eighths(&[k, n])], outputs: vec![(vec![m, n], F32)], scalars: vec![] }
}

/// Exponentials of rows, each divided by their sum.
fn softmax(rows: i64, columns: i64) -> Sample {
    let x = te::placeholder("X", [rows, columns], F32);
    let (r, s) = (te::reduce_axis(columns), te::reduce_axis(columns));
    let most = te::compute("most", [rows], |i| te::max(x.at(&[i[0].clone(), r.var()]), [&r]));
    let raised = te::compute("raised", [rows, columns], |i| prim::math("exp", x.at(i) - most.at(&i[..1])));
    let sum = te::compute("sum", [rows], |i| te::sum(raised.at(&[i[0].clone(), s.var()]), [&s]));
    let shares = te::compute("shares", [rows, columns], |i| prim::div(raised.at(i), sum.at(&i[..1])));
    let func = te::create_prim_func(&[x, shares]).unwrap();
    let inputs = vec![eighths(&[rows, columns])];
    Sample { func, inputs, outputs: vec![(vec![rows, columns], F32)], scalars: vec![] }
}

/// Small multiples of 1/8, whose sums are exact in any order.
fn eighths(shape: &[i64]) -> relaxide_ffi::Tensor {
    let values: Vec<f32> = (0..shape.iter().product::<i64>()).map(|i| (i * 7 % 23 - 11) as f32 / 8.0).collect();
    relaxide_ffi::Tensor::from_slice(&values, shape).unwrap()
}
