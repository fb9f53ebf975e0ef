//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod argument_checks;
mod cuda;
mod device_operators;
mod devices;
mod harness;
mod kernels;
mod math;
mod microkernel;
mod opencl;
mod packed_calls;
mod random;
mod reference;
mod shared_library;
