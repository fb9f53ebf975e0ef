//! Arguments and results whose elements have gaps between them.
//!
//! Kernels want compact tensors. An argument that is none is copied, but for one that the function appends to and that has room for it
//! ([`room`]): that is what the function gave before. It gives such tensors only to who says that it takes them
//! ([`VirtualMachine::set_strided_results`]); others are given compact ones, for which all elements are copied at each call.

use std::sync::atomic::Ordering;

use relaxide_ffi::{Any, AnyView, Device, Error, Tensor};
use relaxide_runtime::device;
use relaxide_runtime::memory::room;

use super::{VirtualMachine, Vm};
use crate::builtins::APPEND_IN_PLACE;
use crate::bytecode::{Arg, Instruction};
use crate::executable::FuncKind;

impl VirtualMachine {
    /// Says whether results may have strides, so that a tensor that the program lengthens at each call, as a decoder does its caches, grows
    /// where it is. Results of one call then share memory with those of the next, which writes nothing where the former has elements.
    pub fn set_strided_results(&self, allowed: bool) {
        self.vm().strided_results.store(allowed, Ordering::Relaxed);
    }
}

/// Whether a value is a tensor with gaps between its elements.
pub(super) fn is_strided(value: &AnyView<'_>) -> bool {
    value.as_tensor().is_some_and(|tensor| !tensor.is_contiguous())
}

impl Vm {
    /// The arguments of a call of a function, compact where the function wants them so.
    #[cold]
    pub(super) fn compacted(&self, index: usize, args: &[AnyView<'_>]) -> Result<Vec<Any>, Error> {
        let compact = |(position, arg): (usize, &AnyView<'_>)| match arg.as_tensor().filter(|_| is_strided(arg)) {
            Some(tensor) if self.keeps_gaps(index, position, tensor) => Ok(arg.to_owned()),
            Some(tensor) => device::copy_tensor(tensor, tensor.device()).map(Any::from),
            None => Ok(arg.to_owned()),
        };
        args.iter().enumerate().map(compact).collect()
    }

    /// Whether an argument is passed on as it is: one that the function appends to, and one of a device, which nothing here can copy.
    fn keeps_gaps(&self, index: usize, position: usize, tensor: &Tensor) -> bool {
        if tensor.device().device_type != Device::CPU {
            return true;
        }
        let functions = self.executable.functions();
        let Some(appends) = functions.iter().position(|function| function.name == APPEND_IN_PLACE) else {
            return false;
        };
        let Some(function) = functions.get(index).filter(|_| room::may_grow(tensor)) else { return false };
        let appends_to = |instruction: &Instruction<'_>| match instruction {
            Instruction::Call { func, args, .. } if *func == appends as i64 => {
                let past = args.iter().nth(1);
                matches!(past, Some(Ok(Arg::Register(register))) if register.0 == position as i64)
            }
            _ => false,
        };
        // Of a native function nothing is known but that the program appends.
        function.kind == FuncKind::VmTir
            || self.executable.instructions_of(function).flatten().any(|(_, instruction)| appends_to(&instruction))
    }
}
