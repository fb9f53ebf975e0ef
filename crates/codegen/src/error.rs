//! What can go wrong while kernels become native code, and whose fault it is.

use std::fmt;

use relaxide_ir::{Code, DataType};

use crate::export::ExportError;

/// Why kernels could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// The target has a name in it that does not exist or that this back end does not serve. The user's text is at fault.
    #[error("{} `{given}` {} {triple}{}", part.complaint(), part.of(), did_you_mean(near))]
    Unknown {
        /// Which part of the target.
        part: TargetPart,
        /// What was asked for.
        given: String,
        /// The target's triple.
        triple: String,
        /// Known names that look alike, the closest first.
        near: Vec<String>,
        /// All names that would do.
        known: Vec<String>,
    },
    /// The target is of a kind that this back end does not serve.
    #[error(
        "target `{0}` is not served: there is no back end of that kind; native code is made for targets of the kind `llvm`, C for those \
         of the kind `c`, OpenCL C for those of the kind `opencl`, PTX for those of the kinds `cuda` and `nvptx`"
    )]
    UnsupportedTarget(String),
    /// A back end was registered for a kind that has one.
    #[error("there is a back end for targets of the kind `{0}` already")]
    SecondBackend(String),
    /// The target has an option that its kind knows and this back end does nothing for.
    #[error("target `{target}`: the option `{option}` has no effect on kernels that are made here; leave it out")]
    UnsupportedOption {
        /// The target.
        target: String,
        /// The option.
        option: String,
    },
    /// A kernel names a target whose code cannot be in the same library as the others'.
    #[error(
        "kernel `{kernel}` is for target `{own}`, and the program is compiled for `{target}`: both are code of the host, and of one kind only"
    )]
    TwoHosts {
        /// The kernel.
        kernel: String,
        /// Its target.
        own: String,
        /// The program's.
        target: String,
    },
    /// The kernels of a device were asked for without a host to call them: ours.
    #[error("target `{0}` is a device: its kernels are made beside those of the host that calls them")]
    DeviceAsHost(String),
    /// Functions of a device were asked of a back end of hosts: ours.
    #[error("kernel `{kernel}`: targets of the kind `{kind}` have no functions of a device")]
    HostAsDevice {
        /// The kernel.
        kernel: String,
        /// The kind.
        kind: String,
    },
    /// The host of a device is to be C.
    #[error("kernels for `{0}` are called by native code: the host of such a target is of the kind `llvm`")]
    DeviceOfC(String),
    /// Line information was asked for C.
    #[error("line information is for native code: debuggers show the C of the target `c` if it is compiled with -g")]
    LinesInC,
    /// The target asks for C, and for a processor.
    #[error("target `{0}`: C is made for every processor; the compiler of the C is told which one to use")]
    ProcessorOfC(String),
    /// Results are to be the same everywhere, and the processor rounds products that others do not.
    #[error(
        "target `{target}`: deterministic results need a processor that adds to a product without rounding it first, and `{processor}` \
         does not; name one that does (x86-64-v3 and later, AArch64), or leave out what asks for such results"
    )]
    NoFusedMultiplyAdd {
        /// The target.
        target: String,
        /// Its processor.
        processor: String,
    },
    /// Targets cannot be in one library. The user's list is at fault.
    #[error("a library cannot be for all of these processors: {why}")]
    Processors {
        /// Which, and why.
        why: String,
    },
    /// The kernel computes with a type of elements that there is no code for. The user's program asks for too much.
    #[error("kernel `{kernel}`: there is no native code for type {dtype} on {triple}{}", place(statement))]
    ElementType {
        /// The kernel's name.
        kernel: String,
        /// The type.
        dtype: DataType,
        /// The target's triple.
        triple: String,
        /// The statement that it is in.
        statement: Option<String>,
    },
    /// The kernel holds something that this back end does not compile.
    #[error("kernel `{kernel}`: {what} is not supported by the {back_end} back end{}", place(statement))]
    Unsupported {
        /// The kernel's name.
        kernel: String,
        /// What it holds.
        what: String,
        /// The back end's name.
        back_end: &'static str,
        /// The statement that it is in.
        statement: Option<String>,
    },
    /// The kernel is not as lowering leaves it; an earlier pass is at fault.
    #[error("kernel `{kernel}` is malformed: {what}{}", place(statement))]
    Malformed {
        /// The kernel's name.
        kernel: String,
        /// What is wrong.
        what: String,
        /// The statement that it is in.
        statement: Option<String>,
    },
    /// LLVM refused what a kernel became: the kernel's own fault where it calls LLVM's functions, our bug otherwise.
    #[error("kernel `{kernel}`: LLVM rejects its code: {message}{}", place(statement))]
    Rejected {
        /// The kernel's name.
        kernel: String,
        /// What LLVM says.
        message: String,
        /// The statement that the code came from.
        statement: Option<String>,
    },
    /// LLVM failed as a whole: our bug, or the machine's.
    #[error("LLVM failed: {0}")]
    Llvm(String),
    /// The objects could not be made a library.
    #[error(transparent)]
    Export(#[from] ExportError),
}

/// A part of a target that goes by a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetPart {
    /// The first word of the triple.
    Architecture,
    /// The system in the triple.
    System,
    /// `-mcpu`.
    Processor,
    /// One of `-mattr`.
    Feature,
}

impl TargetPart {
    fn complaint(self) -> String {
        match self {
            Self::Architecture | Self::System => format!("kernels are not compiled for {self}"),
            Self::Processor | Self::Feature => format!("unknown {self}"),
        }
    }

    fn of(self) -> &'static str {
        match self {
            Self::Architecture | Self::System => "of",
            Self::Processor | Self::Feature => "for",
        }
    }
}

impl fmt::Display for TargetPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Architecture => "instruction set",
            Self::System => "system",
            Self::Processor => "processor",
            Self::Feature => "feature",
        })
    }
}

impl CodegenError {
    /// What kind of problem it is.
    pub fn code(&self) -> Code {
        match self {
            Self::Unknown { part: TargetPart::Architecture | TargetPart::System, .. } => Code::Architecture,
            Self::Unknown { part: TargetPart::Processor, .. } => Code::Processor,
            Self::Unknown { part: TargetPart::Feature, .. } => Code::Feature,
            Self::UnsupportedTarget(_)
            | Self::SecondBackend(_)
            | Self::UnsupportedOption { .. }
            | Self::NoFusedMultiplyAdd { .. }
            | Self::TwoHosts { .. }
            | Self::LinesInC
            | Self::DeviceAsHost(_)
            | Self::HostAsDevice { .. }
            | Self::DeviceOfC(_)
            | Self::Processors { .. }
            | Self::ProcessorOfC(_) => Code::Target,
            Self::ElementType { .. } => Code::ElementType,
            Self::Rejected { .. } => Code::Rejected,
            Self::Unsupported { .. } | Self::Malformed { .. } | Self::Llvm(_) | Self::Export(_) => Code::Native,
        }
    }

    /// What to try, where something is to be tried.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { part: TargetPart::Processor, known, .. } => {
                Some(format!("known processors: {}", known.join(", ")))
            }
            Self::Unknown { part, known, .. } => Some(format!("known {part}s: {}", known.join(", "))),
            Self::ElementType { .. } => {
                Some("element types of native code are bool, signed and unsigned integers of 2, 4, 8, 16, 32 and 64 bits, floats of \
                      16, 32 and 64 bits, bfloat16, and the floats of 8, 6 and 4 bits; cast to one of them"
                    .into())
            }
            _ => None,
        }
    }

    /// The same error in a statement, unless it is already known to be in one inside of that.
    pub(crate) fn in_statement(mut self, text: impl FnOnce() -> String) -> Self {
        if let Self::ElementType { statement, .. }
        | Self::Unsupported { statement, .. }
        | Self::Malformed { statement, .. }
        | Self::Rejected { statement, .. } = &mut self
            && statement.is_none()
        {
            *statement = Some(text());
        }
        self
    }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

fn place(statement: &Option<String>) -> String {
    statement.as_ref().map(|text| format!(", in `{text}`")).unwrap_or_default()
}
