//! Mathematical functions: those of the C library, in single or double precision.

use relaxide_tir::intrin::Intrinsic;

use super::{
    body::Body,
    code::{Code, Level},
    floats::{self, Helper},
};
use crate::shared::ScalarKind;

/// Functions of one argument, and their names in `math.h` for `double`.
const UNARY: &[(Intrinsic, &str)] = &[
    (Intrinsic::Exp, "exp"),
    (Intrinsic::ExpNonpositive, "exp"),
    (Intrinsic::Exp2, "exp2"),
    (Intrinsic::Log, "log"),
    (Intrinsic::Log2, "log2"),
    (Intrinsic::Log10, "log10"),
    (Intrinsic::Log1p, "log1p"),
    (Intrinsic::Expm1, "expm1"),
    (Intrinsic::Sqrt, "sqrt"),
    (Intrinsic::Tanh, "tanh"),
    (Intrinsic::Erf, "erf"),
    (Intrinsic::Sin, "sin"),
    (Intrinsic::Cos, "cos"),
    (Intrinsic::Tan, "tan"),
    (Intrinsic::Asin, "asin"),
    (Intrinsic::Acos, "acos"),
    (Intrinsic::Atan, "atan"),
    (Intrinsic::Sinh, "sinh"),
    (Intrinsic::Cosh, "cosh"),
    (Intrinsic::Asinh, "asinh"),
    (Intrinsic::Acosh, "acosh"),
    (Intrinsic::Atanh, "atanh"),
    (Intrinsic::Floor, "floor"),
    (Intrinsic::Ceil, "ceil"),
    (Intrinsic::Trunc, "trunc"),
    // Halves go to the even neighbour.
    (Intrinsic::Round, "nearbyint"),
    (Intrinsic::Nearbyint, "nearbyint"),
    (Intrinsic::Fabs, "fabs"),
];

/// Functions of two arguments.
const BINARY: &[(Intrinsic, &str)] = &[
    (Intrinsic::Atan2, "atan2"),
    (Intrinsic::Pow, "pow"),
    (Intrinsic::Hypot, "hypot"),
    (Intrinsic::Copysign, "copysign"),
    (Intrinsic::Nextafter, "nextafter"),
    (Intrinsic::Fmod, "fmod"),
];

impl Body<'_, '_> {
    /// A function of floats of one kind; `None` if it is none.
    pub fn math(&mut self, intrinsic: Intrinsic, kind: ScalarKind, args: &[Code]) -> Option<Code> {
        if !kind.is_float() {
            return None;
        }
        if let (Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite, [x]) = (intrinsic, args) {
            let wide = self.widen(x, kind);
            // The macros of C give some integer.
            return Some(Code::infix(&Code::call(intrinsic.name(), &[&wide]), "!=", &Code::atom("0"), Level::Compare));
        }
        if let (Intrinsic::Nextafter, true, [x, y]) = (intrinsic, kind.is_narrow_float(), args) {
            return Some(self.next_after(kind, x, y));
        }
        let wide: Vec<Code> = args.iter().map(|arg| self.widen(arg, kind)).collect();
        let computed = if kind == ScalarKind::F64 { ScalarKind::F64 } else { ScalarKind::F32 };
        let value = self.wide_math(intrinsic, computed, &wide)?;
        Some(self.narrow(&value, computed, kind))
    }

    fn wide_math(&mut self, intrinsic: Intrinsic, kind: ScalarKind, args: &[Code]) -> Option<Code> {
        let (f, one, ten) = if kind == ScalarKind::F64 { ("", "1.0", "10.0") } else { ("f", "1.0f", "10.0f") };
        let found = |table: &[(Intrinsic, &'static str)]| table.iter().find(|row| row.0 == intrinsic).map(|row| row.1);
        match (intrinsic, args) {
            (Intrinsic::Rsqrt, [x]) => {
                let root = Code::call(&format!("sqrt{f}"), &[x]);
                Some(Code::infix(&Code::atom(one), "/", &root, Level::Mul))
            }
            (Intrinsic::Exp10, [x]) => Some(Code::call(&format!("pow{f}"), &[&Code::atom(ten), x])),
            (Intrinsic::Sigmoid, [x]) => Some(Code::call(&floats::helper(self.source, Helper::Sigmoid, kind), &[x])),
            (Intrinsic::Fma, [x, y, z]) => Some(Code::call(&format!("fma{f}"), &[x, y, z])),
            (_, [x]) => Some(Code::call(&format!("{}{f}", found(UNARY)?), &[x])),
            (_, [x, y]) => Some(Code::call(&format!("{}{f}", found(BINARY)?), &[x, y])),
            _ => None,
        }
    }

    /// The next number of a type that no library has functions for: its bits count up away from zero.
    fn next_after(&mut self, kind: ScalarKind, x: &Code, y: &Code) -> Code {
        let (widen, suffix) = (floats::widen(self.source, kind), super::types::suffix(kind));
        let name = format!("rx_nextafter_{suffix}");
        let (ty, sign) = match kind {
            ScalarKind::Small(family) => ("uint8_t", family.sign()),
            _ => ("uint16_t", 0x8000),
        };
        self.source.helper(name.clone(), |_| {
            format!(
                "static inline {ty} {name}({ty} x, {ty} y) {{\n    \
                 float from = {widen}(x);\n    \
                 float to = {widen}(y);\n    \
                 if (isnan(from)) return x;\n    \
                 if (isnan(to) || from == to) return y;\n    \
                 if (from == 0) return to > 0 ? 1 : 0x{:x};\n    \
                 return ({ty})((from < 0) == (from < to) ? x - 1 : x + 1);\n}}\n",
                sign | 1
            )
        });
        Code::call(&name, &[x, y])
    }
}
