//! Programs in Relay: from files, for the Relay VM, and by way of Relax.

use std::path::Path;

use relaxide_ir::IRModule;
use relaxide_relay::prelude::{parse_with_prelude, without_unused};
use relaxide_relay::text::Source;
use relaxide_relay::{
    DeviceConfig, Expr, Module, Type, VirtualDevice, VmOptions, infer, json, to_relax, transform, vm_compile,
};
use relaxide_relay_vm::graph::{EntryType, GraphFactory, graph_of};
use relaxide_relay_vm::{MachineOptions, VirtualMachine};
use relaxide_tir::PrimFunc;

use crate::compiler::compile::with_kernels;
use crate::compiler::cost::KernelCost;
use crate::compiler::front::Params;
use crate::compiler::processors::Processors;
use crate::compiler::relay_signature::relay_executable_signature;
use crate::{CompileOptions, Error, Executable};

/// The option of the context that says on what kind of device values are of which a program says nothing.
pub const FALLBACK_DEVICE: &str = "relay.fallback_device_type";

fn vm_options(options: &CompileOptions<'_>) -> VmOptions {
    let (target, disabled) = (options.target.clone(), options.disabled_passes.clone());
    let mut devices = DeviceConfig::default();
    if let Some(kind) = options.context.config.int(FALLBACK_DEVICE) {
        devices.default = VirtualDevice::new(kind, 0);
    }
    VmOptions {
        target,
        also: options.also.clone(),
        disabled,
        devices,
        runner: Some(crate::compiler::run_kernel::runner()),
    }
}

/// Compiles a program for the Relay VM. What comes out is exported and loaded as any other; [`relay_machine`] runs it.
pub fn compile_relay(module: &Module, options: &mut CompileOptions<'_>) -> Result<Executable, Error> {
    let module = &bind_relay_params(module, &options.params)?;
    let relay = vm_options(options);
    options.tell("passes", 0, 1);
    let mut compiled = vm_compile(module, &relay)?;
    let mut signature = relay_executable_signature(module, &compiled.executable, &options.target)?;
    let kernels = compiled.kernels.functions_of::<PrimFunc>();
    signature.kernels = kernels.map(|(name, kernel)| KernelCost::of(name, &kernel)).collect();
    Processors::of(options)?.enter(options, &mut signature)?;
    compiled.executable.trailer = signature.to_trailer();
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
    relay_to_relax(&parse_relay(text, name)?, |file| (file == name).then(|| text.to_string()))
}

/// Parses a program in Relay's text, which may use the prelude, of which the module has what it uses; `name` names it in errors.
pub fn parse_relay(text: &str, name: &str) -> Result<Module, Error> {
    let module = parse_with_prelude(&Source::new(name, text)).map_err(|d| Error::Script(Box::new(d)))?;
    Ok(without_unused(&module)?)
}

/// A program in Relay as one of Relax. `source` gives its text by the name that it was parsed under, for the line of an error.
pub fn relay_to_relax(module: &Module, source: impl FnOnce(&str) -> Option<String>) -> Result<IRModule, Error> {
    to_relax(module).map_err(|error| Error::Script(Box::new(error.diagnostic(source))))
}

/// Reads a program in Relay from a file: text, or the JSON graph that TVM 0.6 to 0.16 saved.
pub fn read_relay(path: &Path) -> Result<Module, Error> {
    let failed = |source| Error::Io { context: path.display().to_string(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    if path.extension().is_none_or(|ending| ending != "json") {
        return parse_relay(&text, &path.display().to_string());
    }
    let of_executor = |graph: &serde_json::Value| graph.get("arg_nodes").is_some() && graph.get("heads").is_some();
    json::load(&text).map_err(|error| match serde_json::from_str(&text) {
        Ok(graph) if of_executor(&graph) => refused(&format!(
            "{} is a graph of the graph executor, which names kernels and holds no operators: it runs with the library that it \
             was saved with, by `relaxide.contrib.graph_executor.create(json, lib, dev)` in Python",
            path.display()
        )),
        _ => refused(&format!("{}: {error}", path.display())),
    })
}

/// Reads tensors by name, as `save_param_dict` wrote them.
pub fn read_relay_params(path: &Path) -> Result<Params, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::Io { context: path.display().to_string(), source })?;
    Ok(relaxide_relay_vm::params::load_params(&bytes).map_err(|error| error.context(path.display().to_string()))?)
}

/// A program whose `main` has constants in the place of parameters, by name.
pub fn bind_relay_params(module: &Module, params: &Params) -> Result<Module, Error> {
    if params.is_empty() {
        return Ok(module.clone());
    }
    let main = module.functions.get("main").ok_or_else(|| refused("the module has no function `@main`"))?;
    let bound = transform::bind_params(main, params).map_err(|why| refused(&why.to_string()))?;
    let mut module = module.clone();
    module.functions.insert("main".into(), bound);
    Ok(module)
}
