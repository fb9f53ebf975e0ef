//! Inverse hyperbolic functions in single precision: logarithms of sums with one, so that nothing is lost near zero.

use super::{FunctionText, Val};

/// From here on the hyperbolic sine and cosine are half of the exponential function.
const HUGE: f64 = 1_073_741_824.0;

impl FunctionText<'_> {
    /// asinh x: `ln(1 + |x| + x^2 / (1 + √(1 + x^2)))`.
    pub fn asinh(&mut self, x: &Val) -> Val {
        let one = Val::float(x.ty, 1.0);
        let magnitude = self.fabs(x);
        let square = self.fmul(x, x);
        let root = self.fadd(&square, &one);
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[&root]);
        let denominator = self.fadd(&root, &one);
        let rest = self.fdiv(&square, &denominator);
        let argument = self.fadd(&magnitude, &rest);
        let result = self.log_of_sum_or_double(&argument, &magnitude);
        self.copysign(&result, x)
    }

    /// acosh x: with `t = x - 1`, `ln(1 + t + √(2t + t^2))`; NaN below one.
    pub fn acosh(&mut self, x: &Val) -> Val {
        let one = Val::float(x.ty, 1.0);
        let t = self.op("fsub", x, &one);
        let double = self.op("fadd", &t, &t);
        let square = self.fmuladd(&t, &t, &double);
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[&square]);
        let argument = self.fadd(&t, &root);
        let result = self.log_of_sum_or_double(&argument, x);
        let invalid = self.fcmp("ult", x, &one);
        self.select(&invalid, &Val::float(x.ty, f64::NAN), &result)
    }

    /// atanh x: `ln(1 + 2|x| / (1 - |x|)) / 2`; infinite at one, NaN above.
    pub fn atanh(&mut self, x: &Val) -> Val {
        let magnitude = self.fabs(x);
        let double = self.op("fadd", &magnitude, &magnitude);
        let distance = self.op("fsub", &Val::float(x.ty, 1.0), &magnitude);
        let argument = self.fdiv(&double, &distance);
        // From a magnitude above one comes a negative sum, which has no logarithm.
        let logarithm = self.log_of_sum(&argument, None);
        let half = self.fmul(&logarithm, &Val::float(x.ty, 0.5));
        self.copysign(&half, x)
    }

    /// `ln(1 + argument)`, or `ln 2x` for huge `x`, whose square may be no number.
    fn log_of_sum_or_double(&mut self, argument: &Val, x: &Val) -> Val {
        let is_huge = self.fcmp("ogt", x, &Val::float(x.ty, HUGE));
        let argument = self.select(&is_huge, x, argument);
        let doublings = self.select(&is_huge, &Val::float(x.ty, 1.0), &Val::zero(x.ty));
        self.log_of_sum(&argument, Some(&doublings))
    }
}
