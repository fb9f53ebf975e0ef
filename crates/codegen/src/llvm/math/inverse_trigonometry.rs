//! Arcsine, arccosine and arctangent in single precision.

use super::{FunctionText, Ty, Val};

/// Minimax coefficients of `(asin r - r) / r^3` in `r^2` on `[-½, ½]`, weighted by `r^2`: 5e-9.
const ASIN: [f64; 5] = [
    4.221_179_708_838_463e-2,
    2.415_209_263_563_156e-2,
    4.547_604_173_421_86e-2,
    7.495_252_043_008_804e-2,
    1.666_675_359_010_696_4e-1,
];

/// Cephes' minimax coefficients of `(atan r - r) / r^3` in `r^2` on `[-tan π/8, tan π/8]`.
const ATAN: [f64; 4] = [8.053_744_5e-2, -1.387_768_6e-1, 1.997_771_1e-1, -3.333_295e-1];

/// π/2 as two floats.
const HALF_PI_HIGH: f64 = 1.570_796_370_506_286_6;
const HALF_PI_LOW: f64 = -4.371_139_000_186_243e-8;

/// The arcsine of what an argument was brought to.
struct Arc {
    /// Whether that is the argument's magnitude `a`, which is not above ½; otherwise it is `√((1 - a) / 2)`, and asin a is
    /// π/2 less twice the arc.
    is_small: Val,
    /// The arc in two parts.
    head: Val,
    tail: Val,
}

impl FunctionText<'_> {
    /// asin x; NaN where the magnitude exceeds one.
    pub fn asin(&mut self, x: &Val) -> Val {
        let Arc { is_small, head, tail } = self.arc(x);
        let small = self.fadd(&head, &tail);
        let minus_two = Val::float(x.ty, -2.0);
        let head = self.fmuladd(&head, &minus_two, &Val::float(x.ty, HALF_PI_HIGH));
        let tail = self.fmuladd(&tail, &minus_two, &Val::float(x.ty, HALF_PI_LOW));
        let large = self.fadd(&head, &tail);
        let result = self.select(&is_small, &small, &large);
        self.copysign(&result, x)
    }

    /// acos x; NaN where the magnitude exceeds one. Near zero it is π/2 less the arc with the argument's sign, near one twice
    /// the arc, near minus one π less twice the arc.
    pub fn acos(&mut self, x: &Val) -> Val {
        let float = |value: f64| Val::float(x.ty, value);
        let Arc { is_small, head, tail } = self.arc(x);
        let is_negative = self.fcmp("olt", x, &float(0.0));
        let quarters = self.select(&is_negative, &float(2.0), &float(0.0));
        let quarters = self.select(&is_small, &float(1.0), &quarters);
        let factor = self.select(&is_small, &float(-1.0), &float(2.0));
        let factor = self.times_sign(&factor, x);
        let high = self.fmul(&quarters, &float(HALF_PI_HIGH));
        let low = self.fmul(&quarters, &float(HALF_PI_LOW));
        let head = self.fmuladd(&head, &factor, &high);
        let tail = self.fmuladd(&tail, &factor, &low);
        self.fadd(&head, &tail)
    }

    /// atan x: the argument is brought near zero by the tangents of π/4 and π/2.
    pub fn atan(&mut self, x: &Val) -> Val {
        let one = Val::float(x.ty, 1.0);
        let magnitude = self.fabs(x);
        let inverse = self.fdiv(&Val::float(x.ty, -1.0), &magnitude);
        let numerator = self.fsub(&magnitude, &one);
        let denominator = self.fadd(&magnitude, &one);
        let rotated = self.fdiv(&numerator, &denominator);
        let large = self.fcmp("ogt", &magnitude, &Val::float(x.ty, 2.414_213_562_373_095));
        let middle = self.fcmp("ogt", &magnitude, &Val::float(x.ty, 0.414_213_562_373_095));
        let reduced = self.select(&middle, &rotated, &magnitude);
        let reduced = self.select(&large, &inverse, &reduced);
        let base = self.select(&middle, &Val::float(x.ty, std::f64::consts::FRAC_PI_4), &Val::zero(x.ty));
        let base = self.select(&large, &Val::float(x.ty, std::f64::consts::FRAC_PI_2), &base);
        let square = self.fmul(&reduced, &reduced);
        let tail = self.wide_polynomial(&square, &ATAN);
        let cube = self.fmul(&square, &reduced);
        let small = self.fmuladd(&tail, &cube, &reduced);
        let angle = self.fadd(&base, &small);
        self.copysign(&angle, x)
    }

    fn arc(&mut self, x: &Val) -> Arc {
        let half = Val::float(x.ty, 0.5);
        let magnitude = self.fabs(x);
        let is_small = self.fcmp("ole", &magnitude, &half);
        let own = self.fmul(x, x);
        let other = self.fmuladd(&magnitude, &Val::float(x.ty, -0.5), &half);
        let root = self.intrinsic("sqrt", x.ty, x.ty, &[&other]);
        let square = self.select(&is_small, &own, &other);
        let head = self.select(&is_small, &magnitude, &root);
        let tail = self.wide_polynomial(&square, &ASIN);
        let tail = self.fmul(&tail, &square);
        let tail = self.fmul(&tail, &head);
        Arc { is_small, head, tail }
    }

    /// `value`, negated where `sign` is negative.
    fn times_sign(&mut self, value: &Val, sign: &Val) -> Val {
        let ints = value.ty.with_kind(Ty::I32);
        let bits = self.bitcast(sign, ints);
        let bits = self.op("and", &bits, &Val::int(ints, i64::from(i32::MIN)));
        let own = self.bitcast(value, ints);
        let bits = self.op("xor", &bits, &own);
        self.bitcast(&bits, value.ty)
    }
}
