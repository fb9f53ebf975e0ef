//! What can be wrong with a model, and how it is said.
//!
//! Two stages, two errors: [`ModelError`] where a file cannot be read as ONNX at all, [`ImportError`] where it can but holds
//! what the importer cannot take over. The latter collects every [`Problem`] of the graph, because a user who learns of
//! unsupported operators one at a time has to convert the model as many times.

use std::fmt;
use std::path::PathBuf;

pub use relaxide_frontend::NodeError;
use relaxide_relax::BuildError;

/// A file cannot be read as a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The file system said no. The user's path, or the system's fault.
    #[error("cannot read {path}: {reason}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What kind of problem it is.
        kind: std::io::ErrorKind,
        /// What the system said.
        reason: String,
    },
    /// The bytes are not a protobuf message. The file is cut off, corrupt, or not an ONNX file.
    #[error("not a readable ONNX file: at byte {offset}, {reason}")]
    Frame {
        /// Where.
        offset: usize,
        /// What is wrong there.
        reason: &'static str,
    },
    /// The bytes are a protobuf message, but not of a model.
    #[error("not a readable ONNX file: {reason}")]
    Decode {
        /// What the decoder said.
        reason: String,
    },
    /// The message is a model without what every model has.
    #[error("the file holds no model: {reason}")]
    Empty {
        /// What is missing.
        reason: &'static str,
    },
    /// It is a model as ONNX Runtime saves it for itself. The user's file; nothing here reads it.
    #[error("models in ONNX Runtime's own format (.ort) are not read; use the ONNX file that it was made of")]
    OrtFormat,
    /// The file is larger than a message of protobuf can be.
    #[error("the file has {bytes} bytes, and an ONNX file has at most {limit}")]
    TooLarge {
        /// Its length.
        bytes: u64,
        /// The greatest length.
        limit: u64,
    },
    /// The file holds more than a budget allows.
    #[error("the file holds more than {limit} {what}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Why an input of a model has no type.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("it is not a tensor, and only tensors are supported")]
    NoTensor,
    #[error("the file does not say its type")]
    NoType,
    #[error("the file does not say how many dimensions it has")]
    NoRank,
    #[error("the given shape has the dimension {0}")]
    GivenDimension(i64),
    #[error(transparent)]
    ElementType(#[from] TensorError),
}

impl InputError {
    /// What to try.
    pub fn help(&self) -> Option<&'static str> {
        let shape = "give it a shape (`shape_dict` in Python, `--shape` on the command line)";
        matches!(self, InputError::NoRank).then_some(shape)
    }
}

/// A tensor of the file cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// A dimension is negative, or the element count does not fit.
    #[error("impossible dimensions {0:?}")]
    Dims(Vec<i64>),
    /// An element type that no program here can hold.
    #[error("element type {0} is not supported")]
    ElementType(String),
    /// Fewer or more elements than the dimensions say.
    #[error("{got} bytes of data where the dimensions need {expected}")]
    Size {
        /// Bytes needed.
        expected: u64,
        /// Bytes found.
        got: u64,
    },
    /// The elements are in a file that cannot be read, or that may not be.
    #[error("external data in `{location}`: {reason}")]
    External {
        /// The location that the model gives.
        location: String,
        /// Why not.
        reason: String,
    },
    /// The tensor could not be made.
    #[error("{0}")]
    Make(String),
}

/// Where a problem is.
#[derive(Debug, Clone, PartialEq)]
pub enum Location {
    /// The model as a whole.
    Model,
    /// An input of the graph.
    Input(String),
    /// A constant of the graph.
    Initializer(String),
    /// A node.
    Node {
        /// Operator, with its domain where that is not the standard one.
        op: String,
        /// Name, or the name of its first output.
        name: String,
        /// Version of its operator set.
        opset: i64,
    },
    /// An output of the graph.
    Output(String),
}

/// One thing that keeps a model from being imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Where.
    pub place: Location,
    /// What.
    pub reason: String,
    /// What to try.
    pub help: Option<String>,
}

/// Everything that keeps a model from being imported.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportError {
    /// The problems, in the order of the graph; never empty.
    pub problems: Vec<Problem>,
}

impl std::error::Error for ImportError {}

impl From<BuildError> for ImportError {
    fn from(error: BuildError) -> Self {
        ImportError { problems: vec![Problem { place: Location::Model, reason: error.to_string(), help: None }] }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.problems.len();
        writeln!(f, "the ONNX model cannot be imported: {n} problem{}", if n == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            writeln!(f, "  {}: {}", problem.place, problem.reason)?;
            if let Some(help) = &problem.help {
                writeln!(f, "    help: {help}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Model => write!(f, "model"),
            Location::Input(name) => write!(f, "input `{name}`"),
            Location::Initializer(name) => write!(f, "initializer `{name}`"),
            Location::Node { op, name, opset } => write!(f, "{op} (node `{name}`, opset {opset})"),
            Location::Output(name) => write!(f, "output `{name}`"),
        }
    }
}
