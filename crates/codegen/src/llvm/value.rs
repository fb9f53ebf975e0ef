//! Types and values of LLVM's text form, as this back end uses them.
//!
//! A TIR type is an element kind and a number of lanes. Floating-point numbers of sixteen bits and fewer are kept as their
//! bits (`i16`, `i8`): arithmetic on them happens in `f32` and rounds back, on any processor and without library calls.

use std::{fmt, rc::Rc};

use relaxide_ffi::{DataType, SmallFloat};

/// What one lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ScalarKind {
    Bool,
    Int {
        bits: u32,
        signed: bool,
    },
    /// Of eight bits and fewer.
    Small(SmallFloat),
    F16,
    BF16,
    F32,
    F64,
    Ptr,
}

/// A kind and how many lanes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ty {
    pub kind: ScalarKind,
    /// Of a scalable vector the multiplier, with [`SCALABLE`] set.
    pub lanes: u32,
}

/// Marks lanes that are multiplied by what the processor says when the kernel runs.
const SCALABLE: u32 = 1 << 31;

/// The lanes of a [`Ty`] for the lanes of a TIR type.
pub(crate) fn lanes_of(dtype: DataType) -> u32 {
    dtype.scalable_lanes().map_or(u32::from(dtype.lanes), |multiplier| SCALABLE | u32::from(multiplier))
}

/// The same for a number of lanes as ramps have it: negative for multiples of what the processor says. `None` for no number of
/// lanes.
pub(crate) fn lanes_of_count(lanes: i64) -> Option<u32> {
    let count = u32::try_from(lanes.unsigned_abs()).ok().filter(|count| (1..=4096).contains(count))?;
    Some(if lanes < 0 { SCALABLE | count } else { count })
}

impl ScalarKind {
    /// The width of a lane in memory.
    pub fn bits(self) -> u32 {
        match self {
            ScalarKind::Bool => 8,
            ScalarKind::Int { bits, .. } => bits,
            ScalarKind::Small(family) => family.bits,
            ScalarKind::F16 | ScalarKind::BF16 => 16,
            ScalarKind::F32 => 32,
            ScalarKind::F64 | ScalarKind::Ptr => 64,
        }
    }

    /// The same in bytes; of an element that shares one, that one.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// The alignment of a lane in memory that is certain on every machine.
    pub fn alignment(self) -> u64 {
        if self == ScalarKind::Ptr { 4 } else { self.bytes() }
    }

    pub fn is_float(self) -> bool {
        self.is_narrow_float() || matches!(self, ScalarKind::F32 | ScalarKind::F64)
    }

    pub fn is_narrow_float(self) -> bool {
        matches!(self, ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, ScalarKind::Int { signed: true, .. })
    }

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
    pub const BOOL: Ty = Ty::scalar(ScalarKind::Bool);
    pub const I8: Ty = Ty::signed(8);
    pub const I32: Ty = Ty::signed(32);
    pub const I64: Ty = Ty::signed(64);
    pub const F32: Ty = Ty::scalar(ScalarKind::F32);
    pub const F64: Ty = Ty::scalar(ScalarKind::F64);
    pub const PTR: Ty = Ty::scalar(ScalarKind::Ptr);

    const fn scalar(kind: ScalarKind) -> Ty {
        Ty { kind, lanes: 1 }
    }

    pub const fn signed(bits: u32) -> Ty {
        Ty::scalar(ScalarKind::Int { bits, signed: true })
    }

    /// The type of a TIR value; `None` if this back end has no such type.
    pub fn of(dtype: DataType) -> Option<Ty> {
        let bits = u32::from(dtype.bits);
        let kind = if dtype.is_bool() {
            ScalarKind::Bool
        } else if dtype.is_handle() {
            ScalarKind::Ptr
        } else if dtype.code == DataType::BFLOAT {
            ScalarKind::BF16
        } else if dtype.code == DataType::FLOAT {
            match bits {
                16 => ScalarKind::F16,
                32 => ScalarKind::F32,
                64 => ScalarKind::F64,
                _ => return None,
            }
        } else if let Some(family) = SmallFloat::of(dtype) {
            ScalarKind::Small(family)
        } else if matches!(bits, 2 | 4 | 8 | 16 | 32 | 64) && (dtype.is_int() || dtype.is_uint()) {
            ScalarKind::Int { bits, signed: dtype.is_int() }
        } else {
            return None;
        };
        (dtype.lanes > 0).then_some(Ty { kind, lanes: lanes_of(dtype) })
    }

    pub fn with_lanes(self, lanes: u32) -> Ty {
        Ty { lanes, ..self }
    }

    pub fn element(self) -> Ty {
        self.with_lanes(1)
    }

    /// The same lanes of another kind.
    pub fn with_kind(self, element: Ty) -> Ty {
        element.with_lanes(self.lanes)
    }

    pub fn is_vector(self) -> bool {
        self.lanes > 1
    }

    /// Whether the number of lanes is known only when the kernel runs.
    pub fn is_scalable(self) -> bool {
        self.lanes & SCALABLE != 0
    }

    /// How many lanes there are at least; of a scalable vector, the multiplier.
    pub fn least_lanes(self) -> u32 {
        self.lanes & !SCALABLE
    }

    /// The type in memory: a bool takes a byte, and so does what shares one.
    pub fn in_memory(self) -> Ty {
        if self.kind == ScalarKind::Bool || self.kind.shares_bytes() { self.with_kind(Ty::I8) } else { self }
    }

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
