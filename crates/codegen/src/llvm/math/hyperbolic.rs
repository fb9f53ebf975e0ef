//! Hyperbolic sine, cosine and tangent in single precision.

use super::{
    FunctionText, Val,
    exp::{BIAS, EXP, LN2_HIGH, LN2_LOW},
};

/// Minimax coefficients on `[-ln 2 / 2, ln 2 / 2]`, in `r^2`: of `(sinh r - r) / r^3` (5e-11) and `(cosh r - 1) / r^2` (1e-10).
const SINH: [f64; 3] = [1.997_304_207_195_477e-4, 8.333_176_374_435_425e-3, 1.666_666_716_337_204e-1];
const COSH: [f64; 3] = [1.393_584_185_279_905_8e-3, 4.166_645_556_688_309e-2, 0.5];

/// What the addition theorems make of `|x| = n ln 2 + r`.
struct ExponentialParts {
    /// sinh r and cosh r.
    sine: Val,
    cosine: Val,
    /// `(2^n + 2^-n) / 4` and `(2^n - 2^-n) / 4`: halves of cosh and sinh of `n ln 2`, since 2^128 is none of the numbers.
    sum: Val,
    difference: Val,
}

impl FunctionText<'_> {
    /// sinh x. Near zero `n` is zero and so is the difference: nothing is lost.
    pub fn sinh(&mut self, x: &Val) -> Val {
        let ExponentialParts { sine, cosine, sum, difference } = self.hyperbolic_parts(x);
        let tail = self.fmul(&cosine, &difference);
        let half = self.fmuladd(&sine, &sum, &tail);
        let result = self.fadd(&half, &half);
        self.copysign(&result, x)
    }

    /// cosh x.
    pub fn cosh(&mut self, x: &Val) -> Val {
        let ExponentialParts { sine, cosine, sum, difference } = self.hyperbolic_parts(x);
        let tail = self.fmul(&sine, &difference);
        let half = self.fmuladd(&cosine, &sum, &tail);
        self.fadd(&half, &half)
    }

    fn hyperbolic_parts(&mut self, x: &Val) -> ExponentialParts {
        let magnitude = self.fabs(x);
        // From here on the result is infinite.
        let bounded = self.at_most(&magnitude, 89.5);
        let (n, exponent) = self.nearest_bits(&bounded, std::f64::consts::LOG2_E, BIAS - 2);
        let r = self.fmuladd(&n, &Val::float(x.ty, -LN2_HIGH), &bounded);
        let r = self.fmuladd(&n, &Val::float(x.ty, -LN2_LOW), &r);
        let square = self.fmul(&r, &r);
        let tail = self.polynomial(&square, &SINH);
        let tail = self.fmul(&tail, &square);
        let sine = self.fmuladd(&tail, &r, &r);
        let tail = self.polynomial(&square, &COSH);
        let cosine = self.fmuladd(&tail, &square, &Val::float(x.ty, 1.0));
        let power = self.power_of_two(&exponent);
        let ints = power.ty;
        let inverse = self.op("sub", &Val::int(ints, (2 * (BIAS - 2)) << 23), &power);
        // Where it has no exponent, it is nothing beside the other.
        let inverse = self.intrinsic("smax", ints, ints, &[&inverse, &Val::zero(ints)]);
        let (power, inverse) = (self.bitcast(&power, x.ty), self.bitcast(&inverse, x.ty));
        let (sum, difference) = (self.fadd(&power, &inverse), self.fsub(&power, &inverse));
        ExponentialParts { sine, cosine, sum, difference }
    }

    /// The hyperbolic tangent in single precision: `d / (d + 2)`, `d = e^(2|x|) - 1`.
    ///
    /// With `2|x| = n ln 2 + 2r`, `d` is `2^n (e^(2r) - 1) + (2^n - 1)`, of which nothing is lost for small arguments: there
    /// `n` is zero.
    pub fn tanh(&mut self, x: &Val) -> Val {
        let magnitude = self.fabs(x);
        // From here on the result is one.
        let bounded = self.at_most(&magnitude, 10.0);
        let (n, exponent) = self.nearest_bits(&bounded, 2.0 * std::f64::consts::LOG2_E, BIAS);
        let r = self.fmuladd(&n, &Val::float(x.ty, -LN2_HIGH / 2.0), &bounded);
        let r = self.fmuladd(&n, &Val::float(x.ty, -LN2_LOW / 2.0), &r);
        let mut coefficients = [2.0; EXP.len() + 1];
        let mut scale = 2.0;
        for (coefficient, exp) in coefficients[..EXP.len()].iter_mut().zip(EXP).rev() {
            scale *= 2.0;
            *coefficient = exp * scale;
        }
        let less_one = self.polynomial(&r, &coefficients);
        let less_one = self.fmul(&less_one, &r);
        let power = self.power_of_two(&exponent);
        let power = self.bitcast(&power, x.ty);
        let power_less_one = self.fsub(&power, &Val::float(x.ty, 1.0));
        let difference = self.fmuladd(&less_one, &power, &power_less_one);
        let sum = self.fadd(&difference, &Val::float(x.ty, 2.0));
        let quotient = self.fdiv(&difference, &sum);
        self.copysign(&quotient, x)
    }
}
