//! The error function in single precision.

use super::{FunctionText, Val, exp::BIAS};

/// Coefficients of `log2(1 - erf x) / x` on `[0, 3.95]`, fitted so that `erf x` is wrong by 6e-9 of itself at most.
const LOGARITHM: [f64; 9] = [
    1.291_435_273_742_536e-5,
    -1.659_467_961_871_896_5e-4,
    9.002_197_184_599_936e-4,
    -2.383_216_284_215_450_3e-3,
    2.114_828_384_947_038e-4,
    2.764_157_950_878_143_3e-2,
    -1.482_792_496_681_213_4e-1,
    -9.184_474_349_021_912e-1,
    -1.627_907_037_734_985_4,
];

impl FunctionText<'_> {
    /// erf x: `1 - 2^q` with `q` a polynomial in `|x|` without constant term.
    ///
    /// With `q = n + r` this is `(1 - 2^n) - 2^n (2^r - 1)`, of which nothing is lost near zero: there `n` is zero. So one
    /// polynomial serves all arguments, nothing is selected, and a power of two needs no second part to reduce by.
    pub fn erf(&mut self, x: &Val) -> Val {
        let magnitude = self.fabs(x);
        // From here on the result is one.
        let bounded = self.at_most(&magnitude, 4.0);
        let [tail @ .., first] = &LOGARITHM;
        let quotient = self.wide_polynomial(&bounded, tail);
        let quotient = self.fmuladd(&quotient, &bounded, &Val::float(x.ty, *first));
        let logarithm = self.fmul(&quotient, &bounded);
        let (n, exponent) = self.nearest_bits(&logarithm, 1.0, BIAS);
        let r = self.op("fsub", &logarithm, &n);
        let less_one = self.exp2_less_one(&r);
        let power = self.power_of_two(&exponent);
        let power = self.bitcast(&power, x.ty);
        let rest = self.fsub(&Val::float(x.ty, 1.0), &power);
        let negated = self.fneg(&less_one);
        let result = self.fmuladd(&negated, &power, &rest);
        self.copysign(&result, x)
    }
}
