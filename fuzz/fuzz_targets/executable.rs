//! Bytes as an executable: reading, listing, verifying and writing them back must end, without a panic. What is verified
//! runs, within limits: it ends in a result or an error.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::{Any, AnyView, Bytes, Device, Module, Tensor, get_global};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_vm::{Executable, FuncKind, Limits, VirtualMachine, verify};

fuzz_target!(|data: &[u8]| {
    let Ok(executable) = Executable::from_bytes(data) else { return };
    let _ = executable.as_text();
    let _ = executable.as_python();
    let _ = executable.stats();
    if let Ok(bytes) = executable.to_bytes() {
        assert!(Executable::from_bytes(&bytes).is_ok(), "what was written is readable");
    }
    let functions: Vec<(String, usize)> = executable
        .functions()
        .iter()
        .filter(|function| function.kind == FuncKind::Vm)
        .map(|function| (function.name.clone(), usize::try_from(function.num_args).unwrap_or(0).min(8)))
        .collect();
    if verify(Arc::new(executable)).is_ok() {
        run(data, &functions);
    }
});

/// Calls the functions with tensors, of which most want some.
fn run(data: &[u8], functions: &[(String, usize)]) {
    relaxide_vm::register();
    let Some(load) = get_global("ffi.Module.load_from_bytes.relax.VMExecutable") else { return };
    let bytes = Any::from(Bytes::new(data));
    let Ok(module) = load.call(&[AnyView::from(&bytes)]).and_then(|module| module.to::<Module>()) else { return };
    let Ok(machine) = VirtualMachine::new(&module, &[(Device::cpu(0), AllocatorKind::Pooled)]) else { return };
    machine.set_limits(Limits {
        instructions: Some(10_000),
        memory: Some(16 << 20),
        time: Some(Duration::from_secs(1)),
        depth: Some(1000),
    });
    let tensor = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[4]).expect("four elements");
    let argument = Any::from(tensor);
    for (name, count) in functions {
        let arguments: Vec<AnyView<'_>> = (0..*count).map(|_| AnyView::from(&argument)).collect();
        let _ = machine.invoke(name, &arguments);
    }
}
