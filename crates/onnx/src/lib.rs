//! The ONNX importer.

pub mod budget;
pub mod error;
pub mod model;
pub mod proto;

pub use error::{ImportError, ModelError, NodeError, Place, Problem, TensorError};
pub use model::Model;
