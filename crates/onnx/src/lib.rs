//! The ONNX importer: a model file in, a module with one Relax function `main` out.
//!
//! ```text
//! bytes ── budget ──▶ proto ── model ──▶ import ──▶ IRModule
//!                                          │ symbolic: values known at import (shape arithmetic)
//!                                          │ ops: a rule for every operator and version
//!                                          └ scope: the program under construction
//! ```
//!
//! Dynamic shapes stay symbolic: shape arithmetic is evaluated at import over the model's dimensions (`symbolic`), and what
//! has to be equal but cannot be proven so is checked when the program runs (`scope`). Everything that cannot be imported
//! is reported in one error.
//!
//! Files are untrusted: their frame is checked against a budget before anything is allocated for it (`budget`), external
//! data is read from below the model's directory only, and no input makes the importer panic.
//!
//! What is not here: sparse tensors, training.

#![deny(unsafe_code)]

mod budget;
mod com_microsoft;
mod constant;
mod dim_name;
pub mod error;
#[allow(unsafe_code, reason = "files are mapped into memory")]
mod external;
mod flow;
mod functions;
pub mod given;
mod graph;
mod import;
mod long_dims;
mod ml;
#[allow(unsafe_code, reason = "files are mapped into memory")]
mod model;
mod names;
mod node;
mod ops;
pub mod options;
mod order;
pub mod proto;
mod quantized;
mod recurrent;
mod scope;
pub mod signature;
mod symbolic;
#[doc(hidden)]
pub mod testing;
mod text;
mod text_ops;
mod value;

use relaxide_frontend::dims;

pub use error::{ImportError, ModelError};
pub use import::import;
pub use model::Model;
pub use options::ImportOptions;
