//! Conversions between element types.
//!
//! Rules, as in C where C has one: float to integer truncates, and saturates where C is undefined (NaN gives zero); to
//! bool asks whether it is not zero; to a narrower float rounds to nearest even.

use super::{
    function::FunctionText,
    value::{ScalarKind, Ty, Val},
};

impl FunctionText<'_> {
    /// `value` as another kind, lane by lane.
    pub fn convert(&mut self, value: &Val, to: Ty) -> Val {
        let to = to.with_lanes(value.ty.lanes);
        let from = value.ty;
        if from == to {
            return value.clone();
        }
        match (from.kind, to.kind) {
            (ScalarKind::F64, ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16) => {
                let odd = self.round_to_odd(value);
                self.narrow(&odd, to)
            }
            (_, ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16) => {
                let wide = self.convert(value, to.with_kind(Ty::F32));
                self.narrow(&wide, to)
            }
            (ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16, _) => {
                let wide = self.widen(value);
                self.convert(&wide, to)
            }
            (_, ScalarKind::Bool) => self.not_zero(value),
            (ScalarKind::Bool, ScalarKind::F32 | ScalarKind::F64) => self.cast("uitofp", value, to),
            (ScalarKind::Bool, ScalarKind::Int { .. }) => self.cast("zext", value, to),
            (ScalarKind::Int { bits, signed }, ScalarKind::Int { bits: wanted, .. }) => match wanted.cmp(&bits) {
                std::cmp::Ordering::Less => self.cast("trunc", value, to),
                std::cmp::Ordering::Equal => Val { ty: to, ..value.clone() },
                std::cmp::Ordering::Greater => self.cast(if signed { "sext" } else { "zext" }, value, to),
            },
            (ScalarKind::Int { signed, .. }, ScalarKind::F32 | ScalarKind::F64) => {
                self.cast(if signed { "sitofp" } else { "uitofp" }, value, to)
            }
            (ScalarKind::F32 | ScalarKind::F64, ScalarKind::Int { bits, signed }) if from.is_vector() => {
                self.saturate(value, to, bits, signed)
            }
            (ScalarKind::F32 | ScalarKind::F64, ScalarKind::Int { signed, .. }) => {
                let name = if signed { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
                self.call(&format!("{name}.{}.{}", to.mangled(), from.mangled()), to, &[value])
            }
            (ScalarKind::F32, ScalarKind::F64) => self.cast("fpext", value, to),
            (ScalarKind::F64, ScalarKind::F32) => self.cast("fptrunc", value, to),
            (ScalarKind::Ptr, ScalarKind::Int { .. }) => self.cast("ptrtoint", value, to),
            (ScalarKind::Int { .. }, ScalarKind::Ptr) => self.cast("inttoptr", value, to),
            // Pointers and floats have no conversion; verification before this keeps such casts out.
            (ScalarKind::Ptr, _)
            | (_, ScalarKind::Ptr)
            | (ScalarKind::F32, ScalarKind::F32)
            | (ScalarKind::F64, ScalarKind::F64) => value.clone(),
        }
    }

    /// A vector of floats as integers: LLVM's saturating conversion goes lane by lane.
    fn saturate(&mut self, value: &Val, to: Ty, bits: u32, signed: bool) -> Val {
        let from = value.ty;
        let (low, end) = match signed {
            true => (-(2f64.powi(bits as i32 - 1)), 2f64.powi(bits as i32 - 1)),
            false => (0.0, 2f64.powi(bits as i32)),
        };
        // The last number before the end, if not of the integers then of the floats.
        let is_double = from.kind == ScalarKind::F64;
        let is_exact = bits <= if is_double { f64::MANTISSA_DIGITS } else { f32::MANTISSA_DIGITS };
        let last = match () {
            () if is_exact => end - 1.0,
            () if is_double => end.next_down(),
            () => f64::from((end as f32).next_down()),
        };
        let is_number = self.fcmp("ord", value, value);
        let number = self.select(&is_number, value, &Val::zero(from));
        let bounded = self.clamp(&number, low, last);
        let result = match (bits, signed) {
            (32 | 64, true) => self.cast("fptosi", &bounded, to),
            (32 | 64, false) => self.cast("fptoui", &bounded, to),
            _ => {
                let wide = self.cast("fptosi", &bounded, to.with_kind(Ty::I32));
                self.convert(&wide, to)
            }
        };
        if is_exact {
            return result;
        }
        let beyond = self.fcmp("oge", value, &Val::float(from, end));
        // As many ones as the type has, without that of the sign.
        let largest = (u64::MAX >> (64 - bits + u32::from(signed))).cast_signed();
        self.select(&beyond, &Val::int(to, largest), &result)
    }

    /// The same bits as another type of the same width.
    pub fn bitcast(&mut self, value: &Val, to: Ty) -> Val {
        self.cast("bitcast", value, to.with_lanes(value.ty.lanes))
    }

    /// Whether each lane is not zero; NaN is not.
    pub fn not_zero(&mut self, value: &Val) -> Val {
        match value.ty.kind {
            ScalarKind::Bool => value.clone(),
            ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16 => {
                let wide = self.widen(value);
                self.not_zero(&wide)
            }
            ScalarKind::F32 | ScalarKind::F64 => self.fcmp("une", value, &Val::zero(value.ty)),
            ScalarKind::Int { .. } | ScalarKind::Ptr => self.icmp("ne", value, &Val::zero(value.ty)),
        }
    }

    /// A float of sixteen bits or fewer, or any other value unchanged, as it is computed with.
    pub fn widen(&mut self, value: &Val) -> Val {
        let wide = value.ty.with_kind(Ty::F32);
        match value.ty.kind {
            ScalarKind::BF16 => {
                let bits = self.cast("zext", value, value.ty.with_kind(Ty::I32));
                let shifted = self.op("shl", &bits, &Val::int(bits.ty, 16));
                self.bitcast(&shifted, wide)
            }
            ScalarKind::F16 if self.native_f16 => {
                let half = self.half_bits(value);
                self.emit(wide, format_args!("fpext {half} to {wide}"))
            }
            ScalarKind::F16 => self.widen_f16(value),
            ScalarKind::Small(family) => self.widen_small(value, family),
            _ => value.clone(),
        }
    }

    /// An `f32` rounded to a float of sixteen bits or fewer; any other wanted type leaves it unchanged.
    pub fn narrow(&mut self, value: &Val, to: Ty) -> Val {
        let to = to.with_lanes(value.ty.lanes);
        match to.kind {
            ScalarKind::BF16 => self.narrow_bf16(value, to),
            ScalarKind::F16 if self.native_f16 => {
                let half = half_type(to);
                let number = self.emit(to, format_args!("fptrunc {value} to {half}"));
                self.emit(to, format_args!("bitcast {half} {} to {to}", number.text))
            }
            ScalarKind::F16 => self.narrow_f16(value, to),
            ScalarKind::Small(family) => self.narrow_small(value, family, to),
            _ => value.clone(),
        }
    }

    pub fn cast(&mut self, name: &str, value: &Val, to: Ty) -> Val {
        let instruction = format!("{name} {value} to {to}");
        let scalars = !to.is_vector() && matches!(name, "sext" | "zext" | "trunc");
        if scalars { self.pure(to, &[value], instruction) } else { self.emit(to, instruction) }
    }

    /// The bits of a half as LLVM's own type; text only, since no other code has values of that type.
    fn half_bits(&mut self, value: &Val) -> String {
        let half = half_type(value.ty);
        let number = self.emit(value.ty, format_args!("bitcast {value} to {half}"));
        format!("{half} {}", number.text)
    }

    /// Rounds to nearest even by adding just under half of the last kept place, and keeps NaN a NaN.
    fn narrow_bf16(&mut self, value: &Val, to: Ty) -> Val {
        let ints = to.with_kind(Ty::I32);
        let bits = self.bitcast(value, ints);
        let high = self.op("lshr", &bits, &Val::int(ints, 16));
        let odd = self.op("and", &high, &Val::int(ints, 1));
        let bias = self.op("add", &odd, &Val::int(ints, 0x7fff));
        let rounded = self.op("add", &bits, &bias);
        let rounded = self.op("lshr", &rounded, &Val::int(ints, 16));
        let quiet = self.op("or", &high, &Val::int(ints, 0x40));
        let is_nan = self.fcmp("uno", value, value);
        let kept = self.select(&is_nan, &quiet, &rounded);
        self.cast("trunc", &kept, to)
    }

    /// Moves exponent and mantissa into place and lets a multiplication by a power of two do the rest, subnormals included.
    fn widen_f16(&mut self, value: &Val) -> Val {
        let ints = value.ty.with_kind(Ty::I32);
        let floats = value.ty.with_kind(Ty::F32);
        let bits = self.cast("zext", value, ints);
        let magnitude = self.op("and", &bits, &Val::int(ints, 0x7fff));
        let sign = self.op("and", &bits, &Val::int(ints, 0x8000));
        let sign = self.op("shl", &sign, &Val::int(ints, 16));
        let shifted = self.op("shl", &magnitude, &Val::int(ints, 13));
        let small = self.bitcast(&shifted, floats);
        let scaled = self.fmul(&small, &Val::float(floats, 2f64.powi(112)));
        let scaled = self.bitcast(&scaled, ints);
        let special = self.op("or", &shifted, &Val::int(ints, 0x7f80_0000));
        let is_special = self.icmp("uge", &magnitude, &Val::int(ints, 0x7c00));
        let finished = self.select(&is_special, &special, &scaled);
        let signed = self.op("or", &finished, &sign);
        self.bitcast(&signed, floats)
    }

    /// Rounds by adding a power of two whose last place is that of the result, so that the addition itself rounds.
    fn narrow_f16(&mut self, value: &Val, to: Ty) -> Val {
        let ints = to.with_kind(Ty::I32);
        let bits = self.bitcast(value, ints);
        let magnitude = self.op("and", &bits, &Val::int(ints, 0x7fff_ffff));
        let sign = self.op("lshr", &bits, &Val::int(ints, 16));
        let sign = self.op("and", &sign, &Val::int(ints, 0x8000));
        // Normal results: drop thirteen bits with rounding to even, then move the exponent's bias from 127 to 15.
        let last = self.op("lshr", &magnitude, &Val::int(ints, 13));
        let odd = self.op("and", &last, &Val::int(ints, 1));
        let bias = self.op("add", &odd, &Val::int(ints, 0xfff));
        let normal = self.op("add", &magnitude, &bias);
        let normal = self.op("sub", &normal, &Val::int(ints, 112 << 23));
        let normal = self.op("lshr", &normal, &Val::int(ints, 13));
        // Subnormal results: the sum with one half has the wanted bits at its end.
        let absolute = self.bitcast(&magnitude, value.ty);
        let sum = self.op("fadd", &absolute, &Val::float(value.ty, 0.5));
        let sum = self.bitcast(&sum, ints);
        let subnormal = self.op("sub", &sum, &Val::int(ints, 0x3f00_0000));
        let is_subnormal = self.icmp("ult", &magnitude, &Val::int(ints, 113 << 23));
        let finite = self.select(&is_subnormal, &subnormal, &normal);
        let overflows = self.icmp("uge", &magnitude, &Val::int(ints, 0x477f_f000));
        let bounded = self.select(&overflows, &Val::int(ints, 0x7c00), &finite);
        let is_nan = self.icmp("ugt", &magnitude, &Val::int(ints, 0x7f80_0000));
        let number = self.select(&is_nan, &Val::int(ints, 0x7e00), &bounded);
        let signed = self.op("or", &number, &sign);
        self.cast("trunc", &signed, to)
    }

    /// An `f64` as an `f32` whose last bit remembers whether anything was cut off, so that a second rounding is the only one.
    fn round_to_odd(&mut self, value: &Val) -> Val {
        let floats = value.ty.with_kind(Ty::F32);
        let ints = value.ty.with_kind(Ty::I32);
        let nearest = self.cast("fptrunc", value, floats);
        let back = self.cast("fpext", &nearest, value.ty);
        let inexact = self.fcmp("one", &back, value);
        let wide_absolute = self.intrinsic("fabs", value.ty, value.ty, &[value]);
        let back_absolute = self.intrinsic("fabs", value.ty, value.ty, &[&back]);
        let too_large = self.fcmp("ogt", &back_absolute, &wide_absolute);
        let bits = self.bitcast(&nearest, ints);
        let step = self.convert(&too_large, ints);
        let towards_zero = self.op("sub", &bits, &step);
        let odd = self.op("or", &towards_zero, &Val::int(ints, 1));
        let chosen = self.select(&inexact, &odd, &bits);
        self.bitcast(&chosen, floats)
    }
}

fn half_type(ty: Ty) -> String {
    // The text of the bits' type, with the other name in it.
    ty.to_string().replace("i16", "half")
}
