//! [`StatePart`]: what a part of a loop's state is, which stays so from iteration to iteration.

use relaxide_ir::Type;
use relaxide_relax::{BlockBuilder, Expr};

use super::carried;
use super::optional::{Held, Optional};
use super::sequence::{self, Sequence};
use crate::error::NodeError;
use crate::proto::{TypeKind, ValueInfoProto};
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// What a part of the state is.
#[derive(Clone, Debug)]
pub enum StatePart {
    /// A tensor of numbers.
    Tensor,
    /// A tensor of texts of so many axes.
    Texts(usize),
    /// An array, and what is known of its values.
    Sequence(Option<Type>),
    /// Null or a value.
    Optional(Held),
}

impl StatePart {
    /// A part of the state before the first iteration, and what it is. `info` is the body's input.
    pub fn of(builder: &mut BlockBuilder, value: &Value, info: Option<&ValueInfoProto>) -> Result<(Expr, StatePart)> {
        let declared = info.and_then(|i| i.r#type.as_ref()).and_then(|t| t.value.as_ref());
        let mut scope = Scope::new(builder);
        Ok(match value {
            Value::Optional(_) => {
                let held = Held::of(&scope, value).erased();
                (anything(&mut scope, value)?, StatePart::Optional(held))
            }
            _ if matches!(declared, Some(TypeKind::Optional(_))) => {
                let held = Held::of(&scope, value).erased();
                (anything(&mut scope, value)?, StatePart::Optional(held))
            }
            // A tuple of another length is another type, so the array is one whose length nobody knows.
            Value::Sequence(sequence) => {
                let object = sequence.object(&mut scope)?;
                (scope.array(object)?, StatePart::Sequence(erased(&sequence.element)))
            }
            Value::Texts(texts) => (texts.object(&mut scope)?, StatePart::Texts(texts.dims(&scope)?.len())),
            tensor => (scope.tensor(tensor)?, StatePart::Tensor),
        })
    }

    /// The part as a value.
    pub fn value(&self, builder: &mut BlockBuilder, expr: Expr) -> Result<Value> {
        Ok(match self {
            StatePart::Tensor => Value::Computed(expr),
            StatePart::Texts(rank) => Value::Texts(carried::unpack(&mut Scope::new(builder), expr, *rank as i64)?),
            StatePart::Sequence(element) => Value::Sequence(Sequence::listed(expr, element.clone())),
            StatePart::Optional(held) => Value::Optional(Optional { object: Some(expr), held: held.clone() }),
        })
    }

    /// What an iteration gives for the part; whether more is known of the part now.
    pub fn after(&mut self, scope: &mut Scope, value: &Value) -> Result<(Expr, bool)> {
        match (value, &mut *self) {
            (Value::Sequence(sequence), StatePart::Sequence(element)) => {
                let found = erased(&sequence.element);
                let wider = found.map_or_else(|| element.clone(), |found| sequence::common(element.clone(), found));
                let changed = wider != *element;
                *element = wider;
                let object = sequence.object(scope)?;
                Ok((scope.array(object)?, changed))
            }
            (value, StatePart::Optional(held)) => {
                let wider = held.common(&Held::of(scope, value).erased(), &|dim| dim.as_int().is_some());
                let wider =
                    wider.ok_or_else(|| NodeError::unsupported("an optional value of the state changes its kind"))?;
                let changed = wider != *held;
                *held = wider;
                Ok((anything(scope, value)?, changed))
            }
            (Value::Texts(texts), StatePart::Texts(rank)) => {
                let (before, behind) = (*rank, texts.dims(scope)?.len());
                if before != behind {
                    return Err(NodeError::unsupported(format!(
                        "texts of the state have {before} axes before an iteration and {behind} behind it"
                    )));
                }
                Ok((texts.object(scope)?, false))
            }
            (_, StatePart::Texts(_)) => {
                Err(NodeError::invalid("a part of the state is texts before an iteration and numbers behind it"))
            }
            (value, _) => Ok((scope.tensor(value)?, false)),
        }
    }
}

/// What is known of a sequence's values, without their dimensions.
fn erased(element: &Option<Type>) -> Option<Type> {
    element.as_ref().and_then(Type::as_tensor).map(|t| Type::tensor_ndim(t.ndim, t.dtype))
}

/// A value of which the type says nothing, so that an iteration may give another kind.
fn anything(scope: &mut Scope, value: &Value) -> Result<Expr> {
    let object = scope.object(value)?;
    let array = scope.array(object)?;
    if matches!(array.ty(), Type::Tensor(_)) { scope.bind_type(array, Type::any()) } else { Ok(array) }
}
