//! Powers in single precision, by way of double.
//!
//! `y log2 x` must keep its fraction while its integer part grows to 128, more bits than single precision has. Two vectors
//! of doubles are cheaper than carrying pairs of floats, and leave almost no rounding error.

use super::{FunctionText, Ty, Val};

impl FunctionText<'_> {
    /// x^y.
    pub fn pow(&mut self, x: &Val, y: &Val) -> Val {
        let (doubles, zero, one) = (x.ty.with_kind(Ty::F64), Val::zero(x.ty), Val::float(x.ty, 1.0));
        let magnitude = self.fabs(x);
        let wide = self.cast("fpext", &magnitude, doubles);
        let exponent = self.cast("fpext", y, doubles);
        let logarithm = self.log2_double(&wide);
        let logarithm = self.log_of_special(&wide, &logarithm);
        let product = self.fmul(&logarithm, &exponent);
        let product = self.clamp(&product, -300.0, 300.0);
        let power = self.exp2_double(&product);
        let power = self.cast("fptrunc", &power, x.ty);

        let whole = self.is_whole(y);
        let halved = self.fmul(y, &Val::float(x.ty, 0.5));
        let even = self.is_whole(&halved);
        let uneven = self.not(&even);
        let odd = self.op("and", &whole, &uneven);
        let signed = self.copysign(&power, x);
        let power = self.select(&odd, &signed, &power);

        // A negative base has a power only where the exponent is whole; the infinite one has the power of its magnitude.
        let negative = self.fcmp("olt", x, &zero);
        let finite = self.fcmp("one", &magnitude, &Val::float(x.ty, f64::INFINITY));
        let broken = self.not(&whole);
        let invalid = self.op("and", &negative, &broken);
        let invalid = self.op("and", &invalid, &finite);
        let power = self.select(&invalid, &Val::float(x.ty, f64::NAN), &power);

        // One to any power and anything to the power zero are one, also where the other is NaN; so is the magnitude one
        // to an infinite power.
        let unit_base = self.fcmp("oeq", x, &one);
        let zero_exponent = self.fcmp("oeq", y, &zero);
        let certain = self.op("or", &unit_base, &zero_exponent);
        let unit_magnitude = self.fcmp("oeq", &magnitude, &one);
        let y_magnitude = self.fabs(y);
        let infinite = self.fcmp("oeq", &y_magnitude, &Val::float(x.ty, f64::INFINITY));
        let balanced = self.op("and", &unit_magnitude, &infinite);
        let certain = self.op("or", &certain, &balanced);
        self.select(&certain, &one, &power)
    }

    /// The logarithm where its argument is zero, infinite or NaN.
    fn log_of_special(&mut self, x: &Val, logarithm: &Val) -> Val {
        let is_zero = self.fcmp("oeq", x, &Val::zero(x.ty));
        let result = self.select(&is_zero, &Val::float(x.ty, f64::NEG_INFINITY), logarithm);
        let finite = self.fcmp("olt", x, &Val::float(x.ty, f64::INFINITY));
        self.select(&finite, &result, x)
    }

    /// Whether it is an integer; the infinities are.
    fn is_whole(&mut self, x: &Val) -> Val {
        let cut = self.intrinsic("trunc", x.ty, x.ty, &[x]);
        self.fcmp("oeq", &cut, x)
    }
}
