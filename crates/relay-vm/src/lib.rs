//! The Relay virtual machine: instructions, executable, verifier, interpreter, data and closures.
//!
//! An [`Executable`] is built by the compiler or read from a file of any release that had this machine ([`Form`] names the
//! forms); [`verify`] checks every instruction once and makes it a [`VerifiedExecutable`], the only thing that a
//! [`VirtualMachine`] runs. What this machine has in common with Relax's, reading and writing of bytes and tensors, is in
//! `relaxide-vm`, once.
//!
//! The machine keeps its frames and registers in memory of its own: neither the depth of recursion nor the length of a run
//! is bounded by the native stack, and a call in the last place takes the frame of its caller.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod executable;
pub mod graph;
mod instruction;
mod machine;
mod object;
pub mod params;
mod read;
mod text;
mod verify;
mod write;

pub use executable::{Constant, Executable, Form, VirtualDevice, VmFunction};
pub use instruction::{Alignment, Instruction, NoForm, Register, Size};
pub use machine::{Limits, MachineOptions, ProfileRow, VirtualMachine, register};
pub use object::{Adt, Closure};
pub use read::read;
pub use relaxide_vm::RefValue;
pub use relaxide_vm::executable::stream::ReadError;
pub use verify::{Fault, VerifiedExecutable, VerifyError, verify};
pub use write::write;
