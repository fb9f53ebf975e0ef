//! Links kernels into one WebAssembly module with the runtime, and the module tree with them: what `wasm-ld` would do, for the
//! objects that LLVM makes of kernels.
//!
//! # Model
//!
//! ```text
//! runtime.wasm   types  functions  table  memory │ globals  code  data
//! kernels.o      types  functions    +      +    │          code  data    relocated behind what the runtime has
//! registration.o types  functions    +           │          code  data
//! the tree                                  +    │                data
//! start                    +                     │          code          enters kernels and tree, then the module is ready
//! ```
//!
//! The runtime is a finished module, so that its indices and addresses stay. What objects bring comes behind them: functions
//! and types get the next indices, functions whose address is taken the next places of the table, data the pages behind the
//! runtime's first ones. Its allocator knows only those first pages and what it asks for later, so nobody else uses ours.
//!
//! # Invariants
//!
//! - Every symbol is defined by an object, exported by the runtime, or weak; otherwise linking fails.
//! - A function is declared and defined with the same type, which is what a call is checked by when it runs.
//! - What nothing in the module calls any more becomes a trap: the runtime exports more to kernels than a program needs.
//!
//! # Left out
//!
//! Thread-local storage, exceptions, 64-bit memories, shared objects, COMDAT groups, debug sections (which are dropped). Source:
//! the tool conventions of WebAssembly, "Linking" and "Static relocations".

mod bytes;
mod link;
mod object;
mod reachability;
mod runtime;
mod symbols;

pub use link::WebAssemblyModule;

use super::ExportError;

/// An input that cannot be read.
fn unreadable(name: &str, reason: impl Into<String>) -> ExportError {
    ExportError::BadObject { object: name.to_string(), reason: reason.into() }
}

/// What the parser says of an input.
fn malformed(name: &str) -> impl Fn(wasmparser::Error) -> ExportError {
    let name = name.to_string();
    move |error| unreadable(&name, error.to_string())
}
