//! Compiled kernels behind random steps of a schedule against the reference interpreter on the same kernels as they were
//! made. A case that fails is made simpler; its trace and its kernel are printed.

mod harness;

use std::cell::Cell;

use harness::{Kernels, Packed, Tensor, emulated};
use relaxide_ir::{DataType, PrimExpr, Target, Var, prim};
use relaxide_tir::interp::Scalar;
use relaxide_tir::testing::{Failure, Options, Random, Sample, attempt, report, sample_from, schedule_from};
use relaxide_tir::{PrimFunc, lower, schedule, te};

const F32: DataType = DataType::float(32);

/// How many kernels share one library.
const TOGETHER: usize = 20;

/// The outputs of a compiled kernel.
fn execute(kernels: &Kernels, name: &str, sample: &Sample) -> Result<Vec<Vec<Scalar>>, String> {
    let inputs = sample.inputs.iter().map(|t| Tensor::of(t.dtype(), &t.to_bytes().unwrap(), t.shape()));
    let outputs = sample.outputs.iter().map(|(shape, dtype)| Tensor::zeros(*dtype, shape));
    let mut tensors: Vec<Tensor> = inputs.chain(outputs).collect();
    let scalars: Vec<Packed> = sample.scalars.iter().map(|v| Packed::int(*v)).collect();
    kernels.call(name, &mut tensors, &scalars).map_err(|(kind, message)| format!("{kind}: {message}"))?;
    let elements = |tensor: &Tensor| {
        let bytes = tensor.bytes();
        bytes.chunks(tensor.dtype.bytes()).filter_map(|b| Scalar::from_bytes(tensor.dtype, b)).collect()
    };
    Ok(tensors[sample.inputs.len()..].iter().map(elements).collect())
}

/// A kernel, its lowered form behind random steps, what it computes, and what to say where that is not found.
struct Case {
    name: String,
    sample: Sample,
    lowered: PrimFunc,
    expected: Vec<Vec<Scalar>>,
    story: String,
}

fn make(name: String, random: &mut Random) -> Result<Case, String> {
    let sample = sample_from(random, Options::default()).map_err(|e| e.to_string())?;
    let expected = sample.interpret(&sample.func).map_err(|e| e.to_string())?;
    let samples = random.between(1, 1000);
    let drawn = schedule_from(random, &sample.func, samples, 12).map_err(|e| e.to_string())?;
    let func = drawn.func().ok_or("no kernel is left")?;
    let story = format!("{}\n{}\n{func}", drawn.schedule.trace(), sample.func);
    // What the interpreter refuses might corrupt memory as native code.
    sample.interpret(&func).map_err(|e| format!("{e}\n{story}"))?;
    let named = PrimFunc { attrs: func.attrs.clone().with("global_symbol", name.as_str()), ..PrimFunc::clone(&func) };
    let scheduled = schedule::apply(&named, &Target::default()).map_err(|e| format!("{e}\n{story}"))?;
    let lowered = lower::lower(&scheduled.func).map_err(|e| format!("{e}\n{story}"))?;
    Ok(Case { name, sample, lowered, expected, story })
}

impl Case {
    fn check(&self, kernels: &Kernels) -> Result<(), String> {
        let found = execute(kernels, &self.name, &self.sample)?;
        match self.sample.difference(&found, &self.expected) {
            Some((output, at)) => {
                let (found, expected) = (found[output].get(at), self.expected[output].get(at));
                Err(format!("{found:?} for {expected:?} at {at} of output {output}\n{}", self.story))
            }
            None => Ok(()),
        }
    }
}

/// One case in a library of its own.
fn check_one(random: &mut Random) -> Result<(), String> {
    let case = make("kernel".to_string(), random)?;
    case.check(&Kernels::compile(std::slice::from_ref(&case.lowered)))
}

/// The cases of some seeds in one library.
fn check_together(seeds: std::ops::Range<u64>) {
    let made: Vec<(u64, Random, Result<Case, Failure>)> = seeds
        .map(|seed| {
            let (random, case) = (Random::new(seed), Cell::new(None));
            let keep = |random: &mut Random| {
                case.set(Some(make(format!("kernel{seed}"), random)?));
                Ok(())
            };
            let result = attempt(random.clone(), &keep);
            (seed, random, result.map(|()| case.take().expect("a case was made")))
        })
        .collect();
    let good = made.iter().filter_map(|(.., case)| case.as_ref().ok());
    let kernels = Kernels::compile(&good.map(|case| case.lowered.clone()).collect::<Vec<_>>());
    for (seed, random, case) in made {
        let failed = match case {
            Ok(case) => case.check(&kernels).is_err(),
            Err(_) => true,
        };
        if failed && let Err(failure) = attempt(random, &check_one) {
            report(seed, failure, &check_one);
        }
        assert!(!failed, "seed {seed} fails among others only");
    }
}

/// Kernels by the schedule rules, among them products and reductions, for a machine with narrower vectors.
#[test]
fn rules_compute_the_same_on_an_emulated_aarch64_machine() {
    if let Some(reason) = emulated::unavailable() {
        return eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed");
    }
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 400 } else { 24 };
    let target: Target = emulated::TARGET.parse().unwrap();
    let samples = (0..count).map(|seed| sample_from(&mut Random::new(seed), Options::default()).unwrap());
    let cases = samples.chain([product(37, 45, 29), softmax(5, 33)]).enumerate().map(|(at, sample)| {
        let expected = sample.interpret(&sample.func).unwrap();
        let (name, func) = (format!("kernel{at}"), &sample.func);
        let attrs = func.attrs.clone().with("global_symbol", name.as_str());
        let scheduled = schedule::apply(&PrimFunc { attrs, ..PrimFunc::clone(func) }, &target).unwrap();
        let (lowered, story) = (lower::lower(&scheduled.func).unwrap(), format!("{}\n{func}", scheduled.func));
        Case { name, sample, lowered, expected, story }
    });
    let cases: Vec<Case> = cases.collect();
    let kernels = Kernels::compile_for(&cases.iter().map(|case| case.lowered.clone()).collect::<Vec<_>>(), &target);
    let failures: Vec<String> = cases.iter().filter_map(|case| case.check(&kernels).err()).collect();
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

#[test]
fn random_schedules_compile_to_the_same_results() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { 60 };
    for first in (0..count).step_by(TOGETHER) {
        check_together(first..first + TOGETHER as u64);
    }
}
