//! Relay: its IR, text format, types, passes and the compiler to the Relay VM.
//!
//! Relay is the functional language of TVM's earlier releases: tensors, closures, `let`, algebraic data types, pattern
//! matching, references, recursion. Here a program is read ([`text`], [`json`]), typed ([`infer()`]), run by a reference
//! interpreter ([`interpret`]), or compiled: [`vm_compile`] makes an executable of the Relay VM and kernels, which go the
//! way of Relax's kernels. No operator is computed here: [`op`] says what each is in Relax.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod compile;
pub mod convert;
pub mod devices;
mod expr;
mod infer;
mod interpret;
pub mod json;
mod module;
pub mod op;
pub mod prelude;
mod rewrite;
mod rooms;
pub mod scalar;
mod stack;
pub mod testing;
pub mod text;
mod to_relax;
pub mod transform;
mod types;
pub mod visit;
mod well_formed;

pub use compile::{CompileError, Compiled, VmOptions, vm_compile};
pub use devices::{DeviceConfig, VirtualDevice, plan_devices};
pub use expr::*;
pub use infer::{TypeError, Types, infer, infer_expr, parse_and_infer, unmatched};
pub use interpret::{InterpretedFunction, Interpreter};
pub use module::{ConstructorDef, Module, constructor_tag};
pub use rewrite::rewrite;
pub use stack::{MAX_DEPTH, deep, depth};
pub use to_relax::to_relax;
pub use transform::to_a_normal_form;
pub use types::*;
pub use well_formed::well_formed;
