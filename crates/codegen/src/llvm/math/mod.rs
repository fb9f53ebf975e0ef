//! Mathematical functions, mostly as straight-line vector code.
//!
//! Single precision is computed here, in registers, without a call and without a branch (powers and
//! circular functions have one, for arguments that are rare), because a call to the math library would cost eight scalar calls for one vector. Double precision is left
//! to the math library where there is one ([`double`] where there is none), half precision is computed in single.
//!
//! Largest errors in units of the last place, as the tests hold them at a quarter of a million arguments spread over all
//! finite ones; among sixteen million are a few with up to 0.2 more (tanh 3.2, atanh 2.2, expm1 2.1):
//!
//! | function | ulp | method |
//! | --- | --- | --- |
//! | exp, exp_nonpositive, exp2, exp10 | 2 | `2^n * p(r)`, Cody-Waite reduction, minimax polynomial of degree 6 |
//! | expm1 | 2 | the same in parts that lose nothing near zero |
//! | log, log2, log10 | 3 | `n ln 2 + p(m - 1)`, `m` in `[√½, √2)`, minimax polynomial |
//! | log1p | 2 | in `[-¼, 1]` `x + x²` times a rational minimax function, elsewhere the same as log, with the bits that `1 + x` loses put back into `m - 1` |
//! | sinh | 4 | addition theorem for `n ln 2 + r`, minimax polynomials of both functions of `r` |
//! | cosh | 3 | the same |
//! | tanh | 3 | `d / (d + 2)`, `d = exp(2x) - 1` in parts that lose nothing |
//! | asinh, acosh, atanh | 2 | `log1p` of sums without cancellation |
//! | sigmoid | 4 | `1 / (1 + exp(-x))` |
//! | erf | 6 | `x` times a rational minimax function of `x²` |
//! | pow | 1.5 | `exp2(y log2 x)`, the product and the large terms of the logarithm in double precision |
//! | sin, cos | 2 | reduction by π, in three floats or in double precision; the math library above 10⁶ |
//! | tan | 3 | reduction by π/2, minimax polynomial or its inverse |
//! | asin, acos | 2 | minimax polynomial on `[-½, ½]`, from elsewhere by `√((1 - x) / 2)` |
//! | atan | 3 | reduction to `[-0.42, 0.42]`, Cephes' polynomial |
//! | rsqrt | 1.5 | division by the square root |
//!
//! Results at zero, infinity and NaN are those of the C standard. Subnormal results are rounded, not flushed, but for those
//! of `exp_nonpositive`: a softmax adds one at least to them.

mod double;
mod erf;
mod exp;
mod hyperbolic;
mod inverse_hyperbolic;
mod inverse_trigonometry;
mod log;
mod power;
mod range_reduction;
mod table;
mod trigonometry;

use super::{
    function::FunctionText,
    value::{ScalarKind, Ty, Val},
};

/// Numbers whose last place is one.
const MAGIC_F32: f64 = 12_582_912.0;
const MAGIC_F64: f64 = 6_755_399_441_055_744.0;

impl FunctionText<'_> {
    /// A polynomial by Horner's scheme, highest coefficient first.
    fn polynomial(&mut self, x: &Val, coefficients: &[f64]) -> Val {
        let Some((first, rest)) = coefficients.split_first() else { return Val::zero(x.ty) };
        let mut sum = self.coefficient(x.ty, *first);
        for coefficient in rest {
            let term = self.coefficient(x.ty, *coefficient);
            sum = self.fmuladd(&sum, x, &term);
        }
        sum
    }

    /// A coefficient of a polynomial: where registers are few, an operand in memory.
    ///
    /// LLVM takes all constants of a loop into registers before it. Where there are more than registers, it moves them
    /// round in copies, a third of the instructions of an error function. A load that must not be left out stays where it
    /// is used, and becomes the memory operand of the multiplication, which costs nothing.
    fn coefficient(&mut self, ty: Ty, value: f64) -> Val {
        let literal = Val::float(ty, value);
        if !self.reads_coefficients || !ty.is_vector() || ty.is_scalable() {
            return literal;
        }
        let name = format!(".coefficient.{}.{:016x}", ty.mangled(), value.to_bits());
        let align = u64::from(ty.lanes) * ty.kind.bytes();
        self.module
            .define(&name, || format!("@{name} = linkonce_odr hidden unnamed_addr constant {literal}, align {align}"));
        self.emit(ty, format_args!("load volatile {ty}, ptr @{name}, align {align}"))
    }

    /// A polynomial by Estrin's scheme, highest coefficient first: neighbours are combined, then pairs, and so on.
    ///
    /// It takes a product or two more than Horner's, but waits three times where that waits seven times: a processor that
    /// has only two or three iterations of such a loop in sight spends most of its time waiting. The leading terms are
    /// rounded more often, so it is for what is small beside something else.
    fn wide_polynomial(&mut self, x: &Val, coefficients: &[f64]) -> Val {
        let mut terms: Vec<Val> =
            coefficients.iter().rev().map(|coefficient| self.coefficient(x.ty, *coefficient)).collect();
        let mut power = x.clone();
        while terms.len() > 1 {
            terms = terms
                .chunks(2)
                .map(|pair| match pair {
                    [low, high] => self.fmuladd(high, &power, low),
                    _ => pair[0].clone(),
                })
                .collect();
            if terms.len() > 1 {
                power = self.fmul(&power, &power);
            }
        }
        terms.pop().unwrap_or_else(|| Val::zero(x.ty))
    }

    fn fabs(&mut self, x: &Val) -> Val {
        self.intrinsic("fabs", x.ty, x.ty, &[x])
    }

    fn copysign(&mut self, magnitude: &Val, sign: &Val) -> Val {
        self.intrinsic("copysign", magnitude.ty, magnitude.ty, &[magnitude, sign])
    }

    /// `x`, or the bound that it exceeds; NaN stays NaN.
    pub(super) fn clamp(&mut self, x: &Val, low: f64, high: f64) -> Val {
        let raised = self.at_least(x, low);
        self.at_most(&raised, high)
    }

    fn at_least(&mut self, x: &Val, low: f64) -> Val {
        let low = Val::float(x.ty, low);
        let below = self.fcmp("olt", x, &low);
        self.select(&below, &low, x)
    }

    fn at_most(&mut self, x: &Val, high: f64) -> Val {
        let high = Val::float(x.ty, high);
        let above = self.fcmp("ogt", x, &high);
        self.select(&above, &high, x)
    }

    /// The integer nearest to `x * factor`, for products far below the mantissa's range: as a float, and in the last twenty
    /// bits of an integer, with a small number added to it. Adding a large number leaves the integer in the last bits of the
    /// sum.
    fn nearest_bits(&mut self, x: &Val, factor: f64, bias: i64) -> (Val, Val) {
        let (magic, ints) = match x.ty.kind {
            ScalarKind::F64 => (MAGIC_F64, x.ty.with_kind(Ty::I64)),
            _ => (MAGIC_F32, x.ty.with_kind(Ty::I32)),
        };
        let magic = Val::float(x.ty, magic + bias as f64);
        let sum = self.fmuladd(x, &Val::float(x.ty, factor), &magic);
        (self.op("fsub", &sum, &magic), self.bitcast(&sum, ints))
    }

    /// What `rare` computes if any lane is set, otherwise what `usual` does.
    fn if_any(
        &mut self,
        lanes: &Val,
        rare: impl FnOnce(&mut Self) -> Val,
        usual: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        let any = match lanes.ty.is_vector() {
            true => self.intrinsic("vector.reduce.or", lanes.ty, Ty::BOOL, &[lanes]),
            false => lanes.clone(),
        };
        let (then, otherwise, done) = (self.label(), self.label(), self.label());
        self.branch_if(&any, then, otherwise);
        self.start(then);
        let unusual = rare(self);
        let from_rare = self.current();
        self.branch(done);
        self.start(otherwise);
        let ordinary = usual(self);
        let from_usual = self.current();
        self.branch(done);
        self.start(done);
        self.phi(ordinary.ty, &[(unusual, from_rare), (ordinary, from_usual)])
    }

    /// Calls a scalar function of the C library for every lane.
    pub fn library_call(&mut self, name: &str, args: &[&Val]) -> Val {
        let Some(first) = args.first() else { return Val::zero(Ty::F32) };
        let element = first.ty.element();
        let symbol = if element.kind == ScalarKind::F32 { format!("{name}f") } else { name.to_string() };
        self.by_lane(args, element, |this, parts| {
            let parts: Vec<&Val> = parts.iter().collect();
            this.call(&symbol, element, &parts)
        })
    }
}
