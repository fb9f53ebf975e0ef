//! What can be wrong with a call of an operator.

use relaxide_ir::{Code, Type};

use super::CallCx;
use crate::BuildError;
use crate::display::type_text;

/// Why a call of an operator is refused. Each names the operator.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum OpError {
    /// The user's program names an operator that does not exist.
    #[error("no operator is called `{0}`")]
    Unknown(String),
    /// The user's call has too few or too many arguments.
    #[error("{op}: takes {expected} arguments, {got} were given")]
    Arity {
        /// The operator.
        op: String,
        /// How many it takes, as text.
        expected: String,
        /// How many it was given.
        got: usize,
    },
    /// An argument of the user's call has the wrong type.
    #[error("{op}: argument `{arg}` must be {expected}, but its type is {got}")]
    Argument {
        /// The operator.
        op: String,
        /// The argument's name.
        arg: String,
        /// What it must be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// An attribute of the user's call is unknown, missing or of the wrong kind.
    #[error("{op}: attribute `{attr}` {problem}")]
    Attribute {
        /// The operator.
        op: String,
        /// The attribute's name.
        attr: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An element type that the operator does not take, or that does not go with another argument's.
    #[error("{op}: {message}")]
    DType {
        /// The operator.
        op: String,
        /// Which types they are, and which it takes.
        message: String,
    },
    /// Arguments that are fine alone do not fit each other or the attributes.
    #[error("{op}: {message}")]
    Invalid {
        /// The operator.
        op: String,
        /// What does not fit.
        message: String,
    },
    /// The program is fine, but this cannot be compiled.
    #[error("{op}: {message}")]
    Unsupported {
        /// The operator.
        op: String,
        /// What cannot be compiled, and what to try.
        message: String,
    },
}

/// How many arguments a message lists.
const MAX_TYPES: usize = 4;

impl OpError {
    /// What kind of problem it is.
    pub fn code(&self) -> Code {
        match self {
            OpError::Unknown(_) => Code::Callee,
            OpError::Arity { .. } | OpError::Attribute { .. } => Code::Arguments,
            OpError::Argument { .. } | OpError::DType { .. } | OpError::Invalid { .. } => Code::Operator,
            OpError::Unsupported { .. } => Code::NoLowering,
        }
    }

    /// An argument of the wrong type.
    pub fn argument(op: &str, arg: &str, expected: &str, got: &Type) -> OpError {
        OpError::Argument { op: op.into(), arg: arg.into(), expected: expected.into(), got: type_text(got) }
    }

    /// Arguments that do not fit.
    pub fn invalid(op: &str, message: impl Into<String>) -> OpError {
        OpError::Invalid { op: op.into(), message: message.into() }
    }

    /// An element type that does not do.
    pub fn dtype(op: &str, message: impl Into<String>) -> OpError {
        OpError::DType { op: op.into(), message: message.into() }
    }

    /// The same with the types of the arguments, where these do not fit each other.
    pub(super) fn of_call(self, cx: &CallCx) -> OpError {
        let (op, message, make): (_, _, fn(&str, String) -> OpError) = match self {
            OpError::Invalid { op, message } => (op, message, |op, message| OpError::invalid(op, message)),
            OpError::DType { op, message } => (op, message, |op, message| OpError::dtype(op, message)),
            other => return other,
        };
        let types = cx.args.iter().take(MAX_TYPES).enumerate().map(|(i, arg)| {
            // The last parameter takes all that follow.
            let name = cx.def.args.get(i).or(cx.def.args.last()).map_or("", |def| def.name);
            format!("{name}: {}", type_text(&arg.ty()))
        });
        let more = if cx.args.len() > MAX_TYPES { ", …" } else { "" };
        make(&op, format!("{message} ({}{more})", types.collect::<Vec<_>>().join(", ")))
    }

    /// What a builder says while an operator is decomposed.
    pub fn of_build(op: &str, error: BuildError) -> OpError {
        match error {
            BuildError::Op(error) => error,
            other => OpError::invalid(op, other.to_string()),
        }
    }

    /// What cannot be compiled.
    pub fn unsupported(op: &str, message: impl Into<String>) -> OpError {
        OpError::Unsupported { op: op.into(), message: message.into() }
    }
}
