//! Random kernels for tests: any two ways to execute one must agree.
//!
//! [`sample`] gives a kernel in block form with arguments to run it on; [`reschedule`] turns the loops of such a kernel
//! around at random without changing what it computes, [`schedule_at_random`] executes random steps of a schedule.
//! [`program`] makes statements of every kind.
//! Everything follows from choices ([`Random`]), by default a seed's, so a failure names its seed and repeats, and is made
//! simpler ([`shrink()`]) before it is reported. Floats are small multiples of 1/8, so sums of them are exact in any order.
//!
//! For the tests of other crates too; no compiler calls it.

mod checked;
mod kernels;
mod loops;
mod programs;
mod random;
mod shrink;
mod steps;
mod teamwork;

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::prim::PrimExpr;

use crate::interp::{self, Arg, Scalar};

pub use checked::Checked;
pub use kernels::{Options, Sample, sample, sample_from};
pub use loops::reschedule;
pub use programs::{Program, ProgramOptions, program};
pub use random::Random;
pub use shrink::{Failure, attempt, check_seeds, report, seeds, shrink};
pub use steps::{Drawn, schedule_at_random, schedule_from};
pub use teamwork::{KINDS, Teamwork, teamwork, tensor_product};

/// A dimension: its size, and how what is made writes it.
#[derive(Clone, Debug)]
struct Dim {
    size: i64,
    expr: PrimExpr,
}

impl Sample {
    /// Runs a kernel of the same parameters on the inputs, by the interpreter; the elements of the outputs.
    pub fn interpret(&self, func: &crate::PrimFunc) -> Result<Vec<Vec<Scalar>>, interp::InterpError> {
        let tensors = self.tensors()?;
        let outputs = tensors.get(self.inputs.len()..).unwrap_or_default().to_vec();
        let scalars = self.scalars.iter().copied().map(Arg::Int);
        let args: Vec<Arg> = tensors.into_iter().map(Arg::from).chain(scalars).collect();
        interp::run(func, &args)?;
        Ok(elements(&outputs)?)
    }

    /// The first element in which two results differ by more than the order of additions makes them: output and place.
    pub fn difference(&self, a: &[Vec<Scalar>], b: &[Vec<Scalar>]) -> Option<(usize, usize)> {
        let pairs = a.iter().zip(b).zip(&self.outputs).enumerate();
        pairs.into_iter().find_map(|(output, ((a, b), (_, dtype)))| {
            let at = a.iter().zip(b).position(|(a, b)| !close(*dtype, *a, *b));
            at.or((a.len() != b.len()).then_some(a.len())).map(|at| (output, at))
        })
    }
}

/// The elements of tensors.
pub fn elements(tensors: &[Tensor]) -> relaxide_ffi::Result<Vec<Vec<Scalar>>> {
    let of_one = |tensor: &Tensor| {
        let bytes = tensor.to_bytes()?;
        let element = |chunk| Scalar::from_bytes(tensor.dtype(), chunk);
        Ok(bytes.chunks(tensor.dtype().bytes()).filter_map(element).collect())
    };
    tensors.iter().map(of_one).collect()
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

/// A tensor of random elements: small multiples of 1/8, small integers, or bools.
pub fn random_tensor(random: &mut Random, shape: &[i64], dtype: DataType) -> relaxide_ffi::Result<Tensor> {
    let count = shape.iter().product::<i64>().max(0);
    let element = |random: &mut Random| {
        if dtype.is_float() {
            Scalar::Float(random.between(-32, 32) as f64 / 8.0)
        } else if dtype.is_int() {
            Scalar::Int(random.between(-100, 100))
        } else if dtype.is_bool() {
            Scalar::Int(random.between(0, 1))
        } else {
            Scalar::Int(random.between(0, 200))
        }
    };
    let bytes: Vec<u8> = (0..count).flat_map(|_| element(random).to_bytes(dtype)).collect();
    Tensor::from_bytes(&bytes, shape, dtype)
}
