//! Optional values: a value, or none.
//!
//! What is known when importing is no part of the program: an optional value that is there is that value, and one that is
//! not has no object. Otherwise, as where it is a parameter of the model or comes out of a branch, it is an object of the
//! program that is null or the value itself, a tensor or an array:
//!
//! ```text
//! has = OptionalHasElement(o)        has = vm.builtin.optional_has(o)
//! x = OptionalGetElement(o)    ──▶   check = vm.builtin.optional_has(o); R.assert_op(check, "…")
//!                                    x = R.match_cast(o, R.Tensor((4,)))
//! ```
//!
//! An optional value where a tensor or a sequence is needed is taken as `OptionalGetElement` takes it: ONNX gives the result
//! of a loop the type that its body has, but before the first iteration it is what the loop was given.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::shape::unify;
use relaxide_relax::{BlockBuilder, Expr};

use super::carried::{self, TEXT};
use super::sequence::{self, Sequence};
use crate::dims;
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::node::Node;
use crate::proto::{DimensionValue, TensorTypeProto, TypeKind, TypeProto};
use crate::scope::Scope;
use crate::symbolic::{Ratio, Symbolic};
use crate::text::Texts;
use crate::value::Value;
use relaxide_frontend::runtime_call;

type Result<T> = std::result::Result<T, NodeError>;

/// An optional value that is not known to be there.
#[derive(Clone, Debug)]
pub struct Optional {
    /// Null or the value; `None` where it is known that there is none.
    pub object: Option<Expr>,
    /// What it is where it is there.
    pub held: Held,
}

/// What is known of the value that an optional one holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// A tensor: its dimensions, as far as they are known, and its element type.
    Tensor(Option<Vec<Option<PrimExpr>>>, DataType),
    /// A sequence: what is known of its values.
    Sequence(Option<Type>),
}

impl Held {
    /// What a value is.
    pub fn of(scope: &Scope, value: &Value) -> Held {
        let dtype = match value {
            Value::Optional(optional) => return optional.held.clone(),
            Value::Sequence(sequence) => return Held::Sequence(sequence.element.clone()),
            Value::Computed(expr) => scope.dtype(expr),
            Value::Constant(tensor) => tensor.dtype(),
            Value::Symbolic(symbolic) => symbolic.dtype,
            Value::Texts(_) => TEXT,
            Value::Maps(maps) => maps.dtype,
        };
        Held::Tensor(scope.value_dims(value).ok().map(|dims| dims.into_iter().map(Some).collect()), dtype)
    }

    /// What a type of the file says. `dim` knows which named dimensions have variables.
    pub fn of_type(ty: Option<&TypeProto>, dim: &dyn Fn(&str) -> Option<PrimExpr>) -> Result<Held> {
        match ty.and_then(|ty| ty.value.as_ref()) {
            Some(TypeKind::Tensor(tensor)) => {
                let dtype = carried::element_of(tensor.elem_type.into())?;
                Ok(Held::Tensor(known_dims(tensor, dim), dtype))
            }
            Some(TypeKind::Sequence(of)) => Ok(Held::Sequence(sequence::declared_element(of))),
            Some(_) => Err(NodeError::unsupported("only tensors and sequences can be optional")),
            None => Err(NodeError::invalid("the file does not say what the optional value holds")),
        }
    }

    /// What two have in common; `None` where they are of different kinds.
    pub fn common(&self, other: &Held, known: &dyn Fn(&PrimExpr) -> bool) -> Option<Held> {
        match (self, other) {
            (Held::Tensor(a, s), Held::Tensor(b, t)) if s == t => {
                let dims = a.as_ref().zip(b.as_ref()).filter(|(a, b)| a.len() == b.len());
                let one = |(a, b): (&Option<PrimExpr>, &Option<PrimExpr>)| match (a, b) {
                    (Some(a), Some(b)) if dims::equal(a, b) && known(a) => Some(a.clone()),
                    _ => None,
                };
                Some(Held::Tensor(dims.map(|(a, b)| a.iter().zip(b).map(one).collect()), *s))
            }
            (Held::Sequence(a), Held::Sequence(b)) => Some(Held::Sequence(match (a, b) {
                (Some(a), Some(b)) => Some(unify(a, b)),
                (a, b) => a.clone().or(b.clone()),
            })),
            _ => None,
        }
    }

    /// The same without dimensions that are not numbers.
    pub fn erased(&self) -> Held {
        match self {
            Held::Sequence(element) => {
                let tensor = element.as_ref().and_then(Type::as_tensor);
                Held::Sequence(tensor.map(|t| Type::tensor_ndim(t.ndim, t.dtype)))
            }
            Held::Tensor(dims, dtype) => {
                let number = |dim: &Option<PrimExpr>| dim.clone().filter(|dim| dim.as_int().is_some());
                Held::Tensor(dims.as_ref().map(|dims| dims.iter().map(number).collect()), *dtype)
            }
        }
    }

    /// The expressions that it is described with.
    pub fn dims(&self) -> impl Iterator<Item = &PrimExpr> {
        let dims = if let Held::Tensor(Some(dims), _) = self { &dims[..] } else { &[] };
        dims.iter().flatten()
    }
}

/// The dimensions of a type that are numbers, or names that have variables.
fn known_dims(tensor: &TensorTypeProto, named: &dyn Fn(&str) -> Option<PrimExpr>) -> Option<Vec<Option<PrimExpr>>> {
    let dim = |value: &Option<DimensionValue>| match value {
        Some(DimensionValue::Value(n)) if *n > 0 => Some((*n).into()),
        Some(DimensionValue::Param(name)) => named(name),
        _ => None,
    };
    tensor.shape.as_ref().map(|shape| shape.dim.iter().map(|d| dim(&d.value)).collect())
}

impl Optional {
    /// It as one value of the program: null, or the value.
    pub fn object(&self, scope: &mut Scope) -> Result<Expr> {
        match &self.object {
            Some(object) => Ok(object.clone()),
            None => scope.call("null_value", []),
        }
    }

    /// The value that it holds, which the program checks to be there.
    pub fn taken(&self, builder: &mut BlockBuilder) -> Result<Value> {
        let Some(object) = &self.object else {
            return Err(NodeError::invalid("the optional value is empty, so it has no element"));
        };
        let there = has(builder, object)?;
        let mut scope = Scope::new(builder);
        scope.assert(there, "the element of an optional value is taken, but the value is empty")?;
        Ok(match &self.held {
            Held::Sequence(element) => Value::Sequence(Sequence::listed(object.clone(), element.clone())),
            Held::Tensor(dims, TEXT) => {
                let dims = dims.clone();
                let dims = dims.ok_or_else(|| NodeError::unsupported("the rank of a tensor of texts is not known"))?;
                Value::Texts(Texts::unpack(&mut scope, object.clone(), dims)?)
            }
            Held::Tensor(Some(dims), dtype) => {
                Value::Computed(scope.bind_dims(object.clone(), dims.clone(), *dtype)?)
            }
            Held::Tensor(None, dtype) => {
                Value::Computed(scope.bind_type(object.clone(), Type::tensor_ndim(-1, *dtype))?)
            }
        })
    }
}

/// Whether an object is there, as the program finds out.
fn has(builder: &mut BlockBuilder, object: &Expr) -> Result<Expr> {
    let truth = Type::tensor(Vec::<PrimExpr>::new(), DataType::bool());
    runtime_call(builder, "vm.builtin.optional_has", vec![object.clone()], truth)
}

/// `Optional`: a value, or none of a type.
pub fn wrap(_: &mut Graphs, _: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let value = match node.optional(0) {
        Some(Value::Optional(_)) => return Err(NodeError::invalid("the input is an optional value already")),
        Some(value) => value.clone(),
        None => {
            let ty = node.type_proto("type")?;
            let ty = ty.ok_or_else(|| NodeError::invalid("it has neither an input nor a `type`"))?;
            Value::Optional(Optional { object: None, held: Held::of_type(Some(ty), &|_| None)? })
        }
    };
    Ok(Step::Values(vec![value]))
}

/// `OptionalHasElement`. A value that is not optional is there; an input that is left out is not.
pub fn has_element(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let known = match node.optional(0) {
        Some(Value::Optional(Optional { object: Some(object), .. })) => {
            return Ok(Step::Values(vec![Value::Computed(has(builder, object)?)]));
        }
        Some(Value::Optional(_)) | None => 0,
        Some(_) => 1,
    };
    let truth = Symbolic { dtype: DataType::bool(), shape: Vec::new(), elements: vec![Ratio::int(known)] };
    Ok(Step::Values(vec![Value::Symbolic(truth)]))
}

/// `OptionalGetElement`.
pub fn get_element(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let value = match node.input(0)? {
        Value::Optional(optional) => optional.taken(builder)?,
        value => value.clone(),
    };
    Ok(Step::Values(vec![value]))
}
