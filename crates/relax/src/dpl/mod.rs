//! The dataflow pattern language: shapes of computations, found and replaced.
//!
//! A [`Pattern`] describes an expression through the variables that hold its parts:
//!
//! ```text
//! let (x, w) = (wildcard(), wildcard());
//! let product = is_op("matmul").call([x.clone(), w.clone()]);
//! let pattern = is_op("nn.relu").call([product.clone()]);        # relax.nn.relu(relax.matmul(*, *))
//! ```
//!
//! [`matches`](matcher::match_expr) answers what each part of a pattern stands for, or that the expression is another one. A part that occurs
//! twice must stand for one value. [`rewrite_call`](rewrite::rewrite_call) replaces every match by what a closure makes of
//! it. A [`PatternContext`](graph::PatternContext) holds several patterns and who uses whom, which is matched on a whole
//! dataflow block; [`rewrite_bindings`](rewrite::rewrite_bindings) replaces what it finds. A
//! [`Rewriter`](crate::transform::Rewriter) is a set of rules, each of which may be two functions: what is matched, and what takes
//! its place.
//!
//! Patterns have a text form, which is what they print as and what the command line takes.

pub mod graph;
pub mod matcher;
pub mod pattern;
pub mod rewrite;
pub(crate) mod rule;
pub mod text;

pub use graph::{PatternContext, PatternSeq};
pub use matcher::{Matches, VarValues, match_expr, values_of};
pub use pattern::{
    Pattern, PatternKind, is_call_dps_packed, is_call_packed, is_call_tir, is_const, is_dataflow_var, is_expr,
    is_extern, is_function, is_global, is_op, is_shape, is_tuple, is_tuple_get_item, is_unordered_tuple, is_var,
    wildcard,
};
pub use rewrite::{rewrite_bindings, rewrite_call};
pub use text::parse_pattern;

#[cfg(test)]
mod tests;
