//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod capi;
mod capi_nulls;
mod functions;
mod json;
mod nodes;
mod tensors;
mod traverse;
mod values;
