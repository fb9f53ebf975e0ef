//! Programs as TVM saved them: JSON graphs of releases 0.6 to 0.16.
//!
//! A graph is a list of nodes that refer to each other by place. [`Graph`] holds and checks it, [`load`] makes a module of
//! it, [`save`] writes one in the form of 0.16. The metadata of a text are such a graph too.

mod graph;
mod read;
mod tensor;
mod write;

pub use graph::{Graph, JsonError};
pub use read::{load, load_expr};
pub use tensor::{from_base64, to_base64};
pub use write::{MetaWriter, save};

use indexmap::IndexMap;
use relaxide_ir::{AttrValue, Attrs};

use crate::{Expr, Type};

/// What the metadata of a text hold, by type key.
#[derive(Default)]
pub struct MetaTable(pub(crate) IndexMap<String, Vec<MetaValue>>);

/// One entry of the metadata.
#[derive(Clone)]
pub enum MetaValue {
    /// An expression.
    Expr(Expr),
    /// A type.
    Type(Type),
    /// The dimension that is known when the program runs only.
    AnyDim,
    /// The attributes of a call.
    Attrs(Attrs),
    /// The value of an attribute.
    Attr(AttrValue),
}

impl MetaTable {
    /// The entry at a place.
    pub fn get(&self, key: &str, index: usize) -> Option<MetaValue> {
        self.0.get(key)?.get(index).cloned()
    }

    /// How many entries a key has.
    pub fn len(&self, key: &str) -> Option<usize> {
        self.0.get(key).map(Vec::len)
    }
}

impl MetaValue {
    /// As the value of an attribute.
    pub fn as_attr(&self) -> AttrValue {
        match self {
            MetaValue::Expr(expr) => AttrValue::Object(expr.as_object().clone()),
            MetaValue::Type(ty) => AttrValue::Object(ty.as_object().clone()),
            MetaValue::AnyDim => AttrValue::Int(crate::ANY),
            MetaValue::Attrs(attrs) => AttrValue::Map(attrs.0.clone()),
            MetaValue::Attr(value) => value.clone(),
        }
    }
}
