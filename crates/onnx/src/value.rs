//! [`Value`]: what a name of the graph stands for during import.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::Var;
use relaxide_ir::prim::free_vars;
use relaxide_relax::Expr;
use relaxide_relax::shape::vars_of;

use crate::flow::optional::Optional;
use crate::flow::sequence::{Items, Sequence};
use crate::symbolic::Symbolic;
use crate::text::Texts;

/// What a name of the graph stands for.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor that the program computes: a variable.
    Computed(Expr),
    /// A constant of the model.
    Constant(Tensor),
    /// A small tensor of expressions over dimensions; not in the program until something needs it as a tensor.
    Symbolic(Symbolic),
    /// A tensor of texts.
    Texts(Texts),
    /// A map, or several in an array.
    Maps(Maps),
    /// Several tensors in order.
    Sequence(Sequence),
    /// A value or none; one that is known to be there is that value instead.
    Optional(Optional),
}

/// A map from keys to numbers, or several.
#[derive(Clone, Debug)]
pub struct Maps {
    /// The value of the program.
    pub object: Expr,
    /// The type of the numbers.
    pub dtype: DataType,
}

impl Value {
    /// The tensor of texts, if it is one.
    pub fn as_texts(&self) -> Option<&Texts> {
        match self {
            Value::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// The elements as expressions, where they are known.
    pub fn symbolic(&self) -> Option<Symbolic> {
        match self {
            Value::Computed(_) | Value::Texts(_) | Value::Maps(_) | Value::Sequence(_) | Value::Optional(_) => None,
            Value::Constant(tensor) => Symbolic::from_tensor(tensor),
            Value::Symbolic(value) => Some(value.clone()),
        }
    }

    /// The symbolic variables that the value is described with.
    pub fn dim_vars(&self) -> Vec<Ref<Var>> {
        match self {
            Value::Constant(_) => Vec::new(),
            Value::Computed(expr) => vars_of([&expr.ty()]),
            Value::Symbolic(value) => value.dim_vars(),
            Value::Texts(texts) => {
                let mut vars = vars_of([&texts.index.ty()]);
                vars.extend(free_vars(&texts.table.count()));
                vars
            }
            Value::Maps(_) => Vec::new(),
            Value::Sequence(Sequence { items: Items::Known(values), .. }) => {
                values.iter().flat_map(Value::dim_vars).collect()
            }
            Value::Sequence(Sequence { items: Items::Listed(array), .. }) => vars_of([&array.ty()]),
            Value::Optional(optional) => optional.held.dims().flat_map(free_vars).collect(),
        }
    }

    /// The tensor, if it is a constant of the model.
    pub fn constant(&self) -> Option<&Tensor> {
        match self {
            Value::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }
}
