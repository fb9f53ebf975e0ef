//! Constants on the devices that use them.
//!
//! An executable has each constant once, and the machine puts them on its first device. Where a program copies one to another device
//! (`vm.builtin.to_device` of a constant to a device that is known), the machine does so once, when it is made, and gives the call the
//! copy: the call finds the tensor in its place and returns it. So a weight crosses to its device once, and not at every call.

use relaxide_ffi::{Any, Device, Error, Tensor};
use relaxide_runtime::device;

use super::program::{Operand, constant_at, invalid, number};
use crate::builtins::TO_DEVICE;
use crate::verifier::VerifiedExecutable;

/// Which constants are needed on other devices than the first.
pub(super) struct Placed<'a> {
    executable: &'a VerifiedExecutable,
    copies: Vec<(u32, Device)>,
}

impl<'a> Placed<'a> {
    pub(super) fn new(executable: &'a VerifiedExecutable) -> Placed<'a> {
        Placed { executable, copies: Vec::new() }
    }

    /// Puts the copy in the place of the constant, where a call copies one.
    pub(super) fn note(&mut self, callee: i64, operands: &mut [Operand]) -> Result<(), Error> {
        let function = usize::try_from(callee).ok().and_then(|callee| self.executable.functions().get(callee));
        if function.is_none_or(|function| function.name != TO_DEVICE) {
            return Ok(());
        }
        let [Operand::Constant(index), kind, id, ..] = *operands else { return Ok(()) };
        let is_tensor = constant_at(self.executable.constants(), operands[0]).is_some_and(|c| c.as_tensor().is_some());
        let (true, Some(kind), Some(id)) = (is_tensor, self.int(kind), self.int(id)) else { return Ok(()) };
        let copy = (index, Device::new(kind, id));
        let at = self.copies.iter().position(|known| *known == copy).unwrap_or_else(|| {
            self.copies.push(copy);
            self.copies.len() - 1
        });
        operands[0] = Operand::Constant(number((self.executable.constants().len() + at) as i64)?);
        Ok(())
    }

    fn int(&self, operand: Operand) -> Option<i32> {
        let value = match operand {
            Operand::Immediate(value) => value,
            other => constant_at(self.executable.constants(), other)?.as_int()?,
        };
        i32::try_from(value).ok()
    }

    /// Makes the copies, in the order of their places behind the executable's own constants. A device that is not there is an error of
    /// the call that names it, which may never run: its copy is the constant as it is.
    pub(super) fn make(self) -> Result<Vec<Any>, Error> {
        let constants = self.executable.constants();
        let copy = |(index, target): (u32, Device)| {
            let constant = constants.get(index as usize).ok_or_else(|| invalid("a constant is not in the pool"))?;
            if !device::device_exists(target) {
                return Ok(constant.clone());
            }
            device::to_device(&constant.to::<Tensor>()?, target).map(Any::from)
        };
        self.copies.into_iter().map(copy).collect()
    }
}
