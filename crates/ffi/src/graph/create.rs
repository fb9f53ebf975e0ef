//! Making objects by reflection: of named fields, or of arguments by position and by name.
//!
//! A type of Rust makes an object of all its fields at once. A type of C or of a front end makes an empty one, whose
//! fields are then set before anybody else sees it.

use crate::builtin::is_keywords;
use crate::capi::CFieldInfo;
use crate::object::{ObjectHeader, ObjectRef};
use crate::reflect::{flags, members, name_of, write_field};
use crate::type_attr::{self, Attr};
use crate::type_info::{RustType, TypeInfo, key_of, type_info};
use crate::{Any, AnyView, Error, ErrorKind, Function, error_slot};
use std::ptr::NonNull;

/// True if objects of the type can be made by reflection, as far as can be known beforehand.
pub(crate) fn can_create(info: &TypeInfo) -> bool {
    // Of types that are built in, nothing is known but their names.
    let Some(metadata) = info.reflected().metadata() else {
        return type_attr::get(Attr::New, info.index()).is_some();
    };
    metadata.creator.is_some() || info.rust().is_some() || type_attr::get(Attr::New, info.index()).is_some()
}

/// An empty object of a type that is not of Rust.
fn empty(info: &TypeInfo) -> Result<ObjectRef, Error> {
    if let Some(creator) = info.reflected().metadata().and_then(|metadata| metadata.creator) {
        let mut handle = std::ptr::null_mut();
        // SAFETY: whoever registered the creator vouches for it: on success it leaves an object and its reference.
        return unsafe {
            match (creator(&raw mut handle), NonNull::new(handle.cast::<ObjectHeader>())) {
                (0, Some(header)) => Ok(ObjectRef::from_header(header)),
                (0, None) => Err(Error::new(ErrorKind::RuntimeError, "a creator made nothing")),
                (code, _) => Err(error_slot::take_after(code)),
            }
        };
    }
    if let Some(new) = type_attr::get(Attr::New, info.index()) {
        return new.to::<Function>()?.call(&[])?.to();
    }
    let message = format!(
        "Type `{}` does not support reflection creation (no native creator or __ffi_new__ type attr)",
        info.key()
    );
    Err(Error::new(ErrorKind::RuntimeError, message))
}

/// The default of a field; `None` if it has none.
pub(crate) fn default_of(field: &CFieldInfo) -> Result<Option<Any>, Error> {
    if field.flags & flags::HAS_DEFAULT == 0 {
        return Ok(None);
    }
    // SAFETY: the table owns the default.
    let default = unsafe { AnyView::from_raw(field.default) };
    match field.flags & flags::DEFAULT_IS_FACTORY {
        0 => Ok(Some(default.to_owned())),
        _ => default.to::<Function>()?.call(&[]).map(Some),
    }
}

/// Makes an object of its fields, which `value_of` gives; a field that it has no value for must have a default.
pub(crate) fn from_fields(
    index: i32,
    value_of: &mut dyn FnMut(&'static CFieldInfo) -> Result<Option<Any>, Error>,
) -> Result<ObjectRef, Error> {
    let info =
        type_info(index).ok_or_else(|| Error::new(ErrorKind::ValueError, format!("no type has the index {index}")))?;
    let mut complete = |field: &'static CFieldInfo| match value_of(field)? {
        Some(value) => Ok(value),
        None => default_of(field)?.ok_or_else(|| {
            let message = format!("Required field `{}` not set in type `{}`", name_of(field), key_of(index));
            Error::new(ErrorKind::TypeError, message)
        }),
    };
    if let Some(rust) = info.rust().filter(|_| type_attr::get(Attr::New, index).is_none()) {
        return of_rust(info, rust, &mut complete);
    }
    let object = empty(info)?;
    for field in members(index) {
        let value = complete(field)?;
        // SAFETY: the object is new, so that nobody else reads it.
        unsafe { write_field(&object, field, value.as_view())? };
    }
    Ok(object)
}

fn of_rust(
    info: &TypeInfo,
    rust: &RustType,
    value_of: &mut dyn FnMut(&'static CFieldInfo) -> Result<Any, Error>,
) -> Result<ObjectRef, Error> {
    (rust.create)(&mut |name| {
        let field = members(info.index()).find(|field| name_of(field) == name).ok_or_else(|| {
            let message = format!("a `{}` has no field `{name}`", info.key());
            Error::new(ErrorKind::InternalError, message)
        })?;
        value_of(field)
    })
}

/// Makes an object of names and values in turn.
pub(crate) fn from_pairs(index: i32, pairs: &[AnyView<'_>]) -> Result<ObjectRef, Error> {
    let mut given = Vec::new();
    for pair in pairs.chunks(2) {
        let [name, value] = pair else {
            return Err(Error::new(ErrorKind::TypeError, "expected names and values in turn"));
        };
        given.push((name.to::<String>()?, *value, false));
    }
    let object = from_fields(index, &mut |field| {
        let entry = given.iter_mut().find(|(name, _, used)| !used && name == name_of(field));
        Ok(entry.map(|(_, value, used)| {
            *used = true;
            value.to_owned()
        }))
    })?;
    match given.iter().find(|(_, _, used)| !used) {
        None => Ok(object),
        Some((name, ..)) => {
            let message = format!("Type `{}` does not have field `{name}`", key_of(index));
            Err(Error::new(ErrorKind::TypeError, message))
        }
    }
}

/// The function that makes objects of a type of arguments: by position, those without a default first, and, behind the
/// object that stands for names, by name.
pub(crate) fn constructor(index: i32) -> Result<Function, Error> {
    let all: Vec<&'static CFieldInfo> = members(index).collect();
    let taken = |field: &&CFieldInfo| field.flags & flags::INIT_OFF == 0;
    let (mut positional, optional): (Vec<&'static CFieldInfo>, Vec<_>) = all
        .iter()
        .copied()
        .filter(taken)
        .filter(|field| field.flags & flags::KEYWORD_ONLY == 0)
        .partition(|field| field.flags & flags::HAS_DEFAULT == 0);
    positional.extend(optional);
    Ok(Function::new(move |args| {
        let bound = bind(index, &all, &positional, args)?;
        make(index, &all, &bound).map(Any::from)
    }))
}

/// The value of each field that an argument gives.
type Bound = Vec<Option<Any>>;

fn bind(
    index: i32,
    all: &[&'static CFieldInfo],
    positional: &[&'static CFieldInfo],
    args: &[AnyView<'_>],
) -> Result<Bound, Error> {
    let key = key_of(index);
    let fail = |message: String| Err(Error::new(ErrorKind::TypeError, format!("{key}.__ffi_init__() {message}")));
    let place = |field: &CFieldInfo| all.iter().position(|other| std::ptr::eq(*other, field));
    let names = args.iter().position(|arg| arg.as_object().is_some_and(is_keywords));
    let (by_position, by_name) = match names {
        Some(position) => (&args[..position], &args[position + 1..]),
        None => (args, &[][..]),
    };
    let (most, given) = (positional.len(), by_position.len());
    if given > most {
        return fail(format!("takes at most {most} positional argument(s), but {given} were given"));
    }
    let mut bound: Bound = vec![None; all.len()];
    for (field, value) in positional.iter().zip(by_position) {
        if let Some(slot) = place(field).and_then(|place| bound.get_mut(place)) {
            *slot = Some(value.to_owned());
        }
    }
    for pair in by_name.chunks(2) {
        let [name, value] = pair else {
            return fail("KWARGS requires an even number of key-value arguments".to_string());
        };
        let name: String = name.to()?;
        // Of fields that a refining type declares again, the last one is meant.
        let place = all.iter().rposition(|field| name_of(field) == name && field.flags & flags::INIT_OFF == 0);
        let Some(slot) = place.and_then(|place| bound.get_mut(place)) else {
            return fail(format!("got an unexpected keyword argument '{name}'"));
        };
        if slot.is_some() {
            return fail(format!("got multiple values for argument '{name}'"));
        }
        *slot = Some(value.to_owned());
    }
    Ok(bound)
}

fn make(index: i32, all: &[&'static CFieldInfo], bound: &Bound) -> Result<ObjectRef, Error> {
    let key = key_of(index);
    let info = type_info(index).ok_or_else(|| Error::new(ErrorKind::ValueError, "the type is gone"))?;
    let value_of = |field: &'static CFieldInfo, value: &Option<Any>| -> Result<Option<(Any, &'static str)>, Error> {
        if let Some(value) = value {
            return Ok(Some((value.clone(), "field")));
        }
        if let Some(default) = default_of(field)? {
            return Ok(Some((default, "default for field")));
        }
        if field.flags & flags::INIT_OFF != 0 {
            return Ok(None);
        }
        let kind = if field.flags & flags::KEYWORD_ONLY != 0 { "keyword-only argument" } else { "argument" };
        let message = format!("{key}.__ffi_init__() missing required {kind}: '{}'", name_of(field));
        Err(Error::new(ErrorKind::TypeError, message))
    };
    if let Some(rust) = info.rust().filter(|_| type_attr::get(Attr::New, index).is_none()) {
        return of_rust(info, rust, &mut |field| {
            let place = all.iter().position(|other| std::ptr::eq(*other, field));
            let value = place.and_then(|place| bound.get(place).cloned()).flatten();
            Ok(value_of(field, &value)?.map_or(Any::none(), |(value, _)| value))
        });
    }
    let object = empty(info)?;
    for (field, value) in all.iter().copied().zip(bound) {
        let Some((value, what)) = value_of(field, value)? else { continue };
        // SAFETY: the object is new, so that nobody else reads it.
        unsafe { write_field(&object, field, value.as_view()) }.map_err(|error| nested(&error, key, what, field))?;
    }
    Ok(object)
}

/// The error of a field that does not take its value, which says what the field says.
fn nested(error: &Error, key: &str, what: &str, field: &CFieldInfo) -> Error {
    let inner = error.message().replace('\n', "\n  ");
    let message = format!("{key}.__ffi_init__() {what} '{}':\n  {inner}", name_of(field));
    Error::with_backtrace(error.kind(), message, &error.backtrace(), Some(error.clone().into()), None)
}
