//! What can go wrong while kernels become native code, and whose fault it is.

use crate::export::ExportError;

/// Why kernels could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// The target names a processor that LLVM does not know. The user's text is at fault.
    #[error("unknown processor `{cpu}` for {triple}{}", near(.candidates))]
    UnknownCpu {
        /// What was asked for.
        cpu: String,
        /// For which triple.
        triple: String,
        /// Known names that look alike.
        candidates: Vec<String>,
    },
    /// The target is of a kind, or for a machine, that this back end does not serve.
    #[error("target `{0}` is not served: kernels are compiled for x86-64 and AArch64 Linux")]
    UnsupportedTarget(String),
    /// The kernel holds something that this back end does not compile.
    #[error("kernel `{kernel}`: {what} is not supported by the LLVM back end")]
    Unsupported {
        /// The kernel's name.
        kernel: String,
        /// What it holds.
        what: String,
    },
    /// The kernel is not as lowering leaves it; an earlier pass is at fault.
    #[error("kernel `{kernel}` is malformed: {what}")]
    Malformed {
        /// The kernel's name.
        kernel: String,
        /// What is wrong.
        what: String,
    },
    /// LLVM refused what this crate gave it: our bug.
    #[error("LLVM refused the generated code: {0}")]
    Llvm(String),
    /// The objects could not be made a library.
    #[error(transparent)]
    Export(#[from] ExportError),
}

fn near(candidates: &[String]) -> String {
    if candidates.is_empty() { String::new() } else { format!("; did you mean {}?", candidates.join(", ")) }
}
