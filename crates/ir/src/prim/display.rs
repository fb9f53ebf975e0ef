//! Expressions as short text, for messages. The text form that programs are written in is `script`'s.

use std::fmt;

use super::{Binary, BinaryOp, PrimExpr, lanes_expr};

/// How tightly an operator binds; operands that bind less tightly are put in parentheses.
fn precedence(e: &PrimExpr) -> u8 {
    match e {
        PrimExpr::Binary(n) => match n.op {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            op if op.is_comparison() => 4,
            BinaryOp::Add | BinaryOp::Sub => 5,
            BinaryOp::Min | BinaryOp::Max => 9,
            _ => 6,
        },
        PrimExpr::Not(_) => 3,
        PrimExpr::Int(n) if n.value < 0 => 5,
        _ => 9,
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "truncmod",
        BinaryOp::FloorDiv => "//",
        BinaryOp::FloorMod => "%",
        BinaryOp::Min => "min",
        BinaryOp::Max => "max",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
    }
}

/// Items between commas.
struct Commas<'a>(&'a [PrimExpr]);

impl fmt::Display for Commas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

fn operand(f: &mut fmt::Formatter<'_>, e: &PrimExpr, at_least: u8) -> fmt::Result {
    if precedence(e) < at_least { write!(f, "({e})") } else { write!(f, "{e}") }
}

fn write_binary(f: &mut fmt::Formatter<'_>, n: &Binary, own: u8) -> fmt::Result {
    if matches!(n.op, BinaryOp::Min | BinaryOp::Max | BinaryOp::Mod) {
        return write!(f, "{}({}, {})", symbol(n.op), n.a, n.b);
    }
    operand(f, &n.a, own)?;
    write!(f, " {} ", symbol(n.op))?;
    operand(f, &n.b, own + 1)
}

impl fmt::Display for PrimExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrimExpr::Int(n) if n.dtype.is_bool() => f.write_str(if n.value == 0 { "False" } else { "True" }),
            PrimExpr::Int(n) => write!(f, "{}", n.value),
            PrimExpr::Float(n) => write!(f, "{:?}", n.value),
            PrimExpr::Str(n) => write!(f, "{:?}", n.value),
            PrimExpr::Var(n) => f.write_str(&n.name),
            PrimExpr::Cast(n) => write!(f, "{}({})", n.dtype, n.value),
            PrimExpr::Binary(n) => write_binary(f, n, precedence(self)),
            PrimExpr::Not(n) => {
                f.write_str("not ")?;
                operand(f, &n.a, 4)
            }
            PrimExpr::Select(n) => write!(f, "select({}, {}, {})", n.condition, n.true_value, n.false_value),
            PrimExpr::Let(n) => write!(f, "let({} = {}, {})", n.var.name, n.value, n.body),
            PrimExpr::Ramp(n) => write!(f, "ramp({}, {}, {})", n.base, n.stride, lanes_expr(n.lanes)),
            PrimExpr::Broadcast(n) => write!(f, "broadcast({}, {})", n.value, lanes_expr(n.lanes)),
            PrimExpr::Load(n) => {
                write!(f, "{}[{}]", n.buffer.name, Commas(&n.indices))?;
                n.predicate.as_ref().map_or(Ok(()), |p| write!(f, " where {p}"))
            }
            PrimExpr::Call(n) => write!(f, "{}({})", n.op.strip_prefix("tirx.").unwrap_or(&n.op), Commas(&n.args)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prim::*;
    use crate::{Buffer, DataType, Var};

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        let (n, m) = (PrimExpr::Var(Var::dim("n")), PrimExpr::Var(Var::dim("m")));
        let a = Buffer::new("A", DataType::float(32), [4]);
        let cases = [
            ((&n + 1) * &m - 2, "(n + 1) * m - 2"),
            (&n - (&m - 1), "n - (m - 1)"),
            (floordiv(floormod(&n, 8), &m * 2), "n % 8 // (m * 2)"),
            (not(and(lt(&n, &m), ge(&n, -3))), "not (n < m and n >= -3)"),
            (min(load(&a, [&n + 1]), math("exp", float_of(a.dtype, 0.5))), "min(A[n + 1], exp(0.5))"),
        ];
        for (e, text) in cases {
            assert_eq!(e.to_string(), text);
        }
    }
}
