//! What can go wrong on the command line, and the exit code that says whose fault it is.

use std::path::{Path, PathBuf};

use relaxide::ir::{Code, Diagnostic};

/// Problems with what the arguments name, such as passes and targets.
const NAMED: &[Code] = &[
    Code::UnknownPass,
    Code::PassArguments,
    Code::Target,
    Code::Architecture,
    Code::Processor,
    Code::Feature,
    Code::UnknownChoice,
];

/// An error of the command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The user's: an argument does not make sense.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to try.
        help: String,
    },
    /// The user's: a file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The model or its input is at fault, or asks for what Relaxide does not do.
    #[error(transparent)]
    Model(#[from] relaxide::Error),
    /// A program that the command works with is missing or failed.
    #[error("{message}")]
    Tool {
        /// Which, and what it said.
        message: String,
        /// What to try.
        help: String,
    },
    /// `relaxide check` found a difference.
    #[error("{message}")]
    Differs {
        /// Where.
        message: String,
        /// What that means.
        help: String,
    },
    /// A model cannot be served.
    #[error("{0}")]
    Serve(relaxide_serve::Error),
    /// A call of a compiled function failed.
    #[error("{0}")]
    Call(#[from] relaxide::ffi::Error),
}

impl CliError {
    /// An argument that does not make sense, and what to try.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), help: help.into() }
    }

    /// For `map_err`: a file that cannot be read or written.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
        let path = path.to_path_buf();
        move |source| CliError::File { path, source }
    }

    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Usage { .. } => 2,
            CliError::Model(error) if error.is_defect() => 3,
            // What only the arguments name.
            CliError::Model(error) if NAMED.contains(&error.code()) => 2,
            CliError::Differs { .. } => 4,
            CliError::File { .. }
            | CliError::Model(_)
            | CliError::Tool { .. }
            | CliError::Serve(_)
            | CliError::Call(_) => 1,
        }
    }

    /// Each of several problems, where there are several.
    pub fn details(&self) -> Vec<serde_json::Value> {
        let CliError::Model(relaxide::Error::Import(error)) = self else { return Vec::new() };
        let problem = |problem: &relaxide::onnx::error::Problem| serde_json::json!({ "place": problem.place.to_string(), "reason": problem.reason, "help": problem.help });
        error.problems.iter().map(problem).collect()
    }

    /// As it is shown.
    pub fn diagnostic(&self) -> Diagnostic {
        let plain = |code| Diagnostic::new(code, self.to_string());
        match self {
            CliError::Usage { help, .. } => plain(Code::Usage).with_help(help),
            CliError::Tool { help, .. } => plain(Code::Tool).with_help(help),
            CliError::Differs { help, .. } => plain(Code::Differs).with_help(help),
            CliError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                plain(Code::File).with_help("check the path; it is taken from the current folder")
            }
            CliError::File { .. } => plain(Code::File),
            // Programs are parsed under the path of their file.
            CliError::Model(error) => error.diagnostic(|path| std::fs::read_to_string(path).ok()),
            CliError::Call(_) | CliError::Serve(_) => plain(Code::Call),
        }
    }
}
