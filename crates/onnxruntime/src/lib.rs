//! `libonnxruntime`: the C API of ONNX Runtime, on Relaxide.
//!
//! Programs and bindings that load ONNX Runtime's library load this one in its place. They ask [`OrtGetApiBase`] for a
//! [table of functions](table), and everything else goes through it: a session is made of a model, which is compiled, and values go in
//! and come out. What inference needs is here; every other function answers with a status that names it and says what to do instead.
//!
//! The functions are thin. Each checks what it is given (null, [handles of another kind](handle), names, types, lengths), does its
//! work in Rust without `unsafe`, and writes the result. Neither errors nor panics leave it but as a [status]. What they cannot check is
//! the contract of any C interface: addresses lead to as much memory as the caller says, and nobody frees it meanwhile.
//!
//! | file | what of the interface |
//! | --- | --- |
//! | `table`, `compile_api` | the order of the functions, and what those answer that are not here |
//! | `env`, `options`, `run_options`, `weights` | what is said before |
//! | `session`, `run`, `binding` | what runs |
//! | `model`, `cache` | from a model to a program |
//! | `content`, `value`, `element`, `type_info` | values and their types |
//! | `memory`, `metadata`, `machine`, `device`, `pairs`, `profile` | the rest |
#![deny(missing_docs)]
#![allow(clippy::missing_safety_doc, reason = "the contract is the same for all functions, and stated once above")]

mod binding;
mod border;
mod cache;
mod compile_api;
mod content;
mod device;
mod element;
mod env;
mod handle;
mod machine;
mod memory;
mod metadata;
mod model;
mod options;
mod pairs;
mod profile;
mod run;
mod run_options;
mod session;
mod status;
mod table;
mod type_info;
mod value;
mod weights;

use std::ffi::{c_char, c_int};
use std::io::Write;

use options::OrtSessionOptions;
use status::OrtStatus;
use table::OrtApi;

/// What the library gives first.
#[repr(C)]
pub struct OrtApiBase {
    get_api: extern "C" fn(u32) -> *const OrtApi,
    get_version_string: extern "C" fn() -> *const c_char,
}

static BASE: OrtApiBase = OrtApiBase { get_api, get_version_string };

/// The functions of a version; none of one that is newer than the table, which a message on the standard error says.
extern "C" fn get_api(version: u32) -> *const OrtApi {
    if (1..=table::VERSION).contains(&version) {
        return &raw const table::API;
    }
    let (last, own) = (table::VERSION, env!("CARGO_PKG_VERSION"));
    // Where there is no standard error, null says enough.
    let _ = writeln!(
        std::io::stderr(),
        "The requested API version [{version}] is not available, only API versions [1, {last}] are supported by Relaxide {own}: \
         use a binding that asks for one of those."
    );
    std::ptr::null()
}

extern "C" fn get_version_string() -> *const c_char {
    machine::VERSION.as_ptr()
}

/// The way in.
#[unsafe(no_mangle)]
pub extern "C" fn OrtGetApiBase() -> *const OrtApiBase {
    &raw const BASE
}

/// Asks for the processor, where sessions run anyway; the one provider that ONNX Runtime exports a function for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OrtSessionOptionsAppendExecutionProvider_CPU(
    options: *mut OrtSessionOptions,
    use_arena: c_int,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { options::accept(options, use_arena) }
}
