//! The error function in single precision.

use super::{FunctionText, Val};

/// Beyond this argument the result is one.
const ONE_FROM: f64 = 3.925;

/// Numerator and denominator of `erf x / x` as a rational function of `x²` up to [`ONE_FROM`]: the minimax one, wrong by 2e-8
/// of itself at most, by a common factor with which the coefficients lose little as single-precision numbers.
const NUMERATOR: [f64; 6] = [
    2.291_687_678_734_888_3e-6,
    3.190_465_213_265_27e-4,
    4.225_584_212_690_592e-3,
    5.910_552_665_591_24e-2,
    0.213_479_846_715_927_12,
    1.263_864_159_584_045_4,
];
const DENOMINATOR: [f64; 6] = [
    4.261_620_415_491_052e-5,
    1.303_618_308_156_728_7e-3,
    1.678_236_201_405_525_2e-2,
    0.127_893_283_963_203_43,
    0.562_547_743_320_465_1,
    1.120_070_457_458_496,
];

impl FunctionText<'_> {
    /// erf x: `x p(x²) / q(x²)`.
    ///
    /// A function of one range, without an exponential: half of the operations of `1 - 2^q(x)`, which is accurate to 2.4
    /// instead of 5.7 ulp (6.0 where products round, both of all floats). Both polynomials take the same rounded powers of
    /// `x²`, whose errors cancel in the quotient.
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
