//! Running compiled models.

use std::path::Path;

use relaxide_ffi::{Any, AnyView, Device, Error, Module};
use relaxide_runtime::memory::AllocatorKind;

/// A virtual machine on the CPU.
pub struct VirtualMachine(relaxide_vm::VirtualMachine);

impl VirtualMachine {
    /// A virtual machine for the program in a module, with pooled memory.
    pub fn on_cpu(module: &Module) -> Result<VirtualMachine, Error> {
        let devices = [(Device::cpu(0), AllocatorKind::Pooled)];
        Ok(VirtualMachine(relaxide_vm::VirtualMachine::new(module, &devices)?))
    }

    /// Calls a function.
    pub fn invoke(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        self.0.invoke(name, args)
    }

    /// The virtual machine with all that it offers.
    pub fn inner(&self) -> &relaxide_vm::VirtualMachine {
        &self.0
    }
}

/// Loads a compiled model from a shared library, made by Relaxide or by TVM.
pub fn load_module(path: &Path) -> Result<Module, Error> {
    relaxide_relay_vm::register();
    relaxide_vm::load_module(path)
}

/// How many threads kernels use.
pub fn num_threads() -> usize {
    relaxide_runtime::num_threads()
}

/// Sets how many threads kernels use.
pub fn set_num_threads(count: usize) -> Result<(), Error> {
    if count == 0 {
        return Err(Error::new("ValueError", "0 threads can run nothing; give 1 or more"));
    }
    relaxide_runtime::set_num_threads(count);
    Ok(())
}
