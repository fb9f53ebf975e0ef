//! Expressions and maps of indices as Python writes them in the text of a trace.
//!
//! ```text
//! lambda i, j: (i, j // T.int64(4),)          a map
//! lambda i: [(i - 1, i + 1)]                  a map that gives where ranges begin and end
//! lambda i0: (T.float32(0.0),)                a value of indices
//! ```
//!
//! Numbers of 32 bits are plain, others say their type: what is read again is the same expression.

use relaxide_ffi::ObjectRef;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{BinaryOp, PrimExpr, VSCALE};

use crate::IndexMap;

/// How tightly an operator binds in Python.
fn precedence(e: &PrimExpr) -> u8 {
    match e {
        PrimExpr::Binary(n) => match n.op {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            op if op.is_comparison() => 4,
            BinaryOp::Add | BinaryOp::Sub => 5,
            BinaryOp::Min | BinaryOp::Max | BinaryOp::Mod => 9,
            _ => 6,
        },
        PrimExpr::Not(_) => 3,
        PrimExpr::Int(n) if n.value < 0 => 5,
        _ => 9,
    }
}

fn list(items: &[PrimExpr]) -> String {
    items.iter().map(expression).collect::<Vec<_>>().join(", ")
}

/// An expression as Python.
pub(super) fn expression(e: &PrimExpr) -> String {
    let inside = |e: &PrimExpr, at_least: u8| {
        if precedence(e) < at_least { format!("({})", expression(e)) } else { expression(e) }
    };
    match e {
        PrimExpr::Int(n) if n.dtype.is_bool() => format!("T.bool({})", if n.value == 0 { "False" } else { "True" }),
        PrimExpr::Int(n) if n.dtype == relaxide_ir::DataType::int(32) => n.value.to_string(),
        PrimExpr::Int(n) => format!("T.{}({})", n.dtype, n.value),
        PrimExpr::Float(n) if n.value.is_finite() => format!("T.{}({:?})", n.dtype, n.value),
        PrimExpr::Float(n) => format!("T.{}(\"{}\")", n.dtype, n.value.to_string().to_lowercase()),
        PrimExpr::Str(n) => format!("{:?}", n.value),
        PrimExpr::Var(n) => n.name.clone(),
        PrimExpr::Cast(n) => format!("T.Cast(\"{}\", {})", n.dtype, expression(&n.value)),
        PrimExpr::Not(n) => format!("not {}", inside(&n.a, 4)),
        PrimExpr::Binary(n) => {
            let (own, symbol) = (precedence(e), symbol(n.op));
            match n.op {
                BinaryOp::Min | BinaryOp::Max | BinaryOp::Mod => {
                    format!("{symbol}({}, {})", expression(&n.a), expression(&n.b))
                }
                // A chain of comparisons means another thing.
                op if op.is_comparison() => format!("{} {symbol} {}", inside(&n.a, own + 1), inside(&n.b, own + 1)),
                _ => format!("{} {symbol} {}", inside(&n.a, own), inside(&n.b, own + 1)),
            }
        }
        PrimExpr::Select(n) => {
            format!(
                "T.Select({}, {}, {})",
                expression(&n.condition),
                expression(&n.true_value),
                expression(&n.false_value)
            )
        }
        PrimExpr::Call(n) if n.op == VSCALE => "T.vscale()".into(),
        PrimExpr::Call(n) => format!("T.{}({})", n.op.strip_prefix("tirx.").unwrap_or(&n.op), list(&n.args)),
        PrimExpr::Load(n) => format!("{}[{}]", n.buffer.name, list(&n.indices)),
        other => other.to_string(),
    }
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "T.truncmod",
        BinaryOp::FloorDiv => "//",
        BinaryOp::FloorMod => "%",
        BinaryOp::Min => "T.min",
        BinaryOp::Max => "T.max",
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

fn names(map: &IndexMap) -> String {
    map.initial_indices.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// An object among the operands: a map of indices as the function that Python would write.
pub(super) fn object(object: &ObjectRef) -> String {
    match object.downcast_ref::<IndexMap>() {
        Some(map) => {
            let to: Vec<String> = map.final_indices.iter().map(|e| format!("{},", expression(e))).collect();
            format!("lambda {}: ({})", names(map), to.join(" "))
        }
        None => format!("{object:?}"),
    }
}

/// A map that gives where ranges begin and end, as the function that Python would write.
pub(super) fn ranges(operand: &AttrValue) -> String {
    let AttrValue::Object(object) = operand else { return String::new() };
    let Some(map) = object.downcast_ref::<IndexMap>() else { return format!("{object:?}") };
    let pairs: Vec<String> = map.final_indices.chunks(2).map(|pair| format!("({})", list(pair))).collect();
    format!("lambda {}: [{}]", names(map), pairs.join(", "))
}

/// 0 or 1 as what is done to a buffer.
pub(super) fn side(operand: Option<&AttrValue>) -> &'static str {
    let written = match operand {
        Some(AttrValue::Int(v)) => *v == 1,
        Some(AttrValue::Prim(e)) => e.is_int(1),
        _ => false,
    };
    if written { "\"write\"" } else { "\"read\"" }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim::*;
    use relaxide_ir::{DataType, Var};

    use super::*;

    #[test]
    fn types_that_are_not_plain_are_said() {
        let (i, j) = (Var::prim("i", DataType::int(32)), Var::dim("j"));
        let cases = [
            (floordiv(&i, 4) + 1, "i // 4 + 1"),
            (floormod(&j, 4), "j % T.int64(4)"),
            (float_of(DataType::float(32), 0.0), "T.float32(0.0)"),
            (if_then_else(lt(&i, 4), 1, 0), "T.if_then_else(i < 4, T.int64(1), T.int64(0))"),
            (
                cast(DataType::float(16), PrimExpr::from(&i) * (PrimExpr::from(&i) - 1)),
                "T.Cast(\"float16\", i * (i - 1))",
            ),
        ];
        for (e, text) in cases {
            assert_eq!(expression(&e), text);
        }
    }
}
