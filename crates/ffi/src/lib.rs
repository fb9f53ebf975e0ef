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
mod append_only;
mod array;
mod big_int;
mod borrow_cell;
mod builtin;
pub mod capi;
mod container_lock;
mod convert;
mod device;
mod dlpack;
mod dtype;
pub mod env;
mod error;
pub mod error_slot;
mod field;
pub mod fork;
mod function;
mod global;
mod graph;
mod handle;
mod host;
pub mod json;
mod list;
mod malloc;
mod map;
mod module;
mod number_text;
mod object;
pub mod packing;
pub mod reflect;
mod reflected;
mod saved_bytes;
mod seq;
mod shape;
pub mod signal;
mod small_float;
mod stack;
pub mod stream;
mod string;
mod structural;
mod tensor;
mod tensor_elements;
mod tensor_source;
mod traverse;
pub mod type_attr;
pub mod type_info;

pub use any::{Any, AnyView};
pub use array::Array;
pub use big_int::BigInt;
pub use convert::{FromAny, handle_from_any};
pub use device::Device;
pub use dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, Requirements};
pub use dtype::DataType;
pub use error::{Error, ErrorKind, Result};
pub use field::{Field, Storage};
pub use function::{Function, TypedBody};
pub use global::{
    GlobalFunction, describe_global, get_global, global_names, register_global, remove_global, replace_global,
};
pub use graph::MAX_DEPTH;
pub use host::{HostLock, KeptLock};
pub use list::List;
pub use map::{Dict, Entries, Map};
pub use module::{Module, ModuleImpl, ModuleProperties};
pub use object::{
    CustomAllocator, Handle, NodeKind, Object, ObjectHeader, ObjectRef, Ref, Tail, Weak, allocator, set_allocator,
};
pub use relaxide_ffi_derive::{Object, ObjectEnum};
pub use saved_bytes::SavedBytes;
pub use shape::Shape;
pub use small_float::{SmallFloat, Special};
pub use string::{Bytes, Str};
pub use structural::{
    CompareOptions, FreeVars, Mismatch, PathStep, Side, StructuralEqual, StructuralHash, StructuralKey, first_mismatch,
    structural_equal, structural_hash, structural_key, value_hash,
};
pub use tensor::{ALIGNMENT, Element, Tensor};
