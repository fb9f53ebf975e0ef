//! The ONNX importer: a model file in, a module with one Relax function `main` out.
//!
//! ```text
//! bytes ── budget ──▶ proto ── model ──▶ import ──▶ IRModule
//!                                          │ symbolic: values known at import (shape arithmetic)
//!                                          │ ops: a rule for every operator and version
//!                                          └ scope: the program under construction
//! ```
//!
//! Dynamic shapes stay symbolic: shape arithmetic is evaluated at import over the model's dimensions ([`symbolic`]), and what
//! has to be equal but cannot be proven so is checked when the program runs ([`scope`]). Everything that cannot be imported
//! is reported in one error.
//!
//! Files are untrusted: their frame is checked against a budget before anything is allocated for it ([`budget`]), external
//! data is read from below the model's directory only, and no input makes the importer panic.
//!
//! What is not here: sparse tensors, training.

#![deny(unsafe_code)]

pub mod budget;
pub mod com_microsoft;
pub mod constant;
mod dim_name;
pub mod error;
#[allow(unsafe_code, reason = "files are mapped into memory")]
pub mod external;
pub mod flow;
pub mod functions;
pub mod graph;
pub mod import;
mod long_dims;
pub mod ml;
#[allow(unsafe_code, reason = "files are mapped into memory")]
pub mod model;
pub mod names;
pub mod node;
pub mod ops;
pub mod options;
mod order;
pub mod proto;
pub mod quantized;
pub mod recurrent;
pub mod scope;
mod signature;
pub mod symbolic;
pub mod text;
mod text_ops;
pub mod value;

pub use relaxide_frontend::dims;

pub use error::{ImportError, Location, ModelError, NodeError, Problem, TensorError};
pub use import::{OUTPUT_NAMES, TEXT_INPUTS, identifier, import};
pub use model::Model;
pub use options::{ImportOptions, InputDim, InputNames, Weights};
pub use signature::{Extent, Signature, ValueSignature};
