//! The pool of constants: equal small ones are one.

use relaxide_ffi::{Error, Tensor};
use relaxide_relay_vm::{Constant, Executable};

/// Constants larger than this are not compared with each other.
const SMALL: usize = 1 << 10;

/// The place of a constant in the pool, for use on a device.
pub(super) fn index_of(executable: &mut Executable, tensor: &Tensor, device: usize) -> i64 {
    let equal = |other: &Tensor| {
        other.shape() == tensor.shape()
            && other.dtype() == tensor.dtype()
            && (other.data_ptr() == tensor.data_ptr()
                || (tensor.byte_size() <= SMALL && other.to_bytes().ok() == tensor.to_bytes().ok()))
    };
    let device = device as i64;
    let mut known = executable.constants.iter().zip(&executable.constant_devices);
    let found = known.position(|(c, at)| *at == device && matches!(c, Constant::Immediate(other) if equal(other)));
    let index = found.unwrap_or_else(|| {
        executable.constants.push(Constant::Immediate(tensor.clone()));
        executable.constant_devices.push(device);
        executable.constants.len() - 1
    });
    index as i64
}

/// A 64-bit integer without dimensions.
pub(super) fn scalar(value: i64) -> Result<Tensor, Error> {
    Tensor::from_slice(&[value], &[])
}

/// 64-bit integers.
pub(super) fn vector(values: &[i64]) -> Result<Tensor, Error> {
    Tensor::from_slice(values, &[values.len() as i64])
}
