//! Short text of types and dimensions, in TVMScript's spelling, for errors and for the error contexts of run-time checks.
//!
//! The whole-program printer lives in the script crate; this is the part that code generation itself needs, because the
//! texts are stored in executables.

use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{BinaryOp, DataType, Type};

/// A type as TVMScript writes it.
pub fn type_text(ty: &Type) -> String {
    match ty {
        Type::Prim(t) => format!("R.Prim(\"{}\")", t.dtype),
        Type::Pointer(t) => format!("T.handle({}, \"{}\")", type_text(&t.element), t.scope),
        Type::Tensor(t) => {
            let mut parts = Vec::new();
            match &t.shape {
                Some(dims) => parts.push(tuple_text(dims)),
                None if t.dtype == DataType::void() && t.ndim < 0 => return "R.Tensor".into(),
                None => {}
            }
            if t.dtype != DataType::void() {
                parts.push(format!("dtype=\"{}\"", t.dtype));
            }
            if t.shape.is_none() && t.ndim >= 0 {
                parts.push(format!("ndim={}", t.ndim));
            }
            format!("R.Tensor({})", parts.join(", "))
        }
        Type::Shape(t) => match &t.values {
            Some(dims) => format!("R.Shape([{}])", dims.iter().map(dim_text).collect::<Vec<_>>().join(", ")),
            None if t.ndim >= 0 => format!("R.Shape(ndim={})", t.ndim),
            None => "R.Shape".into(),
        },
        Type::Tuple(t) => {
            let fields: Vec<_> = t.fields.iter().map(type_text).collect();
            if fields.is_empty() { "R.Tuple".into() } else { format!("R.Tuple({})", fields.join(", ")) }
        }
        Type::Func(t) => match &t.params {
            Some(params) => {
                let params: Vec<_> = params.iter().map(type_text).collect();
                let purity = if t.pure { "True" } else { "False" };
                format!("R.Callable(({}), {}, {purity})", params.join(", "), type_text(&t.ret))
            }
            None => "R.Callable".into(),
        },
        Type::String(_) => "R.str".into(),
        Type::Any(_) => "R.Any".into(),
        Type::Missing(_) => "(not inferred)".into(),
    }
}

/// Dimensions as a Python tuple.
pub fn tuple_text(dims: &[PrimExpr]) -> String {
    let list: Vec<_> = dims.iter().map(dim_text).collect();
    if list.len() == 1 { format!("({},)", list[0]) } else { format!("({})", list.join(", ")) }
}

/// A dimension or another scalar expression.
pub fn dim_text(e: &PrimExpr) -> String {
    text_at(e, 0)
}

/// Binding strength of an operator in Python.
fn strength(op: BinaryOp) -> Option<(u8, &'static str)> {
    use BinaryOp::*;
    Some(match op {
        Or => (1, "or"),
        And => (2, "and"),
        Eq => (3, "=="),
        Ne => (3, "!="),
        Lt => (3, "<"),
        Le => (3, "<="),
        Gt => (3, ">"),
        Ge => (3, ">="),
        Add => (4, "+"),
        Sub => (4, "-"),
        Mul => (5, "*"),
        Div => (5, "/"),
        FloorDiv => (5, "//"),
        FloorMod => (5, "%"),
        Mod | Min | Max => return None,
    })
}

fn text_at(e: &PrimExpr, outer: u8) -> String {
    match e {
        PrimExpr::Int(imm) if imm.dtype == DataType::bool() => if imm.value != 0 { "True" } else { "False" }.into(),
        PrimExpr::Int(imm) => imm.value.to_string(),
        PrimExpr::Float(imm) => format!("{:?}", imm.value),
        PrimExpr::Str(s) => format!("{:?}", s.value),
        PrimExpr::Var(v) => v.name.clone(),
        PrimExpr::Cast(c) => format!("T.Cast(\"{}\", {})", c.dtype, dim_text(&c.value)),
        PrimExpr::Binary(b) => match strength(b.op) {
            Some((level, symbol)) => {
                let text = format!("{} {symbol} {}", text_at(&b.a, level), text_at(&b.b, level + 1));
                if level < outer { format!("({text})") } else { text }
            }
            None => {
                let name = match b.op {
                    BinaryOp::Min => "T.min",
                    BinaryOp::Max => "T.max",
                    _ => "T.truncmod",
                };
                format!("{name}({}, {})", dim_text(&b.a), dim_text(&b.b))
            }
        },
        PrimExpr::Not(n) => format!("not {}", text_at(&n.a, 6)),
        PrimExpr::Select(s) => {
            format!("T.Select({}, {}, {})", dim_text(&s.condition), dim_text(&s.true_value), dim_text(&s.false_value))
        }
        PrimExpr::Let(l) => format!("T.Let({}, where={{{}: {}}})", dim_text(&l.body), l.var.name, dim_text(&l.value)),
        PrimExpr::Ramp(r) => format!("T.Ramp({}, {}, {})", dim_text(&r.base), dim_text(&r.stride), r.lanes),
        PrimExpr::Broadcast(b) => format!("T.Broadcast({}, {})", dim_text(&b.value), b.lanes),
        PrimExpr::Load(l) => {
            let indices: Vec<_> = l.indices.iter().map(dim_text).collect();
            format!("{}[{}]", l.buffer.name, indices.join(", "))
        }
        PrimExpr::Call(c) => {
            let args: Vec<_> = c.args.iter().map(dim_text).collect();
            format!("{}({})", c.op.replace("tirx.", "T."), args.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relaxide_ir::{Var, prim};

    #[test]
    fn types_read_as_tvmscript_writes_them() {
        let n = PrimExpr::Var(Var::dim("n"));
        let f32 = DataType::float(32);
        let cases = [
            (Type::tensor([PrimExpr::from(3), PrimExpr::from(4)], f32), "R.Tensor((3, 4), dtype=\"float32\")"),
            (Type::tensor([n.clone() * 2], f32), "R.Tensor((n * 2,), dtype=\"float32\")"),
            (Type::tensor_ndim(2, f32), "R.Tensor(dtype=\"float32\", ndim=2)"),
            (Type::tensor_ndim(-1, DataType::void()), "R.Tensor"),
            (Type::shape([n.clone()]), "R.Shape([n])"),
            (Type::tuple(vec![Type::prim(DataType::int(64))]), "R.Tuple(R.Prim(\"int64\"))"),
        ];
        for (ty, text) in cases {
            assert_eq!(type_text(&ty), text);
        }
    }

    #[test]
    fn parentheses_are_where_python_needs_them() {
        let (a, b) = (PrimExpr::Var(Var::dim("a")), PrimExpr::Var(Var::dim("b")));
        assert_eq!(dim_text(&((&a + &b) * &b)), "(a + b) * b");
        assert_eq!(dim_text(&(&a - (&b - 1))), "a - (b - 1)");
        assert_eq!(dim_text(&prim::floordiv(&a * 2, 3)), "a * 2 // 3");
        assert_eq!(dim_text(&prim::max(&a, &b)), "T.max(a, b)");
    }
}
