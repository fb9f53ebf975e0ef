//! What a row of the operator table says, and what attributes an operator takes.

use relaxide_ffi::DataType;
use relaxide_ir::diagnostic::closest;
use relaxide_ir::{AttrValue, Attrs};
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError};
use super::nodes::NODES;

/// One operator.
pub struct OpDef {
    /// The name.
    pub name: &'static str,
    /// TVM's level: how common it is.
    pub level: u8,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// Its attribute node, without `relay.attrs.` and `Attrs`; empty for none.
    pub attrs: &'static str,
    /// What it is in Relax.
    pub mapping: Mapping,
}

/// What an operator is in Relax.
#[derive(Clone, Copy)]
pub enum Mapping {
    /// The operator of the same name, with the attributes that both have.
    Same,
    /// The operator of another name, with the attributes that both have.
    As(&'static str),
    /// An element-wise operator of two tensors that are broadcast; sizes may be known when the program runs only.
    Binary(&'static str),
    /// What the function makes of it.
    By(Lower),
    /// Nothing: code generation executes it.
    Machine,
    /// There is no counterpart yet.
    Missing,
}

/// Writes a call as operators of Relax.
pub type Lower = fn(&mut LowerCx<'_>) -> Result<rx::Expr, LowerError>;

/// The attributes of an attribute node.
pub struct AttrsDef {
    /// The name, without `relay.attrs.` and `Attrs`.
    pub name: &'static str,
    /// The attributes, in order.
    pub fields: &'static [Field],
}

/// One attribute.
#[derive(Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// What it must be.
    pub kind: AttrKind,
    /// What it is where nothing is said.
    pub default: Default,
    /// Whether saved graphs hold it as a node of its own.
    pub boxed: bool,
}

/// What an attribute must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// An integer.
    Int,
    /// A number.
    Float,
    /// `True` or `False`.
    Bool,
    /// Text.
    Str,
    /// An element type.
    DType,
    /// Integers; one stands for a list of one.
    Ints,
    /// Numbers.
    Floats,
    /// Anything.
    Any,
}

/// What an attribute is where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It must be said.
    Required,
    /// It is absent, which text shows as `None`.
    Null,
    /// It is absent.
    Absent,
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// Text.
    Str(&'static str),
    /// An element type.
    DType(DataType),
    /// The void element type.
    Void,
    /// Integers.
    Ints(&'static [i64]),
    /// Numbers.
    Floats(&'static [f64]),
}

impl Default {
    fn value(self) -> Option<AttrValue> {
        Some(match self {
            Default::Required => return None,
            Default::Null | Default::Absent => AttrValue::None,
            Default::Int(v) => v.into(),
            Default::Float(v) => v.into(),
            Default::Bool(v) => v.into(),
            Default::Str(v) => v.into(),
            Default::DType(v) => v.into(),
            Default::Void => DataType::void().into(),
            Default::Ints(v) => v.to_vec().into(),
            Default::Floats(v) => v.to_vec().into(),
        })
    }
}

impl Field {
    /// Whether text leaves it out, as it says nothing.
    pub fn is_default(&self, value: &AttrValue) -> bool {
        match self.default {
            Default::Required | Default::Null => false,
            default => default.value().is_some_and(|v| v == *value),
        }
    }

    /// Brings a value to the kind of the attribute; the error says what it must be.
    pub fn convert(&self, value: &AttrValue) -> Result<AttrValue, &'static str> {
        let as_int = |value: &AttrValue| match value {
            AttrValue::Int(v) => Some(*v),
            AttrValue::Bool(v) => Some(i64::from(*v)),
            _ => None,
        };
        let as_float = |value: &AttrValue| match value {
            AttrValue::Float(v) => Some(*v),
            other => as_int(other).map(|v| v as f64),
        };
        if matches!(value, AttrValue::None) {
            return match self.default {
                Default::Void => Ok(DataType::void().into()),
                _ => Ok(AttrValue::None),
            };
        }
        match self.kind {
            AttrKind::Any => Ok(value.clone()),
            AttrKind::Int => as_int(value).map(AttrValue::Int).ok_or("an integer"),
            AttrKind::Bool => as_int(value).map(|v| AttrValue::Bool(v != 0)).ok_or("True or False"),
            AttrKind::Float => as_float(value).map(AttrValue::Float).ok_or("a number"),
            AttrKind::Str => match value {
                AttrValue::Str(_) => Ok(value.clone()),
                _ => Err("text"),
            },
            AttrKind::DType => match value {
                AttrValue::DType(_) => Ok(value.clone()),
                AttrValue::Str(text) if text.is_empty() => Ok(DataType::void().into()),
                AttrValue::Str(text) => {
                    text.parse().map(AttrValue::DType).map_err(|_| "an element type such as \"float32\"")
                }
                _ => Err("an element type such as \"float32\""),
            },
            AttrKind::Ints => match value {
                AttrValue::List(list) => {
                    let ints: Option<Vec<i64>> = list.iter().map(as_int).collect();
                    // Lists of pairs, as paddings were once written, stay what they are.
                    Ok(ints.map_or_else(|| value.clone(), AttrValue::from))
                }
                other => as_int(other).map(|v| vec![v].into()).ok_or("integers"),
            },
            AttrKind::Floats => match value {
                AttrValue::List(list) => {
                    list.iter().map(as_float).collect::<Option<Vec<f64>>>().map(AttrValue::from).ok_or("numbers")
                }
                other => as_float(other).map(|v| vec![v].into()).ok_or("numbers"),
            },
        }
    }
}

/// Why attributes are not those of an operator.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AttrError {
    /// A name that the operator does not know.
    #[error("there is no attribute `{name}`: there are {}{}", names(known), guess(name, known))]
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: &'static [Field],
    },
    /// One without a default is not given.
    #[error("the attribute `{0}` must be given")]
    Missing(&'static str),
    /// A value of another kind.
    #[error("the attribute `{name}` must be {wanted}")]
    Kind {
        /// The attribute.
        name: &'static str,
        /// What its values are.
        wanted: &'static str,
    },
    /// The operator has none.
    #[error("the operator `{0}` has no attributes")]
    None(&'static str),
    /// A value that cannot be a constant.
    #[error("{0}")]
    Value(relaxide_ffi::Error),
}

fn names(fields: &[Field]) -> String {
    fields.iter().map(|f| f.name).collect::<Vec<_>>().join(", ")
}

fn guess(name: &str, known: &[Field]) -> String {
    let guess = closest(name, known.iter().map(|f| f.name));
    guess.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

impl AttrsDef {
    /// The attribute of a name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Attributes checked, converted, and with the defaults filled in; the order is the declaration's.
    pub fn complete(&self, attrs: &Attrs) -> Result<Attrs, AttrError> {
        if let Some(unknown) = attrs.0.keys().find(|name| self.field(name).is_none()) {
            return Err(AttrError::Unknown { name: unknown.clone(), known: self.fields });
        }
        let mut out = Attrs::new();
        for field in self.fields {
            let value = match attrs.0.get(field.name) {
                Some(value) => field.convert(value).map_err(|wanted| AttrError::Kind { name: field.name, wanted })?,
                None => field.default.value().ok_or(AttrError::Missing(field.name))?,
            };
            out = out.with(field.name, value);
        }
        Ok(out)
    }
}

/// The attribute node of a name.
pub fn attrs_def(name: &str) -> Option<&'static AttrsDef> {
    NODES.iter().find(|node| node.name == name)
}

impl OpDef {
    /// Its attribute node.
    pub fn attrs_def(&self) -> Option<&'static AttrsDef> {
        attrs_def(self.attrs)
    }

    /// Attributes checked, converted, and with the defaults filled in.
    pub fn complete_attrs(&self, attrs: &Attrs) -> Result<Attrs, AttrError> {
        match self.attrs_def() {
            Some(def) => def.complete(attrs),
            None if attrs.is_empty() => Ok(Attrs::new()),
            None => Err(AttrError::None(self.name)),
        }
    }
}
