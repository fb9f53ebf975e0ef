//! Integer arithmetic whose every result is defined.
//!
//! Sums and products wrap around: they are computed in unsigned numbers at least as wide as `int`, since C leaves the overflow
//! of signed ones open. Division by zero gives zero, and the smallest number divided by -1 is itself. Shifts by more than the
//! width count modulo the width.

use relaxide_ir::BinaryOp;
use relaxide_tir::intrin::Intrinsic;

use super::{
    source::Source,
    types::{memory_type, suffix},
};
use crate::shared::ScalarKind;

/// The function of an operator, in a type; `None` for operators that C has as they are.
pub(crate) fn function(source: &mut Source, op: BinaryOp, kind: ScalarKind) -> Option<String> {
    use BinaryOp::*;
    let signed = kind.is_signed();
    let (name, body) = match op {
        Add => ("add", WRAP.replace("{op}", "+")),
        Sub => ("sub", WRAP.replace("{op}", "-")),
        Mul => ("mul", WRAP.replace("{op}", "*")),
        Div | FloorDiv if !signed => ("div", "    return (T)(b == 0 ? 0 : a / b);\n".into()),
        Mod | FloorMod if !signed => ("mod", "    return (T)(b == 0 ? 0 : a % b);\n".into()),
        Div => ("div", DIVIDE.into()),
        Mod => ("mod", "    return (T)(b == 0 || b == -1 ? 0 : a % b);\n".into()),
        FloorDiv => ("floordiv", FLOOR_DIVIDE.into()),
        FloorMod => ("floormod", FLOOR_MOD.into()),
        Min => ("min", "    return a < b ? a : b;\n".into()),
        Max => ("max", "    return a > b ? a : b;\n".into()),
        _ => return None,
    };
    let needed = [(FloorDiv, Div), (FloorDiv, Mod), (FloorMod, Mod)];
    for (_, needs) in needed.into_iter().filter(|(whole, _)| *whole == op && signed) {
        function(source, needs, kind);
    }
    Some(define(source, name, kind, "T a, T b", &body))
}

/// What intrinsics on integers are computed by: the function's name.
pub(crate) fn of_intrinsic(source: &mut Source, intrinsic: Intrinsic, kind: ScalarKind) -> Option<String> {
    let (name, params, body) = match intrinsic {
        Intrinsic::ShiftLeft => ("shift_left", "T a, T b", "    return (T)((U)a << ((U)b & {mask}));\n"),
        Intrinsic::ShiftRight => ("shift_right", "T a, T b", "    return (T)(a >> ((U)b & {mask}));\n"),
        Intrinsic::Pow => ("pow", "T base, T exponent", POWER),
        Intrinsic::BitwiseNot => ("not", "T a", "    return (T)~(U)a;\n"),
        Intrinsic::Popcount => ("popcount", "T a", POPCOUNT),
        Intrinsic::Clz => ("clz", "T a", LEADING_ZEROS),
        Intrinsic::Fabs => ("abs", "T a", "    return a < 0 ? (T)(0 - (U)a) : a;\n"),
        _ => return None,
    };
    Some(define(source, name, kind, params, body))
}

const WRAP: &str = "    return (T)((U)a {op} (U)b);\n";

const DIVIDE: &str = "    if (b == 0) return 0;\n    return (T)(b == -1 ? 0 - (U)a : (U)(a / b));\n";

const FLOOR_DIVIDE: &str = "    T quotient = rx_div_{s}(a, b);
    T rest = rx_mod_{s}(a, b);
    return (T)(rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient);
";

const FLOOR_MOD: &str = "    T rest = rx_mod_{s}(a, b);
    return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
";

/// A negative exponent counts as its bits.
const POWER: &str = "    uint64_t result = 1;
    uint64_t square = (uint64_t)base;
    uint64_t left = (uint64_t)exponent;
    for (; left != 0; left >>= 1) {
        if (left & 1) result *= square;
        square *= square;
    }
    return (T)result;
";

const POPCOUNT: &str = "    T count = 0;
    V rest = (V)a;
    for (; rest != 0; rest &= (V)(rest - 1)) ++count;
    return count;
";

const LEADING_ZEROS: &str = "    T count = {bits};
    V rest = (V)a;
    for (; rest != 0; rest >>= 1) --count;
    return count;
";

fn define(source: &mut Source, name: &str, kind: ScalarKind, params: &str, body: &str) -> String {
    let bits = kind.bytes() * 8;
    let (suffix, ty) = (suffix(kind), memory_type(kind));
    let function = format!("rx_{name}_{suffix}");
    // Arithmetic on less than an `int` happens in `int`, which is signed.
    let wide = if bits == 64 { "uint64_t" } else { "uint32_t" };
    let text = format!("static inline T {function}({params}) {{\n{body}}}\n");
    let text =
        text.replace("{s}", &suffix).replace("{mask}", &(bits - 1).to_string()).replace("{bits}", &bits.to_string());
    let text = replace_word(&replace_word(&text, "T", ty), "U", wide);
    let text = replace_word(&text, "V", &format!("uint{bits}_t"));
    source.helper(function.clone(), |_| text);
    function
}

/// Puts a type where a letter stands alone.
pub(crate) fn replace_word(text: &str, letter: &str, ty: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, part) in text.split(letter).enumerate() {
        let alone = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        if index > 0 {
            let whole = alone(out.chars().last()) && alone(part.chars().next());
            out.push_str(if whole { ty } else { letter });
        }
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_alone_are_types() {
        assert_eq!(replace_word("T a, T b; INT_T; (T)T_x", "T", "int8_t"), "int8_t a, int8_t b; INT_T; (int8_t)T_x");
    }
}
