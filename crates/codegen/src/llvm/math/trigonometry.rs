//! Sine, cosine, tangent and arctangent in single precision.

use super::{FunctionText, Ty, Val};

/// Cephes' minimax coefficients on `[-π/4, π/4]`, in `r^2`: of `(sin r - r) / r^3` and `(cos r - 1 + r^2 / 2) / r^4`.
const SIN: [f64; 3] = [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1];
const COS: [f64; 3] = [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2];

/// Cephes' minimax coefficients of `(atan r - r) / r^3` in `r^2` on `[-tan π/8, tan π/8]`.
const ATAN: [f64; 4] = [8.053_744_5e-2, -1.387_768_6e-1, 1.997_771_1e-1, -3.333_295e-1];

/// π/2 in two parts of double precision; products of the first with integers below 2^20 are exact.
const HALF_PI_HIGH: f64 = 1.570_796_326_734_125_6;
const HALF_PI_LOW: f64 = 6.077_100_506_506_192e-11;

/// Above this magnitude the reduction would lose bits.
const HUGE: f64 = 1.0e6;

impl FunctionText<'_> {
    /// sin x.
    pub fn sin(&mut self, x: &Val) -> Val {
        self.unless_huge("sin", x, |this| {
            let (sine, cosine, quadrant) = this.quarter_turn(x);
            this.rotate(&sine, &cosine, &quadrant, 0)
        })
    }

    /// cos x.
    pub fn cos(&mut self, x: &Val) -> Val {
        self.unless_huge("cos", x, |this| {
            let (sine, cosine, quadrant) = this.quarter_turn(x);
            this.rotate(&sine, &cosine, &quadrant, 1)
        })
    }

    /// tan x.
    pub fn tan(&mut self, x: &Val) -> Val {
        self.unless_huge("tan", x, |this| {
            let (sine, cosine, quadrant) = this.quarter_turn(x);
            let bit = this.op("and", &quadrant, &Val::int(quadrant.ty, 1));
            let swap = this.not_zero(&bit);
            let negated = this.fneg(&cosine);
            let numerator = this.select(&swap, &negated, &sine);
            let denominator = this.select(&swap, &sine, &cosine);
            this.fdiv(&numerator, &denominator)
        })
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
        let tail = self.polynomial(&square, &ATAN);
        let cube = self.fmul(&square, &reduced);
        let small = self.fmuladd(&tail, &cube, &reduced);
        let angle = self.fadd(&base, &small);
        self.copysign(&angle, x)
    }

    /// sin and cos of `x` less its nearest quarter turns, and how many of these there are.
    fn quarter_turn(&mut self, x: &Val) -> (Val, Val, Val) {
        let doubles = x.ty.with_kind(Ty::F64);
        let wide = self.cast("fpext", x, doubles);
        let (turns, quadrant) = self.nearest(&wide, std::f64::consts::FRAC_2_PI);
        let rest = self.fmuladd(&turns, &Val::float(doubles, -HALF_PI_HIGH), &wide);
        let rest = self.fmuladd(&turns, &Val::float(doubles, -HALF_PI_LOW), &rest);
        let r = self.cast("fptrunc", &rest, x.ty);
        let quadrant = self.cast("trunc", &quadrant, x.ty.with_kind(Ty::I32));
        let square = self.fmul(&r, &r);
        let tail = self.polynomial(&square, &SIN);
        let cube = self.fmul(&square, &r);
        let sine = self.fmuladd(&tail, &cube, &r);
        let tail = self.polynomial(&square, &COS);
        let fourth = self.fmul(&square, &square);
        let head = self.fmuladd(&square, &Val::float(x.ty, -0.5), &Val::float(x.ty, 1.0));
        let cosine = self.fmuladd(&tail, &fourth, &head);
        (sine, cosine, quadrant)
    }

    /// The sine after `quadrant + ahead` quarter turns.
    fn rotate(&mut self, sine: &Val, cosine: &Val, quadrant: &Val, ahead: i64) -> Val {
        let ints = quadrant.ty;
        let quadrant = self.op("add", quadrant, &Val::int(ints, ahead));
        let odd = self.op("and", &quadrant, &Val::int(ints, 1));
        let odd = self.not_zero(&odd);
        let value = self.select(&odd, cosine, sine);
        let sign = self.op("and", &quadrant, &Val::int(ints, 2));
        let sign = self.op("shl", &sign, &Val::int(ints, 30));
        let bits = self.bitcast(&value, ints);
        let bits = self.op("xor", &bits, &sign);
        self.bitcast(&bits, value.ty)
    }

    /// `near(x)`, or the math library where any lane is too large for our reduction.
    fn unless_huge(&mut self, name: &str, x: &Val, near: impl FnOnce(&mut Self) -> Val) -> Val {
        let magnitude = self.fabs(x);
        let large = self.fcmp("ogt", &magnitude, &Val::float(x.ty, HUGE));
        let finite = self.fcmp("olt", &magnitude, &Val::float(x.ty, f64::INFINITY));
        let huge = self.op("and", &large, &finite);
        let any = if x.ty.is_vector() { self.intrinsic("vector.reduce.or", huge.ty, Ty::BOOL, &[&huge]) } else { huge };
        let (far, close, done) = (self.label(), self.label(), self.label());
        self.branch_if(&any, far, close);
        self.start(far);
        let called = self.library_call(name, &[x]);
        let from_far = self.current();
        self.branch(done);
        self.start(close);
        let computed = near(self);
        let from_close = self.current();
        self.branch(done);
        self.start(done);
        self.phi(x.ty, &[(called, from_far), (computed, from_close)])
    }
}
