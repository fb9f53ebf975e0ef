//! What kernels are timed with, and whether two of them left the same in it.

use relaxide::KernelArg;
use relaxide::ffi::{Any, Tensor};

use crate::error::CliError;
use crate::inputs::element::{Random, Range, numbers};

/// Values of arguments: floats from -1 to 1, integers that are zero, as they may be indices.
pub fn make(arguments: &[KernelArg], seed: u64) -> Result<Vec<Any>, CliError> {
    let mut random = Random::new(seed);
    let mut one = |argument: &KernelArg| match argument {
        KernelArg::Int(value) => Ok((*value).into()),
        KernelArg::Tensor(dtype, shape) => {
            let range = if dtype.is_float() { Range { low: -1.0, high: 1.0 } } else { Range { low: 0.0, high: 0.0 } };
            random.tensor(*dtype, shape, range).map(Any::from)
        }
    };
    arguments.iter().map(&mut one).collect()
}

/// Whether two kernels left the same in an argument, up to rounding.
pub fn is_close(one: &Any, other: &Any) -> bool {
    let (Ok(one), Ok(other)) = (one.to::<Tensor>(), other.to::<Tensor>()) else { return true };
    let tolerance = match one.dtype() {
        dtype if !dtype.is_float() => 0.0,
        dtype if dtype.bits < 32 => 2e-2,
        dtype if dtype.bits == 32 => 1e-3,
        _ => 1e-9,
    };
    let (Ok(one), Ok(other)) = (numbers(&one), numbers(&other)) else { return false };
    let close =
        |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * (1.0 + a.abs()) || (a.is_nan() && b.is_nan()) || a == b;
    one.len() == other.len() && one.iter().zip(&other).all(close)
}
