//! Everything that makes and describes programs: front ends, compilation, files that are written, what is told about them.
//!
//! It needs the feature `compile`; loading and calling finished files does not.

mod compile;
mod cost;
mod dims;
mod error;
mod export;
mod formula;
mod front;
mod graph;
mod header;
mod inputs;
mod kernels;
mod library_file;
mod limits;
mod processors;
mod profile;
mod relay_program;
mod relay_signature;
mod run_kernel;
mod signature;
mod stats;
mod tune;
mod webassembly;

pub use relaxide_codegen as codegen;
pub use relaxide_frontend as frontend;
pub use relaxide_ir as ir;
pub use relaxide_onnx as onnx;
pub use relaxide_relax as relax;
pub use relaxide_relay as relay;
pub use relaxide_script as script;
pub use relaxide_tir as tir;
pub use relaxide_torch as torch;

pub use compile::{
    CompileOptions, ExecMode, Executable, Pipeline, Progress, backend_profile, compile, debug_text_path,
    default_ending, executable_module, export_bytecode, run_passes,
};
pub use cost::{CallCost, KernelCost};
pub use dims::{DimError, DimRange, DimSpec, bound_dims, known_name};
pub use error::Error;
pub use export::{ExportOptions, WeightsIn, check_output, has_header, header_path, weights_path};
pub use front::{
    OnnxOptions, Params, bind_params, from_onnx_file, import_onnx_bytes, import_onnx_file, import_onnx_model,
    import_torch_file, import_torch_program, open_onnx, parse_script, to_script,
};
pub use graph::{Graph, Node, NodeKind};
pub use inputs::{check_inputs, dims_of};
pub use library_file::program_in_file;
pub use profile::{Profile, ProfileLine, Roof};
pub use relaxide_ir::{IRModule, Target};
pub use relaxide_tir::schedule::KernelNote;
pub use relay_program::{
    FALLBACK_DEVICE, bind_relay_params, compile_relay, compile_relay_graph, from_relay_text, parse_relay, read_relay,
    read_relay_params, relay_machine, relay_to_relax,
};
pub use relay_signature::relay_signature;
pub use signature::{
    FunctionSignature, ParamSignature, Signature, function_signature, processor_json, signature, signature_of_file,
    variant_json,
};
pub use stats::ProgramStats;
pub use tune::{Comparison, Database, KernelArg, Measure, MeasureError, Pair, Trial, TuneOptions, Tuned, Tuner};
