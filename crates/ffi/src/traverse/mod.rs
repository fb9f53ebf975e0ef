//! Visiting and rewriting object graphs by their structure, with callbacks for types.
//!
//! A [`Visitor`] or a [`Mutator`] is an object of the interface: a table of entry points and the kind of region that the
//! traversal is in. Whoever makes one, in whatever language, decides what happens at each value; how to go on to what a
//! value holds is the value's type's: by its hook, or through its reflected fields. Hooks of containers are functions
//! here and reach the traversal through its table, so that they serve traversals of any language.
//!
//! Keys of maps are not visited: they are what values are found by. Every occurrence of a shared object is visited.

mod mutate;
mod visit;

pub(crate) use mutate::{Mutator, Rewrite, array_hooks, leaf_hook, map_hooks};
pub(crate) use visit::{VisitInterrupt, Visitor, Walk, container_hook};

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::abi::type_index;
use crate::object::ObjectRef;
use crate::reflect::flags;
use crate::structural::{Region, kind};
use crate::type_info::{is_instance, type_info};
use crate::{Any, AnyView, Array, Error, ErrorKind, FromAny, Function};

/// How deep values that are visited may be nested in each other. Each level takes a few frames of the native stack, and
/// more if callbacks are in between.
const MAX_DEPTH: usize = 256;

/// A callback, and the type of the values that it is for.
pub(crate) struct Callback {
    type_index: i32,
    function: Function,
    /// It takes one more argument: the kind of the region, or whether it may change the value in place.
    takes_more: bool,
}

impl Callback {
    /// Reads entries `(type, function)`, or `(type, function, whether it takes one more argument)`.
    pub(crate) fn read_all(entries: &Array, takes_more: bool) -> Result<Vec<Callback>, Error> {
        entries.iter().map(|entry| Callback::read(entry.as_view(), takes_more)).collect()
    }

    fn read(entry: AnyView<'_>, takes_more: bool) -> Result<Callback, Error> {
        let parts: Vec<Any> = entry.to()?;
        let (type_index, function, marker) = match &parts[..] {
            [index, function] => (index, function, None),
            [index, function, marker] => (index, function, Some(marker)),
            _ => {
                let message = format!("a callback is a type and a function, but {} values came", parts.len());
                return Err(Error::new(ErrorKind::TypeError, message));
            }
        };
        Ok(Callback {
            type_index: type_index.to()?,
            function: function.to()?,
            takes_more: marker.map_or(Ok(takes_more), |marker| marker.to())?,
        })
    }

    /// The first callback for a value.
    fn find(callbacks: &[Callback], value: i32) -> Option<&Callback> {
        callbacks.iter().find(|callback| callback.is_for(value))
    }

    fn is_for(&self, actual: i32) -> bool {
        const ANY: i32 = -1;
        match self.type_index {
            ANY => true,
            wanted if wanted == actual => true,
            type_index::STR => actual == type_index::SMALL_STR,
            type_index::BYTES => actual == type_index::SMALL_BYTES,
            wanted => actual >= type_index::OBJECT && is_instance(actual, wanted),
        }
    }

    fn call<T: FromAny>(&self, value: AnyView<'_>, more: i64) -> Result<T, Error> {
        let more = Any::from(more);
        let args = [value, more.as_view()];
        self.function.call(if self.takes_more { &args } else { &args[..1] })?.to()
    }
}

/// Runs `body` in a region inside of the current one. A pattern stays one.
fn in_region<R>(current: &AtomicI32, inner: Region, body: impl FnOnce() -> R) -> R {
    struct Restore<'a>(&'a AtomicI32, i32);
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            self.0.store(self.1, Ordering::Relaxed);
        }
    }
    if current.load(Ordering::Relaxed) == Region::Pattern as i32 {
        return body();
    }
    let _restore = Restore(current, current.swap(inner as i32, Ordering::Relaxed));
    body()
}

/// Runs `body` for a field with those flags.
fn in_field<R>(current: &AtomicI32, field: i64, body: impl FnOnce() -> R) -> R {
    if field & (flags::DEFINES | flags::DEFINES_SIMPLE) == 0 {
        return body();
    }
    in_region(current, Region::of_field(field), body)
}

/// Runs `body` for the fields of an object: where a definition is simple, those of a variable are outside of it.
fn in_object<R>(current: &AtomicI32, object: &ObjectRef, body: impl FnOnce() -> R) -> R {
    let is_simple = current.load(Ordering::Relaxed) == Region::Simple as i32;
    if is_simple && kind_of(object.type_index()) == kind::VARIABLE {
        return in_region(current, Region::None, body);
    }
    body()
}

/// How a type takes part in structural equality, as reflection says.
fn kind_of(index: i32) -> i32 {
    let metadata = type_info(index).and_then(|info| info.reflected().metadata());
    metadata.map_or(kind::UNSUPPORTED, |metadata| metadata.structural_kind)
}

/// Counts how deep a traversal is, for as long as it lives.
struct Deeper<'a>(&'a AtomicUsize);

impl<'a> Deeper<'a> {
    fn enter(depth: &'a AtomicUsize) -> Result<Deeper<'a>, Error> {
        let deeper = Deeper(depth);
        if depth.fetch_add(1, Ordering::Relaxed) < MAX_DEPTH {
            return Ok(deeper);
        }
        let message = format!("values are nested more than {MAX_DEPTH} levels deep, too deep to visit");
        Err(Error::new(ErrorKind::ValueError, message))
    }
}

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The hook of a type, which must be a function: what an address takes depends on the version that it was compiled for.
fn hook_function(hook: &Any, name: &str, key: &str) -> Result<Function, Error> {
    hook.to().map_err(|_| {
        Error::new(ErrorKind::TypeError, format!("the hook `{name}` of `{key}` is not a function of the interface"))
    })
}
