//! The tensor-level IR: computes, schedule rules, lowering and a reference interpreter.
//!
//! A [`PrimFunc`] says how elements of buffers are computed. It starts as a nest of *blocks* (what is computed, over which
//! axes, independent of order), a schedule rule turns it into a loop nest that suits the target, and the lowering passes
//! make it flat: one-dimensional buffers, explicit vectors, nothing that a back end would have to guess.

#![forbid(unsafe_code)]

pub mod analysis;
mod barriers;
mod display;
pub mod early_exit;
pub mod expand;
pub mod func;
pub mod functor;
pub mod index_map;
pub mod inside;
pub mod interp;
pub mod intrin;
pub mod kernel_call;
pub mod lines;
pub mod lower;
pub mod s_tir;
pub mod schedule;
pub mod shuffle;
pub mod specialize;
pub mod stmt;
pub mod te;
pub mod tensor_argument;
// Under no feature, with which everything above would be compiled once more for the tests.
#[doc(hidden)]
pub mod testing;
pub mod tile;
pub mod verify;
pub mod warp;

pub use early_exit::{EarlyExit, EarlyExits};
pub use func::{HOST_FUNC, PrimFunc, SEPARATE_ROUNDING};
pub use functor::{StmtMutator, StmtVisitor};
pub use index_map::IndexMap;
pub use specialize::specialize;
pub use stmt::*;
