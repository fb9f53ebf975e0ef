//! Integer formulas over named dimensions, as they ride in a file's signature: what a kernel costs at whatever shape.
//!
//! As JSON a formula is a number, a name, or a list of an operator and two formulas: `["*", "n", 64]`.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{BinaryOp, Var};
use serde_json::{Value, json};

/// An integer formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number.
    Int(i64),
    /// The value of a dimension.
    Name(String),
    /// Two formulas and what is done with them.
    Op(BinaryOp, Box<(Formula, Formula)>),
}

/// The operators that formulas have, with their spelling.
const OPERATORS: [(BinaryOp, &str); 7] = [
    (BinaryOp::Add, "+"),
    (BinaryOp::Sub, "-"),
    (BinaryOp::Mul, "*"),
    (BinaryOp::FloorDiv, "//"),
    (BinaryOp::FloorMod, "%"),
    (BinaryOp::Min, "min"),
    (BinaryOp::Max, "max"),
];

impl Formula {
    /// The formula of an expression; `name` says what variables are called. None where it has other operators.
    pub fn of(e: &PrimExpr, name: &mut impl FnMut(&Ref<Var>) -> String) -> Option<Formula> {
        match e {
            PrimExpr::Int(e) => Some(Formula::Int(e.value)),
            PrimExpr::Var(var) => Some(Formula::Name(name(var))),
            PrimExpr::Cast(e) if e.dtype.is_int() => Formula::of(&e.value, name),
            PrimExpr::Binary(e) => {
                let (op, _) = OPERATORS.iter().find(|(op, _)| *op == e.op)?;
                Some(Formula::Op(*op, Box::new((Formula::of(&e.a, name)?, Formula::of(&e.b, name)?))))
            }
            _ => None,
        }
    }

    /// The value; none where a name has none, or a step leaves 64 bits or divides by zero.
    pub fn value(&self, dims: &HashMap<String, i64>) -> Option<i64> {
        match self {
            Formula::Int(value) => Some(*value),
            Formula::Name(name) => dims.get(name).copied(),
            Formula::Op(op, sides) => {
                let (a, b) = (sides.0.value(dims)?, sides.1.value(dims)?);
                match op {
                    BinaryOp::Add => a.checked_add(b),
                    BinaryOp::Sub => a.checked_sub(b),
                    BinaryOp::Mul => a.checked_mul(b),
                    BinaryOp::FloorDiv => a.checked_div_euclid(b).filter(|_| b > 0),
                    BinaryOp::FloorMod => a.checked_rem_euclid(b).filter(|_| b > 0),
                    BinaryOp::Min => Some(a.min(b)),
                    BinaryOp::Max => Some(a.max(b)),
                    _ => None,
                }
            }
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Formula::Int(value) => json!(value),
            Formula::Name(name) => json!(name),
            Formula::Op(op, sides) => {
                let sign = OPERATORS.iter().find(|(known, _)| known == op).map_or("?", |(_, sign)| sign);
                json!([sign, sides.0.to_json(), sides.1.to_json()])
            }
        }
    }

    /// From JSON, whose reader has bounded the depth.
    pub fn from_json(value: &Value) -> Option<Formula> {
        match value {
            Value::Number(number) => Some(Formula::Int(number.as_i64()?)),
            Value::String(name) => Some(Formula::Name(name.clone())),
            Value::Array(items) => {
                let [sign, a, b] = items.as_slice() else { return None };
                let (op, _) = OPERATORS.iter().find(|(_, known)| Some(*known) == sign.as_str())?;
                Some(Formula::Op(*op, Box::new((Formula::from_json(a)?, Formula::from_json(b)?))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim;

    use super::*;

    #[test]
    fn a_formula_survives_json_and_has_the_value_of_its_expression() {
        let n = Var::dim("n");
        let e = prim::floordiv(PrimExpr::from(&n) * 3 + 5, 4) + prim::min(PrimExpr::from(&n), 7);
        let formula = Formula::of(&e, &mut |var| var.name.clone()).unwrap();
        assert_eq!(Formula::from_json(&formula.to_json()), Some(formula.clone()));
        let at = |n: i64| formula.value(&HashMap::from([("n".to_string(), n)]));
        assert_eq!([at(1), at(10)], [Some(2 + 1), Some(8 + 7)]);
        assert_eq!(formula.value(&HashMap::new()), None);
    }

    #[test]
    fn what_leaves_64_bits_or_divides_by_zero_has_no_value() {
        let of = |text: &str| Formula::from_json(&serde_json::from_str(text).unwrap()).unwrap();
        let none = HashMap::new();
        assert_eq!(of("[\"*\", 9223372036854775807, 2]").value(&none), None);
        assert_eq!(of("[\"//\", 1, 0]").value(&none), None);
        assert!(Formula::from_json(&json!(["^", 1, 2])).is_none());
        assert!(Formula::from_json(&json!([1])).is_none());
    }
}
