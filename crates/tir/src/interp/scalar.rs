//! Values of the interpreter and the operators on them.

use half::{bf16, f16};
use relaxide_ffi::{DataType, SmallFloat};
use relaxide_ir::BinaryOp;
use relaxide_ir::prim::int_limits;

use super::{InterpError, Result};

/// One element. Its type is the expression's; an integer is kept as it is in its type, an unsigned 64-bit one by its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer or bool.
    Int(i64),
    /// A floating-point number, rounded to its type.
    Float(f64),
}

/// A value of an expression: one element, or one for each lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ScalarOrLanes {
    One(Scalar),
    Many(Vec<Scalar>),
}

impl Scalar {
    /// The value brought into a type of its own family: integers wrap, floats round.
    pub fn wrapped(self, dtype: DataType) -> Scalar {
        match self {
            Scalar::Int(v) if dtype.is_bool() => Scalar::Int(i64::from(v != 0)),
            Scalar::Int(v) if dtype.bits >= 64 => Scalar::Int(v),
            Scalar::Int(v) => {
                let unused = 64 - u32::from(dtype.bits);
                let shifted = v << unused;
                Scalar::Int(if dtype.is_uint() { ((shifted as u64) >> unused) as i64 } else { shifted >> unused })
            }
            Scalar::Float(v) => Scalar::Float(round_to(dtype, v)),
        }
    }

    /// The integer, of an integer or bool.
    pub fn as_int(self) -> Option<i64> {
        match self {
            Scalar::Int(v) => Some(v),
            Scalar::Float(_) => None,
        }
    }

    /// The value as a float, exactly as far as 64 bits allow.
    pub fn to_f64(self, dtype: DataType) -> f64 {
        match self {
            Scalar::Int(v) if dtype.is_uint() => v as u64 as f64,
            Scalar::Int(v) => v as f64,
            Scalar::Float(v) => v,
        }
    }

    /// Whether a condition holds.
    pub fn is_true(self) -> bool {
        match self {
            Scalar::Int(v) => v != 0,
            Scalar::Float(v) => v != 0.0,
        }
    }

    /// Conversion between element types.
    pub fn convert(self, from: DataType, to: DataType) -> Scalar {
        match self {
            _ if to.is_bool() => Scalar::Int(i64::from(self.is_true())),
            Scalar::Int(v) if to.is_float() => Scalar::Float(int_to_float(v, from, to)),
            Scalar::Int(_) | Scalar::Float(_) if to.is_float() => self.wrapped(to),
            Scalar::Int(_) => self.wrapped(to),
            Scalar::Float(v) => Scalar::Int(float_to_int(v, to)),
        }
    }

    /// Reads an element of a type from its bytes; `None` for a type without elements here. An element of less than a byte is
    /// the lower bits of one.
    pub fn from_bytes(dtype: DataType, bytes: &[u8]) -> Option<Scalar> {
        if let ([code], Some(family)) = (bytes, SmallFloat::of(dtype)) {
            return Some(Scalar::Float(family.decode(*code)));
        }
        Some(match (dtype.code, bytes) {
            (DataType::FLOAT, &[a, b]) => Scalar::Float(f16::from_le_bytes([a, b]).to_f64()),
            (DataType::BFLOAT, &[a, b]) => Scalar::Float(bf16::from_le_bytes([a, b]).to_f64()),
            (DataType::FLOAT, &[a, b, c, d]) => Scalar::Float(f64::from(f32::from_le_bytes([a, b, c, d]))),
            (DataType::FLOAT, bytes) => Scalar::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
            (DataType::INT | DataType::UINT | DataType::BOOL, bytes) if matches!(bytes.len(), 1 | 2 | 4 | 8) => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                Scalar::Int(i64::from_le_bytes(word)).wrapped(dtype)
            }
            _ => return None,
        })
    }

    /// The bytes of the element in a type; those of less than a byte are its lower bits, the others being zero.
    pub fn to_bytes(self, dtype: DataType) -> Vec<u8> {
        let (bytes, count) = self.encoded(dtype);
        bytes[..count].to_vec()
    }

    /// The same as the first of eight bytes, and how many.
    pub(super) fn encoded(self, dtype: DataType) -> ([u8; 8], usize) {
        fn first<const N: usize>(bytes: [u8; N]) -> ([u8; 8], usize) {
            let mut all = [0; 8];
            all[..N].copy_from_slice(&bytes);
            (all, N)
        }
        if let (Scalar::Float(v), Some(family)) = (self, SmallFloat::of(dtype)) {
            return first([family.encode(v)]);
        }
        match (self, dtype.code, dtype.bits) {
            (Scalar::Int(v), ..) if dtype.is_packed() => first([v as u8 & ((1 << dtype.bits.min(7)) - 1)]),
            (Scalar::Int(v), ..) => (v.to_le_bytes(), dtype.element().bytes().min(8)),
            (Scalar::Float(v), DataType::FLOAT, 16) => first(f16::from_f32(v as f32).to_le_bytes()),
            (Scalar::Float(v), DataType::BFLOAT, _) => first(bf16::from_f32(v as f32).to_le_bytes()),
            (Scalar::Float(v), _, 32) => first((v as f32).to_le_bytes()),
            (Scalar::Float(v), ..) => first(v.to_le_bytes()),
        }
    }
}

/// A float rounded to a type.
pub(super) fn round_to(dtype: DataType, v: f64) -> f64 {
    if let Some(family) = SmallFloat::of(dtype) {
        return family.decode(family.encode(v));
    }
    match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 16) => f16::from_f32(v as f32).to_f64(),
        (DataType::BFLOAT, 16) => bf16::from_f32(v as f32).to_f64(),
        (DataType::FLOAT, 32) => f64::from(v as f32),
        _ => v,
    }
}

fn int_to_float(v: i64, from: DataType, to: DataType) -> f64 {
    if to.bits == 64 {
        return if from.is_uint() { v as u64 as f64 } else { v as f64 };
    }
    // Through 64 bits an integer would be rounded twice.
    let single = if from.is_uint() { v as u64 as f32 } else { v as f32 };
    round_to(to, f64::from(single))
}

fn float_to_int(v: f64, to: DataType) -> i64 {
    let (low, high) = int_limits(to);
    if to.is_uint() {
        return (v as u64).min(high as u64) as i64;
    }
    (v as i64).clamp(low, high)
}

impl ScalarOrLanes {
    /// The element of a lane; a scalar is every lane.
    pub fn lane(&self, lane: usize) -> Result<Scalar> {
        match self {
            ScalarOrLanes::One(scalar) => Ok(*scalar),
            ScalarOrLanes::Many(lanes) => {
                lanes.get(lane).copied().ok_or_else(|| InterpError::Malformed("vectors of different lanes".into()))
            }
        }
    }

    /// A value of as many lanes as given.
    pub fn from_lanes(mut lanes: Vec<Scalar>) -> ScalarOrLanes {
        match lanes.len() {
            1 => ScalarOrLanes::One(lanes.remove(0)),
            _ => ScalarOrLanes::Many(lanes),
        }
    }
}

/// An operator on two elements of one type. `describe` is asked for the expression if there is no result.
pub(super) fn binary(
    op: BinaryOp,
    dtype: DataType,
    a: Scalar,
    b: Scalar,
    describe: impl Fn() -> String,
) -> Result<Scalar> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => int_binary(op, dtype, a, b)
            .map(|v| if op.is_comparison() { v } else { v.wrapped(dtype) })
            .ok_or_else(|| InterpError::Division { expression: describe(), a, b }),
        (Scalar::Float(a), Scalar::Float(b)) => Ok(float_binary(op, dtype, a, b)),
        _ => Err(InterpError::Malformed(format!("`{}` mixes integers and floats", describe()))),
    }
}

fn int_binary(op: BinaryOp, dtype: DataType, a: i64, b: i64) -> Option<Scalar> {
    use BinaryOp::*;
    let unsigned = dtype.is_uint();
    let less = if unsigned { (a as u64) < (b as u64) } else { a < b };
    let truth = |v: bool| i64::from(v);
    Some(Scalar::Int(match op {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Mul => a.wrapping_mul(b),
        Div | FloorDiv if unsigned => (a as u64).checked_div(b as u64)? as i64,
        Mod | FloorMod if unsigned => (a as u64).checked_rem(b as u64)? as i64,
        Div | Mod | FloorDiv | FloorMod => {
            let (lowest, _) = int_limits(dtype);
            if a == lowest && b == -1 {
                return None;
            }
            return relaxide_ir::prim::fold(op, a, b).map(Scalar::Int);
        }
        Min => {
            if less {
                a
            } else {
                b
            }
        }
        Max => {
            if less {
                b
            } else {
                a
            }
        }
        Eq => truth(a == b),
        Ne => truth(a != b),
        Lt => truth(less),
        Le => truth(less || a == b),
        Gt => truth(!less && a != b),
        Ge => truth(!less),
        And => truth(a != 0 && b != 0),
        Or => truth(a != 0 || b != 0),
    }))
}

fn float_binary(op: BinaryOp, dtype: DataType, a: f64, b: f64) -> Scalar {
    use BinaryOp::*;
    let double = dtype.bits == 64;
    let (x, y) = (a as f32, b as f32);
    // Smaller types are computed in single precision, like everything that is not double.
    let arith = |wide: fn(f64, f64) -> f64, narrow: fn(f32, f32) -> f32| {
        Scalar::Float(if double { wide(a, b) } else { round_to(dtype, f64::from(narrow(x, y))) })
    };
    let truth = |v: bool| Scalar::Int(i64::from(v));
    match op {
        Add => arith(|a, b| a + b, |a, b| a + b),
        Sub => arith(|a, b| a - b, |a, b| a - b),
        Mul => arith(|a, b| a * b, |a, b| a * b),
        Div => arith(|a, b| a / b, |a, b| a / b),
        Mod => arith(|a, b| a % b, |a, b| a % b),
        FloorDiv => arith(|a, b| (a / b).floor(), |a, b| (a / b).floor()),
        FloorMod => arith(|a, b| a - b * (a / b).floor(), |a, b| a - b * (a / b).floor()),
        // NaN if either is.
        Min => Scalar::Float(if a < b || a.is_nan() { a } else { b }),
        Max => Scalar::Float(if a > b || a.is_nan() { a } else { b }),
        Eq => truth(a == b),
        Ne => truth(a != b),
        Lt => truth(a < b),
        Le => truth(a <= b),
        Gt => truth(a > b),
        Ge => truth(a >= b),
        And => truth(a != 0.0 && b != 0.0),
        Or => truth(a != 0.0 || b != 0.0),
    }
}
