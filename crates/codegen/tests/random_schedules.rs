//! Compiled kernels behind random steps of a schedule against the reference interpreter on the same kernels as they were
//! made. A failure prints the trace and the kernel.

mod harness;

use harness::{Kernels, Packed, Tensor};
use relaxide_ir::Target;
use relaxide_tir::interp::Scalar;
use relaxide_tir::testing::{Options, Sample, sample, schedule_at_random};
use relaxide_tir::{PrimFunc, lower, schedule};

/// How many kernels share one library.
const TOGETHER: u64 = 20;

/// The outputs of a compiled kernel.
fn execute(kernels: &Kernels, name: &str, sample: &Sample) -> Vec<Vec<Scalar>> {
    let inputs = sample.inputs.iter().map(|t| Tensor::of(t.dtype(), &t.to_bytes().unwrap(), t.shape()));
    let outputs = sample.outputs.iter().map(|(shape, dtype)| Tensor::zeros(*dtype, shape));
    let mut tensors: Vec<Tensor> = inputs.chain(outputs).collect();
    let scalars: Vec<Packed> = sample.scalars.iter().map(|v| Packed::int(*v)).collect();
    kernels.call(name, &mut tensors, &scalars).unwrap_or_else(|(kind, message)| panic!("{kind}: {message}"));
    let elements = |tensor: &Tensor| {
        let bytes = tensor.bytes();
        bytes.chunks(tensor.dtype.bytes()).filter_map(|b| Scalar::from_bytes(tensor.dtype, b)).collect()
    };
    tensors[sample.inputs.len()..].iter().map(elements).collect()
}

fn check(seeds: std::ops::Range<u64>) {
    let mut cases = Vec::new();
    let mut funcs = Vec::new();
    for seed in seeds {
        let sample = sample(seed, Options::default()).unwrap();
        let drawn = schedule_at_random(&sample.func, seed, 12).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let func = drawn.func().unwrap();
        let story = format!("seed {seed}\n{}\n{}\n{func}", drawn.schedule.trace(), sample.func);
        let name = format!("kernel{seed}");
        let named =
            PrimFunc { attrs: func.attrs.clone().with("global_symbol", name.as_str()), ..PrimFunc::clone(&func) };
        let scheduled = schedule::apply(&named, &Target::default()).unwrap_or_else(|e| panic!("{e}\n{story}"));
        funcs.push(lower::lower(&scheduled.func).unwrap_or_else(|e| panic!("{e}\n{story}")));
        cases.push((name, sample, story));
    }
    let kernels = Kernels::compile(&funcs);
    for (name, sample, story) in &cases {
        let expected = sample.interpret(&sample.func).unwrap();
        let found = execute(&kernels, name, sample);
        if let Some((output, at)) = sample.difference(&found, &expected) {
            panic!("{:?} for {:?}\n{story}", found[output].get(at), expected[output].get(at));
        }
    }
}

#[test]
fn random_schedules_compile_to_the_same_results() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { 60 };
    for first in (0..count).step_by(TOGETHER as usize) {
        check(first..first + TOGETHER);
    }
}
