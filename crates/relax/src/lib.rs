//! The graph-level IR: expressions, operators, transforms and VM code generation.
//!
//! A Relax [`Function`] computes on tensors, shapes, tuples, closures and scalars, in A-normal form: every intermediate value
//! is bound to a variable, in blocks, and a block without side effects or control flow is a *dataflow block*, which passes
//! may reorder and fuse.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod binding_rewrite;
pub mod blocks;
mod build_error;
pub mod builder;
pub mod compute;
pub mod constant;
pub mod derived;
pub mod display;
pub mod dpl;
pub mod expr;
pub mod functor;
pub mod nesting;
pub mod op;
pub mod rewrite;
pub mod shape;
pub mod symbols;
pub mod transform;
pub mod vm_codegen;
pub mod wellformed;

pub use builder::{BlockBuilder, BuildError};
pub use expr::*;
pub use functor::{ExprMutator, ExprVisitor};
pub use vm_codegen::{CodegenError, ExecMode, guard_note, vm_codegen};
