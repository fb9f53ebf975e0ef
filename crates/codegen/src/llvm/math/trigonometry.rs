//! Sine, cosine and tangent in single precision.

use super::{FunctionText, Ty, Val};

// Both are fitted beyond half of a turn, since counting many turns in single precision may be off by as much.

/// Minimax coefficients of `(sin r - r) / r^3` in `r^2`, for `|r| <= 1.63`: 9e-9 of the sine.
const SIN: [f64; 4] =
    [2.593_130_375_316_832_2e-6, -1.980_396_045_837_551_4e-4, 8.332_991_041_243_076e-3, -1.666_665_673_255_920_4e-1];

/// Minimax coefficients of `(tan r - r) / r^3` in `r^2`, for `|r| <= 0.88`: 1.1e-8 of the tangent.
const TAN: [f64; 7] = [
    6.051_865_871_995_687_5e-3,
    -3.659_956_390_038_132_7e-3,
    1.410_774_327_814_579e-2,
    1.988_334_581_255_913e-2,
    5.436_049_401_760_101e-2,
    1.332_971_900_701_522_8e-1,
    3.333_344_459_533_691_4e-1,
];

/// π/2 in three floats of 24 bits each, for operations that round once.
const HALF_PI: [f64; 3] = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_881_9e-15];

/// π/2 in two parts of double precision; products of the first with integers below 2^20 are exact.
const HALF_PI_HIGH: f64 = 1.570_796_326_734_125_6;
const HALF_PI_LOW: f64 = 6.077_100_506_506_192e-11;

/// Above this magnitude the reduction would lose bits.
const HUGE: f64 = 1.0e6;

impl FunctionText<'_> {
    /// sin x: with `x = n π + r`, sin r with the sign that `n` has as a power of minus one.
    pub fn sin(&mut self, x: &Val) -> Val {
        self.unless_huge("sin", x, |this, x| {
            let (turns, bits) = this.nearest_bits(x, std::f64::consts::FRAC_1_PI, 0);
            this.signed_sine(x, &turns, &bits)
        })
    }

    /// cos x: with `x = (n + ½) π + r`, sin r with the sign that `n + 1` has as a power of minus one.
    pub fn cos(&mut self, x: &Val) -> Val {
        self.unless_huge("cos", x, |this, x| {
            let shifted = this.fmuladd(x, &Val::float(x.ty, std::f64::consts::FRAC_1_PI), &Val::float(x.ty, -0.5));
            let (turns, bits) = this.nearest_bits(&shifted, 1.0, 1);
            let turns = this.op("fadd", &turns, &Val::float(x.ty, 0.5));
            this.signed_sine(x, &turns, &bits)
        })
    }

    /// tan x: with `x = n π/2 + r`, tan r or its negated inverse.
    pub fn tan(&mut self, x: &Val) -> Val {
        self.unless_huge("tan", x, |this, x| {
            let (turns, bits) = this.nearest_bits(x, std::f64::consts::FRAC_2_PI, 0);
            let r = this.cody_waite(x, &turns, 1.0);
            let tangent = this.odd_polynomial(&r, &TAN);
            let odd = this.op("and", &bits, &Val::int(bits.ty, 1));
            let odd = this.not_zero(&odd);
            let numerator = this.select(&odd, &Val::float(x.ty, -1.0), &tangent);
            let denominator = this.select(&odd, &tangent, &Val::float(x.ty, 1.0));
            this.fdiv(&numerator, &denominator)
        })
    }

    /// The sine of `x - turns * π`, negated where `bits` is odd.
    fn signed_sine(&mut self, x: &Val, turns: &Val, bits: &Val) -> Val {
        let r = self.cody_waite(x, turns, 2.0);
        let sine = self.odd_polynomial(&r, &SIN);
        let sign = self.op("shl", bits, &Val::int(bits.ty, 31));
        let sine = self.bitcast(&sine, bits.ty);
        let sine = self.op("xor", &sine, &sign);
        self.bitcast(&sine, x.ty)
    }

    /// `x - turns * quarters * π/2`, where that is about one at most.
    ///
    /// What cancels is exact: in operations that round once the first difference has no more bits than a float, and double
    /// precision has room for the product. Few bits of a float are left for `turns`, so there is no third way.
    fn cody_waite(&mut self, x: &Val, turns: &Val, quarters: f64) -> Val {
        if self.native_fma {
            return HALF_PI.iter().fold(x.clone(), |rest, part| {
                let part = Val::float(x.ty, -part * quarters);
                self.fmuladd(turns, &part, &rest)
            });
        }
        let doubles = x.ty.with_kind(Ty::F64);
        let wide = self.cast("fpext", x, doubles);
        let turns = self.cast("fpext", turns, doubles);
        let rest = self.fmuladd(&turns, &Val::float(doubles, -HALF_PI_HIGH * quarters), &wide);
        let rest = self.fmuladd(&turns, &Val::float(doubles, -HALF_PI_LOW * quarters), &rest);
        self.cast("fptrunc", &rest, x.ty)
    }

    /// `r + r^3 p(r^2)`; zero keeps its sign.
    fn odd_polynomial(&mut self, r: &Val, coefficients: &[f64]) -> Val {
        let square = self.fmul(r, r);
        let tail = self.polynomial(&square, coefficients);
        let tail = self.fmul(&tail, &square);
        self.fmuladd(&tail, r, r)
    }

    /// `near(x)`, or the math library where any lane is too large for our reduction.
    fn unless_huge(&mut self, name: &str, x: &Val, near: impl FnOnce(&mut Self, &Val) -> Val) -> Val {
        let magnitude = self.fabs(x);
        let huge = self.fcmp("ogt", &magnitude, &Val::float(x.ty, HUGE));
        if self.has_library {
            return self.if_any(&huge, |this| this.library_call(name, &[x]), |this| near(this, x));
        }
        let reduced = self.if_any(&huge, |this| this.reduce_huge(x), |_| x.clone());
        let within = self.select(&huge, &reduced, x);
        near(self, &within)
    }
}
