//! From lowered TIR to C: one file that any C11 compiler takes, for machines that LLVM has no code for.
//!
//! The kernels are the same as for [native code](crate::compile), and so is what they do, down to the texts of errors: the packed
//! calling convention with its checks, integers that wrap around, memory from the runtime's workspace, parallel loops on its
//! threads. What differs: vectors are loops over lanes, which the C compiler makes vectors of again, and mathematical functions
//! are those of the C library. Whether a product and a sum become one operation is the compiler's choice (`-ffp-contract`), except
//! in kernels that forbid it.
//!
//! ```text
//! PrimFunc ── entry ──▶ int __tvm_ffi_add(void *self, const rx_value *args, int32_t count, rx_value *result)
//!          └─ body  ──▶ static int add_body(const float *restrict A, float *restrict B, int64_t n)
//!                       static int add_task(…)     one per parallel loop
//! ```
//!
//! A file includes only headers of the language and declares whatever else it needs. The text is for people to read: names stay
//! as they were where C allows it, and indices are written with plain operators. [`runtime`] says how a file reaches the
//! runtime, and how it does without.

mod backend;
mod body;
mod call;
mod code;
mod entry;
mod expr;
mod file;
mod floats;
mod integers;
mod math;
mod memory;
mod names;
mod operator;
mod packed;
mod parallel;
mod pointers;
mod runtime;
mod shared;
mod small_floats;
mod source;
mod stmt;
mod tensor_check;
mod types;

pub(crate) use backend::C;
pub(crate) use body::{Body, FAULTS, Kernel, Known};
pub(crate) use code::{Code, comment};
use file::check_target;
pub use file::{CSource, compile_to_c};
pub(crate) use floats::separate_rounding;
pub(crate) use names::identifier;
pub(crate) use source::Source;
pub(crate) use types::{declare, value_type};
