//! The exponential function and what is made of it.

use super::{FunctionText, ScalarKind, Ty, Val};

/// Minimax coefficients of `(e^r - 1 - r) / r^2` on `[-ln 2 / 2, ln 2 / 2]`, weighted by `r^2 / e^r`: 3.1e-9 of the result.
pub(super) const EXP: [f64; 5] = [
    1.381_459_859_164_619_7e-3,
    8.368_716_966_511_758e-3,
    4.166_838_805_282_305e-2,
    1.666_652_063_098_464_4e-1,
    4.999_999_344_774_539_4e-1,
];

/// Minimax coefficients of `(2^r - 1) / r` on `[-½, ½]`, weighted so that `2^r - 1` is wrong by 1.3e-8 of itself at most.
const EXP2_LESS_ONE: [f64; 6] = [
    1.538_208_598_503_843e-4,
    1.338_738_366_030_156_6e-3,
    9.618_311_189_115_047e-3,
    5.550_367_385_149_002e-2,
    2.402_264_922_857_284_5e-1,
    6.931_471_824_645_996e-1,
];

/// Minimax coefficients of `(e^r - 1) / r` on `[-ln 2 / 2, ln 2 / 2]`, weighted so that `e^r - 1` is wrong by 1.4e-8 of itself.
const EXP_LESS_ONE: [f64; 6] = [
    1.386_985_415_592_789_6e-3,
    8.366_446_942_090_988e-3,
    4.166_744_649_410_248e-2,
    1.666_654_497_385_025e-1,
    4.999_999_701_976_776e-1,
    1.0,
];

/// ln 2 in two parts; the first has so few bits that its products with exponents are exact.
pub(super) const LN2_HIGH: f64 = 0.693_359_375;
pub(super) const LN2_LOW: f64 = -2.121_944_4e-4;

/// The exponent of one, as floats store it.
pub(super) const BIAS: i64 = 127;
/// How far results below one are lifted before they are rounded: the smallest subnormal number becomes a normal one.
const LIFT: i64 = 25;
/// Lanes of a register of 512 bits.
const REGISTER: u32 = 16;
/// What is added to exponents, so that shifted they are a power of two near the middle.
const LIFTED: i64 = BIAS - 1;

impl FunctionText<'_> {
    /// e^x in single precision.
    pub fn exp(&mut self, x: &Val) -> Val {
        let bounded = self.clamp(x, -104.0, 89.0);
        let (fraction, n, bits) = self.exp_parts(&bounded, LIFTED);
        self.scale(&fraction, &n, &bits)
    }

    /// e^x in single precision for `x <= 0` (NaN stays NaN), zero below the least normal number.
    pub fn exp_nonpositive(&mut self, x: &Val) -> Val {
        // Here 2^-127 is the nearest power of two: no number has its exponent, and its bits are those of zero.
        let bounded = self.at_least(x, -88.37);
        let (fraction, _, bits) = self.exp_parts(&bounded, BIAS);
        let power = self.power_of_two(&bits);
        let power = self.bitcast(&power, fraction.ty);
        self.fmul(&fraction, &power)
    }

    /// `p`, `n` and the bits of `n + bias` with `e^x = p * 2^n`, for arguments that have been bounded.
    fn exp_parts(&mut self, x: &Val, bias: i64) -> (Val, Val, Val) {
        let (n, bits) = self.nearest_bits(x, std::f64::consts::LOG2_E, bias);
        let remainder = self.fmuladd(&n, &Val::float(x.ty, -LN2_HIGH), x);
        let remainder = self.fmuladd(&n, &Val::float(x.ty, -LN2_LOW), &remainder);
        (self.exp_fraction(&remainder), n, bits)
    }

    /// 2^x in single precision.
    pub fn exp2(&mut self, x: &Val) -> Val {
        let bounded = self.clamp(x, -151.0, 129.0);
        let (n, bits) = self.nearest_exponent(&bounded);
        let remainder = self.op("fsub", &bounded, &n);
        let fraction = self.exp2_fraction(&remainder);
        self.scale(&fraction, &n, &bits)
    }

    /// e^x - 1 in single precision: with `x = n ln 2 + r`, `2^n (e^r - 1) + (2^n - 1)`, of which nothing is lost near zero.
    pub fn expm1(&mut self, x: &Val) -> Val {
        let bounded = self.clamp(x, -18.0, 89.0);
        // Half of the result, since 2^128 is none of the numbers.
        let (n, exponent) = self.nearest_bits(&bounded, std::f64::consts::LOG2_E, BIAS - 1);
        let r = self.fmuladd(&n, &Val::float(x.ty, -LN2_HIGH), &bounded);
        let r = self.fmuladd(&n, &Val::float(x.ty, -LN2_LOW), &r);
        let less_one = self.polynomial(&r, &EXP_LESS_ONE);
        let less_one = self.fmul(&less_one, &r);
        let power = self.power_of_two(&exponent);
        let power = self.bitcast(&power, x.ty);
        let power_less_half = self.fsub(&power, &Val::float(x.ty, 0.5));
        let half = self.fmuladd(&less_one, &power, &power_less_half);
        let result = self.fadd(&half, &half);
        // Zero keeps its sign.
        self.copysign(&result, x)
    }

    /// 10^x in single precision: `n` halvings of decades, the rest by the natural exponential.
    pub fn exp10(&mut self, x: &Val) -> Val {
        // log10 2 in two parts, the first with nine bits.
        const HIGH: f64 = 0.300_781_25;
        const LOW: f64 = 2.487_456_639_812e-4;
        let bounded = self.clamp(x, -45.3, 38.6);
        let (n, bits) = self.nearest_bits(&bounded, std::f64::consts::LOG2_10, LIFTED);
        let remainder = self.fmuladd(&n, &Val::float(x.ty, -HIGH), &bounded);
        let remainder = self.fmuladd(&n, &Val::float(x.ty, -LOW), &remainder);
        let remainder = self.fmul(&remainder, &Val::float(x.ty, std::f64::consts::LN_10));
        let fraction = self.exp_fraction(&remainder);
        self.scale(&fraction, &n, &bits)
    }

    /// `e^r` for `|r| <= ln 2 / 2`.
    fn exp_fraction(&mut self, r: &Val) -> Val {
        let mut coefficients = [1.0; EXP.len() + 2];
        coefficients[..EXP.len()].copy_from_slice(&EXP);
        self.polynomial(r, &coefficients)
    }

    /// The integer nearest to `x`, and its bits as [`scale`](Self::scale) wants them.
    pub(super) fn nearest_exponent(&mut self, x: &Val) -> (Val, Val) {
        self.nearest_bits(x, 1.0, LIFTED)
    }

    /// `2^r` for `|r| <= ½`.
    pub(super) fn exp2_fraction(&mut self, r: &Val) -> Val {
        let mut coefficients = [1.0; EXP2_LESS_ONE.len() + 1];
        coefficients[..EXP2_LESS_ONE.len()].copy_from_slice(&EXP2_LESS_ONE);
        self.polynomial(r, &coefficients)
    }

    /// `fraction * 2^n` for `-151 <= n <= 129`, where the last bits of an integer have `n +` [`LIFTED`].
    ///
    /// AVX-512 has an instruction for it, which rounds once, too. Elsewhere one power of two cannot reach from the subnormal numbers to infinity. A second one brings the first into the middle
    /// where it would have no exponent, and rounds or overflows only once. Whether it does is a matter of integer
    /// arithmetic, which more units do than choose between vectors.
    pub(super) fn scale(&mut self, fraction: &Val, n: &Val, exponent: &Val) -> Val {
        if let Some(scaled) = self.scaled_at_once(fraction, n) {
            return scaled;
        }
        let ints = exponent.ty;
        let power = self.power_of_two(exponent);
        // A few more, since the product with a fraction below one must not be subnormal either.
        let below = self.op("sub", &power, &Val::int(ints, 8 << 23));
        let missing = self.op("ashr", &below, &Val::int(ints, 31));
        let lift = self.op("and", &missing, &Val::int(ints, (LIFT + 1) << 23));
        let power = self.op("add", &power, &lift);
        let power = self.bitcast(&power, fraction.ty);
        let rest = self.op("sub", &Val::int(ints, (BIAS + 1) << 23), &lift);
        let rest = self.bitcast(&rest, fraction.ty);
        let scaled = self.fmul(fraction, &power);
        self.fmul(&scaled, &rest)
    }

    /// `fraction * 2^n` by one instruction for each register, where there is one.
    fn scaled_at_once(&mut self, fraction: &Val, n: &Val) -> Option<Val> {
        let (ty, lanes) = (fraction.ty, fraction.ty.lanes);
        if !self.native_scaling || ty.kind != ScalarKind::F32 || n.ty != ty {
            return None;
        }
        if lanes > REGISTER && lanes % REGISTER == 0 {
            let half = lanes / 2;
            let [low, high] = [0..half, half..lanes].map(|part| {
                let [fraction, n] = [fraction, n].map(|vector| self.some_lanes(vector, part.clone()));
                self.scaled_at_once(&fraction, &n)
            });
            return Some(self.shuffle(&low?, &high?, &Vec::from_iter(0..lanes)));
        }
        let mask = |bits: u32| Val::int(Ty::signed(bits), -1);
        let zero = Val::zero(ty);
        Some(match lanes {
            REGISTER => {
                // Rounded as everything else is.
                let rounding = Val::int(Ty::I32, 4);
                let args = [fraction, n, &zero, &mask(16), &rounding];
                self.call_with_immediates("llvm.x86.avx512.mask.scalef.ps.512", ty, &args, &[4])
            }
            4 | 8 => {
                let name = format!("llvm.x86.avx512.mask.scalef.ps.{}", lanes * 32);
                self.call(&name, ty, &[fraction, n, &zero, &mask(8)])
            }
            _ => return None,
        })
    }

    /// The bits of `2^(n - 127)`, from `n` in the last bits of an integer.
    pub(super) fn power_of_two(&mut self, n: &Val) -> Val {
        self.op("shl", n, &Val::int(n.ty, 23))
    }

    /// `1 / (1 + e^-x)`, in single precision by our exponential and in double by the library's where there is one.
    pub fn sigmoid(&mut self, x: &Val) -> Val {
        let negated = self.fneg(x);
        let one = Val::float(x.ty, 1.0);
        let sum = if x.ty.kind == ScalarKind::F64 {
            let power = match self.has_library {
                true => self.library_call("exp", &[&negated]),
                false => self.exp_double(&negated),
            };
            self.fadd(&power, &one)
        } else {
            // Small powers vanish beside one, large ones are halved so that their exponent exists.
            let bounded = self.clamp(&negated, -80.0, 89.0);
            let (fraction, _, bits) = self.exp_parts(&bounded, BIAS - 1);
            let power = self.power_of_two(&bits);
            let power = self.bitcast(&power, x.ty);
            let half = self.fmul(&fraction, &power);
            self.fmuladd(&half, &Val::float(x.ty, 2.0), &one)
        };
        self.fdiv(&one, &sum)
    }
}
