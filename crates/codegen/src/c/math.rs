//! Mathematical functions: those of the C library, in single or double precision.

use super::{
    body::Body,
    code::{Code, Level},
    floats,
};
use crate::shared::ScalarKind;

/// Functions of one argument, by the intrinsic's name, and their names in `math.h` for `double`.
const UNARY: &[(&str, &str)] = &[
    ("exp", "exp"),
    ("exp_nonpositive", "exp"),
    ("exp2", "exp2"),
    ("log", "log"),
    ("log2", "log2"),
    ("log10", "log10"),
    ("log1p", "log1p"),
    ("expm1", "expm1"),
    ("sqrt", "sqrt"),
    ("tanh", "tanh"),
    ("erf", "erf"),
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("asin", "asin"),
    ("acos", "acos"),
    ("atan", "atan"),
    ("sinh", "sinh"),
    ("cosh", "cosh"),
    ("asinh", "asinh"),
    ("acosh", "acosh"),
    ("atanh", "atanh"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("trunc", "trunc"),
    // Halves go to the even neighbour.
    ("round", "nearbyint"),
    ("nearbyint", "nearbyint"),
    ("fabs", "fabs"),
];

/// Functions of two arguments.
const BINARY: &[(&str, &str)] = &[
    ("atan2", "atan2"),
    ("pow", "pow"),
    ("hypot", "hypot"),
    ("copysign", "copysign"),
    ("nextafter", "nextafter"),
    ("fmod", "fmod"),
];

impl Body<'_, '_> {
    /// A function of floats of one kind; `None` if it is none.
    pub fn math(&mut self, name: &str, kind: ScalarKind, args: &[Code]) -> Option<Code> {
        if !kind.is_float() {
            return None;
        }
        if let ("isnan" | "isinf" | "isfinite", [x]) = (name, args) {
            let wide = self.widen(x, kind);
            // The macros of C give some integer.
            return Some(Code::infix(&Code::call(name, &[&wide]), "!=", &Code::atom("0"), Level::Compare));
        }
        if let ("nextafter", true, [x, y]) = (name, kind.is_narrow_float(), args) {
            return Some(self.next_after(kind, x, y));
        }
        let wide: Vec<Code> = args.iter().map(|arg| self.widen(arg, kind)).collect();
        let computed = if kind == ScalarKind::F64 { ScalarKind::F64 } else { ScalarKind::F32 };
        let value = self.wide_math(name, computed, &wide)?;
        Some(self.narrow(&value, computed, kind))
    }

    fn wide_math(&mut self, name: &str, kind: ScalarKind, args: &[Code]) -> Option<Code> {
        let (f, one, ten) = if kind == ScalarKind::F64 { ("", "1.0", "10.0") } else { ("f", "1.0f", "10.0f") };
        let found = |table: &[(&str, &'static str)]| table.iter().find(|row| row.0 == name).map(|row| row.1);
        match (name, args) {
            ("rsqrt", [x]) => {
                let root = Code::call(&format!("sqrt{f}"), &[x]);
                Some(Code::infix(&Code::atom(one), "/", &root, Level::Mul))
            }
            ("exp10", [x]) => Some(Code::call(&format!("pow{f}"), &[&Code::atom(ten), x])),
            ("sigmoid", [x]) => Some(Code::call(&floats::function(self.source, "sigmoid", kind), &[x])),
            ("fma", [x, y, z]) => Some(Code::call(&format!("fma{f}"), &[x, y, z])),
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
