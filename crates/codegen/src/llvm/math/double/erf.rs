//! The error function of doubles.

use super::{FunctionText, Val};

/// Coefficients of `erf x / x` in `x²` up to one, by interpolation at the zeros of a Chebyshev polynomial: 3e-17.
const NEAR: [f64; 14] = [
    -4.230_945_824_295_338e-12,
    8.709_045_129_053_106e-11,
    -1.216_456_005_728_345e-9,
    1.479_240_120_940_481_3e-8,
    -1.636_464_215_816_761_6e-7,
    1.646_204_544_146_841_8e-6,
    -1.492_564_756_751_933_2e-5,
    0.000_120_553_329_028_887_36,
    -0.000_854_832_702_193_483,
    0.005_223_977_625_423_298_5,
    -0.026_866_170_645_129_84,
    0.112_837_916_709_551_2,
    -0.376_126_389_031_837_54,
    std::f64::consts::FRAC_2_SQRT_PI,
];

/// Coefficients of `exp(x²) erfc x` in `(x - 2) / (x + 2)` from one to six, in the same way: 2e-17 of one behind the exponential.
const TAIL: [f64; 16] = [
    -2.228_129_576_372_35e-7,
    4.146_302_183_268_488e-6,
    1.859_427_387_429_402e-6,
    -1.416_633_906_911_710_8e-5,
    -2.764_072_782_191_285_2e-5,
    2.756_035_275_667_831_3e-5,
    0.000_174_364_772_572_567_38,
    4.355_265_359_817_883e-5,
    -0.000_981_977_111_474_071_5,
    -0.000_847_143_122_941_533_3,
    0.006_997_461_739_200_575,
    0.003_732_892_401_656_448_4,
    -0.078_978_581_015_712_69,
    0.241_658_194_242_487_63,
    -0.427_185_847_413_958_5,
    0.255_395_676_310_505_7,
];

/// From here on the result is one.
const ONE_FROM: f64 = 6.0;

impl FunctionText<'_> {
    /// A polynomial up to one, from there what an exponential leaves of one.
    pub(super) fn erf_double(&mut self, x: &Val) -> Val {
        let ty = x.ty;
        let float = |value: f64| Val::float(ty, value);
        let magnitude = self.fabs(x);
        let bounded = self.at_most(&magnitude, ONE_FROM);
        let square = self.op("fmul", &bounded, &bounded);
        let near = self.polynomial(&square, &NEAR);
        let near = self.op("fmul", &near, &bounded);
        let (under, over) = (self.op("fadd", &bounded, &float(2.0)), self.op("fsub", &bounded, &float(2.0)));
        let place = self.op("fdiv", &over, &under);
        let tail = self.polynomial(&place, &TAIL);
        let opposite = self.op("fsub", &float(-0.0), &square);
        let falls = self.exp_double(&opposite);
        let less = self.op("fmul", &falls, &tail);
        let far = self.op("fsub", &float(1.0), &less);
        let is_near = self.fcmp("olt", &magnitude, &float(1.0));
        let result = self.select(&is_near, &near, &far);
        self.copysign(&result, x)
    }
}
