//! What can go wrong between a model and a running program.

use std::fmt::Write;

use relaxide_ffi as ffi;
use relaxide_ir::pass::PassError;
use relaxide_ir::target::TargetError;

/// An error of compilation, import or export.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ONNX file cannot be read: the file is at fault.
    #[error(transparent)]
    Model(#[from] relaxide_onnx::ModelError),
    /// The model asks for what the importer does not do, or contradicts itself.
    #[error(transparent)]
    Import(#[from] relaxide_onnx::ImportError),
    /// The program text is at fault.
    #[error("{0}")]
    Script(Box<relaxide_script::Diagnostic>),
    /// The target is at fault.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A pass refused the program.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// No bytecode was made.
    #[error(transparent)]
    Bytecode(#[from] relaxide_relax::CodegenError),
    /// No loop nest was made for a kernel: our bug.
    #[error("kernel {kernel}: {message}")]
    Kernel {
        /// Which.
        kernel: String,
        /// What was refused.
        message: String,
    },
    /// No native code was made.
    #[error(transparent)]
    Native(#[from] relaxide_codegen::CodegenError),
    /// A file could not be written or loaded.
    #[error("{0}")]
    Runtime(#[from] ffi::Error),
    /// Something given by name does not exist.
    #[error("there is no {what} {name:?}")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A file of our own could not be made.
    #[error("{context}: {source}")]
    Io {
        /// What was tried.
        context: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Error {
    /// What to try.
    pub fn help(&self) -> Option<String> {
        match self {
            Error::Unknown { what, known, .. } => {
                let mut text = format!("known {what}s: ");
                let _ = write!(text, "{}", known.join(", "));
                Some(text)
            }
            Error::Kernel { .. } | Error::Bytecode(_) => {
                Some("this is a defect of Relaxide; report it with the model, or try another --pipeline".into())
            }
            _ => None,
        }
    }

    /// The kind of exception that front ends raise.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Model(_) | Error::Target(_) | Error::Unknown { .. } => "ValueError",
            Error::Import(_) => "NotImplementedError",
            Error::Script(_) => "SyntaxError",
            Error::Io { .. } => "OSError",
            _ => "RuntimeError",
        }
    }
}

impl From<Box<relaxide_script::Diagnostic>> for Error {
    fn from(diagnostic: Box<relaxide_script::Diagnostic>) -> Self {
        Error::Script(diagnostic)
    }
}
