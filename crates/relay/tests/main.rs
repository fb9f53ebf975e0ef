//! The tests of this crate: one program, which is linked once and runs them beside each other.

#[path = "support/generate.rs"]
mod generate;
mod memory;
mod mutations;
mod operators;
mod parts;
mod random_text;
mod text;
mod unknown_dims;
