//! Python's operators between values of Relax functions: `a + b`, `a < b`, `-a`.

use relaxide_ffi::DataType;
use relaxide_ir::diagnostic::Code;
use relaxide_ir::{Attrs, BinaryOp};
use ruff_python_ast::{Operator, UnaryOp};
use ruff_text_size::TextRange;

use super::relax::tensor_dtype;
use super::value::Value;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn relax_unary(&mut self, op: UnaryOp, value: Value, range: TextRange) -> Parsed<Value> {
        let name = match (op, &value) {
            (UnaryOp::USub, Value::Relax(_)) => "negative",
            (UnaryOp::Invert, Value::Relax(_)) => "bitwise_not",
            (UnaryOp::Not, Value::Relax(_)) => "logical_not",
            _ => return Err(self.error(Code::Type, format!("{} is no operand", value.describe()), range)),
        };
        let value = self.leaf_value(value, range)?;
        self.typed_call(name, vec![value], Attrs::new(), Vec::new(), range)
    }

    pub(super) fn relax_binary(&mut self, op: Operator, a: Value, b: Value, range: TextRange) -> Parsed<Value> {
        let name = match op {
            Operator::Add => "add",
            Operator::Sub => "subtract",
            Operator::Mult => "multiply",
            Operator::Div => "divide",
            Operator::FloorDiv => "floor_divide",
            Operator::Mod => "floor_mod",
            Operator::Pow => "power",
            Operator::MatMult => "matmul",
            Operator::BitAnd => "bitwise_and",
            Operator::BitOr => "bitwise_or",
            Operator::BitXor => "bitwise_xor",
            Operator::LShift => "left_shift",
            Operator::RShift => "right_shift",
        };
        self.relax_operator(name, a, b, range)
    }

    pub(super) fn relax_comparison(&mut self, op: BinaryOp, a: Value, b: Value, range: TextRange) -> Parsed<Value> {
        let name = match op {
            BinaryOp::Eq => "equal",
            BinaryOp::Ne => "not_equal",
            BinaryOp::Lt => "less",
            BinaryOp::Le => "less_equal",
            BinaryOp::Gt => "greater",
            _ => "greater_equal",
        };
        self.relax_operator(name, a, b, range)
    }

    fn relax_operator(&mut self, name: &str, a: Value, b: Value, range: TextRange) -> Parsed<Value> {
        let operand = |v: &Value| matches!(v, Value::Relax(_));
        if !operand(&a) && !operand(&b) {
            let message = format!("{} and {} are no operands of one operation", a.describe(), b.describe());
            return Err(self.error(Code::Type, message, range));
        }
        let dtype_of = |v: &Value| if let Value::Relax(e) = v { tensor_dtype(&e.ty()) } else { None };
        let dtype = dtype_of(&a).or_else(|| dtype_of(&b)).unwrap_or(DataType::float(32));
        let mut side = |value: Value| match value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => self.number_constant(&value, dtype, range),
            value => self.leaf_value(value, range),
        };
        let (a, b) = (side(a)?, side(b)?);
        self.typed_call(name, vec![a, b], Attrs::new(), Vec::new(), range)
    }
}
