//! Running compiled models.

use std::path::Path;

use relaxide_ffi::{Any, AnyView, Array, Device, Error, Module, Tensor};
use relaxide_relay_vm::MachineOptions;
use relaxide_runtime::device;
use relaxide_runtime::memory::AllocatorKind;

/// A virtual machine on the first device of the kind that the program's kernels are for; the CPU where they are native code.
///
/// Tensors of the host are copied to the device where functions are called, and results from there.
pub struct VirtualMachine {
    vm: Vm,
    /// Where tensors are, if that is not the host.
    device: Option<Device>,
}

/// The machine of a program's kind.
pub enum Vm {
    /// Relax's.
    Relax(relaxide_vm::VirtualMachine),
    /// Relay's.
    Relay(relaxide_relay_vm::VirtualMachine),
}

impl VirtualMachine {
    /// A virtual machine for the program in a module, with pooled memory.
    pub fn of(module: &Module) -> Result<VirtualMachine, Error> {
        let device = device_of(module);
        let devices = device.into_iter().chain([Device::cpu(0)]).map(|device| (device, AllocatorKind::Pooled));
        let devices: Vec<_> = devices.collect();
        let vm = if relaxide_relay_vm::Executable::of_module(module).is_some() {
            let options = MachineOptions { devices, ..MachineOptions::default() };
            Vm::Relay(relaxide_relay_vm::VirtualMachine::of_module(module, options)?)
        } else {
            Vm::Relax(relaxide_vm::VirtualMachine::new(module, &devices)?)
        };
        Ok(VirtualMachine { vm, device })
    }

    fn call(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        match &self.vm {
            Vm::Relax(vm) => vm.invoke(name, args),
            Vm::Relay(vm) => vm.invoke(name, args),
        }
    }

    /// Calls a function.
    pub fn invoke(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let Some(there) = self.device else { return self.call(name, args) };
        let args = args.iter().map(|arg| moved(arg.to_owned(), there)).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        moved(self.call(name, &views)?, Device::cpu(0))
    }

    /// The virtual machine with all that it offers.
    pub fn inner(&self) -> &Vm {
        &self.vm
    }
}

/// The device that a program's kernels are for, by the modules below it.
fn device_of(module: &Module) -> Option<Device> {
    let kind = device_type(module.kind());
    kind.map(|kind| Device::new(kind, 0)).or_else(|| module.imports().iter().find_map(device_of))
}

/// The type of device that modules of a kind are for, where that is another than the processor.
#[cfg(feature = "compile")]
fn device_type(kind: &str) -> Option<i32> {
    use relaxide_ir::target::TargetKind;
    TargetKind::named(kind).filter(|kind| kind.is_gpu()).map(TargetKind::device_type)
}

/// The same without the compiler's table of targets: devices that the runtime has drivers of.
#[cfg(not(feature = "compile"))]
fn device_type(kind: &str) -> Option<i32> {
    [("opencl", Device::OPENCL), ("cuda", Device::CUDA)].iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind)
}

/// A value with its tensors on a device.
fn moved(value: Any, place: Device) -> Result<Any, Error> {
    if let Ok(tensor) = value.to::<Tensor>() {
        return device::to_device(&tensor, place).map(Any::from);
    }
    match value.to::<Array>() {
        Ok(list) => {
            let parts = list.iter().map(|part| moved(part.clone(), place)).collect::<Result<Vec<_>, _>>()?;
            Ok(Array::from_iter(parts).into())
        }
        Err(_) => Ok(value),
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
