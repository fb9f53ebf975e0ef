//! The error function in single precision.

use super::{FunctionText, Val};

/// Cephes' coefficients of `erf x / x` in `x^2` on `[-1, 1]`.
const SMALL: [f64; 7] = [
    7.853_861_353_153_693e-5,
    -8.010_193_625_184_903e-4,
    5.188_327_685_732_524e-3,
    -2.685_381_193_529_856e-2,
    1.128_358_514_861_418e-1,
    -3.761_262_582_423_3e-1,
    1.128_379_165_726_71,
];

/// Coefficients of `ln(1 - erf x)` on `[1, 4]`, fitted so that `erf x` is least wrong (by 1e-9).
const LARGE: [f64; 7] = [
    1.855_752_096e-4,
    -2.939_618_755e-3,
    2.180_536_291e-2,
    -1.030_374_594e-1,
    -6.382_255_756e-1,
    -1.127_040_096e0,
    -3.537_051_52e-4,
];

impl FunctionText<'_> {
    /// erf x.
    pub fn erf(&mut self, x: &Val) -> Val {
        let magnitude = self.fabs(x);
        let square = self.fmul(x, x);
        let small = self.polynomial(&square, &SMALL);
        let small = self.fmul(&small, x);
        // Above four the result is one; a bound keeps the polynomial where it was fitted.
        let bounded = self.clamp(&magnitude, 1.0, 4.0);
        let exponent = self.polynomial(&bounded, &LARGE);
        let complement = self.exp(&exponent);
        let large = self.fsub(&Val::float(x.ty, 1.0), &complement);
        let large = self.copysign(&large, x);
        let is_small = self.fcmp("ult", &magnitude, &Val::float(x.ty, 1.0));
        self.select(&is_small, &small, &large)
    }
}
