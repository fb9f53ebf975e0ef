//! The Relax virtual machine: bytecode, executable, verifier, interpreter and builtins.
//!
//! The compiler builds an [`Executable`] with an [`ExecBuilder`], or one is read from a file; [`verify`] makes it a
//! [`VerifiedExecutable`], the only thing that a [`VirtualMachine`] runs.
//!
//! ```
//! use relaxide_ffi::{AnyView, Device, Function, register_global};
//! use relaxide_runtime::memory::AllocatorKind;
//! use relaxide_vm::{Arg, ExecBuilder, Register, VirtualMachine};
//!
//! register_global("doc.double", Function::typed(|x: i64| Ok::<_, relaxide_ffi::Error>(x * 2)))?;
//! let mut builder = ExecBuilder::new();
//! builder.begin_function("main", &["x"])?;
//! builder.emit_call("doc.double", &[Arg::Register(Register(0))], Register(1))?;
//! builder.emit_ret(Register(1))?;
//! builder.end_function()?;
//! let module = builder.get()?.into_module();
//!
//! let vm = VirtualMachine::new(&module, &[(Device::cpu(0), AllocatorKind::Pooled)])?;
//! assert_eq!(vm.invoke("main", &[AnyView::from(21_i64)])?.as_int(), Some(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod builder;
mod builtins;
pub mod bytecode;
mod closure;
pub mod executable;
mod formalize;
mod host;
mod labels;
pub mod limits;
mod machine;
mod pulse;
mod reference;
mod register;
mod text_tensor;
pub mod verifier;

pub use builder::{BuildError, ExecBuilder};
#[cfg(target_family = "wasm")]
pub use builtins::enter_optional_builtins;
pub use builtins::is_optional as is_optional_builtin;
pub use builtins::{GUARD_NOTE, SHAPE_GUARD_ERROR};
pub use bytecode::{Arg, Register};
pub use closure::Closure;
pub use executable::module::{load_weights, take_weights};
pub use executable::{Executable, FuncInfo, FuncKind};
pub use labels::Label;
pub use limits::Limits;
pub use machine::{
    Argument, InstrumentReturn, MACHINE_KIND, NATIVE_PREFIX, ProfileReport, ProfileRow, ProfiledCall, Returns,
    VirtualMachine, is_builtin,
};
pub use pulse::Pulse;
pub use reference::RefValue;
pub use register::register;
pub use text_tensor::TextTensor;
pub use verifier::{VerifiedExecutable, VerifyError, verify};

use std::path::Path;

/// Whether there is what only front ends ask for; a deployed runtime, which none uses, is smaller without.
const FRONT_ENDS: bool = cfg!(feature = "front-ends");

use relaxide_ffi::{Error, Module};

/// Loads a compiled model from a shared library.
pub fn load_module(path: impl AsRef<Path>) -> Result<Module, Error> {
    register();
    relaxide_runtime::load_module(path)
}

/// The compiled model that is linked into this program with that prefix (see [`relaxide_runtime::system_library`]).
pub fn system_library(prefix: &str) -> Result<Module, Error> {
    register();
    relaxide_runtime::system_library(prefix)
}
