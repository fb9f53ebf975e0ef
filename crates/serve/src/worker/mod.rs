//! Workers: processes that run batches for an engine, over a pair of sockets.
//!
//! A process for each, so that what ends one (a kernel that faults, the kernel's killer of processes, `kill -9`) ends no request: the
//! engine still has its inputs, starts another worker, and asks that.

pub(crate) mod child;
pub(crate) mod front;
pub mod message;
