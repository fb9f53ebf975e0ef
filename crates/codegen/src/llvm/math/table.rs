//! Which code computes which intrinsic: the one list of mathematical functions.

use relaxide_tir::intrin::Intrinsic;

use super::{FunctionText, ScalarKind, Val};

type Unary = for<'a, 'm> fn(&'a mut FunctionText<'m>, &Val) -> Val;

/// How one function of one argument is computed.
#[derive(Clone, Copy)]
enum Method {
    /// By an instruction or a short sequence that LLVM knows, in every precision.
    Instruction(&'static str),
    /// By our code in single precision, and by the math library in double, or by our code where there is none.
    Inline(Unary, &'static str),
    /// By our code in every precision.
    Always(Unary),
}

/// The functions of one argument, by the intrinsic.
const UNARY: &[(Intrinsic, Method)] = &[
    (Intrinsic::Exp, Method::Inline(|f, x| f.exp(x), "exp")),
    (Intrinsic::ExpNonpositive, Method::Inline(|f, x| f.exp_nonpositive(x), "exp")),
    (Intrinsic::Exp2, Method::Inline(|f, x| f.exp2(x), "exp2")),
    (Intrinsic::Exp10, Method::Inline(|f, x| f.exp10(x), "exp10")),
    (Intrinsic::Expm1, Method::Inline(|f, x| f.expm1(x), "expm1")),
    (Intrinsic::Log, Method::Inline(|f, x| f.log(x), "log")),
    (Intrinsic::Log2, Method::Inline(|f, x| f.log2(x), "log2")),
    (Intrinsic::Log10, Method::Inline(|f, x| f.log10(x), "log10")),
    (Intrinsic::Log1p, Method::Inline(|f, x| f.log1p(x), "log1p")),
    (Intrinsic::Sinh, Method::Inline(|f, x| f.sinh(x), "sinh")),
    (Intrinsic::Cosh, Method::Inline(|f, x| f.cosh(x), "cosh")),
    (Intrinsic::Tanh, Method::Inline(|f, x| f.tanh(x), "tanh")),
    (Intrinsic::Asinh, Method::Inline(|f, x| f.asinh(x), "asinh")),
    (Intrinsic::Acosh, Method::Inline(|f, x| f.acosh(x), "acosh")),
    (Intrinsic::Atanh, Method::Inline(|f, x| f.atanh(x), "atanh")),
    (Intrinsic::Erf, Method::Inline(|f, x| f.erf(x), "erf")),
    (Intrinsic::Sin, Method::Inline(|f, x| f.sin(x), "sin")),
    (Intrinsic::Cos, Method::Inline(|f, x| f.cos(x), "cos")),
    (Intrinsic::Tan, Method::Inline(|f, x| f.tan(x), "tan")),
    (Intrinsic::Asin, Method::Inline(|f, x| f.asin(x), "asin")),
    (Intrinsic::Acos, Method::Inline(|f, x| f.acos(x), "acos")),
    (Intrinsic::Atan, Method::Inline(|f, x| f.atan(x), "atan")),
    (Intrinsic::Sigmoid, Method::Always(|f, x| f.sigmoid(x))),
    (Intrinsic::Rsqrt, Method::Always(reciprocal_root)),
    (Intrinsic::Sqrt, Method::Instruction("sqrt")),
    (Intrinsic::Floor, Method::Instruction("floor")),
    (Intrinsic::Ceil, Method::Instruction("ceil")),
    (Intrinsic::Trunc, Method::Instruction("trunc")),
    (Intrinsic::Round, Method::Instruction("nearbyint")),
    (Intrinsic::Nearbyint, Method::Instruction("nearbyint")),
    (Intrinsic::Fabs, Method::Instruction("fabs")),
];

/// The functions of two arguments that the math library computes, and their names in C.
const BINARY_LIBRARY: &[(Intrinsic, &str)] = &[
    (Intrinsic::Atan2, "atan2"),
    (Intrinsic::Hypot, "hypot"),
    (Intrinsic::Nextafter, "nextafter"),
    (Intrinsic::Fmod, "fmod"),
];

fn reciprocal_root(f: &mut FunctionText<'_>, x: &Val) -> Val {
    let root = f.intrinsic("sqrt", x.ty, x.ty, &[x]);
    f.fdiv(&Val::float(x.ty, 1.0), &root)
}

impl FunctionText<'_> {
    /// A mathematical function; `None` if the intrinsic is not one, or not for these types.
    pub fn math(&mut self, intrinsic: Intrinsic, args: &[Val]) -> Option<Val> {
        let first = args.first()?;
        if !first.ty.kind.is_float() || args.iter().any(|arg| arg.ty != first.ty) {
            return None;
        }
        let narrow = first.ty;
        let wide: Vec<Val> = args.iter().map(|arg| self.widen(arg)).collect();
        let result = match wide.as_slice() {
            [x] => self.unary_math(intrinsic, x)?,
            [x, y] => self.binary_math(intrinsic, x, y)?,
            [x, y, z] if intrinsic == Intrinsic::Fma => self.intrinsic("fma", x.ty, x.ty, &[x, y, z]),
            _ => return None,
        };
        Some(if result.ty.kind == ScalarKind::Bool { result } else { self.narrow(&result, narrow) })
    }

    fn unary_math(&mut self, intrinsic: Intrinsic, x: &Val) -> Option<Val> {
        match intrinsic {
            Intrinsic::IsNan => return Some(self.fcmp("uno", x, x)),
            Intrinsic::IsInf | Intrinsic::IsFinite => {
                let magnitude = self.intrinsic("fabs", x.ty, x.ty, &[x]);
                let predicate = if intrinsic == Intrinsic::IsInf { "oeq" } else { "olt" };
                return Some(self.fcmp(predicate, &magnitude, &Val::float(x.ty, f64::INFINITY)));
            }
            _ => {}
        }
        let (_, method) = UNARY.iter().find(|(known, _)| *known == intrinsic)?;
        Some(match *method {
            Method::Instruction(name) => self.intrinsic(name, x.ty, x.ty, &[x]),
            Method::Inline(code, _) if x.ty.kind == ScalarKind::F32 => code(self, x),
            Method::Inline(_, library) => match self.has_library {
                true => self.library_call(library, &[x]),
                false => self.double_math(intrinsic, x).unwrap_or_else(|| self.library_call(library, &[x])),
            },
            Method::Always(code) => code(self, x),
        })
    }

    fn binary_math(&mut self, intrinsic: Intrinsic, x: &Val, y: &Val) -> Option<Val> {
        match intrinsic {
            Intrinsic::Pow if x.ty.kind == ScalarKind::F32 => Some(self.pow(x, y)),
            Intrinsic::Pow if self.has_library => Some(self.library_call("pow", &[x, y])),
            Intrinsic::Pow => Some(self.pow_double(x, y)),
            Intrinsic::Hypot if !self.has_library => Some(self.hypot(x, y)),
            Intrinsic::Fmod if !self.has_library => Some(self.remainder(x, y)),
            Intrinsic::Nextafter if !self.has_library => Some(self.next_number(x, y)),
            Intrinsic::Atan2 if !self.has_library => Some(self.atan2(x, y)),
            Intrinsic::Copysign => Some(self.intrinsic("copysign", x.ty, x.ty, &[x, y])),
            _ => {
                let (_, library) = BINARY_LIBRARY.iter().find(|(known, _)| *known == intrinsic)?;
                Some(self.library_call(library, &[x, y]))
            }
        }
    }
}
