//! A value as loops, lists and sequences carry it, and the value that comes out of them.
//!
//! A tensor of numbers is carried as it is. A tensor of texts is two values during import, indices and a table, and one object of
//! the virtual machine (`relaxide.TextTensor`) where it is carried; what comes out is taken apart again. What is known of a carried
//! value is a tensor type in both cases; texts have an element type there that no tensor of numbers has ([`TEXT`]), which never
//! gets into the program.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::{BlockBuilder, Expr};

use super::sequence::typed;
use crate::constant;
use crate::error::NodeError;
use crate::scope::Scope;
use crate::text::{STRING, Texts};
use crate::value::Value;
use relaxide_frontend::{Row, runtime_call};

type Result<T> = std::result::Result<T, NodeError>;

/// The element type of texts in what is known of a carried value.
pub const TEXT: DataType = DataType::handle();

/// A value as one object, and what is known of it: a type of a tensor, of texts too.
pub fn row_of(scope: &mut Scope, value: &Value) -> Result<Row> {
    match item(scope, value)? {
        Value::Texts(texts) => Ok(Row { object: texts.object(scope)?, ty: text_type(&texts) }),
        other => scope.tensor(&other).map(Row::from),
    }
}

/// A value as loops and sequences hold it at import: a tensor of the program, or texts.
pub fn item(scope: &mut Scope, value: &Value) -> Result<Value> {
    match value {
        Value::Texts(_) => Ok(value.clone()),
        Value::Optional(optional) => match scope.taken(optional)? {
            texts @ Value::Texts(_) => Ok(texts),
            other => scope.tensor(&other).map(Value::Computed),
        },
        other => scope.tensor(other).map(Value::Computed),
    }
}

/// What is known of a value that [`item`] gives.
pub fn type_of(value: &Value) -> Type {
    match value {
        Value::Texts(texts) => text_type(texts),
        Value::Computed(tensor) => tensor.ty(),
        _ => Type::any(),
    }
}

fn text_type(texts: &Texts) -> Type {
    match texts.index.ty() {
        Type::Tensor(index) => match &index.shape {
            Some(dims) => Type::tensor(dims.clone(), TEXT),
            None => Type::tensor_ndim(index.ndim, TEXT),
        },
        other => other,
    }
}

/// The element type that a number of the file names, which may be that of texts.
pub fn element_of(number: i64) -> Result<DataType> {
    if number == STRING {
        return Ok(TEXT);
    }
    constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))
}

/// Whether a type is about texts.
pub fn is_text(ty: &Type) -> bool {
    ty.as_tensor().is_some_and(|tensor| tensor.dtype == TEXT)
}

/// What a function of the runtime gives, of which a type says what is known: a value again.
pub fn regained(builder: &mut BlockBuilder, name: &str, args: Vec<Expr>, ty: &Type) -> Result<Value> {
    let object = runtime_call(builder, name, args, if is_text(ty) { Type::any() } else { ty.clone() })?;
    let known = ty.as_tensor().map(|t| &**t);
    match known.filter(|_| is_text(ty)) {
        Some(texts) => unpack(&mut Scope::new(builder), object, texts.ndim).map(Value::Texts),
        None => typed(builder, object, known).map(Value::Computed),
    }
}

/// Texts of an object of which the rank is known.
pub fn unpack(scope: &mut Scope, object: Expr, rank: i64) -> Result<Texts> {
    let rank = usize::try_from(rank);
    let rank = rank.map_err(|_| NodeError::unsupported("the rank of a tensor of texts is not known"))?;
    Texts::unpack(scope, object, vec![None; rank])
}

/// Values of which some have one length: its expression. Values are made such that it stands in their types.
pub fn agree_on(scope: &mut Scope, values: &mut [Value], axes: &[usize]) -> Result<PrimExpr> {
    let mut tensors = Vec::with_capacity(values.len());
    for value in values.iter() {
        tensors.push(match value {
            Value::Texts(texts) => texts.index.clone(),
            other => scope.tensor(other)?,
        });
    }
    let length = scope.agree_on(&mut tensors, axes)?;
    for (value, tensor) in values.iter_mut().zip(tensors) {
        *value = match value {
            Value::Texts(texts) => Value::Texts(Texts { index: tensor, table: texts.table.clone() }),
            _ => Value::Computed(tensor),
        };
    }
    Ok(length)
}
