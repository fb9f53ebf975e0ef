//! Types and values of LLVM's text form, as this back end uses them.
//!
//! A TIR type is an element kind and a number of lanes. Floating-point numbers of sixteen bits and fewer are kept as their
//! bits (`i16`, `i8`): arithmetic on them happens in `f32` and rounds back, on any processor and without library calls.

use std::{fmt, rc::Rc};

pub(crate) use crate::shared::scalar::{Overflow, ScalarKind, Ty, lanes_of, lanes_of_count};

impl ScalarKind {
    /// LLVM's name of a lane's type.
    fn text(self) -> &'static str {
        match self {
            ScalarKind::Bool => "i1",
            ScalarKind::Int { bits: 2, .. } => "i2",
            ScalarKind::Int { bits: 4, .. } => "i4",
            ScalarKind::Int { bits: 8, .. } | ScalarKind::Small(_) => "i8",
            ScalarKind::Int { bits: 16, .. } | ScalarKind::F16 | ScalarKind::BF16 => "i16",
            ScalarKind::Int { bits: 32, .. } => "i32",
            ScalarKind::Int { .. } => "i64",
            ScalarKind::F32 => "float",
            ScalarKind::F64 => "double",
            ScalarKind::Ptr => "ptr",
        }
    }
}

impl Ty {
    /// The suffix that names this type in an overloaded intrinsic.
    pub fn mangled(self) -> String {
        let element = match self.kind {
            ScalarKind::F32 => "f32",
            ScalarKind::F64 => "f64",
            ScalarKind::Ptr => "p0",
            other => other.text(),
        };
        match (self.is_vector(), self.is_scalable()) {
            (false, _) => element.to_string(),
            (true, false) => format!("v{}{element}", self.lanes),
            (true, true) => format!("nxv{}{element}", self.least_lanes()),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lanes, element) = (self.least_lanes(), self.kind.text());
        match (self.is_vector(), self.is_scalable()) {
            (false, _) => f.write_str(element),
            (true, false) => write!(f, "<{lanes} x {element}>"),
            (true, true) => write!(f, "<vscale x {lanes} x {element}>"),
        }
    }
}

/// A value: its type and the text by which an instruction refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Val {
    pub ty: Ty,
    pub text: Rc<str>,
    /// How deep the region is that it was made in; [`HERE`](Val::HERE) where that is not known.
    pub depth: u16,
}

impl Val {
    /// In the region that is being written.
    pub const HERE: u16 = u16::MAX;

    pub fn new(ty: Ty, text: impl Into<Rc<str>>) -> Val {
        let text = text.into();
        let depth = if text.starts_with('%') { Val::HERE } else { 0 };
        Val { ty, text, depth }
    }

    /// An integer or bool literal in every lane.
    pub fn int(ty: Ty, value: i64) -> Val {
        let literal = match ty.kind {
            ScalarKind::Bool => (value != 0).to_string(),
            ScalarKind::Int { bits, .. } => wrap(value, bits).to_string(),
            _ => value.to_string(),
        };
        Val::splat_literal(ty, literal)
    }

    /// A floating-point literal in every lane.
    pub fn float(ty: Ty, value: f64) -> Val {
        let literal = match ty.kind {
            ScalarKind::Small(family) => (family.encode(value) as i8).to_string(),
            ScalarKind::F16 => (half::f16::from_f64(value).to_bits() as i16).to_string(),
            ScalarKind::BF16 => (half::bf16::from_f64(value).to_bits() as i16).to_string(),
            // Both widths are written as the bits of a double; that of a float must be exact.
            ScalarKind::F32 => format!("0x{:016X}", f64::from(value as f32).to_bits()),
            _ => format!("0x{:016X}", value.to_bits()),
        };
        Val::splat_literal(ty, literal)
    }

    /// Whether it is the literal of a float, in one lane or all, that is not NaN.
    pub fn is_number(&self) -> bool {
        let literal = self.text.trim_end_matches(')').rsplit(' ').next().unwrap_or_default();
        let bits = literal.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        bits.is_some_and(|bits| !f64::from_bits(bits).is_nan())
    }

    /// Zero of any type.
    pub fn zero(ty: Ty) -> Val {
        match ty.kind {
            ScalarKind::Ptr => Val::splat_literal(ty, "null".into()),
            // Of powers of two, none is zero: the bits are not zero either.
            ScalarKind::Small(_) | ScalarKind::F32 | ScalarKind::F64 => Val::float(ty, 0.0),
            _ => Val::int(ty, 0),
        }
    }

    fn splat_literal(ty: Ty, literal: String) -> Val {
        if ty.is_vector() { Val::new(ty, format!("splat ({} {literal})", ty.element())) } else { Val::new(ty, literal) }
    }

    /// The number in every lane, if it is an integer's literal.
    pub fn as_int_literal(&self) -> Option<i64> {
        self.literal().parse().ok()
    }

    /// The number in every lane, if it is the literal of a float of 32 or 64 bits.
    pub fn as_float_literal(&self) -> Option<f64> {
        let bits =
            self.literal().strip_prefix("0x").filter(|_| matches!(self.ty.kind, ScalarKind::F32 | ScalarKind::F64))?;
        u64::from_str_radix(bits, 16).ok().map(f64::from_bits)
    }

    /// The text without a type.
    fn literal(&self) -> &str {
        let text = self.text.strip_prefix("splat (").and_then(|rest| rest.strip_suffix(')'));
        text.and_then(|typed| typed.rsplit(' ').next()).unwrap_or(&self.text)
    }
}

/// The value that `bits` bits of two's complement hold.
fn wrap(value: i64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    (value << unused) >> unused
}

/// With its type, as operands are written.
impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ty, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_written_as_llvm_reads_them() {
        assert_eq!(Val::int(Ty::I32.with_lanes(4), -1).to_string(), "<4 x i32> splat (i32 -1)");
        assert_eq!(Val::int(Ty::I8, 255).to_string(), "i8 -1");
        assert_eq!(Val::int(Ty::BOOL, 1).to_string(), "i1 true");
        assert_eq!(Val::float(Ty::F32, 1.0).to_string(), "float 0x3FF0000000000000");
        assert_eq!(Val::float(Ty::F32, 0.1).to_string(), "float 0x3FB99999A0000000");
        assert_eq!(Val::int(Ty::I64.with_lanes(2), 7).as_int_literal(), Some(7));
        assert_eq!(Val::new(Ty::I64, "%v7").as_int_literal(), None);
        assert_eq!(Val::float(Ty::F32.with_lanes(8), -0.5).as_float_literal(), Some(-0.5));
        assert_eq!(Val::new(Ty::F32, "%v7").as_float_literal(), None);
    }
}
