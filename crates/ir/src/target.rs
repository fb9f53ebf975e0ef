//! What kernels are compiled for.

/// A compilation target: the back end and the processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The back end: `"llvm"` and, later, others.
    pub kind: String,
    /// Processor name as the back end knows it; empty for the host's own.
    pub mcpu: String,
    /// Processor features that are added or removed, as `+avx2,-fma`.
    pub mattr: String,
    /// Target triple; empty for the host's own.
    pub mtriple: String,
}

impl Default for Target {
    fn default() -> Self {
        Target { kind: "llvm".into(), mcpu: String::new(), mattr: String::new(), mtriple: String::new() }
    }
}
