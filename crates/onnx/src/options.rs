//! What a caller may say about a model beyond the file.

use indexmap::IndexMap;
use relaxide_ffi::DataType;

pub use crate::import::identifier;

/// Options of [`crate::import`].
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Dimensions of inputs, in place of the file's.
    pub shapes: IndexMap<String, Vec<InputDim>>,
    /// Element types of inputs, in place of the file's.
    pub dtypes: IndexMap<String, DataType>,
    /// Version of the standard operator set, in place of the file's.
    pub opset: Option<i64>,
    /// Whether weights are parameters of `main`, behind the inputs, or constants inside it.
    pub weights: Weights,
    /// How names of inputs become names of parameters.
    pub names: InputNames,
}

/// One dimension that a caller gives for an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputDim {
    /// A number.
    Fixed(i64),
    /// A symbolic dimension by name.
    Named(String),
}

/// Where weights go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Constants inside `main`.
    #[default]
    Constants,
    /// Parameters of `main`, with the values in its attribute `params`.
    Parameters,
}

/// How names of inputs become names of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputNames {
    /// Made identifiers.
    #[default]
    Sanitized,
    /// As they are in the file.
    AsWritten,
}
