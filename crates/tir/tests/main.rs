//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod device_schedules;
mod early_ends;
mod lowering_passes;
mod random_kernels;
mod schedule;
mod stepped_loops;
