//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod early_ends;
mod schedule;
