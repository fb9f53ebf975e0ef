//! What can be wrong with a program, and how it is said.
//!
//! [`ArchiveError`] where a file is no exported program, [`ImportError`] where it is one that cannot be taken over. The
//! latter collects every [`Problem`], each with the line of the user's module that it comes from.

use std::fmt;

pub use relaxide_frontend::NodeError;
use relaxide_relax::BuildError;

/// A file, or a text, is no exported program.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The system said no.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The bytes are no archive.
    #[error("not a `.pt2` file: {0}")]
    Zip(String),
    /// The archive is another one of PyTorch's.
    #[error("{0}")]
    Kind(String),
    /// The program's description does not read.
    #[error("the program in the archive does not read: {0}")]
    Program(String),
    /// A weight does not fit what is said of it.
    #[error("weight `{name}`: {reason}")]
    Weight {
        /// Its name in the user's module.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// One thing that keeps a program from being imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The node with its operator, the input or the output.
    pub place: String,
    /// The line of the user's module, where it is known.
    pub line: Option<String>,
    /// What is wrong.
    pub reason: String,
}

/// Everything that keeps a program from being imported.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportError {
    /// The problems, in the order of the graph; never empty.
    pub problems: Vec<Problem>,
}

impl std::error::Error for ImportError {}

impl From<BuildError> for ImportError {
    fn from(error: BuildError) -> Self {
        ImportError::one("program", error.to_string())
    }
}

impl ImportError {
    /// A single problem.
    pub fn one(place: impl Into<String>, reason: impl Into<String>) -> Self {
        ImportError { problems: vec![Problem { place: place.into(), line: None, reason: reason.into() }] }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.problems.len();
        writeln!(f, "the PyTorch program cannot be imported: {n} problem{}", if n == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            writeln!(f, "  {}: {}", problem.place, problem.reason)?;
            if let Some(line) = &problem.line {
                writeln!(f, "    at {line}")?;
            }
        }
        Ok(())
    }
}
