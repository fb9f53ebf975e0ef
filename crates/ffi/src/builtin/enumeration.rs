//! Enumerations: singletons that an integer and a text name, and the state that a class of them keeps.
//!
//! A class refines `ffi.Enum`; its members live in an `ffi.EnumState`, which the class holds as its attribute
//! `__ffi_enum__`. In JSON a member is its integer, if the class refines `ffi.IntEnum`, or else its text.

use super::{Table, function};
use crate::Object;
use crate::object::{ObjectRef, Ref};
use crate::type_attr::{self, Attr};
use crate::type_info::is_instance;
use crate::{Any, Dict, Error, ErrorKind, List, Str};

/// The members of a class.
#[derive(Object)]
#[object(key = "ffi.EnumState")]
#[repr(C)]
pub(crate) struct EnumState {
    #[field(no_init)]
    entries: List,
    #[field(no_init)]
    indexes: Dict,
    #[field(no_init)]
    attrs: Dict,
}

/// A member.
#[derive(Object)]
#[object(key = "ffi.Enum", unique)]
#[repr(C)]
pub(crate) struct Enum {
    #[field(ignore)]
    _int_index: i64,
    _str_index: Str,
}

/// A member whose value is its integer.
#[derive(Object)]
#[object(key = "ffi.IntEnum", parent = "ffi.Enum", unique)]
#[repr(C)]
pub(crate) struct IntEnum {
    #[field(ignore, no_init)]
    value: i64,
    #[field(hidden)]
    _text: Str,
}

/// A member whose value is its text.
#[derive(Object)]
#[object(key = "ffi.StrEnum", parent = "ffi.Enum", unique)]
#[repr(C)]
pub(crate) struct StrEnum {
    #[field(hidden)]
    _integer: i64,
    #[field(ignore, no_init)]
    value: Str,
}

pub(super) fn declare(table: &mut Table) {
    table.declare::<EnumState>();
    table.declare::<Enum>();
    table.declare::<IntEnum>();
    table.declare::<StrEnum>();
}

pub(super) fn attributes(set: &mut dyn FnMut(i32, Attr, Any)) {
    let new = function(("ffi.EnumState.__ffi_init__", super::Arity::Exactly(0), |_| {
        let state = EnumState { entries: List::from_vec(Vec::new()), indexes: Dict::new(), attrs: Dict::new() };
        Ok(Ref::new(state).into())
    }));
    set(EnumState::type_index(), Attr::Init, new.clone().into());
    set(EnumState::type_index(), Attr::New, new.into());
}

/// True if the type is a class of members.
pub(crate) fn is_enum(index: i32) -> bool {
    is_instance(index, Enum::type_index())
}

/// True if members are their integers in JSON.
pub(crate) fn is_int_enum(index: i32) -> bool {
    is_instance(index, IntEnum::type_index())
}

/// The member of a class that an integer or a text names.
pub(crate) fn enum_member(index: i32, name: &Any) -> Result<Any, Error> {
    let state = type_attr::get(Attr::EnumState, index).and_then(|state| state.to::<Ref<EnumState>>().ok());
    state.and_then(|state| state.indexes.get(name.clone())).ok_or_else(|| {
        let key = crate::type_info::key_of(index);
        Error::new(ErrorKind::ValueError, format!("Enum `{key}` has no instance with index {name:?}"))
    })
}

impl Enum {
    /// The integer of an object that is a member.
    pub(crate) fn integer_of(member: &ObjectRef) -> Result<Any, Error> {
        Enum::field_of(member, "_int_index")
    }

    /// The text of an object that is a member.
    pub(crate) fn text_of(member: &ObjectRef) -> Result<Any, Error> {
        Enum::field_of(member, "_str_index")
    }

    fn field_of(member: &ObjectRef, name: &str) -> Result<Any, Error> {
        member.field(name).ok_or_else(|| {
            let message = format!("a member of `{}` has no `{name}`", member.type_key());
            Error::new(ErrorKind::InternalError, message)
        })
    }
}
