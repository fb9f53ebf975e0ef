//! TVMScript in and out, for Relax and TIR.
//!
//! TVMScript is Python's syntax with a meaning of its own: a class is a module, a decorated function is a Relax function or
//! a kernel, an annotated assignment is a typed binding. The text is parsed, never run.
//!
//! Two directions, one form: what [`print_module_with`] writes (with metadata), [`parse_module`] reads back to the same
//! module, and both agree with TVM 0.27. Problems in a text are [`Diagnostic`](relaxide_ir::Diagnostic)s with a code, a place and a hint.
//!
//! A text uses what `I`, `R` and `T` offer and what it binds itself. Where it stands in a Python program, a [`Host`] gives
//! it what that program knows ([`ParseOptions::host`]).

#![forbid(unsafe_code)]

/// Says in the text of a kernel that its buffers are accessed by one index each, whatever their dimensions: what the pass
/// `FlattenBuffer` makes.
const FLAT_INDICES: &str = "relaxide.flat_indices";

mod device_intrinsics;
mod intrinsics;
mod meta_json;
mod number;
mod parse;
mod print;
mod tensor;

pub use device_intrinsics::{DEVICE_INTRINSICS, DeviceIntrinsic};
pub use meta_json::{MetadataError, tensor_from_text, tensor_to_text};
pub use parse::{Host, HostError, Local, Macro, ParseOptions, ScopeIndex, parse_module, parse_module_with};
pub use print::{
    NoLetterLeft, PrintOptions, Spans, print_binding, print_block, print_expr, print_function, print_module,
    print_module_with, print_part, print_prim, print_prim_func, print_scalar, print_stmt, print_type, print_variable,
    print_with_lines, print_with_spans,
};
pub use tensor::literal_tensor;
