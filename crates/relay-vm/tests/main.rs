//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod graph;
mod machine;
mod mutations;
mod samples;
