//! Floating-point numbers of eight bits and fewer, to and from single precision.
//!
//! The instructions follow from a family's row in [`SmallFloat`]: there is no table to look up, so that they work on vectors
//! and vectors of them.

use relaxide_ffi::{SmallFloat, Special};

use super::{
    function::FunctionText,
    value::{Ty, Val},
};

const INFINITY: i64 = 0x7f80_0000;
const QUIET: i64 = 0x7fc0_0000;

impl FunctionText<'_> {
    /// Moves exponent and mantissa into place; a multiplication by a power of two corrects the exponent, below the smallest
    /// one as well.
    pub fn widen_small(&mut self, value: &Val, family: SmallFloat) -> Val {
        let (ints, floats) = (value.ty.with_kind(Ty::I32), value.ty.with_kind(Ty::F32));
        let code = self.cast("zext", value, ints);
        let number = |value: u32| Val::int(ints, i64::from(value));
        let quiet = Val::int(ints, QUIET);
        if family.special == Special::PowersOfTwo {
            return self.widen_power(&code, family);
        }
        let magnitude = self.op("and", &code, &number(!family.sign()));
        let sign = self.op("and", &code, &number(family.sign()));
        let sign = self.op("shl", &sign, &number(32 - family.bits));
        let shifted = self.op("shl", &magnitude, &number(23 - family.mantissa));
        let small = self.bitcast(&shifted, floats);
        let scaled = self.op("fmul", &small, &Val::float(floats, 2f64.powi(127 - family.bias)));
        let scaled = self.bitcast(&scaled, ints);
        let finished = match family.special {
            Special::Ieee => {
                let special = self.op("or", &shifted, &Val::int(ints, INFINITY));
                let is_special = self.icmp("uge", &magnitude, &number(family.infinity()));
                self.select(&is_special, &special, &scaled)
            }
            Special::HighestIsNan => {
                let is_nan = self.icmp("eq", &magnitude, &number(family.nan()));
                self.select(&is_nan, &quiet, &scaled)
            }
            Special::MinusZeroIsNan => {
                let is_nan = self.icmp("eq", &code, &number(family.nan()));
                self.select(&is_nan, &quiet, &scaled)
            }
            Special::Finite | Special::PowersOfTwo => scaled,
        };
        let signed = self.op("or", &finished, &sign);
        self.bitcast(&signed, floats)
    }

    /// The exponent of single precision itself, except for the lowest, which is half of the smallest normal number there.
    fn widen_power(&mut self, code: &Val, family: SmallFloat) -> Val {
        let ints = code.ty;
        let shifted = self.op("shl", code, &Val::int(ints, 23));
        let is_lowest = self.icmp("eq", code, &Val::zero(ints));
        let number = self.select(&is_lowest, &Val::int(ints, 1 << 22), &shifted);
        let is_nan = self.icmp("eq", code, &Val::int(ints, i64::from(family.nan())));
        let number = self.select(&is_nan, &Val::int(ints, QUIET), &number);
        self.bitcast(&number, ints.with_kind(Ty::F32))
    }

    /// Rounds normal results by adding just under half of the last kept place; others by adding a power of two whose last
    /// place is that of the result, so that the addition itself rounds.
    pub fn narrow_small(&mut self, value: &Val, family: SmallFloat, to: Ty) -> Val {
        let ints = to.with_kind(Ty::I32);
        let bits = self.bitcast(value, ints);
        if family.special == Special::PowersOfTwo {
            let code = self.narrow_power(&bits, family);
            return self.cast("trunc", &code, to);
        }
        let number = |value: u32| Val::int(ints, i64::from(value));
        let (dropped, smallest) = (23 - family.mantissa, (128 - family.bias) as u32);
        let magnitude = self.op("and", &bits, &number(0x7fff_ffff));
        let sign = self.op("lshr", &bits, &number(32 - family.bits));
        let sign = self.op("and", &sign, &number(family.sign()));
        let last = self.op("lshr", &magnitude, &number(dropped));
        let odd = self.op("and", &last, &number(1));
        let half = self.op("add", &odd, &number((1 << (dropped - 1)) - 1));
        let normal = self.op("add", &magnitude, &half);
        let normal = self.op("lshr", &normal, &number(dropped));
        let normal = self.op("sub", &normal, &number((smallest - 1) << family.mantissa));
        let magic = 2f32.powi(24 - family.bias - family.mantissa as i32);
        let absolute = self.bitcast(&magnitude, value.ty);
        let sum = self.op("fadd", &absolute, &Val::float(value.ty, f64::from(magic)));
        let sum = self.bitcast(&sum, ints);
        let subnormal = self.op("sub", &sum, &number(magic.to_bits()));
        let is_subnormal = self.icmp("ult", &magnitude, &number(smallest << 23));
        let finite = self.select(&is_subnormal, &subnormal, &normal);
        let code = self.finish_small(&magnitude, &finite, &sign, family);
        self.cast("trunc", &code, to)
    }

    /// The sign, and what becomes of what is too large and of NaN.
    fn finish_small(&mut self, magnitude: &Val, finite: &Val, sign: &Val, family: SmallFloat) -> Val {
        let ints = finite.ty;
        let number = |value: u32| Val::int(ints, i64::from(value));
        let too_large = self.icmp("ugt", finite, &number(family.largest()));
        let is_nan = self.icmp("ugt", magnitude, &Val::int(ints, INFINITY));
        match family.special {
            Special::MinusZeroIsNan => {
                let signed = self.op("or", finite, sign);
                let is_zero = self.icmp("eq", finite, &number(0));
                let signed = self.select(&is_zero, &number(0), &signed);
                self.select(&too_large, &number(family.nan()), &signed)
            }
            // Of what has no NaN, that becomes zero of the opposite sign.
            Special::Finite | Special::PowersOfTwo => {
                let bounded = self.select(&too_large, &number(family.largest()), finite);
                let bounded = self.select(&is_nan, &number(0), &bounded);
                let flipped = self.select(&is_nan, &number(family.sign()), &number(0));
                let sign = self.op("xor", sign, &flipped);
                self.op("or", &bounded, &sign)
            }
            // NaN is too large as well.
            Special::HighestIsNan => {
                let bounded = self.select(&too_large, &number(family.nan()), finite);
                self.op("or", &bounded, sign)
            }
            Special::Ieee => {
                let bounded = self.select(&too_large, &number(family.infinity()), finite);
                let bounded = self.select(&is_nan, &number(family.nan()), &bounded);
                self.op("or", &bounded, sign)
            }
        }
    }

    /// The exponent, one higher from half way on; up to the lowest power of two, the lowest code.
    fn narrow_power(&mut self, bits: &Val, family: SmallFloat) -> Val {
        let ints = bits.ty;
        let is_lowest = self.icmp("ule", bits, &Val::int(ints, 1 << 22));
        let half = self.select(&is_lowest, &Val::int(ints, (1 << 22) - 1), &Val::int(ints, 1 << 22));
        let rounded = self.op("add", bits, &half);
        let code = self.op("lshr", &rounded, &Val::int(ints, 23));
        // Zero, what is negative or NaN, and what rounds beyond the largest power of two, by one comparison.
        let below = self.op("sub", bits, &Val::int(ints, 1));
        let is_nan = self.icmp("uge", &below, &Val::int(ints, INFINITY - (1 << 22) - 1));
        self.select(&is_nan, &Val::int(ints, i64::from(family.nan())), &code)
    }
}
