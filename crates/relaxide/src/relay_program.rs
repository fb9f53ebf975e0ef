//! Programs in Relay, for the Relay VM.

use std::path::Path;

use relaxide_ir::IRModule;
use relaxide_relay::prelude::parse_with_prelude;
use relaxide_relay::text::Source;
use relaxide_relay::{DeviceConfig, Expr, Module, Type, VirtualDevice, VmOptions, infer, to_relax, vm_compile};
use relaxide_relay_vm::graph::{EntryType, GraphFactory, graph_of};
use relaxide_relay_vm::{MachineOptions, VirtualMachine};

use crate::compile::with_kernels;
use crate::{CompileOptions, Error, Executable};

/// The option of the context that says on what kind of device values are of which a program says nothing.
pub const FALLBACK_DEVICE: &str = "relay.fallback_device_type";

fn vm_options(options: &CompileOptions<'_>) -> VmOptions {
    let (target, disabled) = (options.target.clone(), options.disabled_passes.clone());
    let mut devices = DeviceConfig::default();
    if let Some(kind) = options.context.config.int(FALLBACK_DEVICE) {
        devices.default = VirtualDevice::new(kind, 0);
    }
    VmOptions { target, disabled, devices }
}

/// Compiles a program for the Relay VM. What comes out is exported and loaded as any other; [`relay_machine`] runs it.
pub fn compile_relay(module: &Module, options: &mut CompileOptions<'_>) -> Result<Executable, Error> {
    let relay = vm_options(options);
    let compiled = vm_compile(module, &relay)?;
    with_kernels(compiled.executable.into_module(), &compiled.kernels, options)
}

/// Compiles a program without control flow for the graph executor: its graph, weights and kernels are one library. What has
/// no form in a graph is refused.
pub fn compile_relay_graph(module: &Module, name: &str, options: &mut CompileOptions<'_>) -> Result<Executable, Error> {
    let relay = vm_options(options);
    let compiled = vm_compile(module, &relay)?;
    let types = infer(module).map_err(relaxide_relay::CompileError::Types)?;
    let main = module.functions.get("main").cloned().ok_or_else(|| refused("the module has no function `@main`"))?;
    let mut inputs = Vec::new();
    for param in &main.params {
        match types.of(&Expr::Var(param.clone())).or_else(|| types.of_var(param)) {
            Some(Type::Tensor(ty)) if ty.is_static() => {
                inputs.push(EntryType { shape: ty.shape.clone(), dtype: ty.dtype, storage: 0, device: None });
            }
            ty => {
                let ty = ty.map_or_else(|| "an unknown type".to_string(), |ty| format!("type {ty}"));
                return Err(refused(&format!(
                    "the parameter %{} is of {ty}; a graph takes tensors of known shapes",
                    param.name
                )));
            }
        }
    }
    let (graph, params) = graph_of(&compiled.executable, &inputs)?;
    let factory = GraphFactory { json: graph.to_json(), params, name: name.to_string() };
    with_kernels(factory.into_module(), &compiled.kernels, options)
}

fn refused(message: &str) -> Error {
    relaxide_ffi::Error::new(relaxide_ffi::ErrorKind::ValueError, message).into()
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
