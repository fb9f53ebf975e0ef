//! Questions about programs.
//!
//! What passes ask more than once, and what tools ask: which variables an expression binds, uses and leaves free
//! ([`vars`]), which functions call which and which of them recur ([`calls`]), what has effects ([`purity`]), who uses a
//! value ([`uses`]), whose memory is overwritten ([`overwrite`]), what can be computed before the inputs are known
//! ([`compile_time`]), and how much memory a program takes ([`memory`]).

pub mod aliases;
pub mod calls;
pub mod compile_time;
pub mod layout_transforms;
mod memory;
pub mod overwrite;
pub mod purity;
pub mod uses;
pub mod vars;

pub use calls::{CallGraph, call_graph, detect_recursion};
pub use compile_time::{computable_at_compile_time, num_inputs};
pub use layout_transforms::{BlockTransforms, LayoutMapError, suggest_layout_transforms};
pub use memory::{MemoryEstimate, estimate_memory_usage};
pub use overwrite::overwritten_vars;
pub use purity::{contains_impure_call, find_impure_call};
pub use uses::{UseDef, use_def};
pub use vars::{all_global_vars, all_vars, bound_vars, defined_symbols, free_symbols, free_vars};

pub use crate::transform::is_reshape as has_reshape_pattern;

#[cfg(test)]
mod tests;
