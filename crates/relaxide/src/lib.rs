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
mod compiler;
mod machine;

pub use relaxide_ffi as ffi;
pub use relaxide_relay_vm as relay_vm;
#[cfg(feature = "rpc")]
pub use relaxide_rpc as rpc;
pub use relaxide_runtime as runtime;
pub use relaxide_vm as vm;

#[cfg(feature = "compile")]
pub use compiler::*;
pub use machine::{VirtualMachine, Vm, load_module, num_threads, set_num_threads};
pub use relaxide_runtime::weights::read_tensors;
pub use relaxide_vm::load_weights;
