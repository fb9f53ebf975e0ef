//! The importer of programs that PyTorch exports (`torch.export`): from an exported program to Relax.
//!
//! ```text
//! torch.export.save(ep, "model.pt2")  ──▶  Archive (JSON program, raw weights)  ──▶  import  ──▶  IRModule with `main`
//! ```
//!
//! An exported program is a flat graph of ATen operators over tensors whose element types and (symbolic) dimensions are all
//! said beside it. The importer reads its serialized form, so that neither PyTorch nor Python is needed; the Python package
//! hands over the same form for a program in memory, with the weights as they lie there.
//!
//! Where each part is: [`program`] is the file's schema, [`Archive`] reads it with the weights, [`symbol`] reads dimensions,
//! [`rule`] is what a rule sees of its node, [`ops`] has one rule for each operator, [`Converters`] are rules of the caller's,
//! [`import`] makes the function.
//!
//! **Left out.** Programs in PyTorch's older archives, whose weights are Python pickles: save them again with PyTorch 2.9 or
//! newer. Sparse and complex tensors, and tensors on devices.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "files are mapped into memory")]
mod archive;
mod convert;
mod dtype;
mod error;
mod flow;
mod graph;
mod import;
pub mod ops;
pub mod program;
mod rule;
mod symbol;
mod value;

pub use archive::{Archive, Weights, parse};
pub use convert::{Converters, CustomCall};
pub use error::{ArchiveError, ImportError, NodeError, Problem};
pub use import::{ImportOptions, import, import_with};
