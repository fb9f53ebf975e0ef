//! What front ends share: a program under construction, its loops, and what loops capture.
//!
//! ```text
//! a reader of a format ──▶ nodes in order ──▶ Scope: operators, shapes that agree, checks ──▶ BlockBuilder ──▶ IRModule
//!                                              └ Loop: state and rows, captures of the outside
//! ```
//!
//! A front end keeps its own reader, its table of operators, and what it knows of values at import. From here it takes:
//!
//! * [`Scope`]: adds operators, constants and casts; makes dimensions agree, by proof or by a [`Check`] when the program runs;
//! * [`dims`]: questions about symbolic dimensions;
//! * [`loops`]: a loop with state as a function that calls itself last; [`Captures`] are what it reads from outside;
//! * [`rows`]: what loops read from tensors and make of rows; [`recurrent`]: cells that go over sequences;
//! * [`NodeError`]: why a node cannot be imported.
//!
//! `examples/frontend` is a small one, for a text format of ten operators and a loop.
//!
//! What is not here: files, operators, and values that are known at import.

#![forbid(unsafe_code)]

mod captures;
mod check;
pub mod constant;
pub mod dims;
mod error;
pub mod loops;
pub mod recurrent;
pub mod rows;
mod scope;

pub use captures::Captures;
pub use check::Check;
pub use error::NodeError;
pub use loops::{Iteration, Loop, LoopResult, Next, Row, runtime_call};
pub use scope::Scope;

/// The result of importing a part of a node.
pub type Result<T> = std::result::Result<T, NodeError>;
