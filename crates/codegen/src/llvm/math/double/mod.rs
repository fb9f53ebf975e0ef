//! Functions in double precision where there is no math library to call: on devices.
//!
//! Exponentials and logarithms are computed from their series, which are short enough after the reductions, and the others from these two
//! in forms that lose nothing. Largest errors in units of the last place, as the tests hold them:
//!
//! | function | ulp | method |
//! | --- | --- | --- |
//! | exp, exp2, exp10 | 2 | `2^n * p(r)`, Cody-Waite reduction, the series to the 13th power |
//! | log, log2, log10 | 3 | `n ln 2 + 2 artanh(f / (2 + f))`, `1 + f` in `[√½, √2)` |
//! | log1p | 4 | `x log(u) / (u - 1)`, `u = 1 + x` rounded (Kahan) |
//! | expm1 | 5 | `(u - 1) x / log(u)`, `u = exp(x)` rounded (Kahan) |
//! | sinh, cosh, tanh, sigmoid | 8 | of expm1 and exp |
//! | asinh, acosh, atanh | 8 | log1p of sums without cancellation |
//! | hypot | 2 | the larger times a root of one and a square |
//! | sin, cos | 1 | series of what is left without quarter turns, of angles of any size |
//! | tan | 3 | their quotient |
//! | asin, acos | 2 | a polynomial up to ½, from there of `√((1 - x) / 2)` |
//! | atan, atan2 | 2 | a polynomial, turned by four tangents |
//! | pow | 2 | `2^(y log2 x)`, the logarithm in two doubles |
//! | erf | 2 | a polynomial, and what an exponential leaves of one |
//! | fmod, nextafter | 0 | by integers |
//!
//! Results at zero, infinity and NaN are those of the C standard.

mod angles;
mod arcs;
mod erf;
mod power;
mod range_reduction;
mod remainder;

use relaxide_tir::intrin::Intrinsic;

use super::{FunctionText, Ty, Val};

/// ln 2 in two parts; the first has 21 bits less than a double, so that its products with exponents are exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// log10 2 in two parts, of the same kind.
const LOG10_2_HIGH: f64 = 3.010_299_955_494_702e-1;
const LOG10_2_LOW: f64 = 1.145_110_089_802_183_8e-10;
/// The exponent of one, as doubles store it, and where they store exponents.
const BIAS: i64 = 1023;
const FRACTION_BITS: i64 = 52;
/// Beyond this, `exp(-x)` is nothing beside `exp(x)`.
const FAR: f64 = 22.0;
/// Where squares are out of reach, and one is nothing beside them.
const HUGE: f64 = 1e150;

impl FunctionText<'_> {
    /// A function of one double; `None` if it is none of these.
    pub(super) fn double_math(&mut self, intrinsic: Intrinsic, x: &Val) -> Option<Val> {
        Some(match intrinsic {
            Intrinsic::Exp | Intrinsic::ExpNonpositive => self.exp_double(x),
            Intrinsic::Exp2 => self.exp2_double(x),
            Intrinsic::Exp10 => self.exp10_double(x),
            Intrinsic::Expm1 => self.expm1_double(x),
            Intrinsic::Log => self.log_double(x, 1.0, [LN2_HIGH, LN2_LOW]),
            Intrinsic::Log2 => self.log_double(x, std::f64::consts::LOG2_E, [1.0, 0.0]),
            Intrinsic::Log10 => self.log_double(x, std::f64::consts::LOG10_E, [LOG10_2_HIGH, LOG10_2_LOW]),
            Intrinsic::Log1p => self.log1p_double(x),
            Intrinsic::Sinh => self.sinh_double(x),
            Intrinsic::Cosh => self.cosh_double(x),
            Intrinsic::Tanh => self.tanh_double(x),
            Intrinsic::Asinh => self.asinh_double(x),
            Intrinsic::Acosh => self.acosh_double(x),
            Intrinsic::Atanh => self.atanh_double(x),
            Intrinsic::Sin => self.sin_double(x),
            Intrinsic::Cos => self.cos_double(x),
            Intrinsic::Tan => self.tan_double(x),
            Intrinsic::Asin => self.asin_double(x),
            Intrinsic::Acos => self.acos_double(x),
            Intrinsic::Atan => self.atan_double(x),
            Intrinsic::Erf => self.erf_double(x),
            _ => return None,
        })
    }

    pub(super) fn exp_double(&mut self, x: &Val) -> Val {
        let bounded = self.clamp(x, -746.0, 710.0);
        let (n, bits) = self.nearest_bits(&bounded, std::f64::consts::LOG2_E, 0);
        let r = self.fma(&n, &Val::float(x.ty, -LN2_HIGH), &bounded);
        let r = self.fma(&n, &Val::float(x.ty, -LN2_LOW), &r);
        self.exp_of_rest(&r, &bits)
    }

    fn exp2_double(&mut self, x: &Val) -> Val {
        let bounded = self.clamp(x, -1076.0, 1025.0);
        let (n, bits) = self.nearest_bits(&bounded, 1.0, 0);
        let r = self.op("fsub", &bounded, &n);
        let r = self.fmul(&r, &Val::float(x.ty, std::f64::consts::LN_2));
        self.exp_of_rest(&r, &bits)
    }

    fn exp10_double(&mut self, x: &Val) -> Val {
        let bounded = self.clamp(x, -325.0, 309.0);
        let (n, bits) = self.nearest_bits(&bounded, std::f64::consts::LOG2_10, 0);
        let r = self.fma(&n, &Val::float(x.ty, -LOG10_2_HIGH), &bounded);
        let r = self.fma(&n, &Val::float(x.ty, -LOG10_2_LOW), &r);
        let r = self.fmul(&r, &Val::float(x.ty, std::f64::consts::LN_10));
        self.exp_of_rest(&r, &bits)
    }

    /// `2^n e^r`, where an integer's last bits have `n`.
    fn exp_of_rest(&mut self, r: &Val, bits: &Val) -> Val {
        let mut factorial = 1.0;
        let mut coefficients = [1.0; 14];
        for (power, coefficient) in coefficients.iter_mut().rev().enumerate().skip(1) {
            factorial *= power as f64;
            *coefficient = 1.0 / factorial;
        }
        let fraction = self.polynomial(r, &coefficients);
        // What the addition of a large number left above the integer goes away; then two powers, since one does not reach everywhere.
        let ints = bits.ty;
        let high = self.op("shl", bits, &Val::int(ints, 32));
        let n = self.op("ashr", &high, &Val::int(ints, 32));
        let half = self.op("ashr", &n, &Val::int(ints, 1));
        let rest = self.op("sub", &n, &half);
        let mut result = fraction;
        for part in [half, rest] {
            let biased = self.op("add", &part, &Val::int(ints, BIAS));
            let power = self.op("shl", &biased, &Val::int(ints, FRACTION_BITS));
            let power = self.bitcast(&power, result.ty);
            result = self.op("fmul", &result, &power);
        }
        result
    }

    /// `factor ln(x)`, where `two` is the factor times ln 2, in two parts.
    fn log_double(&mut self, x: &Val, factor: f64, two: [f64; 2]) -> Val {
        let float = |value: f64| Val::float(x.ty, value);
        let (n, f) = self.exponent_and_fraction(x);
        let sum = self.op("fadd", &f, &float(2.0));
        let s = self.fdiv(&f, &sum);
        let z = self.fmul(&s, &s);
        let mut coefficients = [0.0; 12];
        for (power, coefficient) in coefficients.iter_mut().rev().enumerate().skip(1) {
            *coefficient = 2.0 / (2 * power + 1) as f64;
        }
        let series = self.polynomial(&z, &coefficients);
        // ln(1 + f) = f - (f²/2 - s (f²/2 + series)): what is large is exact.
        let square = self.fmul(&f, &f);
        let half_square = self.fmul(&square, &float(0.5));
        let both = self.fadd(&half_square, &series);
        let small = self.fmul(&s, &both);
        let less = self.fsub(&half_square, &small);
        let result = if factor == 1.0 {
            let low = self.fma(&n, &float(-two[1]), &less);
            let rest = self.op("fsub", &f, &low);
            self.fma(&n, &float(two[0]), &rest)
        } else {
            let natural = self.op("fsub", &f, &less);
            let low = self.fmul(&n, &float(two[1]));
            let scaled = self.fma(&natural, &float(factor), &low);
            self.fma(&n, &float(two[0]), &scaled)
        };
        let is_finite = self.fcmp("olt", x, &float(f64::INFINITY));
        let result = self.select(&is_finite, &result, x);
        let is_zero = self.fcmp("oeq", x, &float(0.0));
        let result = self.select(&is_zero, &float(f64::NEG_INFINITY), &result);
        let is_negative = self.fcmp("olt", x, &float(0.0));
        self.select(&is_negative, &float(f64::NAN), &result)
    }

    /// `n` and `f` of a positive finite number `2^n (1 + f)`, `1 + f` in `[√½, √2)`.
    fn exponent_and_fraction(&mut self, x: &Val) -> (Val, Val) {
        let (ty, ints) = (x.ty, x.ty.with_kind(Ty::I64));
        let float = |value: f64| Val::float(ty, value);
        // Subnormal numbers become normal ones.
        let tiny = self.fcmp("olt", x, &float(f64::MIN_POSITIVE));
        let lifted = self.op("fmul", x, &float(2f64.powi(54)));
        let normal = self.select(&tiny, &lifted, x);
        let bits = self.bitcast(&normal, ints);
        let root_half = Val::int(ints, std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64);
        let above = self.op("sub", &bits, &root_half);
        let exponent = self.op("ashr", &above, &Val::int(ints, FRACTION_BITS));
        let taken = self.op("shl", &exponent, &Val::int(ints, FRACTION_BITS));
        let fraction = self.op("sub", &bits, &taken);
        let fraction = self.bitcast(&fraction, ty);
        let down = self.op("sub", &exponent, &Val::int(ints, 54));
        let exponent = self.select(&tiny, &down, &exponent);
        let n = self.cast("sitofp", &exponent, ty);
        (n, self.op("fsub", &fraction, &float(1.0)))
    }

    fn ln_double(&mut self, x: &Val) -> Val {
        self.log_double(x, 1.0, [LN2_HIGH, LN2_LOW])
    }

    fn log1p_double(&mut self, x: &Val) -> Val {
        let one = Val::float(x.ty, 1.0);
        let u = self.op("fadd", x, &one);
        let less = self.op("fsub", &u, &one);
        let log = self.ln_double(&u);
        let scale = self.fdiv(x, &less);
        let result = self.op("fmul", &log, &scale);
        let nothing = self.fcmp("oeq", &less, &Val::float(x.ty, 0.0));
        let result = self.select(&nothing, x, &result);
        let infinite = self.fcmp("oeq", &u, &Val::float(x.ty, f64::INFINITY));
        self.select(&infinite, &log, &result)
    }

    fn expm1_double(&mut self, x: &Val) -> Val {
        let float = |value: f64| Val::float(x.ty, value);
        let u = self.exp_double(x);
        let less = self.op("fsub", &u, &float(1.0));
        let log = self.ln_double(&u);
        let scale = self.fdiv(x, &log);
        let near = self.op("fmul", &less, &scale);
        let magnitude = self.fabs(x);
        let is_near = self.fcmp("olt", &magnitude, &float(1.0));
        let result = self.select(&is_near, &near, &less);
        let nothing = self.fcmp("oeq", &less, &float(0.0));
        self.select(&nothing, x, &result)
    }

    /// Half of `exp(|x|)` where that alone may be infinite.
    fn half_exp(&mut self, magnitude: &Val) -> Val {
        let half = Val::float(magnitude.ty, 0.5);
        let less = self.fmul(magnitude, &half);
        let root = self.exp_double(&less);
        let first = self.op("fmul", &root, &half);
        self.op("fmul", &first, &root)
    }

    fn sinh_double(&mut self, x: &Val) -> Val {
        let (one, half) = (Val::float(x.ty, 1.0), Val::float(x.ty, 0.5));
        let magnitude = self.fabs(x);
        let near = self.at_most(&magnitude, FAR);
        let e = self.expm1_double(&near);
        let above = self.op("fadd", &e, &one);
        let other = self.fdiv(&e, &above);
        let sum = self.op("fadd", &e, &other);
        let sum = self.op("fmul", &sum, &half);
        let far = self.half_exp(&magnitude);
        let is_far = self.fcmp("ogt", &magnitude, &Val::float(x.ty, FAR));
        let result = self.select(&is_far, &far, &sum);
        self.copysign(&result, x)
    }

    fn cosh_double(&mut self, x: &Val) -> Val {
        let (one, half) = (Val::float(x.ty, 1.0), Val::float(x.ty, 0.5));
        let magnitude = self.fabs(x);
        let near = self.at_most(&magnitude, FAR);
        let e = self.exp_double(&near);
        let other = self.fdiv(&one, &e);
        let sum = self.op("fadd", &e, &other);
        let sum = self.op("fmul", &sum, &half);
        let far = self.half_exp(&magnitude);
        let is_far = self.fcmp("ogt", &magnitude, &Val::float(x.ty, FAR));
        self.select(&is_far, &far, &sum)
    }

    fn tanh_double(&mut self, x: &Val) -> Val {
        let two = Val::float(x.ty, 2.0);
        let magnitude = self.fabs(x);
        let near = self.at_most(&magnitude, FAR);
        let twice = self.fmul(&near, &two);
        let e = self.expm1_double(&twice);
        let above = self.op("fadd", &e, &two);
        let result = self.fdiv(&e, &above);
        self.copysign(&result, x)
    }

    fn asinh_double(&mut self, x: &Val) -> Val {
        let one = Val::float(x.ty, 1.0);
        let magnitude = self.fabs(x);
        let square = self.fmul(&magnitude, &magnitude);
        let above = self.op("fadd", &square, &one);
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[&above]);
        let root = self.op("fadd", &root, &one);
        let more = self.fdiv(&square, &root);
        let sum = self.op("fadd", &magnitude, &more);
        let near = self.log1p_double(&sum);
        let result = self.log_of_twice_if_huge(&magnitude, &near);
        self.copysign(&result, x)
    }

    fn acosh_double(&mut self, x: &Val) -> Val {
        let t = self.op("fsub", x, &Val::float(x.ty, 1.0));
        let twice = self.fmul(&t, &Val::float(x.ty, 2.0));
        let square = self.fma(&t, &t, &twice);
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[&square]);
        let sum = self.op("fadd", &t, &root);
        let near = self.log1p_double(&sum);
        let result = self.log_of_twice_if_huge(x, &near);
        let is_none = self.fcmp("olt", x, &Val::float(x.ty, 1.0));
        self.select(&is_none, &Val::float(x.ty, f64::NAN), &result)
    }

    /// `ln(2 x)` for a huge `x`, otherwise what was computed.
    fn log_of_twice_if_huge(&mut self, x: &Val, near: &Val) -> Val {
        let log = self.ln_double(x);
        let far = self.op("fadd", &log, &Val::float(x.ty, std::f64::consts::LN_2));
        let is_huge = self.fcmp("ogt", x, &Val::float(x.ty, HUGE));
        self.select(&is_huge, &far, near)
    }

    fn atanh_double(&mut self, x: &Val) -> Val {
        let magnitude = self.fabs(x);
        let below = self.op("fsub", &Val::float(x.ty, 1.0), &magnitude);
        let twice = self.op("fadd", &magnitude, &magnitude);
        let ratio = self.fdiv(&twice, &below);
        let log = self.log1p_double(&ratio);
        let half = self.fmul(&log, &Val::float(x.ty, 0.5));
        self.copysign(&half, x)
    }

    /// `√(x² + y²)`, in either precision.
    pub(super) fn hypot(&mut self, x: &Val, y: &Val) -> Val {
        let (one, zero) = (Val::float(x.ty, 1.0), Val::float(x.ty, 0.0));
        let (a, b) = (self.fabs(x), self.fabs(y));
        let is_less = self.fcmp("olt", &a, &b);
        let (large, small) = (self.select(&is_less, &b, &a), self.select(&is_less, &a, &b));
        let ratio = self.fdiv(&small, &large);
        let square = self.fma(&ratio, &ratio, &one);
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[&square]);
        let result = self.op("fmul", &large, &root);
        let nothing = self.fcmp("oeq", &large, &zero);
        let result = self.select(&nothing, &large, &result);
        let unordered = self.fcmp("uno", &a, &b);
        let result = self.select(&unordered, &Val::float(x.ty, f64::NAN), &result);
        // Where one is infinite, the other may be anything.
        let infinity = Val::float(x.ty, f64::INFINITY);
        let (of_a, of_b) = (self.fcmp("oeq", &a, &infinity), self.fcmp("oeq", &b, &infinity));
        let infinite = self.op("or", &of_a, &of_b);
        self.select(&infinite, &infinity, &result)
    }

    /// A sum, and what its rounding lost (Knuth).
    fn exact_sum(&mut self, a: &Val, b: &Val) -> (Val, Val) {
        let sum = self.op("fadd", a, b);
        let of_b = self.op("fsub", &sum, a);
        let of_a = self.op("fsub", &sum, &of_b);
        let (lost_a, lost_b) = (self.op("fsub", a, &of_a), self.op("fsub", b, &of_b));
        let lost = self.op("fadd", &lost_a, &lost_b);
        (sum, lost)
    }

    fn fma(&mut self, a: &Val, b: &Val, c: &Val) -> Val {
        self.intrinsic("fma", a.ty, a.ty, &[a, b, c])
    }
}
