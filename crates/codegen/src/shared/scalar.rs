//! Types of kernels' values as back ends for processors see them: what a lane holds, and how many lanes there are.
//!
//! Floating-point numbers of sixteen bits and fewer are kept as their bits: arithmetic on them happens in single precision and rounds back.

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
}

/// What integer arithmetic may assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Overflow {
    /// Results wrap around.
    Wraps,
    /// Results fit: indices, extents, offsets.
    Never,
}
