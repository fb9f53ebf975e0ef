//! Powers of doubles: `2^(y log2 x)`, with the logarithm in two doubles.
//!
//! The product grows to 1074, so that its fraction is right to 2^-53 only if the logarithm is to 2^-64.

use super::{FunctionText, LN2_HIGH, LN2_LOW, Val};

/// 2 / ln 2, and a third, in two parts.
const TWICE_LOG2_E: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
const THIRD: [f64; 2] = [1.0 / 3.0, 1.850_371_707_708_594e-17];
/// Exponents beyond this give nothing, infinity or one, as this does.
const LARGEST: f64 = 1.844_674_407_370_955_2e19;
/// Powers of two beyond this are nothing or infinity.
const FAR: f64 = 1100.0;

impl FunctionText<'_> {
    /// x^y.
    pub(in crate::llvm::math) fn pow_double(&mut self, x: &Val, y: &Val) -> Val {
        if let Some(power) = y.as_float_literal().and_then(|exponent| self.known_power(x, exponent)) {
            return power;
        }
        let magnitude = self.fabs(x);
        let power = self.finite_power_double(&magnitude, y);
        let (zero, infinity) = (Val::float(x.ty, 0.0), Val::float(x.ty, f64::INFINITY));
        let (positive, finite) = (self.fcmp("ogt", x, &zero), self.fcmp("olt", x, &infinity));
        let y_magnitude = self.fabs(y);
        let finite_exponent = self.fcmp("olt", &y_magnitude, &infinity);
        let usual = self.op("and", &positive, &finite);
        let usual = self.op("and", &usual, &finite_exponent);
        let special = self.not(&usual);
        self.if_any(&special, |this| this.corrected_power(x, y, &power), |_| power.clone())
    }

    /// x^y for positive finite x and finite y.
    fn finite_power_double(&mut self, x: &Val, y: &Val) -> Val {
        let ty = x.ty;
        let y = self.clamp(y, -LARGEST, LARGEST);
        let (high, low) = self.log2_in_two(x);
        let product = self.op("fmul", &y, &high);
        let opposite = self.op("fsub", &Val::float(ty, -0.0), &product);
        let lost = self.fma(&y, &high, &opposite);
        let lost = self.fma(&y, &low, &lost);
        let size = self.fabs(&product);
        let is_far = self.fcmp("ogt", &size, &Val::float(ty, FAR));
        let lost = self.select(&is_far, &Val::float(ty, 0.0), &lost);
        let bounded = self.clamp(&product, -FAR, FAR);
        let (n, bits) = self.nearest_bits(&bounded, 1.0, 0);
        let rest = self.op("fsub", &bounded, &n);
        // The product with ln 2 in two parts, since it stands in an exponent.
        let rest = self.op("fadd", &rest, &lost);
        let low = self.op("fmul", &rest, &Val::float(ty, LN2_LOW));
        let natural = self.fma(&rest, &Val::float(ty, LN2_HIGH), &low);
        self.exp_of_rest(&natural, &bits)
    }

    /// The base-2 logarithm of a positive finite number in two doubles.
    ///
    /// With `x = 2^n (1 + f)` and `s = f / (2 + f)` it is `n + (2 / ln 2) (s + s z (1/3 + z/5 + …))`, `z = s²`: what is behind the fifth is
    /// small enough for one double.
    fn log2_in_two(&mut self, x: &Val) -> (Val, Val) {
        let ty = x.ty;
        let float = |value: f64| Val::float(ty, value);
        let (n, f) = self.exponent_and_fraction(x);
        let (under, under_low) = self.exact_sum(&float(2.0), &f);
        let s = self.op("fdiv", &f, &under);
        let opposite = self.op("fsub", &float(-0.0), &s);
        let missing = self.fma(&opposite, &under, &f);
        let missing = self.fma(&opposite, &under_low, &missing);
        let s = (s, self.op("fdiv", &missing, &under));
        let z = self.product_in_two(&s, &s);
        let coefficients: Vec<f64> = (2..=14).rev().map(|k| 1.0 / f64::from(2 * k + 1)).collect();
        let series = self.polynomial(&z.0, &coefficients);
        let series = self.op("fmul", &series, &z.0);
        let (inner, lost) = self.exact_sum(&float(THIRD[0]), &series);
        let inner = (inner, self.op("fadd", &lost, &float(THIRD[1])));
        let inner = self.product_in_two(&z, &inner);
        let small = self.product_in_two(&s, &inner);
        let (sum, lost) = self.exact_sum(&s.0, &small.0);
        let low = self.op("fadd", &s.1, &small.1);
        let sum = (sum, self.op("fadd", &lost, &low));
        let (high, low) = self.product_in_two(&sum, &(float(TWICE_LOG2_E[0]), float(TWICE_LOG2_E[1])));
        let (whole, lost) = self.exact_sum(&n, &high);
        let low = self.op("fadd", &lost, &low);
        self.exact_sum(&whole, &low)
    }

    /// A product of numbers in two doubles each.
    fn product_in_two(&mut self, a: &(Val, Val), b: &(Val, Val)) -> (Val, Val) {
        let high = self.op("fmul", &a.0, &b.0);
        let opposite = self.op("fsub", &Val::float(high.ty, -0.0), &high);
        let low = self.fma(&a.0, &b.0, &opposite);
        let low = self.fma(&a.0, &b.1, &low);
        (high, self.fma(&a.1, &b.0, &low))
    }
}
