//! Which code computes which intrinsic: the one list of mathematical functions.

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

/// The functions of one argument, by the intrinsic's name without prefix.
const UNARY: &[(&str, Method)] = &[
    ("exp", Method::Inline(|f, x| f.exp(x), "exp")),
    ("exp_nonpositive", Method::Inline(|f, x| f.exp_nonpositive(x), "exp")),
    ("exp2", Method::Inline(|f, x| f.exp2(x), "exp2")),
    ("exp10", Method::Inline(|f, x| f.exp10(x), "exp10")),
    ("expm1", Method::Inline(|f, x| f.expm1(x), "expm1")),
    ("log", Method::Inline(|f, x| f.log(x), "log")),
    ("log2", Method::Inline(|f, x| f.log2(x), "log2")),
    ("log10", Method::Inline(|f, x| f.log10(x), "log10")),
    ("log1p", Method::Inline(|f, x| f.log1p(x), "log1p")),
    ("sinh", Method::Inline(|f, x| f.sinh(x), "sinh")),
    ("cosh", Method::Inline(|f, x| f.cosh(x), "cosh")),
    ("tanh", Method::Inline(|f, x| f.tanh(x), "tanh")),
    ("asinh", Method::Inline(|f, x| f.asinh(x), "asinh")),
    ("acosh", Method::Inline(|f, x| f.acosh(x), "acosh")),
    ("atanh", Method::Inline(|f, x| f.atanh(x), "atanh")),
    ("erf", Method::Inline(|f, x| f.erf(x), "erf")),
    ("sin", Method::Inline(|f, x| f.sin(x), "sin")),
    ("cos", Method::Inline(|f, x| f.cos(x), "cos")),
    ("tan", Method::Inline(|f, x| f.tan(x), "tan")),
    ("asin", Method::Inline(|f, x| f.asin(x), "asin")),
    ("acos", Method::Inline(|f, x| f.acos(x), "acos")),
    ("atan", Method::Inline(|f, x| f.atan(x), "atan")),
    ("sigmoid", Method::Always(|f, x| f.sigmoid(x))),
    ("rsqrt", Method::Always(reciprocal_root)),
    ("sqrt", Method::Instruction("sqrt")),
    ("floor", Method::Instruction("floor")),
    ("ceil", Method::Instruction("ceil")),
    ("trunc", Method::Instruction("trunc")),
    ("round", Method::Instruction("nearbyint")),
    ("nearbyint", Method::Instruction("nearbyint")),
    ("fabs", Method::Instruction("fabs")),
];

/// The functions of two arguments that the math library computes, by intrinsic and C name.
const BINARY_LIBRARY: &[(&str, &str)] =
    &[("atan2", "atan2"), ("hypot", "hypot"), ("nextafter", "nextafter"), ("fmod", "fmod")];

fn reciprocal_root(f: &mut FunctionText<'_>, x: &Val) -> Val {
    let root = f.intrinsic("sqrt", x.ty, x.ty, &[x]);
    f.fdiv(&Val::float(x.ty, 1.0), &root)
}

impl FunctionText<'_> {
    /// A mathematical function by its intrinsic's name without prefix; `None` if it is not one, or not for these types.
    pub fn math(&mut self, name: &str, args: &[Val]) -> Option<Val> {
        let first = args.first()?;
        if !first.ty.kind.is_float() || args.iter().any(|arg| arg.ty != first.ty) {
            return None;
        }
        let narrow = first.ty;
        let wide: Vec<Val> = args.iter().map(|arg| self.widen(arg)).collect();
        let result = match wide.as_slice() {
            [x] => self.unary_math(name, x)?,
            [x, y] => self.binary_math(name, x, y)?,
            [x, y, z] if name == "fma" => self.intrinsic("fma", x.ty, x.ty, &[x, y, z]),
            _ => return None,
        };
        Some(if result.ty.kind == ScalarKind::Bool { result } else { self.narrow(&result, narrow) })
    }

    fn unary_math(&mut self, name: &str, x: &Val) -> Option<Val> {
        match name {
            "isnan" => return Some(self.fcmp("uno", x, x)),
            "isinf" | "isfinite" => {
                let magnitude = self.intrinsic("fabs", x.ty, x.ty, &[x]);
                let predicate = if name == "isinf" { "oeq" } else { "olt" };
                return Some(self.fcmp(predicate, &magnitude, &Val::float(x.ty, f64::INFINITY)));
            }
            _ => {}
        }
        let (_, method) = UNARY.iter().find(|(known, _)| *known == name)?;
        Some(match *method {
            Method::Instruction(intrinsic) => self.intrinsic(intrinsic, x.ty, x.ty, &[x]),
            Method::Inline(code, _) if x.ty.kind == ScalarKind::F32 => code(self, x),
            Method::Inline(_, library) => match self.has_library {
                true => self.library_call(library, &[x]),
                false => self.double_math(name, x).unwrap_or_else(|| self.library_call(library, &[x])),
            },
            Method::Always(code) => code(self, x),
        })
    }

    fn binary_math(&mut self, name: &str, x: &Val, y: &Val) -> Option<Val> {
        match name {
            "pow" if x.ty.kind == ScalarKind::F32 => Some(self.pow(x, y)),
            "pow" if self.has_library => Some(self.library_call("pow", &[x, y])),
            "pow" => Some(self.pow_double(x, y)),
            "hypot" if !self.has_library => Some(self.hypot(x, y)),
            "fmod" if !self.has_library => Some(self.remainder(x, y)),
            "nextafter" if !self.has_library => Some(self.next_number(x, y)),
            "atan2" if !self.has_library => Some(self.atan2(x, y)),
            "copysign" => Some(self.intrinsic("copysign", x.ty, x.ty, &[x, y])),
            _ => {
                let (_, library) = BINARY_LIBRARY.iter().find(|(known, _)| *known == name)?;
                Some(self.library_call(library, &[x, y]))
            }
        }
    }
}
