//! Powers in single precision, with the bits that matter in double.
//!
//! `y log2 x` must keep its fraction while its integer part grows to 128, more bits than single precision has. So the
//! logarithm's leading terms are summed in double precision; the small ones and the power of two's fraction need none.

use super::{FunctionText, Ty, Val};

/// Minimax coefficients of `log2(1 + f) / f` on `[√½ - 1, √2 - 1]`, 2^-33 of it: those of the powers from the fifth on, for
/// single precision, and the first five, for double.
const LOG2_TAIL: [f64; 7] = [
    -8.634_778_112_173_08e-2,
    1.548_587_977_886_2e-1,
    -1.569_821_983_575_821e-1,
    1.590_013_056_993_484_5e-1,
    -1.790_468_928_988_269e-1,
    2.060_962_617_397_308_3e-1,
    -2.405_041_754_245_758e-1,
];
const LOG2_HEAD: [f64; 5] = [
    2.885_406_437_094_148_5e-1,
    -3.606_728_005_500_562_4e-1,
    4.808_983_207_274_989_4e-1,
    -7.213_475_252_131_91e-1,
    1.442_695_040_939_350_9,
];

/// The bits of the least positive number.
const LEAST_POSITIVE: i64 = 1;

impl FunctionText<'_> {
    /// x^y.
    pub fn pow(&mut self, x: &Val, y: &Val) -> Val {
        if let Some(power) = y.as_float_literal().and_then(|exponent| self.known_power(x, exponent)) {
            return power;
        }
        let magnitude = self.fabs(x);
        let power = self.finite_power(&magnitude, y);
        let special_base = self.is_none_of(x, LEAST_POSITIVE);
        let y_magnitude = self.fabs(y);
        let special_exponent = self.fcmp("uge", &y_magnitude, &Val::float(x.ty, f64::INFINITY));
        let special = self.op("or", &special_base, &special_exponent);
        self.if_any(&special, |this| this.corrected_power(x, y, &power), |_| power.clone())
    }

    /// Powers that are a few operations, exact in every special case.
    pub(super) fn known_power(&mut self, x: &Val, exponent: f64) -> Option<Val> {
        let one = Val::float(x.ty, 1.0);
        Some(match exponent {
            1.0 => x.clone(),
            2.0 => self.fmul(x, x),
            3.0 => {
                let square = self.fmul(x, x);
                self.fmul(&square, x)
            }
            -1.0 => self.fdiv(&one, x),
            0.5 => self.root_power(x),
            -0.5 => {
                let root = self.root_power(x);
                self.fdiv(&one, &root)
            }
            _ => return None,
        })
    }

    /// `x^½`: the square root, but for negative zero and infinity, of which it is that of the magnitude.
    fn root_power(&mut self, x: &Val) -> Val {
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[x]);
        let root = self.op("fadd", &root, &Val::zero(x.ty));
        let infinite = self.fcmp("oeq", x, &Val::float(x.ty, f64::NEG_INFINITY));
        self.select(&infinite, &Val::float(x.ty, f64::INFINITY), &root)
    }

    /// x^y for positive finite x and finite y.
    fn finite_power(&mut self, x: &Val, y: &Val) -> Val {
        let doubles = x.ty.with_kind(Ty::F64);
        let (fraction, exponent) = self.split_at_sqrt_half(x);
        let tail = self.wide_polynomial(&fraction, &LOG2_TAIL);
        let fraction = self.cast("fpext", &fraction, doubles);
        let exponent = self.cast("fpext", &exponent, doubles);
        let mut sum = self.cast("fpext", &tail, doubles);
        for coefficient in LOG2_HEAD {
            sum = self.fmuladd(&sum, &fraction, &Val::float(doubles, coefficient));
        }
        let logarithm = self.fmuladd(&sum, &fraction, &exponent);
        let y = self.cast("fpext", y, doubles);
        let product = self.fmul(&logarithm, &y);
        let product = self.clamp(&product, -151.0, 129.0);
        let (n, bits) = self.nearest_exponent(&product);
        let remainder = self.op("fsub", &product, &n);
        let remainder = self.cast("fptrunc", &remainder, x.ty);
        let bits = self.cast("trunc", &bits, x.ty.with_kind(Ty::I32));
        let fraction = self.exp2_fraction(&remainder);
        let n = self.cast("fptrunc", &n, x.ty);
        self.scale(&fraction, &n, &bits)
    }

    /// `power`, or what the C standard says where the base is negative, zero, infinite or NaN, or the exponent not finite.
    pub(super) fn corrected_power(&mut self, x: &Val, y: &Val, power: &Val) -> Val {
        let (zero, one) = (Val::zero(x.ty), Val::float(x.ty, 1.0));
        let infinity = Val::float(x.ty, f64::INFINITY);
        let (magnitude, y_magnitude) = (self.fabs(x), self.fabs(y));
        let infinite = self.fcmp("oeq", &magnitude, &infinity);
        let vanished = self.fcmp("oeq", &magnitude, &zero);
        let infinite_exponent = self.fcmp("oeq", &y_magnitude, &infinity);
        let (grows, raised) = (self.fcmp("ogt", &magnitude, &one), self.fcmp("ogt", y, &zero));
        let shrinks = self.op("xor", &grows, &raised);
        let limit = self.select(&shrinks, &zero, &infinity);
        let extreme = self.op("or", &infinite, &vanished);
        let extreme = self.op("or", &extreme, &infinite_exponent);
        let power = self.select(&extreme, &limit, power);

        let whole = self.is_whole(y);
        let halved = self.fmul(y, &Val::float(x.ty, 0.5));
        let even = self.is_whole(&halved);
        let uneven = self.not(&even);
        let odd = self.op("and", &whole, &uneven);
        let signed = self.copysign(&power, x);
        let power = self.select(&odd, &signed, &power);

        // A negative base has a power only where the exponent is whole; the infinite one has the power of its magnitude.
        let negative = self.fcmp("olt", x, &zero);
        let broken = self.op("or", &whole, &infinite);
        let broken = self.not(&broken);
        let invalid = self.op("and", &negative, &broken);
        let unknown = self.fcmp("uno", x, y);
        let invalid = self.op("or", &invalid, &unknown);
        let power = self.select(&invalid, &Val::float(x.ty, f64::NAN), &power);

        // One to any power and anything to the power zero are one, also where the other is NaN; so is the magnitude one
        // to an infinite power.
        let unit_base = self.fcmp("oeq", x, &one);
        let zero_exponent = self.fcmp("oeq", y, &zero);
        let certain = self.op("or", &unit_base, &zero_exponent);
        let unit_magnitude = self.fcmp("oeq", &magnitude, &one);
        let balanced = self.op("and", &unit_magnitude, &infinite_exponent);
        let certain = self.op("or", &certain, &balanced);
        self.select(&certain, &one, &power)
    }

    /// Whether it is an integer; the infinities are.
    fn is_whole(&mut self, x: &Val) -> Val {
        let cut = self.intrinsic("trunc", x.ty, x.ty, &[x]);
        self.fcmp("oeq", &cut, x)
    }
}
