//! What can go wrong between a model and a running program.

use relaxide_ffi as ffi;
use relaxide_ir::diagnostic::{Code, Diagnostic};
use relaxide_ir::pass::{PassError, Refusal};
use relaxide_ir::target::TargetError;
use relaxide_relax::CodegenError;
use relaxide_tir::schedule::OverrideError;

/// An error of compilation, import or export.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ONNX model cannot be read: its bytes are at fault.
    #[error(transparent)]
    Model(#[from] relaxide_onnx::ModelError),
    /// The same, of a file.
    #[error("{path}: {source}")]
    ModelFile {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: relaxide_onnx::ModelError,
    },
    /// The model asks for what the importer does not do, or contradicts itself.
    #[error(transparent)]
    Import(#[from] relaxide_onnx::ImportError),
    /// The file is no program that PyTorch exported.
    #[error(transparent)]
    Archive(#[from] relaxide_torch::ArchiveError),
    /// The program of PyTorch asks for what the importer does not do.
    #[error(transparent)]
    Torch(#[from] relaxide_torch::ImportError),
    /// The program text is at fault.
    #[error("{0}")]
    Script(Box<Diagnostic>),
    /// The target is at fault.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Kernels cannot be timed.
    #[error(transparent)]
    Measure(#[from] super::tune::MeasureError),
    /// A pass refused the program.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// No bytecode was made.
    #[error(transparent)]
    Bytecode(#[from] CodegenError),
    /// A program in Relay was not compiled.
    #[error(transparent)]
    Relay(#[from] relaxide_relay::CompileError),
    /// No loop nest was made for a kernel: our bug.
    #[error("kernel {kernel}: {message}")]
    Kernel {
        /// Which.
        kernel: String,
        /// What was refused.
        message: String,
    },
    /// The decisions that were given for a program's kernels are at fault.
    #[error(transparent)]
    Schedule(#[from] OverrideError),
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
    /// An input does not fit what the function declares.
    #[error("{message}")]
    Input {
        /// Which input, what it is, and what was expected.
        message: String,
        /// What to try.
        help: String,
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

const DEFECT_HELP: &str = "this is a defect of Relaxide; report it with the program, or try another pipeline";

impl Error {
    /// What kind of problem it is.
    pub fn code(&self) -> Code {
        match self {
            Error::Model(_) | Error::ModelFile { .. } | Error::Archive(_) => Code::Model,
            Error::Import(_) | Error::Torch(_) => Code::Import,
            Error::Script(diagnostic) => diagnostic.code,
            Error::Target(_) => Code::Target,
            Error::Pass(error) => error.refusal.code,
            Error::Bytecode(CodegenError::NotLowered { refusal, .. }) => refusal.code,
            Error::Bytecode(CodegenError::Build { .. }) => Code::Bytecode,
            Error::Relay(error) => error.code(),
            Error::Kernel { .. } => Code::Kernel,
            Error::Schedule(OverrideError::File { .. }) => Code::File,
            Error::Schedule(_) => Code::Schedule,
            Error::Native(error) => error.code(),
            Error::Runtime(_) | Error::Measure(_) => Code::Call,
            Error::Unknown { .. } => Code::UnknownChoice,
            Error::Input { .. } => Code::Input,
            Error::Io { .. } => Code::File,
        }
    }

    /// Whether Relaxide itself is at fault, and not what it was given.
    pub fn is_defect(&self) -> bool {
        matches!(self.code(), Code::BrokenByPass | Code::Kernel)
            || matches!(self, Error::Bytecode(CodegenError::Build { .. }))
    }

    /// As it is shown. `source` gives the text of a program by the name that it was parsed under.
    pub fn diagnostic(&self, source: impl FnOnce(&str) -> Option<String>) -> Diagnostic {
        let refused = match self {
            Error::Script(diagnostic) => return Diagnostic::clone(diagnostic),
            Error::Pass(error) => error.diagnostic(source),
            Error::Relay(error) => return error.diagnostic(source),
            Error::Bytecode(CodegenError::NotLowered { refusal, .. }) => refusal.diagnostic(source),
            _ => Diagnostic::new(self.code(), ""),
        };
        let help = match self {
            Error::Native(error) => error.help(),
            Error::Unknown { what, known, .. } => Some(format!("known {what}s: {}", known.join(", "))),
            Error::Input { help, .. } => Some(help.clone()),
            Error::Schedule(error) => Refusal::from(error.clone()).help,
            Error::Model(error) | Error::ModelFile { source: error, .. } => model_help(error).map(Into::into),
            Error::Import(_) => Some(IMPORT_HELP.into()),
            Error::Torch(_) => Some(TORCH_HELP.into()),
            Error::Kernel { .. } => Some(relaxide_tir::lower::KERNEL_HELP.into()),
            _ if self.is_defect() => refused.help.clone().or_else(|| Some(DEFECT_HELP.into())),
            _ => refused.help.clone(),
        };
        Diagnostic { message: self.to_string(), help, ..refused }
    }

    /// The kind of exception that front ends raise.
    pub fn kind(&self) -> &str {
        match self {
            Error::Model(relaxide_onnx::ModelError::Io { kind, .. })
            | Error::ModelFile { source: relaxide_onnx::ModelError::Io { kind, .. }, .. } => os_kind(*kind),
            Error::Model(relaxide_onnx::ModelError::OrtFormat)
            | Error::ModelFile { source: relaxide_onnx::ModelError::OrtFormat, .. } => "NotImplementedError",
            Error::Model(_) | Error::Target(_) | Error::Unknown { .. } | Error::Input { .. } => "ValueError",
            Error::Schedule(OverrideError::File { kind, .. }) => os_kind(*kind),
            Error::Schedule(_) => "ValueError",
            Error::Pass(error) if error.refusal.code == Code::Schedule => "ValueError",
            Error::Import(_) | Error::Torch(_) => "NotImplementedError",
            Error::Archive(relaxide_torch::ArchiveError::Io { source, .. }) => os_kind(source.kind()),
            Error::Archive(_) => "ValueError",
            Error::Script(_) => "SyntaxError",
            Error::Native(
                relaxide_codegen::CodegenError::Unknown { .. }
                | relaxide_codegen::CodegenError::NoFusedMultiplyAdd { .. },
            ) => "ValueError",
            Error::Native(relaxide_codegen::CodegenError::Export(relaxide_codegen::export::ExportError::File {
                source,
                ..
            })) => os_kind(source.kind()),
            Error::Io { source, .. } => os_kind(source.kind()),
            Error::Runtime(error) => error.kind(),
            Error::ModelFile { .. } => "ValueError",
            _ => "RuntimeError",
        }
    }
}

/// Python's name for what the system refused.
fn os_kind(kind: std::io::ErrorKind) -> &'static str {
    match kind {
        std::io::ErrorKind::NotFound => "FileNotFoundError",
        std::io::ErrorKind::PermissionDenied => "PermissionError",
        std::io::ErrorKind::IsADirectory => "IsADirectoryError",
        std::io::ErrorKind::AlreadyExists => "FileExistsError",
        _ => "OSError",
    }
}

/// What to try where a model cannot be read.
fn model_help(error: &relaxide_onnx::ModelError) -> Option<&'static str> {
    use relaxide_onnx::ModelError::{Decode, Empty, Frame, Io, Limit, OrtFormat, TooLarge};
    match error {
        TooLarge { .. } => Some(WEIGHTS_BESIDE_HELP),
        Frame { .. } | Decode { .. } | Empty { .. } => Some(
            "check that it was downloaded or copied to its end, and is no pointer of Git LFS; Python's `onnx.checker.check_model` \
             says whether ONNX can read it",
        ),
        Io { .. } | Limit { .. } | OrtFormat => None,
    }
}

/// What to try where a model cannot be imported.
const IMPORT_HELP: &str = "docs/onnx.md lists the operators that are imported; a model can often be exported without the others: \
                           with a newer opset, in inference mode, or folded by a simplifier of ONNX models";

/// What to try where a program of PyTorch cannot be imported.
const TORCH_HELP: &str = "docs/pytorch.md lists the operators that are imported; `ep.run_decompositions()` before \
                          `torch.export.save` writes many others in terms of these";

/// What to try where a file of ONNX is too large for what reads such files.
const WEIGHTS_BESIDE_HELP: &str = "save the model with its weights in a file of their own, which has no such limit: \
                                   `onnx.save(model, path, save_as_external_data=True)`, or the option of the exporter for that";

impl From<Box<Diagnostic>> for Error {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Error::Script(diagnostic)
    }
}
