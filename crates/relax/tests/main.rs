//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod builder;
mod bytecode;
mod casts;
mod documentation;
mod fusion;
mod graph_passes;
mod image_operators;
mod machine;
mod operators;
mod stepped_kernels;
