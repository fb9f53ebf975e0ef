//! Programs in Relay, for the Relay VM.

use std::path::Path;

use relaxide_ir::IRModule;
use relaxide_relay::prelude::parse_with_prelude;
use relaxide_relay::text::Source;
use relaxide_relay::{Module, VmOptions, to_relax, vm_compile};
use relaxide_relay_vm::{MachineOptions, VirtualMachine};

use crate::compile::with_kernels;
use crate::{CompileOptions, Error, Executable};

/// Compiles a program for the Relay VM. What comes out is exported and loaded as any other; [`relay_machine`] runs it.
pub fn compile_relay(module: &Module, options: &mut CompileOptions<'_>) -> Result<Executable, Error> {
    let relay = VmOptions { target: options.target.clone(), disabled: options.disabled_passes.clone() };
    let compiled = vm_compile(module, &relay)?;
    with_kernels(compiled.executable.into_module(), &compiled.kernels, options)
}

/// A machine on the CPU for a file that [`compile_relay`] and an export wrote.
pub fn relay_machine(path: &Path) -> Result<VirtualMachine, Error> {
    let module = crate::load_module(path)?;
    Ok(VirtualMachine::of_module(&module, MachineOptions::default())?)
}

/// A program in Relay's text, which may use the prelude, as one of Relax.
pub fn from_relay_text(text: &str, name: &str) -> Result<IRModule, Error> {
    let source = Source::new(name, text);
    let module = parse_with_prelude(&source).map_err(|d| Error::Script(Box::new(d)))?;
    let located = |error: relaxide_relay::CompileError| {
        Error::Script(Box::new(error.diagnostic(|file| (file == name).then(|| text.to_string()))))
    };
    to_relax(&module).map_err(located)
}
