//! Relaxide: a tensor compiler and virtual machine. The public face of the workspace.
//!
//! ```no_run
//! use relaxide::{CompileOptions, VirtualMachine};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let module = relaxide::from_onnx_file("model.onnx".as_ref(), &[])?;
//! relaxide::compile(&module, &mut CompileOptions::default())?.export_library("model.so".as_ref())?;
//!
//! let machine = VirtualMachine::of(&relaxide::load_module("model.so".as_ref())?)?;
//! let image = relaxide::ffi::Tensor::from_slice(&[0f32; 3 * 32 * 320], &[1, 3, 32, 320])?;
//! let result = machine.invoke("main", &[(&image).into()])?;
//! # Ok(())
//! # }
//! ```
//!
//! What stands behind each step lives in a crate of its own, re-exported here under its short name. Programs that only run models leave the
//! feature `compile` out (`default-features = false`), and with it LLVM and everything that is not needed to load and call them.

#![forbid(unsafe_code)]

#[cfg(feature = "compile")]
mod compile;
#[cfg(feature = "compile")]
mod cost;
#[cfg(feature = "compile")]
mod dims;
#[cfg(feature = "compile")]
mod error;
#[cfg(feature = "compile")]
mod export;
#[cfg(feature = "compile")]
mod formula;
#[cfg(feature = "compile")]
mod front;
#[cfg(feature = "compile")]
mod graph;
#[cfg(feature = "compile")]
mod header;
#[cfg(feature = "compile")]
mod inputs;
#[cfg(feature = "compile")]
mod kernels;
#[cfg(feature = "compile")]
mod library_file;
#[cfg(feature = "compile")]
mod limits;
mod machine;
#[cfg(feature = "compile")]
mod profile;
#[cfg(feature = "compile")]
mod relay_program;
#[cfg(feature = "compile")]
mod relay_signature;
#[cfg(feature = "compile")]
mod run_kernel;
#[cfg(feature = "compile")]
mod signature;
#[cfg(feature = "compile")]
mod stats;
#[cfg(feature = "compile")]
mod webassembly;

#[cfg(feature = "compile")]
pub use relaxide_codegen as codegen;
pub use relaxide_ffi as ffi;
#[cfg(feature = "compile")]
pub use relaxide_frontend as frontend;
#[cfg(feature = "compile")]
pub use relaxide_ir as ir;
#[cfg(feature = "compile")]
pub use relaxide_onnx as onnx;
#[cfg(feature = "compile")]
pub use relaxide_relax as relax;
#[cfg(feature = "compile")]
pub use relaxide_relay as relay;
pub use relaxide_relay_vm as relay_vm;
#[cfg(feature = "rpc")]
pub use relaxide_rpc as rpc;
pub use relaxide_runtime as runtime;
#[cfg(feature = "compile")]
pub use relaxide_script as script;
#[cfg(feature = "compile")]
pub use relaxide_tir as tir;
#[cfg(feature = "compile")]
pub use relaxide_torch as torch;
pub use relaxide_vm as vm;

#[cfg(feature = "compile")]
pub use compile::{
    CompileOptions, ExecMode, Executable, Pipeline, Progress, backend_profile, compile, debug_text_path,
    default_ending, executable_module, export_bytecode, run_passes,
};
#[cfg(feature = "compile")]
pub use cost::{CallCost, KernelCost};
#[cfg(feature = "compile")]
pub use dims::{DimRange, DimSpec, bound_dims, known_name};
#[cfg(feature = "compile")]
pub use error::Error;
#[cfg(feature = "compile")]
pub use export::{ExportOptions, WeightsIn, check_output, has_header, header_path, weights_path};
#[cfg(feature = "compile")]
pub use front::{
    OnnxOptions, Params, bind_params, from_onnx_file, import_onnx_bytes, import_onnx_file, import_onnx_model,
    import_torch_file, import_torch_program, open_onnx, parse_script, to_script,
};
#[cfg(feature = "compile")]
pub use graph::{Graph, Node, NodeKind};
#[cfg(feature = "compile")]
pub use inputs::{check_inputs, dims_of};
#[cfg(feature = "compile")]
pub use library_file::program_in_file;
pub use machine::{VirtualMachine, Vm, load_module, num_threads, set_num_threads};
#[cfg(feature = "compile")]
pub use profile::{Profile, ProfileLine, Roof};
#[cfg(feature = "compile")]
pub use relaxide_ir::{IRModule, Target};
#[cfg(feature = "compile")]
pub use relaxide_tir::schedule::KernelNote;
pub use relaxide_vm::load_weights;
#[cfg(feature = "compile")]
pub use relay_program::{
    FALLBACK_DEVICE, bind_relay_params, compile_relay, compile_relay_graph, from_relay_text, parse_relay, read_relay,
    read_relay_params, relay_machine, relay_to_relax,
};
#[cfg(feature = "compile")]
pub use relay_signature::relay_signature;
#[cfg(feature = "compile")]
pub use signature::{
    FunctionSignature, ParamSignature, Signature, function_signature, processor_json, signature, signature_of_file,
};
#[cfg(feature = "compile")]
pub use stats::ProgramStats;
