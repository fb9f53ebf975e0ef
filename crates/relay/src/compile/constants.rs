//! The pool of constants: equal ones are one.
//!
//! A recurrent network uses a weight in every step, and each use has it transposed for itself: as one constant it stays in the
//! caches. What looks alike at a few places is compared as a whole.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use relaxide_ffi::{Error, Tensor};
use relaxide_relay_vm::{Constant, Executable};

/// How many bytes of a constant are looked at before it is compared.
const LOOKED_AT: usize = 1 << 10;

/// Where constants are in an executable, by what they look like.
#[derive(Default)]
pub(super) struct Pool(HashMap<u64, Vec<usize>>);

/// An executable with its constants.
pub(super) struct Constants<'e> {
    pub executable: &'e mut Executable,
    pub pool: &'e mut Pool,
}

impl Constants<'_> {
    /// The place of a constant, for use on a device.
    pub fn index_of(&mut self, tensor: &Tensor, device: usize) -> i64 {
        let (device, executable) = (device as i64, &mut *self.executable);
        let alike = self.pool.0.entry(look(tensor, device)).or_default();
        let found = alike.iter().copied().find(|place| {
            executable.constant_devices[*place] == device
                && matches!(&executable.constants[*place], Constant::Immediate(other) if equal(tensor, other))
        });
        let index = found.unwrap_or_else(|| {
            executable.constants.push(Constant::Immediate(tensor.clone()));
            executable.constant_devices.push(device);
            alike.push(executable.constants.len() - 1);
            executable.constants.len() - 1
        });
        index as i64
    }
}

fn equal(a: &Tensor, b: &Tensor) -> bool {
    let alike = a.shape() == b.shape() && a.dtype() == b.dtype();
    alike && (a.data_ptr() == b.data_ptr() || matches!((a.as_bytes(), b.as_bytes()), (Ok(a), Ok(b)) if a == b))
}

/// A number that is the same for equal constants.
fn look(tensor: &Tensor, device: i64) -> u64 {
    let mut hash = DefaultHasher::new();
    (tensor.shape(), tensor.dtype().to_string(), device).hash(&mut hash);
    if let Ok(bytes) = tensor.as_bytes() {
        let step = bytes.len() / LOOKED_AT + 1;
        bytes.iter().step_by(step).for_each(|byte| byte.hash(&mut hash));
    }
    hash.finish()
}

/// A 64-bit integer without dimensions.
pub(super) fn scalar(value: i64) -> Result<Tensor, Error> {
    Tensor::from_slice(&[value], &[])
}

/// 64-bit integers.
pub(super) fn vector(values: &[i64]) -> Result<Tensor, Error> {
    Tensor::from_slice(values, &[values.len() as i64])
}
