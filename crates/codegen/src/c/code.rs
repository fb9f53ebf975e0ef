//! Expressions as text, with how strongly their outermost operator binds.

use std::fmt::Write as _;

use crate::shared::{ScalarKind, Ty};

/// How strongly an operator binds; parentheses go around what binds less than its place asks for.
///
/// There are fewer levels than C has: where compilers warn that people misread a mixture, the weaker operand counts as [`Odd`](Level::Odd).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Shifts, bitwise operators, negations of conditions: in parentheses wherever there is an operator around.
    Odd,
    /// `a ? b : c`
    Choice,
    /// `a || b`
    Or,
    /// `a && b`
    And,
    /// `a < b`
    Compare,
    /// `a + b`
    Add,
    /// `a * b`
    Mul,
    /// `-a`, `(int32_t)a`
    Unary,
    /// Names, calls, literals, elements.
    Atom,
}

/// An expression in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub text: String,
    pub level: Level,
}

impl Code {
    pub fn new(text: impl Into<String>, level: Level) -> Self {
        Self { text: text.into(), level }
    }

    pub fn atom(text: impl Into<String>) -> Self {
        Self::new(text, Level::Atom)
    }

    /// The call of a function.
    pub fn call(function: &str, args: &[&Code]) -> Self {
        let args: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        Self::atom(format!("{function}({})", args.join(", ")))
    }

    /// `a op b`.
    pub fn infix(a: &Code, op: &str, b: &Code, level: Level) -> Self {
        let (left, right) = match level {
            Level::Odd => (Level::Unary, Level::Unary),
            Level::Compare => (Level::Add, Level::Add),
            Level::And => (Level::And, Level::Compare),
            // Compilers want parentheses around `&&` inside of `||`.
            Level::Or => (if a.level == Level::Or { Level::Or } else { Level::Compare }, Level::Compare),
            Level::Add => (Level::Add, Level::Mul),
            _ => (Level::Mul, Level::Unary),
        };
        Self::new(format!("{} {op} {}", a.inside(left), b.inside(right)), level)
    }

    /// `(type)a`.
    pub fn cast(ty: &str, a: &Code) -> Self {
        Self::new(format!("({ty}){}", a.inside(Level::Unary)), Level::Unary)
    }

    pub fn not(a: &Code) -> Self {
        Self::new(format!("!{}", a.inside(Level::Atom)), Level::Odd)
    }

    pub fn choice(condition: &Code, yes: &Code, no: &Code) -> Self {
        let (condition, yes, no) =
            (condition.inside(Level::Compare), yes.inside(Level::Compare), no.inside(Level::Compare));
        Self::new(format!("{condition} ? {yes} : {no}"), Level::Choice)
    }

    /// An element of an array.
    pub fn element(array: &str, index: &Code) -> Self {
        Self::atom(format!("{array}[{}]", index.text))
    }

    /// The text as an operand of an operator that binds so strongly.
    pub fn inside(&self, level: Level) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// An integer literal of a type.
pub(crate) fn integer(ty: Ty, value: i64) -> Code {
    match ty.kind {
        ScalarKind::Bool => Code::atom(if value == 0 { "false" } else { "true" }),
        ScalarKind::Ptr => Code::atom("NULL"),
        ScalarKind::Int { bits: 64, signed: false } => Code::atom(format!("UINT64_C({})", value as u64)),
        ScalarKind::Int { bits, signed: false } => {
            Code::atom(format!("{}u", value as u64 & (u64::MAX >> (64 - bits.clamp(1, 64)))))
        }
        ScalarKind::Int { bits: 64, .. } if value == i64::MIN => Code::atom("INT64_MIN"),
        ScalarKind::Int { bits: 32, .. } if value == i64::from(i32::MIN) => Code::atom("INT32_MIN"),
        _ if value < 0 => Code::new(value.to_string(), Level::Unary),
        _ => Code::atom(value.to_string()),
    }
}

/// A floating-point literal of a type.
pub(crate) fn float(ty: Ty, value: f64) -> Code {
    let special = |value: f64| match value {
        _ if value.is_nan() => Some(Code::atom("NAN")),
        f64::INFINITY => Some(Code::atom("INFINITY")),
        f64::NEG_INFINITY => Some(Code::new("-INFINITY", Level::Unary)),
        _ => None,
    };
    match ty.kind {
        ScalarKind::Small(family) => Code::atom(format!("0x{:02x} /* {value:?} */", family.encode(value))),
        ScalarKind::F16 => bits(half::f16::from_f64(value).to_bits(), value),
        ScalarKind::BF16 => bits(half::bf16::from_f64(value).to_bits(), value),
        ScalarKind::F32 => {
            let value = value as f32;
            special(f64::from(value)).unwrap_or_else(|| signed(format!("{value:?}f")))
        }
        _ => special(value).unwrap_or_else(|| signed(format!("{value:?}"))),
    }
}

/// A sixteen-bit float is its bits.
fn bits(bits: u16, value: f64) -> Code {
    Code::atom(format!("0x{bits:04x} /* {value:?} */"))
}

fn signed(text: String) -> Code {
    let level = if text.starts_with('-') { Level::Unary } else { Level::Atom };
    Code { text, level }
}

/// A text between double quotes.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'\n' => out.push_str("\\n"),
            // Two question marks could begin a trigraph.
            b'?' => out.push_str("\\?"),
            b' '..=b'~' => out.push(char::from(byte)),
            // Three digits, so that what follows is not taken for one more.
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// A text inside of a comment.
pub(crate) fn comment(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let [a, b, c] = ["a", "b", "c"].map(Code::atom);
        let sum = Code::infix(&a, "+", &b, Level::Add);
        assert_eq!(Code::infix(&sum, "*", &c, Level::Mul).text, "(a + b) * c");
        assert_eq!(Code::infix(&sum, "-", &sum, Level::Add).text, "a + b - (a + b)");
        let both = Code::infix(&a, "&&", &b, Level::And);
        assert_eq!(Code::infix(&both, "||", &c, Level::Or).text, "(a && b) || c");
        assert_eq!(Code::not(&both).text, "!(a && b)");
        assert_eq!(Code::infix(&Code::not(&a), "==", &b, Level::Compare).text, "(!a) == b");
        assert_eq!(Code::cast("int8_t", &sum).text, "(int8_t)(a + b)");
    }

    #[test]
    fn literals_are_of_their_type() {
        assert_eq!(integer(Ty::I32, i64::from(i32::MIN)).text, "INT32_MIN");
        assert_eq!(integer(Ty::I8, -1).text, "-1");
        let unsigned = |bits| Ty { kind: ScalarKind::Int { bits, signed: false }, lanes: 1 };
        assert_eq!(integer(unsigned(64), -1).text, "UINT64_C(18446744073709551615)");
        assert_eq!(integer(unsigned(16), -1).text, "65535u");
        assert_eq!(float(Ty::F32, 0.1).text, "0.1f");
        assert_eq!(float(Ty::F32, 1e30).text, "1e30f");
        assert_eq!(float(Ty::F32, 1e300).text, "INFINITY");
        assert_eq!(float(Ty::F64, -0.0).text, "-0.0");
        assert_eq!(float(Ty { kind: ScalarKind::F16, lanes: 1 }, 1.0).text, "0x3c00 /* 1.0 */");
    }

    #[test]
    fn strings_survive() {
        assert_eq!(string("a\"b\\\n??=\u{7f}1"), r#""a\"b\\\n\?\?=\1771""#);
    }
}
