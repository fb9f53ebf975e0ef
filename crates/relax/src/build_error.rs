//! [`BuildError`]: why a program is not built.

use relaxide_ir::Code;
use relaxide_ir::pass::Refusal;

use relaxide_tir::te;

use crate::op::OpError;
use crate::*;

/// Why a function cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A call of an operator is refused.
    #[error(transparent)]
    Op(#[from] OpError),
    /// The description of a kernel is wrong.
    #[error("the compute of `{name}` is no kernel: {source}")]
    Kernel {
        /// The kernel.
        name: String,
        /// Why.
        source: te::TeError,
    },
    /// The builder was used out of order, or the program breaks a rule.
    #[error("{0}")]
    Program(String),
    /// One of these, where a binding is rebuilt.
    #[error("at `{}`: {source}", at.name())]
    At {
        /// The variable of the binding.
        at: AnyVar,
        /// What is wrong there.
        source: Box<BuildError>,
    },
}

impl BuildError {
    /// The same at a binding, unless it is at one already.
    pub fn at(self, var: &AnyVar) -> BuildError {
        match self {
            BuildError::At { .. } => self,
            source => BuildError::At { at: var.clone(), source: Box::new(source) },
        }
    }

    /// What kind of problem it is.
    pub fn code(&self) -> Code {
        match self {
            BuildError::Op(error) => error.code(),
            BuildError::Kernel { .. } => Code::Kernel,
            BuildError::Program(_) => Code::Precondition,
            BuildError::At { source, .. } => source.code(),
        }
    }
}

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Refusal {
        let span = match &error {
            BuildError::At { at, .. } => at.span().cloned(),
            _ => None,
        };
        Refusal::new(error.code(), error.to_string()).at(span)
    }
}
