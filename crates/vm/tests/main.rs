//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod builtins;
mod errors;
mod interpreter;
mod kv_state;
mod limits;
mod mutation;
mod profile;
mod reuse;
mod sampling;
mod support;
mod texts;
mod threads;
mod tvm_artifacts;
mod verifier;
