//! Attributes: the constant parameters of operators, functions, blocks and loops.
//!
//! One ordered map serves them all, so that printing, parsing, equality and Python access are written once. Which names an
//! operator takes, of which kind and with which defaults, is said in that operator's definition.

use indexmap::IndexMap;
use relaxide_ffi::{
    Any, AnyView, DataType, Error, ErrorKind, Field, FromAny, ObjectRef, Shape, StructuralEqual, StructuralHash,
};

use crate::{PrimExpr, Target};

/// The value of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// Absent on purpose (Python's `None`).
    None,
    /// `True` or `False`.
    Bool(bool),
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Float(f64),
    /// Text.
    Str(String),
    /// Element type.
    DType(DataType),
    /// List of values, not necessarily of one kind.
    List(Vec<AttrValue>),
    /// Values by name.
    Map(IndexMap<String, AttrValue>),
    /// A scalar expression.
    Prim(PrimExpr),
    /// Any other object: a global variable, a target, a tensor …
    Object(ObjectRef),
}

/// Attributes by name, in the order in which they were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attrs(pub IndexMap<String, AttrValue>);

impl Attrs {
    /// No attributes.
    pub fn new() -> Self {
        Attrs::default()
    }

    /// These and one more.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<AttrValue>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// The value of an attribute; absent and [`AttrValue::None`] are alike.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.0.get(name).filter(|v| !matches!(v, AttrValue::None))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            AttrValue::Int(v) => Some(*v),
            AttrValue::Bool(v) => Some(i64::from(*v)),
            AttrValue::Prim(e) => e.as_int(),
            _ => None,
        }
    }

    /// A bool attribute.
    pub fn bool(&self, name: &str) -> Option<bool> {
        self.int(name).map(|v| v != 0)
    }

    /// A floating-point attribute; integers count.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            AttrValue::Float(v) => Some(*v),
            AttrValue::Int(v) => Some(*v as f64),
            _ => None,
        }
    }

    /// A text attribute.
    pub fn str(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            AttrValue::Str(v) => Some(v),
            _ => None,
        }
    }

    /// A dtype attribute, also where it was given as text.
    pub fn dtype(&self, name: &str) -> Option<DataType> {
        match self.get(name)? {
            AttrValue::DType(v) => Some(*v),
            AttrValue::Str(v) => v.parse().ok(),
            _ => None,
        }
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.get(name)? {
            AttrValue::List(list) => list
                .iter()
                .map(|v| match v {
                    AttrValue::Int(v) => Some(*v),
                    AttrValue::Prim(e) => e.as_int(),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident),* $(,)?) => {$(
        impl From<$ty> for AttrValue {
            fn from(value: $ty) -> Self {
                AttrValue::$variant(value.into())
            }
        }
    )*};
}
from! { bool => Bool, i64 => Int, i32 => Int, f64 => Float, &str => Str, String => Str, DataType => DType, PrimExpr => Prim, ObjectRef => Object }

impl<T: Into<AttrValue>> From<Vec<T>> for AttrValue {
    fn from(list: Vec<T>) -> Self {
        AttrValue::List(list.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<AttrValue>> From<Option<T>> for AttrValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(AttrValue::None, Into::into)
    }
}

impl FromAny for AttrValue {
    /// Numbers, text, lists and maps as what they are; scalar expressions apart from other objects.
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        use relaxide_ffi::abi::type_index as index;
        if let Some(text) = value.as_str() {
            return Ok(AttrValue::Str(text.to_string()));
        }
        Ok(match value.type_index() {
            index::NONE => AttrValue::None,
            index::BOOL => AttrValue::Bool(value.to()?),
            index::INT => AttrValue::Int(value.to()?),
            index::FLOAT => AttrValue::Float(value.to()?),
            index::DATA_TYPE => AttrValue::DType(value.to()?),
            index::SHAPE => value.to::<Shape>()?.to_vec().into(),
            index::ARRAY | index::LIST => AttrValue::List(value.to()?),
            index::MAP => AttrValue::Map(value.to()?),
            _ => {
                let object: ObjectRef = value.to()?;
                match (PrimExpr::try_from(object.clone()), object.downcast_ref::<Target>()) {
                    (Ok(scalar), _) => AttrValue::Prim(scalar),
                    // Attributes hold targets as their text.
                    (Err(_), Some(target)) => AttrValue::Str(target.to_string()),
                    (Err(_), None) => AttrValue::Object(object),
                }
            }
        })
    }
}

impl FromAny for Attrs {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.to().map(Attrs)
    }
}

impl FromAny for crate::BinaryOp {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        let name: String = value.to()?;
        let unknown = || Error::new(ErrorKind::ValueError, format!("there is no operator {name}"));
        crate::BinaryOp::ALL.into_iter().find(|op| format!("{op:?}") == name).ok_or_else(unknown)
    }
}

impl Field for AttrValue {
    fn to_any(&self) -> Any {
        match self {
            AttrValue::None => Any::none(),
            AttrValue::Bool(v) => Any::from(*v),
            AttrValue::Int(v) => Any::from(*v),
            AttrValue::Float(v) => Any::from(*v),
            AttrValue::Str(v) => Any::from(v.as_str()),
            AttrValue::DType(v) => Any::from(*v),
            AttrValue::List(v) => v.to_any(),
            AttrValue::Map(v) => v.to_any(),
            AttrValue::Prim(v) => v.to_any(),
            AttrValue::Object(v) => Any::from(v.clone()),
        }
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        match (self, other) {
            (AttrValue::List(a), AttrValue::List(b)) => a.s_equal(b, eq),
            (AttrValue::Map(a), AttrValue::Map(b)) => a.s_equal(b, eq),
            (AttrValue::Prim(a), AttrValue::Prim(b)) => a.s_equal(b, eq),
            (AttrValue::Object(a), AttrValue::Object(b)) => a.s_equal(b, eq),
            (AttrValue::Float(a), AttrValue::Float(b)) => a.s_equal(b, eq),
            _ => self == other,
        }
    }

    fn s_hash(&self, h: &mut StructuralHash) {
        match self {
            AttrValue::None => false.s_hash(h),
            AttrValue::Bool(v) => v.s_hash(h),
            AttrValue::Int(v) => v.s_hash(h),
            AttrValue::Float(v) => v.s_hash(h),
            AttrValue::Str(v) => v.s_hash(h),
            AttrValue::DType(v) => v.s_hash(h),
            AttrValue::List(v) => v.s_hash(h),
            AttrValue::Map(v) => v.s_hash(h),
            AttrValue::Prim(v) => v.s_hash(h),
            AttrValue::Object(v) => v.s_hash(h),
        }
    }
}

impl Field for Attrs {
    fn to_any(&self) -> Any {
        self.0.to_any()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self.0.s_equal(&other.0, eq)
    }

    fn s_hash(&self, h: &mut StructuralHash) {
        self.0.s_hash(h);
    }
}

impl Field for crate::BinaryOp {
    fn to_any(&self) -> Any {
        Any::from(format!("{self:?}"))
    }

    fn s_equal(&self, other: &Self, _: &mut StructuralEqual) -> bool {
        self == other
    }

    fn s_hash(&self, h: &mut StructuralHash) {
        (*self as i64).s_hash(h);
    }
}
