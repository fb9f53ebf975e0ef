//! The types of C that elements and values have.

use std::borrow::Cow;

use super::small_floats;
use crate::llvm::Kind;

/// The type of a value in an expression.
pub(crate) fn value_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        _ => memory_type(kind),
    }
}

/// The type of an element in memory: a bool takes a byte, floats of sixteen bits and fewer are their bits.
pub(crate) fn memory_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool | Kind::Small(_) | Kind::Int { bits: 8, signed: false } => "uint8_t",
        Kind::Int { bits: 8, .. } => "int8_t",
        Kind::Int { bits: 16, signed: false } => "uint16_t",
        Kind::Int { bits: 16, .. } => "int16_t",
        Kind::Int { bits: 32, signed: false } => "uint32_t",
        Kind::Int { bits: 32, .. } => "int32_t",
        Kind::Int { signed: false, .. } => "uint64_t",
        Kind::Int { .. } => "int64_t",
        Kind::F16 | Kind::BF16 => "uint16_t",
        Kind::F32 => "float",
        Kind::F64 => "double",
        Kind::Ptr => "void *",
    }
}

/// How a type is called in the names of functions.
pub(crate) fn suffix(kind: Kind) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        Kind::Bool => "bool",
        Kind::Int { bits: 8, signed: false } => "u8",
        Kind::Int { bits: 8, .. } => "i8",
        Kind::Int { bits: 16, signed: false } => "u16",
        Kind::Int { bits: 16, .. } => "i16",
        Kind::Int { bits: 32, signed: false } => "u32",
        Kind::Int { bits: 32, .. } => "i32",
        Kind::Int { signed: false, .. } => "u64",
        Kind::Int { .. } => "i64",
        Kind::Small(family) => return small_floats::name(family).into(),
        Kind::F16 => "f16",
        Kind::BF16 => "bf16",
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::Ptr => "ptr",
    })
}

/// A declaration without its semicolon: `float x`, `void *p`.
pub(crate) fn declare(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
}
