//! Values, objects, functions and errors behind the tvm-ffi 0.1 C ABI.
//!
//! Everything that crosses a border — VM registers, function arguments, C callers, front ends — is an [`Any`]: sixteen
//! bytes that hold a plain value or one reference to an object. Objects are Rust structs behind a 24-byte header with an
//! atomic count ([`Ref`], [`ObjectRef`]); `#[derive(Object)]` makes a struct one and gives it reflection and structural
//! equality. The layouts that other runtimes read are fixed by the interface and asserted at compile time.
#![deny(missing_docs)]

extern crate self as relaxide_ffi;

pub mod abi;
mod any;
mod array;
pub mod capi;
mod convert;
mod device;
mod dlpack;
mod dtype;
pub mod env;
mod error;
mod field;
mod function;
mod global;
mod handle;
mod list;
mod map;
mod module;
mod object;
pub mod raised;
pub mod reflect;
mod reflected;
mod shape;
pub mod signal;
pub mod stream;
mod string;
mod structural;
mod tensor;
pub mod type_info;

pub use any::{Any, AnyView};
pub use array::Array;
pub use convert::{FromAny, handle_from_any};
pub use device::Device;
pub use dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, Requirements};
pub use dtype::DataType;
pub use error::{Error, ErrorKind, Result};
pub use field::Field;
pub use function::{Function, TypedBody};
pub use global::{
    GlobalFunction, describe_global, get_global, global_names, register_global, remove_global, replace_global,
};
pub use list::List;
pub use map::{Dict, Key, Map};
pub use module::{Module, ModuleImpl, ModuleProperties};
pub use object::{Handle, NodeKind, Object, ObjectHeader, ObjectRef, Ref, Weak};
pub use relaxide_ffi_derive::{Object, ObjectEnum};
pub use shape::Shape;
pub use string::{Bytes, Str};
pub use structural::{Mismatch, PathStep, StructuralEqual, StructuralHash, structural_equal, structural_hash};
pub use tensor::{ALIGNMENT, Element, Tensor};
