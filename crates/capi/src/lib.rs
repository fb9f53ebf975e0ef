//! `librelaxide_runtime`: all that a deployed model needs, for programs in C and C++.
//!
//! The library exports three sets of names. `relaxide_*` is the interface for programs: load a model, make tensors, call,
//! read results; `include/relaxide.h` declares and explains it, `include/relaxide.hpp` wraps it for C++. `TVMFFI*` is the
//! C ABI of tvm-ffi; `TVMBackend*` and `RelaxideParallelFor` are what compiled kernels call. Both come from the crates below
//! as they are.
//!
//! The functions here are thin. Each checks that no address that it follows is null, converts, calls what the other
//! crates offer in Rust, and writes the result; it returns 0, or -1 with the reason in the calling thread's
//! [last error](error). No panic leaves them. What the functions cannot check is the contract of any C interface: handles
//! come from this library and are not used after they were freed, arrays are as long as the caller says.
//!
//! Handles own what is behind them. A model is a virtual machine on the CPU with pooled memory; it may be used from several
//! threads at once.
#![deny(missing_docs)]
#![allow(clippy::missing_safety_doc, reason = "the contract is the same for all functions, and stated once above")]

mod border;
mod error;
#[cfg(not(target_family = "wasm"))]
mod function;
mod model;
#[cfg(feature = "rpc")]
mod serve;
mod signature;
mod tensor;
mod value;
#[cfg(target_family = "wasm")]
mod webassembly;

use std::ffi::{c_char, c_int};

pub use error::*;
#[cfg(not(target_family = "wasm"))]
pub use function::*;
pub use model::*;
#[cfg(feature = "rpc")]
pub use serve::*;
pub use tensor::*;
pub use value::*;
#[cfg(target_family = "wasm")]
pub use webassembly::*;

use border::guard;

/// Enters the global functions when the shared library is loaded, for those who come by the C ABI of tvm-ffi. The functions
/// of this interface do not need it: each enters what it uses.
#[used]
#[cfg_attr(any(target_os = "linux", target_os = "android"), unsafe(link_section = ".init_array"))]
static WHEN_LOADED: extern "C" fn() = {
    extern "C" fn register() {
        relaxide_vm::register();
    }
    register
};

/// The version of the library, as `major.minor.patch`.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Sets how many threads kernels use, the calling one among them.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_set_num_threads(count: c_int) -> c_int {
    guard(|| {
        let count = usize::try_from(count).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| border::invalid("the number of threads must be at least 1"))?;
        relaxide_runtime::set_num_threads(count);
        Ok(())
    })
}

/// Gives the memory to the system that is kept for later calls.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_release_cached_memory() {
    border::release(relaxide_runtime::memory::release_cached);
}
