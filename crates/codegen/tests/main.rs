//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod argument_checks;
mod harness;
mod kernels;
mod math;
mod microkernel;
mod packed_calls;
mod random;
mod reference;
mod shared_library;
