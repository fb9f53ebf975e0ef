//! Why a node cannot be imported.

use relaxide_relax::{BuildError, op::OpError};

/// Why one node cannot be imported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NodeError {
    /// Valid in the format, and not taken by the front end. A limit of ours.
    #[error("{reason}")]
    Unsupported {
        /// What is not supported.
        reason: String,
        /// What the user can do.
        help: Option<String>,
    },
    /// Not valid in the format: an attribute or input of the wrong kind, missing, or out of range. The model's fault.
    #[error("{0}")]
    Invalid(String),
    /// The compiler refused what the node was translated to; shapes or types that do not fit each other.
    #[error("{0}")]
    Relax(String),
}

impl NodeError {
    /// Something valid that is not supported.
    pub fn unsupported(reason: impl Into<String>) -> Self {
        NodeError::Unsupported { reason: reason.into(), help: None }
    }

    /// Something invalid.
    pub fn invalid(reason: impl Into<String>) -> Self {
        NodeError::Invalid(reason.into())
    }

    /// The same with advice, where the kind has room for it.
    pub fn help(self, advice: impl Into<String>) -> Self {
        match self {
            NodeError::Unsupported { reason, .. } => NodeError::Unsupported { reason, help: Some(advice.into()) },
            other => other,
        }
    }
}

impl From<BuildError> for NodeError {
    fn from(error: BuildError) -> Self {
        NodeError::Relax(error.to_string())
    }
}

impl From<OpError> for NodeError {
    fn from(error: OpError) -> Self {
        NodeError::Relax(error.to_string())
    }
}
