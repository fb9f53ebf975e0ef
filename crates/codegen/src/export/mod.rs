//! Writes a shared library without a compiler or a linker; and, for programs that link a model in, an object
//! ([`RelocatableObject`]) or a static archive ([`write_archive`]).
//!
//! A deployed model is one file that needs no tools, neither where it runs nor where it is built. LLVM turns kernels into
//! relocatable objects in memory; this module does what `ld -shared` would do with them, for the small subset of linking
//! that such objects need, and puts the module tree (weights, bytecode) behind them.
//!
//! # Model
//!
//! ```text
//! objects ──parse──▶ sections, symbols ──resolve──▶ definitions and imports
//!                         │                               │
//!                         └───── plan: GOT, PLT, dynamic relocations needed
//!                                              │
//!                                   layout: file offsets and addresses
//!                                              │
//!                              relocate copies of code and data, stream out
//! ```
//!
//! The file has up to five loaded segments: read-only data and dynamic tables, code, data that is read-only once
//! relocated (RELRO), writable data, and last the *appended sections*: the module tree and whatever rides behind it. These
//! are not copied in memory but streamed from the caller's slices, and nothing refers to them by a 32-bit displacement, so
//! they may be larger than 2 GiB.
//!
//! # Invariants
//!
//! - Every reference to a symbol that the library defines is bound inside the library; exported names serve `dlsym` only.
//! - Imports are bound when the library is loaded (`BIND_NOW`), so that a missing function shows then and not in the
//!   middle of a run, and the GOT can become read-only.
//! - An import must be offered by libc, libm, the runtime, or be allowed by name; otherwise writing fails.
//! - No text relocation, no executable stack, no segment both writable and executable.
//!
//! # Left out
//!
//! Thread-local storage, common symbols, symbol versions, section garbage collection, range-extension thunks
//! (AArch64 code beyond 128 MiB is refused). Sources: the System V ABI (generic, x86-64, AArch64 supplements).

mod archive;
mod dynamic;
mod emit;
mod error;
mod file;
mod input;
mod layout;
mod library;
mod link;
mod read;
mod reloc;
mod relocatable;
mod resolve;
mod webassembly;

pub(crate) use archive::global_definitions;
pub use archive::write_archive;
pub use error::ExportError;
pub use file::write_file;
pub use library::{ExtraSection, LIBRARY_BIN_SYMBOL, Machine, SharedLibrary};
pub use read::module_tree;
pub use relocatable::RelocatableObject;
pub use webassembly::WebAssemblyModule;
