//! What a pass can be told, and checking what it was told.

use relaxide_ffi::abi::type_index;

use super::{PassError, PassInfo};
use crate::{AttrValue, Attrs};

/// One parameter of a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassParam {
    /// The name.
    pub name: &'static str,
    /// What it must be.
    pub kind: ParamKind,
    /// What it is where nothing is said.
    pub default: ParamDefault,
    /// What it means.
    pub doc: &'static str,
}

/// What a parameter must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// `True` or `False`.
    Bool,
    /// An integer.
    Int,
    /// Text.
    Str,
    /// Text, or `None` where that says something else than the default.
    StrOrNone,
    /// An element type.
    DType,
    /// Texts; one text stands for a list of one.
    Strs,
    /// A list.
    List,
    /// Values by name.
    Map,
    /// What the pass documents.
    Any,
    /// A function, as an object of the FFI.
    Function,
    /// Nothing but `None`: the reference takes a function here, and this pass has no use for one.
    Absent,
}

/// The default of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParamDefault {
    /// It must be given.
    Required,
    /// Absent.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text; an element type is written as text.
    Str(&'static str),
}

impl PassParam {
    /// A parameter.
    pub const fn new(name: &'static str, kind: ParamKind, default: ParamDefault, doc: &'static str) -> PassParam {
        PassParam { name, kind, default, doc }
    }

    /// A parameter that must be given.
    pub const fn required(name: &'static str, kind: ParamKind, doc: &'static str) -> PassParam {
        PassParam::new(name, kind, ParamDefault::Required, doc)
    }

    /// A parameter that may be absent.
    pub const fn optional(name: &'static str, kind: ParamKind, doc: &'static str) -> PassParam {
        PassParam::new(name, kind, ParamDefault::None, doc)
    }

    /// The default as a value, if there is one.
    pub fn default_value(&self) -> Option<AttrValue> {
        match self.default {
            ParamDefault::Required => None,
            ParamDefault::None => Some(AttrValue::None),
            ParamDefault::Bool(v) => Some(v.into()),
            ParamDefault::Int(v) => Some(v.into()),
            ParamDefault::Str(v) => Some(v.into()),
        }
    }

    /// A value as the parameter takes it.
    fn accept(&self, value: AttrValue) -> Result<AttrValue, AttrValue> {
        Ok(match (self.kind, value) {
            (_, AttrValue::None) if matches!(self.default, ParamDefault::None) => AttrValue::None,
            (ParamKind::Bool, AttrValue::Int(v @ (0 | 1))) => AttrValue::Bool(v == 1),
            (ParamKind::Strs, AttrValue::Str(v)) => AttrValue::List(vec![AttrValue::Str(v)]),
            (ParamKind::Strs, AttrValue::List(v)) if v.iter().all(|v| matches!(v, AttrValue::Str(_))) => {
                AttrValue::List(v)
            }
            (ParamKind::DType, AttrValue::Str(v)) => match v.parse() {
                Ok(dtype) => AttrValue::DType(dtype),
                Err(_) => return Err(AttrValue::Str(v)),
            },
            (ParamKind::Any, v)
            | (ParamKind::StrOrNone, v @ (AttrValue::Str(_) | AttrValue::None))
            | (ParamKind::Bool, v @ AttrValue::Bool(_))
            | (ParamKind::Int, v @ AttrValue::Int(_))
            | (ParamKind::Str, v @ AttrValue::Str(_))
            | (ParamKind::DType, v @ AttrValue::DType(_))
            | (ParamKind::List, v @ AttrValue::List(_))
            | (ParamKind::Map, v @ AttrValue::Map(_)) => v,
            (ParamKind::Function, AttrValue::Object(v)) if v.type_index() == type_index::FUNCTION => {
                AttrValue::Object(v)
            }
            (_, v) => return Err(v),
        })
    }
}

/// Every parameter of a pass with a value of its kind.
pub(super) fn resolve(info: &PassInfo, given: &Attrs) -> Result<Attrs, PassError> {
    let refuse = |message: String| PassError::arguments(info.name, message);
    for name in given.0.keys() {
        if !info.params.iter().any(|p| p.name == name) {
            let known: Vec<&str> = info.params.iter().map(|p| p.name).collect();
            let known = if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            return Err(refuse(format!("there is no parameter {name:?}; {known}")));
        }
    }
    let mut out = Attrs::new();
    for param in info.params {
        let value = match given.0.get(param.name) {
            Some(value) => value.clone(),
            None => param
                .default_value()
                .ok_or_else(|| refuse(format!("parameter {:?} must be given: {}", param.name, param.doc)))?,
        };
        let value = param.accept(value).map_err(|value| match param.kind {
            ParamKind::Absent => {
                refuse(format!("parameter {:?} must be None: functions are not taken here", param.name))
            }
            kind => refuse(format!("parameter {:?} is of kind {kind:?}, not {value:?}", param.name)),
        })?;
        out.0.insert(param.name.to_string(), value);
    }
    Ok(out)
}
