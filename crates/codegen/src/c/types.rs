//! The types of C that elements and values have.

use std::borrow::Cow;

use super::small_floats;
use crate::shared::ScalarKind;

/// The type of a value in an expression.
pub(crate) fn value_type(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Bool => "bool",
        _ => memory_type(kind),
    }
}

/// The type of an element in memory: a bool takes a byte, floats of sixteen bits and fewer are their bits.
pub(crate) fn memory_type(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Bool | ScalarKind::Small(_) | ScalarKind::Int { bits: 8, signed: false } => "uint8_t",
        ScalarKind::Int { bits: 8, .. } => "int8_t",
        ScalarKind::Int { bits: 16, signed: false } => "uint16_t",
        ScalarKind::Int { bits: 16, .. } => "int16_t",
        ScalarKind::Int { bits: 32, signed: false } => "uint32_t",
        ScalarKind::Int { bits: 32, .. } => "int32_t",
        ScalarKind::Int { signed: false, .. } => "uint64_t",
        ScalarKind::Int { .. } => "int64_t",
        ScalarKind::F16 | ScalarKind::BF16 => "uint16_t",
        ScalarKind::F32 => "float",
        ScalarKind::F64 => "double",
        ScalarKind::Ptr => "void *",
    }
}

/// How a type is called in the names of functions.
pub(crate) fn suffix(kind: ScalarKind) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        ScalarKind::Bool => "bool",
        ScalarKind::Int { bits: 8, signed: false } => "u8",
        ScalarKind::Int { bits: 8, .. } => "i8",
        ScalarKind::Int { bits: 16, signed: false } => "u16",
        ScalarKind::Int { bits: 16, .. } => "i16",
        ScalarKind::Int { bits: 32, signed: false } => "u32",
        ScalarKind::Int { bits: 32, .. } => "i32",
        ScalarKind::Int { signed: false, .. } => "u64",
        ScalarKind::Int { .. } => "i64",
        ScalarKind::Small(family) => return small_floats::name(family).into(),
        ScalarKind::F16 => "f16",
        ScalarKind::BF16 => "bf16",
        ScalarKind::F32 => "f32",
        ScalarKind::F64 => "f64",
        ScalarKind::Ptr => "ptr",
    })
}

/// A declaration without its semicolon: `float x`, `void *p`.
pub(crate) fn declare(ty: &str, name: &str) -> String {
    if ty.ends_with('*') { format!("{ty}{name}") } else { format!("{ty} {name}") }
}
