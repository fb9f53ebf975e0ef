//! The error function in single precision.

use super::{FunctionText, Val};

/// Beyond this argument the result is one.
const ONE_FROM: f64 = 3.925;

/// Numerator and denominator of `erf x / x` as a rational function of `x²` up to [`ONE_FROM`]: the minimax one, wrong by 2e-8
/// of itself at most, by a common factor with which the coefficients lose little as single-precision numbers.
const NUMERATOR: [f64; 6] = [
    2.119_688_588_209_101e-6,
    2.951_009_373_646_229_5e-4,
    3.908_439_073_711_634e-3,
    5.466_944_724_321_365e-2,
    0.197_457_432_746_887_2,
    1.169_006_705_284_118_7,
];
const DENOMINATOR: [f64; 6] = [
    3.941_770_773_963_071e-5,
    1.205_777_167_342_603_2e-3,
    1.552_278_548_479_080_2e-2,
    0.118_294_440_209_865_57,
    0.520_326_554_775_238,
    1.036_005_258_560_180_7,
];

impl FunctionText<'_> {
    /// erf x: `x p(x²) / q(x²)`.
    ///
    /// A function of one range, without an exponential: half of the operations of `1 - 2^q(x)`, which is accurate to 2.4
    /// instead of 5.2 ulp. Both polynomials take the same rounded powers of `x²`, whose errors cancel in the quotient.
    pub fn erf(&mut self, x: &Val) -> Val {
        let magnitude = self.fabs(x);
        let bounded = self.at_most(&magnitude, ONE_FROM);
        let square = self.fmul(&bounded, &bounded);
        let numerator = self.wide_polynomial(&square, &NUMERATOR);
        let denominator = self.wide_polynomial(&square, &DENOMINATOR);
        let numerator = self.fmul(&numerator, &bounded);
        let quotient = self.fdiv(&numerator, &denominator);
        // Near the end of its range a quotient may be rounded to a little more than one.
        let result = self.at_most(&quotient, 1.0);
        self.copysign(&result, x)
    }
}
