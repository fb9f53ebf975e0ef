//! What reflection drives over whole graphs of objects: copying, printing, hashing, ordering, making.
//!
//! These see containers and the fields that types declare, and ask the hooks of types that have some. Graphs may be
//! shared and, through lists, dicts and settable fields, cyclic; each walk says what it makes of that. Depth is limited:
//! who nests deeper than [`MAX_DEPTH`] gets an error.

pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod create;
pub(crate) mod hash;
pub(crate) mod layout;
pub(crate) mod print;

use crate::abi::type_index;
use crate::object::ObjectRef;
use crate::reflect::{get_field, members, name_of};
use crate::{Any, Array, Dict, Error, ErrorKind, List, Map};

/// How deep values may be nested in each other.
pub const MAX_DEPTH: usize = 1000;

/// An error if a walk is deeper than is allowed.
pub(crate) fn check_depth(depth: usize) -> Result<(), Error> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    Err(Error::new(ErrorKind::ValueError, format!("values are nested more than {MAX_DEPTH} levels deep")))
}

/// What an object holds.
pub(crate) enum ObjectContents {
    /// The values of a sequence.
    Sequence(Vec<Any>),
    /// The entries of a map.
    Map(Vec<(Any, Any)>),
    /// The fields of an object, by name.
    Fields(Vec<(&'static str, Any)>),
}

/// Takes an object apart, without the fields that have one of the flags in `skip`.
pub(crate) fn parts(object: &ObjectRef, skip: i64) -> Result<ObjectContents, Error> {
    let value = Any::from(object);
    Ok(match object.type_index() {
        type_index::ARRAY => ObjectContents::Sequence(value.to::<Array>()?.to_vec()),
        type_index::LIST => ObjectContents::Sequence(value.to::<List>()?.to_vec()),
        type_index::MAP => {
            ObjectContents::Map(value.to::<Map>()?.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        type_index::DICT => ObjectContents::Map(value.to::<Dict>()?.to_vec()),
        index => {
            let fields = members(index).filter(|field| field.flags & skip == 0);
            ObjectContents::Fields(
                fields
                    .map(|field| Ok::<_, Error>((name_of(field), get_field(object, field)?)))
                    .collect::<Result<_, Error>>()?,
            )
        }
    })
}

/// True for types that refine no fixed one: those that may have hooks.
pub(crate) fn is_dynamic(index: i32) -> bool {
    index >= type_index::DYNAMIC_BEGIN
}
