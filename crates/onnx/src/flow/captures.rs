//! Captures of a function, for values as they are known at import.

use relaxide_frontend::Captures;

use super::optional::{Held, Optional};
use super::sequence::{Items, Sequence};
use crate::symbolic::Symbolic;
use crate::text::{Table, Texts};
use crate::value::{Maps, Value};

/// A value of the outside, inside.
pub fn capture(captures: &mut Captures, value: &Value) -> Value {
    match value {
        Value::Constant(_) => value.clone(),
        Value::Computed(expr) => Value::Computed(captures.expr(expr)),
        Value::Symbolic(symbolic) => Value::Symbolic(capture_symbolic(captures, symbolic)),
        Value::Texts(Texts { index, table }) => {
            let table = match table {
                Table::Known(_) => table.clone(),
                Table::Made(tensor, count) => Table::Made(captures.expr(tensor), captures.dim(count)),
            };
            Value::Texts(Texts { index: captures.expr(index), table })
        }
        Value::Maps(Maps { object, dtype }) => Value::Maps(Maps { object: captures.expr(object), dtype: *dtype }),
        Value::Sequence(Sequence { items, element }) => {
            let items = match items {
                Items::Known(values) => Items::Known(values.iter().map(|v| capture(captures, v)).collect()),
                Items::Listed(array) => Items::Listed(captures.expr(array)),
            };
            let element = element.as_ref().map(|ty| captures.ty(ty));
            Value::Sequence(Sequence { items, element })
        }
        Value::Optional(Optional { object, held }) => {
            let object = object.as_ref().map(|object| captures.expr(object));
            let held = match held {
                Held::Sequence(element) => Held::Sequence(element.as_ref().map(|ty| captures.ty(ty))),
                Held::Tensor(dims, dtype) => {
                    let dims = dims.as_ref();
                    let inner = dims.map(|dims| dims.iter().map(|d| d.as_ref().map(|d| captures.dim(d))).collect());
                    Held::Tensor(inner, *dtype)
                }
            };
            Value::Optional(Optional { object, held })
        }
    }
}

fn capture_symbolic(captures: &mut Captures, value: &Symbolic) -> Symbolic {
    let elements = value.elements.iter().map(|e| e.with_parts(|part| captures.dim(part))).collect();
    Symbolic { elements, ..value.clone() }
}
