//! Expressions that both languages share: names, literals, operators, subscripts.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, Binary, PrimCall};
use relaxide_ir::{BinaryOp, PrimExpr};
use relaxide_relax::Expr as Relax;
use ruff_python_ast::{self as ast, CmpOp, Expr, Number, Operator, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

use super::value::Value;
use super::{Language, Parsed, Parser};
use relaxide_ir::diagnostic::Code;

impl Parser<'_> {
    /// The canonical path of a dotted name that starts at a namespace: `R.nn.relu`, `T.axis.remap`.
    pub(super) fn path(&self, e: &Expr) -> Option<String> {
        match e {
            Expr::Name(name) if self.lookup(&name.id).is_none() => self.namespaces.get(name.id.as_str()).cloned(),
            Expr::Attribute(attr) => {
                let base = self.path(&attr.value)?;
                Some(match (base.as_str(), attr.attr.as_str()) {
                    ("tvm", "script") => "tvm.script".into(),
                    ("tvm.script", "parser") => "tvm.script".into(),
                    ("tvm.script", "ir") => "I".into(),
                    ("tvm.script", "relax") => "R".into(),
                    ("tvm.script", "tir" | "tirx") => "T".into(),
                    ("tvm.script", name) => format!("I.{name}"),
                    (base, name) => format!("{base}.{name}"),
                })
            }
            Expr::Call(call) => self.member_by_name(call),
            _ => None,
        }
    }

    pub(super) fn expr(&mut self, e: &Expr) -> Parsed<Value> {
        self.nested(e.range(), |p| p.expr_here(e))
    }

    fn expr_here(&mut self, e: &Expr) -> Parsed<Value> {
        if let Some(path) = self.path(e) {
            return self.path_value(path, e.range());
        }
        if let (Some(callee), Expr::Call(call)) = (self.macro_call(e), e) {
            return self.expand(callee, call);
        }
        if self.is_hosted(e) {
            return self.hosted(e);
        }
        match e {
            Expr::NoneLiteral(_) => Ok(Value::None),
            Expr::BooleanLiteral(b) => Ok(Value::Bool(b.value)),
            Expr::StringLiteral(s) => Ok(Value::Str(s.value.to_str().to_string())),
            Expr::NumberLiteral(n) => self.number(n),
            Expr::Name(name) => self.name(name),
            Expr::List(list) => Ok(Value::List(self.exprs(&list.elts)?)),
            Expr::Tuple(tuple) => {
                let fields = tuple.elts.iter().map(|e| self.operand(e)).collect::<Parsed<Vec<_>>>()?;
                Ok(Value::Tuple(fields))
            }
            Expr::Dict(dict) => self.dict(dict),
            Expr::Attribute(attr) => self.attribute(attr),
            Expr::Subscript(subscript) => self.subscript(subscript),
            Expr::UnaryOp(unary) => self.unary(unary),
            Expr::BinOp(bin) => {
                let (a, b) = (self.operand(&bin.left)?, self.expr(&bin.right)?);
                self.operator(bin.op, a, b, bin.range)
            }
            Expr::BoolOp(ops) => self.logic(ops),
            Expr::Compare(compare) => self.compare(compare),
            Expr::Call(call) => self.call(call),
            Expr::If(n) if self.language == Language::Tir => self.conditional(n),
            Expr::If(_) => Err(self
                .unsupported("a conditional expression", e.range())
                .with_help("write an if statement, or T.if_then_else for scalars")
                .into()),
            other => Err(self.unsupported("this expression", other.range())),
        }
    }

    /// `a if condition else b` of scalars, of which the chosen one alone is evaluated. Where the condition is known now, as one
    /// of Python's values is, so is the choice.
    fn conditional(&mut self, n: &ast::ExprIf) -> Parsed<Value> {
        if let Some(truth) = self.decided(&n.test)? {
            return self.expr(if truth { &n.body } else { &n.orelse });
        }
        let condition = self.scalar_expr(&n.test)?;
        let (yes, no) = (self.expr(&n.body)?, self.expr(&n.orelse)?);
        let (yes, no) = match self.operands(&yes, &no) {
            Some(pair) => pair,
            None => (self.scalar(&yes, n.body.range())?, self.scalar(&no, n.orelse.range())?),
        };
        Ok(Value::Prim(prim::call(yes.dtype(), "tirx.if_then_else", vec![condition, yes, no])))
    }

    fn exprs(&mut self, list: &[Expr]) -> Parsed<Vec<Value>> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    fn number(&mut self, n: &ast::ExprNumberLiteral) -> Parsed<Value> {
        match &n.value {
            Number::Int(v) => match v.as_u64() {
                Some(v) => Ok(Value::Int(i128::from(v))),
                None => Err(self.error(Code::Limit, "this integer does not fit in 64 bits", n.range)),
            },
            Number::Float(v) => Ok(Value::Float(*v)),
            Number::Complex { .. } => Err(self.unsupported("a complex number", n.range)),
        }
    }

    fn name(&mut self, name: &ast::ExprName) -> Parsed<Value> {
        if let Some(value) = self.lookup(&name.id) {
            return Ok(value.clone());
        }
        if let Some(symbol) = self.symbol(&name.id) {
            return Ok(Value::Prim(symbol));
        }
        if name.id.as_str() == self.module_name {
            return Ok(Value::Module);
        }
        if let Some(global) = self.globals.get(name.id.as_str()) {
            return Ok(Value::Relax(global.clone().into()));
        }
        if self.is_outer(&name.id) {
            return self.hosted(&Expr::Name(name.clone()));
        }
        Err(self.unknown_name(&name.id, name.range))
    }

    fn path_value(&mut self, path: String, range: TextRange) -> Parsed<Value> {
        if let Some(ty) = self.bare_type(&path) {
            return Ok(ty);
        }
        let _ = range;
        Ok(Value::Path(path))
    }

    fn dict(&mut self, dict: &ast::ExprDict) -> Parsed<Value> {
        let mut items = Vec::with_capacity(dict.items.len());
        for item in &dict.items {
            let Some(Expr::StringLiteral(key)) = &item.key else {
                return Err(self.error(Code::Type, "keys of a dictionary are text here", item.value.range()));
            };
            items.push((key.value.to_str().to_string(), self.expr(&item.value)?));
        }
        Ok(Value::Map(items))
    }

    fn unary(&mut self, unary: &ast::ExprUnaryOp) -> Parsed<Value> {
        let value = self.expr(&unary.operand)?;
        match (unary.op, value) {
            (UnaryOp::USub, Value::Int(v)) => Ok(Value::Int(-v)),
            (UnaryOp::USub, Value::Float(v)) => Ok(Value::Float(-v)),
            (UnaryOp::UAdd, value @ (Value::Int(_) | Value::Float(_))) => Ok(value),
            (UnaryOp::Not, Value::Bool(v)) => Ok(Value::Bool(!v)),
            (UnaryOp::Invert, Value::Int(v)) => Ok(Value::Int(!v)),
            (op, value) => match self.scalar_operand(&value) {
                Some(e) => Ok(Value::Prim(self.unary_scalar(op, e))),
                None => self.relax_unary(op, value, unary.range),
            },
        }
    }

    fn unary_scalar(&mut self, op: UnaryOp, e: PrimExpr) -> PrimExpr {
        let dtype = e.dtype();
        match op {
            UnaryOp::USub => Ref::new(Binary { op: BinaryOp::Mul, a: e, b: prim::constant(dtype, -1.0) }).into(),
            UnaryOp::UAdd => e,
            UnaryOp::Not => Ref::new(prim::Not { a: e }).into(),
            UnaryOp::Invert => prim::call(dtype, "tirx.bitwise_not", vec![e]),
        }
    }

    /// A scalar expression, if the value is one (and no Python number).
    pub(super) fn scalar_operand(&self, value: &Value) -> Option<PrimExpr> {
        match value {
            Value::Prim(e) => Some(e.clone()),
            Value::Buffer(b) if self.is_scalar_buffer(b) => Some(self.scalar_element(b)),
            Value::Region(b, ranges) => self.region_load(b, ranges, TextRange::default()).ok(),
            Value::Relax(Relax::Prim(p)) => Some(p.value.clone()),
            Value::Relax(Relax::Var(v)) if matches!(v.ty, relaxide_ir::Type::Prim(_)) => Some(PrimExpr::Var(v.clone())),
            _ => None,
        }
    }

    /// What two operands become: Python numbers take the type of the other side.
    pub(super) fn operands(&self, a: &Value, b: &Value) -> Option<(PrimExpr, PrimExpr)> {
        match (self.scalar_operand(a), self.scalar_operand(b)) {
            (Some(a), Some(b)) => Some(prim::promote(a, b)),
            (Some(a), None) => {
                let b = self.number_like(b, a.dtype())?;
                Some(prim::promote(a, b))
            }
            (None, Some(b)) => {
                let a = self.number_like(a, b.dtype())?;
                Some(prim::promote(a, b))
            }
            (None, None) => None,
        }
    }

    /// A Python number as a literal beside an operand of a type.
    fn number_like(&self, value: &Value, beside: DataType) -> Option<PrimExpr> {
        let literal = |dtype: DataType, v: i128| prim::int_of(dtype, v as i64);
        Some(match value {
            Value::Bool(v) => prim::int_of(if beside.is_bool() { beside } else { DataType::bool() }, i64::from(*v)),
            Value::Int(v) if beside.is_float() => prim::float_of(beside, *v as f64),
            Value::Int(v) if beside.is_integer() && fits(*v, beside) => literal(beside, *v),
            Value::Int(v) if beside.is_integer() => literal(DataType::int(64), *v),
            Value::Int(v) => literal(self.default_int(), *v),
            Value::Float(v) if beside.is_float() => prim::float_of(beside, *v),
            Value::Float(v) => prim::float_of(DataType::float(32).with_lanes(beside.lanes), *v),
            _ => return None,
        })
    }

    /// The type of a bare integer that meets nothing typed.
    pub(super) fn default_int(&self) -> DataType {
        DataType::int(if self.language == Language::Tir { 32 } else { 64 })
    }

    /// A value as a scalar expression; Python numbers take their default types.
    pub(super) fn scalar(&self, value: &Value, range: TextRange) -> Parsed<PrimExpr> {
        if let Some(e) = self.scalar_operand(value) {
            return Ok(e);
        }
        match value {
            Value::Int(v) => {
                let narrow = self.default_int();
                let fits = narrow.bits == 64 || i32::try_from(*v).is_ok();
                Ok(prim::int_of(if fits { narrow } else { DataType::int(64) }, *v as i64))
            }
            Value::Bool(v) => Ok(prim::boolean(*v)),
            Value::Float(v) => Ok(prim::float_of(DataType::float(32), *v)),
            Value::Str(s) => Ok(prim::string(s.clone())),
            other => {
                let message = format!("a scalar is expected, but this is {}", other.describe());
                Err(self.error(Code::Type, message, range))
            }
        }
    }

    /// An expression as a scalar.
    pub(super) fn scalar_expr(&mut self, e: &Expr) -> Parsed<PrimExpr> {
        let value = self.expr(e)?;
        self.scalar(&value, e.range())
    }

    /// Checks that a scalar counts something: a dimension, an index, a loop's bound.
    pub(super) fn counts(&self, e: PrimExpr, range: TextRange) -> Parsed<PrimExpr> {
        match e.dtype().is_integer() {
            true => Ok(e),
            false => Err(self.error(Code::Type, format!("an integer is expected, not {}", e.dtype()), range)),
        }
    }

    /// A value as a scalar of a given type, where it is a Python number.
    pub(super) fn scalar_as(&self, value: &Value, dtype: DataType, range: TextRange) -> Parsed<PrimExpr> {
        match value {
            Value::Int(v) if dtype.is_integer() && fits(*v, dtype) => Ok(prim::int_of(dtype, *v as i64)),
            Value::Int(v) if dtype.is_float() => Ok(prim::float_of(dtype, *v as f64)),
            Value::Float(v) if dtype.is_float() => Ok(prim::float_of(dtype, *v)),
            Value::Bool(v) => Ok(prim::int_of(dtype, i64::from(*v))),
            other => self.scalar(other, range),
        }
    }

    pub(super) fn operator(&mut self, op: Operator, a: Value, b: Value, range: TextRange) -> Parsed<Value> {
        if let Some(value) = python_arithmetic(op, &a, &b) {
            return Ok(value);
        }
        let Some((x, y)) = self.operands(&a, &b) else { return self.relax_binary(op, a, b, range) };
        let dtype = x.dtype();
        let binary = |op: BinaryOp| Value::Prim(Ref::new(Binary { op, a: x.clone(), b: y.clone() }).into());
        let bitwise = |name: &str| {
            Value::Prim(Ref::new(PrimCall { op: name.into(), args: vec![x.clone(), y.clone()], dtype }).into())
        };
        Ok(match op {
            Operator::Add => binary(BinaryOp::Add),
            Operator::Sub => binary(BinaryOp::Sub),
            Operator::Mult => binary(BinaryOp::Mul),
            Operator::Div if dtype.is_float() => binary(BinaryOp::Div),
            Operator::Div => {
                return Err(self
                    .error(Code::Type, "`/` is not defined on integers", range)
                    .with_help("`//` rounds down, T.Div rounds towards zero")
                    .into());
            }
            Operator::FloorDiv => binary(BinaryOp::FloorDiv),
            Operator::Mod => binary(BinaryOp::FloorMod),
            Operator::Pow => bitwise("tirx.pow"),
            Operator::LShift => bitwise("tirx.shift_left"),
            Operator::RShift => bitwise("tirx.shift_right"),
            Operator::BitAnd => bitwise("tirx.bitwise_and"),
            Operator::BitOr => bitwise("tirx.bitwise_or"),
            Operator::BitXor => bitwise("tirx.bitwise_xor"),
            Operator::MatMult => return Err(self.unsupported("`@` on scalars", range)),
        })
    }

    fn logic(&mut self, ops: &ast::ExprBoolOp) -> Parsed<Value> {
        let op = if ops.op == ast::BoolOp::And { BinaryOp::And } else { BinaryOp::Or };
        let mut result: Option<PrimExpr> = None;
        for value in &ops.values {
            let next = self.scalar_expr(value)?;
            result = Some(match result {
                None => next,
                Some(sofar) => Ref::new(Binary { op, a: sofar, b: next }).into(),
            });
        }
        result.map(Value::Prim).ok_or_else(|| self.unsupported("this expression", ops.range))
    }

    fn compare(&mut self, compare: &ast::ExprCompare) -> Parsed<Value> {
        let mut left = self.expr(&compare.left)?;
        let mut result: Option<Value> = None;
        for (op, right) in compare.ops.iter().zip(&compare.comparators) {
            let right = self.expr(right)?;
            let next = self.comparison(*op, left, right.clone(), compare.range)?;
            result = Some(match result {
                None => next,
                Some(sofar) => {
                    let (a, b) = (self.scalar(&sofar, compare.range)?, self.scalar(&next, compare.range)?);
                    Value::Prim(Ref::new(Binary { op: BinaryOp::And, a, b }).into())
                }
            });
            left = right;
        }
        result.ok_or_else(|| self.unsupported("this expression", compare.range))
    }

    fn comparison(&mut self, op: CmpOp, a: Value, b: Value, range: TextRange) -> Parsed<Value> {
        let op = match op {
            CmpOp::Eq => BinaryOp::Eq,
            CmpOp::NotEq => BinaryOp::Ne,
            CmpOp::Lt => BinaryOp::Lt,
            CmpOp::LtE => BinaryOp::Le,
            CmpOp::Gt => BinaryOp::Gt,
            CmpOp::GtE => BinaryOp::Ge,
            _ => return Err(self.unsupported("this comparison", range)),
        };
        if let (Value::Int(x), Value::Int(y)) = (&a, &b) {
            return Ok(Value::Bool(compare_ints(op, *x, *y)));
        }
        match self.operands(&a, &b) {
            Some((a, b)) => Ok(Value::Prim(Ref::new(Binary { op, a, b }).into())),
            None => self.relax_comparison(op, a, b, range),
        }
    }
}

/// Whether an integer type holds a value.
pub(super) fn fits(value: i128, dtype: DataType) -> bool {
    let bits = u32::from(dtype.bits.clamp(1, 64));
    match dtype.is_uint() {
        true => (0..1i128 << bits).contains(&value),
        false => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value),
    }
}

fn compare_ints(op: BinaryOp, x: i128, y: i128) -> bool {
    match op {
        BinaryOp::Eq => x == y,
        BinaryOp::Ne => x != y,
        BinaryOp::Lt => x < y,
        BinaryOp::Le => x <= y,
        BinaryOp::Gt => x > y,
        _ => x >= y,
    }
}

/// Arithmetic on Python's own numbers, as far as dimensions and constants use it.
fn python_arithmetic(op: Operator, a: &Value, b: &Value) -> Option<Value> {
    let bound = |v: i128| (v.unsigned_abs() <= u128::from(u64::MAX)).then_some(Value::Int(v));
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => match op {
            Operator::Add => bound(x + y),
            Operator::Sub => bound(x - y),
            Operator::Mult => bound(x.checked_mul(*y)?),
            Operator::FloorDiv if *y != 0 => bound(x.div_euclid(*y) - i128::from(*y < 0 && x.rem_euclid(*y) != 0)),
            Operator::Mod if *y != 0 => bound(((x % y) + y) % y),
            Operator::Div if *y != 0 => Some(Value::Float(*x as f64 / *y as f64)),
            Operator::Pow => bound(x.checked_pow(u32::try_from(*y).ok().filter(|y| *y < 128)?)?),
            Operator::LShift => bound(x.checked_mul(1i128.checked_shl(u32::try_from(*y).ok().filter(|y| *y < 64)?)?)?),
            _ => None,
        },
        _ => {
            let float = |v: &Value| match v {
                Value::Float(v) => Some(*v),
                Value::Int(v) => Some(*v as f64),
                _ => None,
            };
            let (x, y) = (float(a)?, float(b)?);
            Some(Value::Float(match op {
                Operator::Add => x + y,
                Operator::Sub => x - y,
                Operator::Mult => x * y,
                Operator::Div => x / y,
                Operator::Pow => x.powf(y),
                _ => return None,
            }))
        }
    }
}
