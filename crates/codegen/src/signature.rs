//! How a kernel's signature and the dimensions it expects are spelled in messages.

use std::{collections::HashMap, fmt::Write as _};

use relaxide_ir::{BinaryOp, PrimExpr, Ref, Var};
use relaxide_tir::PrimFunc;

/// `name(A: Tensor([n, T.int64(4)], float32), k: int32)`
pub(crate) fn signature(name: &str, func: &PrimFunc) -> String {
    let mut text = format!("{name}(");
    for (index, param) in func.params.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = match func.buffers.get(index).and_then(Option::as_ref) {
            Some(buffer) => {
                let dimensions: Vec<String> = buffer.shape.iter().map(|e| typed(e).to_string()).collect();
                write!(text, "{separator}{}: Tensor([{}], {})", buffer.name, dimensions.join(", "), buffer.dtype)
            }
            None if param.dtype().is_handle() => write!(text, "{separator}{}: T.handle", param.name),
            None => write!(text, "{separator}{}: {}", param.name, param.dtype()),
        };
    }
    text.push(')');
    text
}

/// An expected dimension, its variables replaced by the places that define them: `A.shape[0] + 1`.
pub(crate) fn expected(e: &PrimExpr, places: &HashMap<Ref<Var>, String>) -> String {
    Printer { places: Some(places) }.print(e, 0)
}

fn typed(e: &PrimExpr) -> String {
    Printer { places: None }.print(e, 0)
}

struct Printer<'a> {
    /// Where variables come from; without it they go by name and literals carry their type.
    places: Option<&'a HashMap<Ref<Var>, String>>,
}

impl Printer<'_> {
    fn print(&self, e: &PrimExpr, outer: u8) -> String {
        match e {
            PrimExpr::Int(n) if self.places.is_none() && n.dtype.bits != 32 => format!("T.{}({})", n.dtype, n.value),
            PrimExpr::Int(n) => n.value.to_string(),
            PrimExpr::Float(n) => n.value.to_string(),
            PrimExpr::Var(var) => {
                self.places.and_then(|places| places.get(var)).cloned().unwrap_or_else(|| var.name.clone())
            }
            PrimExpr::Cast(n) => match self.places {
                Some(_) => self.print(&n.value, outer),
                None => format!("T.Cast(\"{}\", {})", n.dtype, self.print(&n.value, 0)),
            },
            PrimExpr::Binary(n) => match operator(n.op) {
                Some((symbol, strength)) => {
                    let text = format!("{} {symbol} {}", self.print(&n.a, strength), self.print(&n.b, strength + 1));
                    if strength < outer { format!("({text})") } else { text }
                }
                None => {
                    let name = if n.op == BinaryOp::Min { "T.min" } else { "T.max" };
                    format!("{name}({}, {})", self.print(&n.a, 0), self.print(&n.b, 0))
                }
            },
            PrimExpr::Call(n) => {
                let args: Vec<String> = n.args.iter().map(|arg| self.print(arg, 0)).collect();
                format!("{}({})", n.op, args.join(", "))
            }
            other => format!("{:?}", other.dtype()),
        }
    }
}

fn operator(op: BinaryOp) -> Option<(&'static str, u8)> {
    use BinaryOp::*;
    Some(match op {
        Or => ("or", 1),
        And => ("and", 2),
        Eq => ("==", 3),
        Ne => ("!=", 3),
        Lt => ("<", 3),
        Le => ("<=", 3),
        Gt => (">", 3),
        Ge => (">=", 3),
        Add => ("+", 4),
        Sub => ("-", 4),
        Mul => ("*", 5),
        Div | FloorDiv => ("//", 5),
        Mod | FloorMod => ("%", 5),
        Min | Max => return None,
    })
}
