//! Random kernels behind the schedule rules.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Target;

use super::{Options, Sample, sample};
use crate::interp::{self, Arg, Scalar};
use crate::{PrimFunc, lower, schedule, verify};

fn execute(sample: &Sample, func: &PrimFunc) -> Result<Vec<Vec<Scalar>>, interp::InterpError> {
    let tensors = sample.tensors()?;
    let outputs = tensors[sample.inputs.len()..].to_vec();
    let scalars = sample.scalars.iter().copied().map(Arg::Int);
    let args: Vec<Arg> = tensors.into_iter().map(Arg::from).chain(scalars).collect();
    interp::run(func, &args)?;
    let elements = |tensor: &Tensor| {
        let bytes = tensor.to_bytes()?;
        let element = |chunk| Scalar::from_bytes(tensor.dtype(), chunk);
        Ok(bytes.chunks(tensor.dtype().bytes()).filter_map(element).collect())
    };
    Ok(outputs.iter().map(elements).collect::<relaxide_ffi::Result<_>>()?)
}

/// Whether two elements agree, but for the order of additions.
fn close(dtype: DataType, a: Scalar, b: Scalar) -> bool {
    let (Scalar::Float(a), Scalar::Float(b)) = (a, b) else { return a == b };
    let tolerance = match dtype.bits {
        16 => 0.05,
        32 => 1e-5,
        _ => 1e-12,
    };
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + b.abs())
}

#[test]
fn scheduled_kernels_compute_the_same_up_to_rounding() {
    for seed in 0..24 {
        let sample = sample(seed, Options::default()).unwrap();
        let expected = execute(&sample, &sample.func).unwrap();
        let scheduled = schedule::apply(&sample.func, &Target::default()).unwrap().func;
        verify::verify(&scheduled).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let lowered = lower::lower(&scheduled).unwrap();
        for (what, func) in [("scheduled", scheduled), ("lowered", lowered)] {
            let found = execute(&sample, &func).unwrap_or_else(|e| panic!("seed {seed}, {what}: {e}\n{func}"));
            for ((a, b), (_, dtype)) in found.iter().zip(&expected).zip(&sample.outputs) {
                let wrong = a.iter().zip(b).position(|(a, b)| !close(*dtype, *a, *b));
                assert_eq!(wrong, None, "seed {seed}, {what}:\n{}\n{func}", sample.func);
            }
        }
    }
}
