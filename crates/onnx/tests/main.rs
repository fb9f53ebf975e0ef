//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod corrupt_files;
mod documentation;
mod edited_models;
mod edits;
mod graphs;
mod model;
mod parts;
mod problems;
mod shape_arithmetic;
