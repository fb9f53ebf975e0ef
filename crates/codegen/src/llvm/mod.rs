//! From lowered TIR to LLVM's text form, and from there to objects.
//!
//! Kernels are written as text, LLVM's own assembly language, and LLVM reads them back. Text can say everything (flags,
//! attributes, alias scopes, loop hints), where the C interface cannot; it is the same for several versions of LLVM; it is
//! what one wants to read when something is wrong; and no part of it needs `unsafe`. Reading it takes LLVM a few per cent
//! of the time that optimising it takes.
//!
//! ```text
//! PrimFunc ── entry ──▶ define i32 @__tvm_ffi_add(...)     argument checks, with TVM's texts
//!          └─ body  ──▶ define internal i32 @add.body(...)  loops and vectors
//!                       define internal i32 @add.parallel0  one per parallel loop
//! ```

mod address;
mod allocation;
mod backend;
mod bounds;
mod convert;
mod debug;
mod device;
mod digits;
mod dot_bytes;
mod entry;
mod expr;
mod function;
mod intrinsics;
mod kernel;
mod lanes;
mod masked_load;
mod masked_store;
mod math;
mod memory;
mod module;
mod neighbours;
mod ops;
mod outline;
mod packed;
mod parallel;
mod raise;
mod region;
mod registration;
mod shared_bytes;
mod small_float;
mod stmt;
mod strided_load;
mod tensor_check;
mod value;
mod warp;
mod whole;

pub(crate) use backend::Llvm;
pub use debug::DebugInfo;
pub(crate) use device::write_device_function;
pub(crate) use entry::write_kernel;
pub(crate) use function::NOTE;
pub(crate) use module::{Helpers, ModuleText, global_name};
pub(crate) use registration::{ProcessorTables, REGISTER, registration};
pub(crate) use stmt::Written;

/// Writes the functions that check arguments and raise errors, for modules that have them elsewhere.
pub(crate) fn write_helpers(module: &mut ModuleText) {
    raise::define(module);
    tensor_check::define(module);
}
