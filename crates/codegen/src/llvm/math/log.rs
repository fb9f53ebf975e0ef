//! Logarithms in single precision.

use super::{
    FunctionText, Ty, Val,
    exp::{BIAS, LN2_HIGH, LN2_LOW},
};

/// Minimax coefficients of `(ln(1 + f) - f + f^2 / 2) / f^3` on `[√½ - 1, √2 - 1]`, weighted by `f^3 / ln(1 + f)`: 6e-9 of the
/// logarithm.
const LOG: [f64; 8] = [
    -7.636_399_567_127_228e-2,
    1.276_219_934_225_082_4e-1,
    -1.315_961_331_129_074e-1,
    1.420_158_147_811_889_6e-1,
    -1.662_340_909_242_63e-1,
    2.000_124_156_475_067e-1,
    -2.500_081_956_386_566e-1,
    3.333_333_134_651_184e-1,
];

/// Numerator and denominator of `(ln(1 + x) - x) / x²` for `x` in `[-¼, 1]`: the minimax quotient, wrong by 7e-9 of itself.
const LOG1P_NUMERATOR: [f64; 4] =
    [-5.190_294_427_532_932e-4, -0.135_753_788_915_121_94, -0.565_916_296_261_398, -0.500_000_000_689_092_3];
const LOG1P_DENOMINATOR: [f64; 4] = [0.148_797_362_982_856_2, 0.970_507_171_088_575_2, 1.798_499_152_071_510_6, 1.0];

/// The bits of the least normal number, and of infinity.
const LEAST_NORMAL: i64 = 0x0080_0000;
const INFINITY: i64 = 0x7f80_0000;

impl FunctionText<'_> {
    /// ln x.
    pub fn log(&mut self, x: &Val) -> Val {
        self.log_of_parts(x, |this, fraction, exponent| this.natural_log(fraction, exponent))
    }

    /// log2 x; powers of two are exact.
    pub fn log2(&mut self, x: &Val) -> Val {
        self.scaled_log(x, std::f64::consts::LOG2_E, 1.0, 0.0)
    }

    /// log10 x.
    pub fn log10(&mut self, x: &Val) -> Val {
        self.scaled_log(x, std::f64::consts::LOG10_E, 0.300_781_25, 2.487_456_6e-4)
    }

    /// ln (1 + x), accurate near zero, whose sign it keeps.
    ///
    /// Where all lanes are in `[-¼, 1]`, as those of a softplus are, it is a quotient of polynomials.
    pub fn log1p(&mut self, x: &Val) -> Val {
        let (low, high) = (-0.25, 1.0);
        let from_middle = self.op("fsub", x, &Val::float(x.ty, (high + low) / 2.0));
        let distance = self.fabs(&from_middle);
        let outside = self.fcmp("ugt", &distance, &Val::float(x.ty, (high - low) / 2.0));
        let any = |this: &mut Self| {
            let logarithm = this.log_of_sum(x, None);
            this.copysign(&logarithm, x)
        };
        self.if_any(&outside, any, |this| this.log1p_of_small(x))
    }

    /// ln (1 + x) for `x` in `[-¼, 1]`: `x + x² p(x) / q(x)`, whose first term has the bits that count, and zero's sign.
    fn log1p_of_small(&mut self, x: &Val) -> Val {
        let square = self.fmul(x, x);
        let numerator = self.wide_polynomial(x, &LOG1P_NUMERATOR);
        let denominator = self.wide_polynomial(x, &LOG1P_DENOMINATOR);
        let numerator = self.fmul(&numerator, &square);
        let correction = self.fdiv(&numerator, &denominator);
        self.fadd(x, &correction)
    }

    /// What `of_parts` makes of `m - 1` and `n`, where `x = m 2^n` and `m` in `[√½, √2)`; in a branch, what the C standard
    /// says of numbers without a logarithm, and subnormal ones.
    fn log_of_parts(&mut self, x: &Val, of_parts: impl Fn(&mut Self, &Val, &Val) -> Val) -> Val {
        let ints = x.ty.with_kind(Ty::I32);
        let (fraction, exponent) = self.mantissa_less_one(x);
        let exponent = self.op("add", &exponent, &Val::int(ints, -BIAS));
        let exponent = self.convert(&exponent, x.ty);
        let usual = of_parts(self, &fraction, &exponent);
        let special = self.is_none_of(x, LEAST_NORMAL);
        let rare = |this: &mut Self| {
            let positive = this.fcmp("ogt", x, &Val::zero(x.ty));
            let small = this.fcmp("olt", x, &Val::float(x.ty, f64::from(f32::MIN_POSITIVE)));
            let subnormal = this.op("and", &positive, &small);
            let again = |this: &mut Self| {
                let (fraction, exponent) = this.split_at_sqrt_half(x);
                of_parts(this, &fraction, &exponent)
            };
            let result = this.if_any(&subnormal, again, |_| usual.clone());
            this.log_special_cases(x, &result)
        };
        self.if_any(&special, rare, |_| usual.clone())
    }

    /// Where a number is none of the positive finite ones from that with the bits `least` on, by one comparison.
    pub(super) fn is_none_of(&mut self, x: &Val, least: i64) -> Val {
        let bits = self.bitcast(x, x.ty.with_kind(Ty::I32));
        let above = self.op("sub", &bits, &Val::int(bits.ty, least));
        self.icmp("uge", &above, &Val::int(bits.ty, INFINITY - least))
    }

    /// ln(1 + x) (plus ln 2 for each of `doublings`), without losing the bits that this sum loses. The sign of zero is none.
    ///
    /// With `1 + x` rounded to `m 2^n`, what the rounding took is known exactly, and `m - 1` has room for it.
    pub(super) fn log_of_sum(&mut self, x: &Val, doublings: Option<&Val>) -> Val {
        let ints = x.ty.with_kind(Ty::I32);
        let one = Val::float(x.ty, 1.0);
        let sum = self.op("fadd", x, &one);
        let kept = self.op("fsub", &sum, &one);
        let lost = self.op("fsub", x, &kept);
        let (fraction, exponent) = self.mantissa_less_one(&sum);
        let exponent = self.op("add", &exponent, &Val::int(ints, -BIAS));
        let inverse = self.op("sub", &Val::int(ints, BIAS), &exponent);
        let inverse = self.op("shl", &inverse, &Val::int(ints, 23));
        // Sums so large that the inverse of their power has no exponent have lost nothing.
        let inverse = self.intrinsic("smax", ints, ints, &[&inverse, &Val::zero(ints)]);
        let inverse = self.bitcast(&inverse, x.ty);
        let fraction = self.fmuladd(&lost, &inverse, &fraction);
        let mut exponent = self.convert(&exponent, x.ty);
        if let Some(doublings) = doublings {
            exponent = self.fadd(&exponent, doublings);
        }
        let usual = self.natural_log(&fraction, &exponent);
        // No sum but zero is below the normal numbers.
        let special = self.is_none_of(&sum, LEAST_NORMAL);
        self.if_any(&special, |this| this.log_special_cases(&sum, &usual), |_| usual.clone())
    }

    /// `ln(1 + fraction) + exponent * ln 2`, for fractions in `[√½ - 1, √2 - 1]`.
    fn natural_log(&mut self, fraction: &Val, exponent: &Val) -> Val {
        let low = self.fmul(exponent, &Val::float(fraction.ty, LN2_LOW));
        let tail = self.log_tail(fraction, &low);
        let sum = self.fadd(fraction, &tail);
        self.fmuladd(exponent, &Val::float(fraction.ty, LN2_HIGH), &sum)
    }

    /// `ln(1 + f) - f + low` for `f` in `[√½ - 1, √2 - 1]`.
    fn log_tail(&mut self, f: &Val, low: &Val) -> Val {
        let square = self.fmul(f, f);
        let cube = self.fmul(&square, f);
        let polynomial = self.wide_polynomial(f, &LOG);
        let rest = self.fmuladd(&square, &Val::float(f.ty, -0.5), low);
        self.fmuladd(&polynomial, &cube, &rest)
    }

    /// `scale * ln m + n * (high + low)` for `x = m 2^n`.
    fn scaled_log(&mut self, x: &Val, scale: f64, high: f64, low: f64) -> Val {
        // The scale in two parts as well, since the leading term must keep all its bits.
        let (scale_high, scale_low) = split_short(scale);
        self.log_of_parts(x, |this, fraction, exponent| {
            let constant = |value| Val::float(x.ty, value);
            let tail = this.log_tail(fraction, &Val::zero(x.ty));
            let sum = this.fadd(fraction, &tail);
            let small = this.fmul(&sum, &constant(scale_low));
            let small = this.fmuladd(&tail, &constant(scale_high), &small);
            let small = this.fmuladd(exponent, &constant(low), &small);
            let small = this.fmuladd(fraction, &constant(scale_high), &small);
            this.fmuladd(exponent, &constant(high), &small)
        })
    }

    /// `m - 1` and `n` as floats, where `x = m 2^n` and `m` in `[√½, √2)`.
    pub(super) fn split_at_sqrt_half(&mut self, x: &Val) -> (Val, Val) {
        let ints = x.ty.with_kind(Ty::I32);
        let is_subnormal = self.fcmp("olt", x, &Val::float(x.ty, f64::from(f32::MIN_POSITIVE)));
        let scaled = self.fmul(x, &Val::float(x.ty, 2f64.powi(23)));
        let normal = self.select(&is_subnormal, &scaled, x);
        let correction = self.select(&is_subnormal, &Val::int(ints, -BIAS - 23), &Val::int(ints, -BIAS));
        let (fraction, exponent) = self.mantissa_less_one(&normal);
        let exponent = self.op("add", &exponent, &correction);
        (fraction, self.convert(&exponent, x.ty))
    }

    /// `m - 1`, and `n +` [`BIAS`] as an integer, for a normal number `m 2^n` with `m` in `[√½, √2)`.
    fn mantissa_less_one(&mut self, x: &Val) -> (Val, Val) {
        const SQRT_HALF: i64 = 0x3f35_04f3;
        const ONE: i64 = 0x3f80_0000;
        let ints = x.ty.with_kind(Ty::I32);
        let bits = self.bitcast(x, ints);
        let shifted = self.op("add", &bits, &Val::int(ints, ONE - SQRT_HALF));
        let exponent = self.op("lshr", &shifted, &Val::int(ints, 23));
        let mantissa = self.op("and", &shifted, &Val::int(ints, 0x007f_ffff));
        let mantissa = self.op("add", &mantissa, &Val::int(ints, SQRT_HALF));
        let mantissa = self.bitcast(&mantissa, x.ty);
        (self.op("fsub", &mantissa, &Val::float(x.ty, 1.0)), exponent)
    }

    /// NaN below zero and for NaN, minus infinity at zero, infinity at infinity.
    fn log_special_cases(&mut self, x: &Val, result: &Val) -> Val {
        let zero = Val::zero(x.ty);
        let infinity = Val::float(x.ty, f64::INFINITY);
        let is_zero = self.fcmp("oeq", x, &zero);
        let result = self.select(&is_zero, &Val::float(x.ty, f64::NEG_INFINITY), result);
        let is_infinite = self.fcmp("oeq", x, &infinity);
        let result = self.select(&is_infinite, &infinity, &result);
        let invalid = self.fcmp("ult", x, &zero);
        self.select(&invalid, &Val::float(x.ty, f64::NAN), &result)
    }
}

/// A constant as a part of nine bits and the rest.
fn split_short(value: f64) -> (f64, f64) {
    let high = f64::from(f32::from_bits((value as f32).to_bits() & 0xffff_8000));
    (high, value - high)
}
