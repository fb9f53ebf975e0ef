//! Inverses of circular functions of doubles.

use super::{FunctionText, Ty, Val, angles::HALF_PI};

/// Coefficients of `(atan r / r - 1) / r²` in `r²` up to 7/16, by interpolation at the zeros of a Chebyshev polynomial: 2e-17 of the whole.
const ATAN: [f64; 11] = [
    -0.017_547_235_157_290_005,
    0.037_825_218_661_067_12,
    -0.050_339_427_764_858_48,
    0.058_477_247_206_451_06,
    -0.066_632_392_991_071_36,
    0.076_920_873_487_671_68,
    -0.090_909_001_955_601_48,
    0.111_111_109_005_604_75,
    -0.142_857_142_831_486_4,
    0.199_999_999_999_877_7,
    -0.333_333_333_333_333_26,
];

/// Coefficients of `(asin r / r - 1) / r²` in `r²` up to ½, in the same way: 5e-18 of the whole.
const ASIN: [f64; 13] = [
    0.028_757_851_367_421_566,
    -0.014_851_887_071_247_204,
    0.017_400_879_442_694_02,
    0.005_457_506_718_640_358,
    0.010_322_814_350_185_78,
    0.011_479_177_415_184_906,
    0.013_971_212_973_552_933,
    0.017_352_392_720_869_973,
    0.022_372_172_942_149_89,
    0.030_381_944_138_531_247,
    0.044_642_857_146_355_43,
    0.074_999_999_999_984_33,
    0.166_666_666_666_666_69,
];

/// Where an arctangent is rotated: from where on, by the arctangent of which tangent, and that in two parts. What is left is 7/16 at most.
const TURNED: [(f64, f64, [f64; 2]); 3] = [
    (0.4375, 0.5, [0.463_647_609_000_806_1, 2.269_877_745_296_168_7e-17]),
    (0.6875, 1.0, [std::f64::consts::FRAC_PI_4, 3.061_616_997_868_383e-17]),
    (1.1875, 1.5, [0.982_793_723_247_329, 1.390_331_103_123_099_8e-17]),
];
/// From here on an arctangent is a quarter turn less that of the inverse.
const INVERTED_FROM: f64 = 2.4375;

/// What the arcsine of an argument's magnitude is made of.
struct Arc {
    /// Whether the magnitude is not above ½: then it is the root, and otherwise that is `√((1 - magnitude) / 2)`.
    is_small: Val,
    root: Val,
    /// What the root lacks of the real one, and what its arcsine is more.
    rest: Val,
}

impl FunctionText<'_> {
    pub(super) fn asin_double(&mut self, x: &Val) -> Val {
        let arc = self.double_arc(x);
        let small = self.op("fadd", &arc.root, &arc.rest);
        let (minus_two, ty) = (Val::float(x.ty, -2.0), x.ty);
        let low = self.fma(&arc.rest, &minus_two, &Val::float(ty, HALF_PI[1]));
        let less = self.op("fmul", &arc.root, &minus_two);
        let (high, lost) = self.exact_sum(&Val::float(ty, HALF_PI[0]), &less);
        let low = self.op("fadd", &low, &lost);
        let large = self.op("fadd", &high, &low);
        let result = self.select(&arc.is_small, &small, &large);
        self.copysign(&result, x)
    }

    /// A quarter turn less the arcsine of what is small; twice the arc near one, and a half turn less that near minus one.
    pub(super) fn acos_double(&mut self, x: &Val) -> Val {
        let ty = x.ty;
        let float = |value: f64| Val::float(ty, value);
        let arc = self.double_arc(x);
        let is_negative = self.fcmp("olt", x, &float(0.0));
        // Quarter turns, and what of the arc is added to them.
        let quarters = self.select(&is_negative, &float(2.0), &float(0.0));
        let quarters = self.select(&arc.is_small, &float(1.0), &quarters);
        let opposite = self.select(&is_negative, &float(1.0), &float(-1.0));
        let twice = self.op("fmul", &opposite, &float(-2.0));
        let factor = self.select(&arc.is_small, &opposite, &twice);
        let high = self.op("fmul", &quarters, &float(HALF_PI[0]));
        let low = self.op("fmul", &quarters, &float(HALF_PI[1]));
        let rotated = self.op("fmul", &arc.root, &factor);
        let (high, lost) = self.exact_sum(&high, &rotated);
        let low = self.fma(&arc.rest, &factor, &low);
        let low = self.op("fadd", &low, &lost);
        self.op("fadd", &high, &low)
    }

    fn double_arc(&mut self, x: &Val) -> Arc {
        let ty = x.ty;
        let magnitude = self.fabs(x);
        let is_small = self.fcmp("ole", &magnitude, &Val::float(ty, 0.5));
        let own = self.op("fmul", x, x);
        let less = self.op("fsub", &Val::float(ty, 1.0), &magnitude);
        let other = self.op("fmul", &less, &Val::float(ty, 0.5));
        let square = self.select(&is_small, &own, &other);
        let root_of_other = self.intrinsic("sqrt", ty, ty, &[&other]);
        let root = self.select(&is_small, &magnitude, &root_of_other);
        // What the root is wrong by, which is nothing where its square is.
        let opposite = self.op("fsub", &Val::float(ty, -0.0), &root_of_other);
        let missing = self.fma(&opposite, &root_of_other, &other);
        let twice = self.op("fadd", &root_of_other, &root_of_other);
        let lost = self.op("fdiv", &missing, &twice);
        let is_one = self.fcmp("oeq", &magnitude, &Val::float(ty, 1.0));
        let nothing = self.op("or", &is_small, &is_one);
        let lost = self.select(&nothing, &Val::float(ty, 0.0), &lost);
        let series = self.polynomial(&square, &ASIN);
        let series = self.op("fmul", &series, &square);
        let rest = self.fma(&series, &root, &lost);
        Arc { is_small, root, rest }
    }

    pub(super) fn atan_double(&mut self, x: &Val) -> Val {
        let ty = x.ty;
        let float = |value: f64| Val::float(ty, value);
        let magnitude = self.fabs(x);
        let (mut over, mut under) = (magnitude.clone(), float(1.0));
        let (mut high, mut low) = (float(0.0), float(0.0));
        for (from, tangent, parts) in TURNED {
            let is_rotated = self.fcmp("oge", &magnitude, &float(from));
            let less = self.op("fsub", &magnitude, &float(tangent));
            let more = self.fma(&magnitude, &float(tangent), &float(1.0));
            over = self.select(&is_rotated, &less, &over);
            under = self.select(&is_rotated, &more, &under);
            high = self.select(&is_rotated, &float(parts[0]), &high);
            low = self.select(&is_rotated, &float(parts[1]), &low);
        }
        let is_inverted = self.fcmp("oge", &magnitude, &float(INVERTED_FROM));
        over = self.select(&is_inverted, &float(-1.0), &over);
        under = self.select(&is_inverted, &magnitude, &under);
        high = self.select(&is_inverted, &float(HALF_PI[0]), &high);
        low = self.select(&is_inverted, &float(HALF_PI[1]), &low);
        let r = self.op("fdiv", &over, &under);
        let z = self.op("fmul", &r, &r);
        let series = self.polynomial(&z, &ATAN);
        let cube = self.op("fmul", &z, &r);
        let small = self.fma(&series, &cube, &low);
        let small = self.op("fadd", &r, &small);
        let angle = self.op("fadd", &high, &small);
        self.copysign(&angle, x)
    }

    /// The angle of a point in all four quadrants, in either precision.
    pub(in crate::llvm::math) fn atan2(&mut self, y: &Val, x: &Val) -> Val {
        let (one, zero) = (Val::float(x.ty, 1.0), Val::float(x.ty, 0.0));
        let is_double = x.ty.element() == Ty::F64;
        let (a, b) = (self.fabs(y), self.fabs(x));
        let ratio = self.op("fdiv", &a, &b);
        // Equal ones are a half of a right angle, also where they are infinite; of two zeros the angle is none.
        let equal = self.fcmp("oeq", &a, &b);
        let ratio = self.select(&equal, &one, &ratio);
        let nothing = self.fcmp("oeq", &a, &zero);
        let ratio = self.select(&nothing, &zero, &ratio);
        let angle = if is_double { self.atan_double(&ratio) } else { self.atan(&ratio) };
        let unordered = self.fcmp("uno", x, y);
        let angle = self.select(&unordered, &Val::float(x.ty, f64::NAN), &angle);
        let ints = x.ty.with_kind(if is_double { Ty::I64 } else { Ty::I32 });
        let sign = self.bitcast(x, ints);
        let is_left = self.icmp("slt", &sign, &Val::int(ints, 0));
        let half_turn = Val::float(x.ty, std::f64::consts::PI);
        let other = if is_double {
            let low = self.op("fsub", &angle, &Val::float(x.ty, 2.0 * HALF_PI[1]));
            self.op("fsub", &half_turn, &low)
        } else {
            self.op("fsub", &half_turn, &angle)
        };
        let angle = self.select(&is_left, &other, &angle);
        self.copysign(&angle, y)
    }
}
