//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

use std::path::PathBuf;

use relaxide_ffi::{AnyView, Device, Error, Function, Module, replace_global};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_vm::VirtualMachine;

/// A file among the artifacts.
pub fn artifact(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/artifacts").join(file)
}

/// A machine on the CPU.
pub fn machine(module: &Module) -> VirtualMachine {
    try_machine(module).unwrap()
}

/// A machine on the CPU, or why not.
pub fn try_machine(module: &Module) -> Result<VirtualMachine, Error> {
    VirtualMachine::new(module, &[(Device::cpu(0), AllocatorKind::Pooled)])
}

/// Registers a function of integers under a name that only one test uses.
pub fn register(name: &str, body: impl Fn(&[i64]) -> i64 + Send + Sync + 'static) {
    replace_global(
        name,
        Function::new(move |args: &[AnyView<'_>]| {
            let ints = args.iter().map(|arg| arg.to::<i64>()).collect::<Result<Vec<_>, _>>()?;
            Ok(body(&ints).into())
        }),
    );
}
