//! The Relax virtual machine: bytecode, executable, verifier, interpreter and builtins.
//!
//! The compiler builds an [`Executable`] with an [`ExecBuilder`], or one is read from a file; [`verify`] makes it a
//! [`VerifiedExecutable`], the only thing that runs.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod builder;
pub mod bytecode;
pub mod executable;
mod formalize;
pub mod verifier;

pub use builder::{BuildError, ExecBuilder};
pub use bytecode::{Arg, Register};
pub use executable::{Executable, FuncInfo, FuncKind};
pub use verifier::{VerifiedExecutable, VerifyError, verify};
