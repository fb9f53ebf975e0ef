//! Deep copies: a graph of the same shape, in which nothing that can change is shared with the original.
//!
//! Shared objects stay shared in the copy. A cycle leads through something that can change, which is copied before what
//! it holds; where it also passes through an array or a map, which must be made last, the original stands in for the copy
//! until the copy is there, and is replaced at the end.

use std::collections::{HashMap, HashSet};

use super::{ObjectContents, check_depth, parts};
use crate::abi::type_index;
use crate::builtin::is_enum;
use crate::object::ObjectRef;
use crate::reflect::{get_field, members, write_field};
use crate::type_attr::{self, Attr};
use crate::type_info::{key_of, type_info};
use crate::{Any, Array, Dict, Error, ErrorKind, Function, List, Map};

/// A deep copy.
pub(crate) fn deep_copy(value: &Any) -> Result<Any, Error> {
    let mut copier = Copier::default();
    let copy = copier.copy(value, 0)?;
    if copier.stand_ins {
        copier.replace_stand_ins()?;
    }
    Ok(copy)
}

/// A copy that shares what the fields hold.
pub(crate) fn shallow_copy(object: &ObjectRef) -> Result<Any, Error> {
    let index = object.type_index();
    if let Some(hook) = type_attr::get(Attr::ShallowCopy, index) {
        return hook.to::<Function>()?.call(&[object.into()]);
    }
    let cannot = || {
        let message =
            format!("Cannot deep copy object of type \"{}\" because it is not copy-constructible", key_of(index));
        Error::new(ErrorKind::RuntimeError, message)
    };
    let rust = type_info(index).and_then(|info| info.rust()).ok_or_else(cannot)?;
    let mut read = |name: &'static str| object.field(name).ok_or_else(cannot);
    Ok((rust.create)(&mut read).map_err(|_| cannot())?.into())
}

#[derive(Default)]
struct Copier {
    /// The copies, by the originals' addresses. Originals are kept alive so that addresses stay theirs.
    copies: HashMap<usize, (ObjectRef, Any)>,
    /// Arrays and maps whose parts are being copied.
    open: HashSet<usize>,
    /// True if an original stands in for a copy somewhere.
    stand_ins: bool,
}

impl Copier {
    fn copy(&mut self, value: &Any, depth: usize) -> Result<Any, Error> {
        check_depth(depth)?;
        let Some(object) = value.as_object() else { return Ok(value.clone()) };
        let address = object.as_ptr().addr();
        if let Some((_, copy)) = self.copies.get(&address) {
            return Ok(copy.clone());
        }
        if self.open.contains(&address) {
            self.stand_ins = true;
            return Ok(value.clone());
        }
        let index = object.type_index();
        match index {
            type_index::STR | type_index::BYTES | type_index::SHAPE | type_index::BIG_INT => return Ok(value.clone()),
            _ if is_enum(index) => return Ok(value.clone()),
            _ => {}
        }
        let copy = match (parts(object, 0)?, index) {
            (ObjectContents::Sequence(values), type_index::LIST) => self.list(object, values, depth)?,
            (ObjectContents::Sequence(values), _) => self.closed(object, |copier| {
                let values = values.iter().map(|value| copier.copy(value, depth + 1));
                Ok(values.collect::<Result<Vec<_>, _>>()?.into_iter().collect::<Array>().into())
            })?,
            (ObjectContents::Map(entries), type_index::DICT) => self.dict(object, entries, depth)?,
            (ObjectContents::Map(entries), _) => self.closed(object, |copier| {
                let entries = entries.iter().map(|(k, v)| Ok((copier.copy(k, depth + 1)?, copier.copy(v, depth + 1)?)));
                Ok(entries.collect::<Result<Vec<_>, Error>>()?.into_iter().collect::<Map>().into())
            })?,
            (ObjectContents::Fields(_), _) => self.fields(object, depth)?,
        };
        Ok(copy)
    }

    fn remember(&mut self, object: &ObjectRef, copy: &Any) {
        self.copies.insert(object.as_ptr().addr(), (object.clone(), copy.clone()));
    }

    /// Copies something that is made of its copied parts.
    fn closed(&mut self, object: &ObjectRef, make: impl FnOnce(&mut Self) -> Result<Any, Error>) -> Result<Any, Error> {
        self.open.insert(object.as_ptr().addr());
        let copy = make(self)?;
        self.open.remove(&object.as_ptr().addr());
        self.remember(object, &copy);
        Ok(copy)
    }

    fn list(&mut self, object: &ObjectRef, values: Vec<Any>, depth: usize) -> Result<Any, Error> {
        let list = List::from_vec(Vec::new());
        self.remember(object, &(&list).into());
        for value in &values {
            list.push(self.copy(value, depth + 1)?);
        }
        Ok(list.into())
    }

    fn dict(&mut self, object: &ObjectRef, entries: Vec<(Any, Any)>, depth: usize) -> Result<Any, Error> {
        let dict = Dict::new();
        self.remember(object, &(&dict).into());
        for (key, value) in &entries {
            let key = self.copy(key, depth + 1)?;
            dict.insert(key, self.copy(value, depth + 1)?);
        }
        Ok(dict.into())
    }

    fn fields(&mut self, object: &ObjectRef, depth: usize) -> Result<Any, Error> {
        let index = object.type_index();
        let rust = type_info(index).and_then(|info| info.rust());
        if let (Some(rust), None) = (rust, type_attr::get(Attr::ShallowCopy, index)) {
            // A Rust object is made of its parts, as an array is.
            return self.closed(object, |copier| {
                let missing = || Error::new(ErrorKind::RuntimeError, "a field is gone");
                let mut read = |name: &'static str| copier.copy(&object.field(name).ok_or_else(missing)?, depth + 1);
                Ok((rust.create)(&mut read)?.into())
            });
        }
        let copy = shallow_copy(object)?;
        self.remember(object, &copy);
        let target = copy.as_object().cloned().ok_or_else(|| Error::type_mismatch("ffi.Object", copy.type_key()))?;
        for field in members(index) {
            let old = get_field(object, field)?;
            let new = self.copy(&old, depth + 1)?;
            if old.as_object() != new.as_object() {
                // SAFETY: the copy is new, so that nobody else reads it.
                unsafe { write_field(&target, field, new.as_view())? };
            }
        }
        Ok(copy)
    }

    /// What stands in where a copy belongs.
    fn copy_of(&self, value: &Any) -> Option<Any> {
        let (_, copy) = self.copies.get(&value.as_object()?.as_ptr().addr())?;
        (copy.as_object() != value.as_object()).then(|| copy.clone())
    }

    fn replace_stand_ins(&self) -> Result<(), Error> {
        for (_, copy) in self.copies.values() {
            let Some(object) = copy.as_object() else { continue };
            match copy.type_index() {
                type_index::LIST => {
                    let list: List = copy.to()?;
                    for (position, value) in list.to_vec().iter().enumerate() {
                        if let Some(copy) = self.copy_of(value) {
                            list.set(position, copy)?;
                        }
                    }
                }
                type_index::DICT => {
                    let dict: Dict = copy.to()?;
                    for (key, value) in dict.to_vec() {
                        let (new_key, new_value) = (self.copy_of(&key), self.copy_of(&value));
                        if new_key.is_none() && new_value.is_none() {
                            continue;
                        }
                        if new_key.is_some() {
                            dict.remove(key.clone());
                        }
                        dict.insert(new_key.unwrap_or(key), new_value.unwrap_or(value));
                    }
                }
                index if super::is_dynamic(index) && type_info(index).is_none_or(|info| info.rust().is_none()) => {
                    for field in members(index) {
                        if let Some(copy) = self.copy_of(&get_field(object, field)?) {
                            // SAFETY: the copy is not out of this walk's hands yet.
                            unsafe { write_field(object, field, copy.as_view())? };
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
