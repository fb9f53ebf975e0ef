//! What an expression of a text stands for while it is being read.

use relaxide_ffi::{Any, DataType, ObjectRef, Ref};
use relaxide_ir::{AttrValue, Buffer, PrimExpr, Target, Type};
use relaxide_relax::Expr;
use relaxide_tir::Range;

use crate::tensor::Scalar;

/// The value of a Python expression. Python's own numbers stay apart from typed ones: they take the type of what they
/// meet.
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
    DType(DataType),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Map(Vec<(String, Value)>),
    /// A scalar expression.
    Prim(PrimExpr),
    Buffer(Ref<Buffer>),
    /// A box of a buffer, from a subscript with ranges.
    Region(Ref<Buffer>, Vec<Ref<Range>>),
    Relax(Expr),
    Type(Type),
    /// An object of the metadata section.
    Object(ObjectRef),
    /// A value of the surroundings that has no meaning in a program.
    Host(Any),
    /// A macro of the surroundings that was handed to another, by its place in the list of them.
    Macro(usize),
    /// A macro that the program defines, likewise.
    Inline(usize),
    /// The module that is being read, through its own name or an alias.
    Module,
    /// A name behind `R.`, `T.`, `I.` or `tvm.` that is no value by itself.
    Path(String),
}

impl Value {
    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "None".into(),
            Value::Bool(_) => "a bool".into(),
            Value::Int(_) => "an integer".into(),
            Value::Float(_) => "a float".into(),
            Value::Str(_) => "text".into(),
            Value::DType(d) => format!("the dtype {d}"),
            Value::List(_) => "a list".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::Map(_) => "a dictionary".into(),
            Value::Prim(e) => format!("a scalar of type {}", e.dtype()),
            Value::Buffer(b) => format!("the buffer `{}`", b.name),
            Value::Region(b, _) => format!("a region of the buffer `{}`", b.name),
            Value::Relax(_) => "a Relax expression".into(),
            Value::Type(_) => "a type".into(),
            Value::Object(o) => format!("an object of type {}", o.type_key()),
            Value::Host(value) => format!("a Python value of type {}", value.type_key()),
            Value::Macro(_) | Value::Inline(_) => "a macro".into(),
            Value::Module => "the module".into(),
            Value::Path(path) => format!("`{path}`"),
        }
    }

    /// A Python number or bool, for constants.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Value::Bool(v) => Some(Scalar::Bool(*v)),
            Value::Int(v) => Some(Scalar::Int(*v)),
            Value::Float(v) => Some(Scalar::Float(*v)),
            Value::Prim(PrimExpr::Int(imm)) if imm.dtype.is_bool() => Some(Scalar::Bool(imm.value != 0)),
            Value::Prim(PrimExpr::Int(imm)) => Some(Scalar::Int(i128::from(imm.value))),
            Value::Prim(PrimExpr::Float(imm)) => Some(Scalar::Float(imm.value)),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) | Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// A Python integer or an integer literal.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(v) => i64::try_from(*v).ok(),
            Value::Prim(e) => e.as_int(),
            _ => None,
        }
    }

    /// The value as an attribute; what has no such form is given back as the error.
    pub fn into_attr(self) -> Result<AttrValue, Value> {
        Ok(match self {
            Value::None => AttrValue::None,
            Value::Bool(v) => AttrValue::Bool(v),
            Value::Int(v) => AttrValue::Int(i64::try_from(v).map_err(|_| self)?),
            Value::Float(v) => AttrValue::Float(v),
            Value::Str(v) => AttrValue::Str(v),
            Value::DType(v) => AttrValue::DType(v),
            Value::List(items) | Value::Tuple(items) => {
                AttrValue::List(items.into_iter().map(Value::into_attr).collect::<Result<_, _>>()?)
            }
            Value::Map(items) => {
                AttrValue::Map(items.into_iter().map(|(k, v)| Ok((k, v.into_attr()?))).collect::<Result<_, Value>>()?)
            }
            Value::Prim(e) => AttrValue::Prim(e),
            Value::Object(o) => AttrValue::Object(o),
            // Attributes hold targets as their text.
            Value::Host(value) => match value.downcast_ref::<Target>() {
                Some(target) => AttrValue::Str(target.to_string()),
                None => return Err(Value::Host(value)),
            },
            Value::Buffer(b) => AttrValue::Object(b.into()),
            Value::Relax(Expr::Str(s)) => AttrValue::Str(s.value.clone()),
            Value::Relax(Expr::DType(d)) => AttrValue::DType(d.value),
            Value::Relax(Expr::Prim(p)) => AttrValue::Prim(p.value.clone()),
            Value::Relax(Expr::Global(v)) => AttrValue::Object(v.into()),
            Value::Relax(Expr::Shape(s)) => AttrValue::List(s.values.iter().cloned().map(AttrValue::Prim).collect()),
            other => return Err(other),
        })
    }
}
