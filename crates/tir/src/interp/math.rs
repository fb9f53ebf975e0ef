//! Element-wise intrinsics on elements.

use half::{bf16, f16};
use relaxide_ffi::DataType;
use relaxide_ir::prim::int_limits;

use super::scalar::{Scalar, round_to};
use super::{InterpError, Result};
use crate::intrin::Intrinsic;

/// The result of an element-wise intrinsic; `dtype` is its type and `of` that of the first argument.
pub(super) fn apply(intrinsic: Intrinsic, args: &[Scalar], of: DataType, dtype: DataType) -> Result<Scalar> {
    match (intrinsic, args) {
        (Intrinsic::MinValue, []) if dtype.is_float() => Ok(Scalar::Float(f64::NEG_INFINITY)),
        (Intrinsic::MaxValue, []) if dtype.is_float() => Ok(Scalar::Float(f64::INFINITY)),
        (Intrinsic::MinValue, []) => Ok(Scalar::Int(int_limits(dtype).0)),
        (Intrinsic::MaxValue, []) => Ok(Scalar::Int(int_limits(dtype).1)),
        (Intrinsic::Reinterpret, [a]) => reinterpret(*a, of, dtype),
        (Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite, [a]) => {
            let v = a.to_f64(of);
            Ok(Scalar::Int(i64::from(match intrinsic {
                Intrinsic::IsNan => v.is_nan(),
                Intrinsic::IsInf => v.is_infinite(),
                _ => v.is_finite(),
            })))
        }
        (Intrinsic::Ldexp, [Scalar::Float(a), Scalar::Int(by)]) => {
            // Twice by half: the power itself may be too large for its type.
            let by = (*by).clamp(-2200, 2200) as i32;
            let value = a * 2f64.powi(by / 2) * 2f64.powi(by - by / 2);
            Ok(Scalar::Float(round_to(dtype, value)))
        }
        (_, [Scalar::Int(a)]) => int_unary(intrinsic, *a, of).map(|v| v.wrapped(dtype)),
        (_, [Scalar::Int(a), Scalar::Int(b)]) => int_binary(intrinsic, *a, *b, of).map(|v| v.wrapped(dtype)),
        (_, [Scalar::Float(a)]) => unary(intrinsic, *a, of).map(|v| Scalar::Float(round_to(dtype, v))),
        (_, [Scalar::Float(a), Scalar::Float(b)]) => {
            binary(intrinsic, *a, *b, of).map(|v| Scalar::Float(round_to(dtype, v)))
        }
        (Intrinsic::Fma, [Scalar::Float(a), Scalar::Float(b), Scalar::Float(c)]) => Ok(Scalar::Float(match of.bits {
            64 => a.mul_add(*b, *c),
            _ => round_to(dtype, f64::from((*a as f32).mul_add(*b as f32, *c as f32))),
        })),
        (Intrinsic::Fma, [Scalar::Int(a), Scalar::Int(b), Scalar::Int(c)]) => {
            Ok(Scalar::Int(a.wrapping_mul(*b).wrapping_add(*c)).wrapped(dtype))
        }
        _ => Err(mismatch(intrinsic, of)),
    }
}

fn mismatch(intrinsic: Intrinsic, of: DataType) -> InterpError {
    InterpError::Malformed(format!("`{}` of {of}", intrinsic.name()))
}

fn reinterpret(a: Scalar, from: DataType, to: DataType) -> Result<Scalar> {
    let (bytes, count) = a.encoded(from);
    let width = |dtype: DataType| if dtype.is_packed() { usize::from(dtype.bits) } else { dtype.element().bytes() * 8 };
    let same_size = width(from) == width(to);
    same_size
        .then(|| Scalar::from_bytes(to, &bytes[..count]))
        .flatten()
        .ok_or_else(|| InterpError::Malformed(format!("{from} reinterpreted as {to}")))
}

/// Bits of the type, without sign extension.
fn bits_of(v: i64, dtype: DataType) -> u64 {
    (v as u64) & (u64::MAX >> (64 - u32::from(dtype.bits.clamp(1, 64))))
}

fn int_unary(intrinsic: Intrinsic, a: i64, of: DataType) -> Result<Scalar> {
    use Intrinsic::*;
    Ok(Scalar::Int(match intrinsic {
        BitwiseNot if of.is_bool() => i64::from(a == 0),
        BitwiseNot => !a,
        Popcount => i64::from(bits_of(a, of).count_ones()),
        Clz => i64::from(bits_of(a, of).leading_zeros()) - (64 - i64::from(of.bits)),
        Fabs if of.is_int() => a.wrapping_abs(),
        Fabs | Floor | Ceil | Round | Nearbyint | Trunc | Likely => a,
        _ => return Err(mismatch(intrinsic, of)),
    }))
}

fn int_binary(intrinsic: Intrinsic, a: i64, b: i64, of: DataType) -> Result<Scalar> {
    use Intrinsic::*;
    let amount = (b as u32) & (u32::from(of.bits.max(1)) - 1);
    Ok(Scalar::Int(match intrinsic {
        BitwiseAnd => a & b,
        BitwiseOr => a | b,
        BitwiseXor => a ^ b,
        ShiftLeft => a.wrapping_shl(amount),
        ShiftRight if of.is_uint() => ((a as u64) >> amount) as i64,
        ShiftRight => a >> amount,
        Pow => integer_power(a, b).ok_or_else(|| mismatch(intrinsic, of))?,
        _ => return Err(mismatch(intrinsic, of)),
    }))
}

/// Wrapping power; a negative exponent has no integer result.
fn integer_power(base: i64, exponent: i64) -> Option<i64> {
    let (mut result, mut base, mut left) = (1i64, base, u64::try_from(exponent).ok()?);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    Some(result)
}

/// Functions of one float: in double precision for `float64`, else in single precision.
fn unary(intrinsic: Intrinsic, a: f64, of: DataType) -> Result<f64> {
    macro_rules! table {
        ($($variant:ident => $wide:expr, $narrow:expr;)*) => {
            match intrinsic {
                $(Intrinsic::$variant if of.bits == 64 => { let f: fn(f64) -> f64 = $wide; f(a) })*
                $(Intrinsic::$variant => { let f: fn(f32) -> f32 = $narrow; f64::from(f(a as f32)) })*
                _ => return Err(mismatch(intrinsic, of)),
            }
        };
    }
    Ok(table! {
        Exp => f64::exp, f32::exp;
        ExpNonpositive => f64::exp, f32::exp;
        Exp2 => f64::exp2, f32::exp2;
        Exp10 => |x| 10f64.powf(x), |x| 10f32.powf(x);
        Expm1 => f64::exp_m1, f32::exp_m1;
        Log => f64::ln, f32::ln;
        Log2 => f64::log2, f32::log2;
        Log10 => f64::log10, f32::log10;
        Log1p => f64::ln_1p, f32::ln_1p;
        Sqrt => f64::sqrt, f32::sqrt;
        Rsqrt => |x| 1.0 / x.sqrt(), |x| 1.0 / x.sqrt();
        Tanh => f64::tanh, f32::tanh;
        Sigmoid => |x| 1.0 / (1.0 + (-x).exp()), |x| 1.0 / (1.0 + (-x).exp());
        Erf => libm::erf, libm::erff;
        Sin => f64::sin, f32::sin;
        Cos => f64::cos, f32::cos;
        Tan => f64::tan, f32::tan;
        Asin => f64::asin, f32::asin;
        Acos => f64::acos, f32::acos;
        Atan => f64::atan, f32::atan;
        Sinh => f64::sinh, f32::sinh;
        Cosh => f64::cosh, f32::cosh;
        Asinh => f64::asinh, f32::asinh;
        Acosh => f64::acosh, f32::acosh;
        Atanh => f64::atanh, f32::atanh;
        Floor => f64::floor, f32::floor;
        Ceil => f64::ceil, f32::ceil;
        Round => f64::round_ties_even, f32::round_ties_even;
        Nearbyint => f64::round_ties_even, f32::round_ties_even;
        Trunc => f64::trunc, f32::trunc;
        Fabs => f64::abs, f32::abs;
    })
}

fn binary(intrinsic: Intrinsic, a: f64, b: f64, of: DataType) -> Result<f64> {
    use Intrinsic::*;
    let double = of.bits == 64;
    let pick = |wide: fn(f64, f64) -> f64, narrow: fn(f32, f32) -> f32| {
        if double { wide(a, b) } else { f64::from(narrow(a as f32, b as f32)) }
    };
    Ok(match intrinsic {
        Atan2 => pick(f64::atan2, f32::atan2),
        Pow => pick(f64::powf, f32::powf),
        Hypot => pick(f64::hypot, f32::hypot),
        Copysign => pick(f64::copysign, f32::copysign),
        Fmod => pick(|a, b| a % b, |a, b| a % b),
        Nextafter => nextafter(a, b, of)?,
        _ => return Err(mismatch(intrinsic, of)),
    })
}

fn nextafter(a: f64, b: f64, of: DataType) -> Result<f64> {
    if a.is_nan() || b.is_nan() {
        return Ok(f64::NAN);
    }
    if a == b {
        return Ok(b);
    }
    let up = b > a;
    Ok(match (of.code, of.bits) {
        (DataType::FLOAT, 64) => {
            if up {
                a.next_up()
            } else {
                a.next_down()
            }
        }
        (DataType::FLOAT, 32) => f64::from(if up { (a as f32).next_up() } else { (a as f32).next_down() }),
        (DataType::FLOAT, 16) => f16::from_bits(step(f16::from_f64(a).to_bits(), up)).to_f64(),
        (DataType::BFLOAT, 16) => bf16::from_bits(step(bf16::from_f64(a).to_bits(), up)).to_f64(),
        _ => return Err(mismatch(Intrinsic::Nextafter, of)),
    })
}

/// The bits of the neighbour of a 16-bit float: away from zero they count up, across zero they change sign.
fn step(bits: u16, up: bool) -> u16 {
    let negative = bits & 0x8000 != 0;
    match bits & 0x7fff {
        0 if up => 0x0001,
        0 => 0x8001,
        _ if negative == up => bits - 1,
        _ => bits + 1,
    }
}
