//! [`Dict`]: a mutable map that everyone who holds it sees change.

use std::cell::UnsafeCell;
use std::fmt;

use super::cell::{Entry, MapCell};
use super::{Map, MapObj, build, choose, key};
use crate::abi::type_index;
use crate::container_lock::lock;
use crate::handle::object_handle;
use crate::object::Ref;
use crate::seq::Change;
use crate::{Any, AnyView, Error, FromAny, StructuralEqual, StructuralHash};

/// The object behind a [`Dict`].
#[repr(C)]
pub(crate) struct DictObj {
    cell: UnsafeCell<MapCell>,
}

// SAFETY: Rust touches the cell under its lock only; the interface makes C callers order their accesses among themselves.
unsafe impl Send for DictObj {}
// SAFETY: as above.
unsafe impl Sync for DictObj {}

impl DictObj {
    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        // The locks are not held while comparing: a dict may contain itself.
        eq.maps(&self.with(|cell| Map::copy(cell)), &other.with(|cell| Map::copy(cell)))
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash.map(&self.with(|cell| Map::copy(cell)));
    }

    /// Runs `body`, which must not run foreign code, under the lock.
    fn with<R>(&self, body: impl FnOnce(&mut MapCell) -> R) -> R {
        let _lock = lock(self);
        // SAFETY: the lock is held.
        body(unsafe { &mut *self.cell.get() })
    }

    /// The key in the map that is the same by the type's hook, or the key itself; and its hash.
    fn canonical(&self, key: Any) -> (Any, u64) {
        let hash = key::hash(&key);
        (choose(key, |key| self.with(|cell| cell.candidates(key, hash))), hash)
    }
}

/// A mutable map. Copies are the same map.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Dict(Ref<DictObj>);

object_handle!(Dict, DictObj, "ffi.Dict", type_index::DICT, by content);

impl Dict {
    /// A map of no entries.
    pub fn new() -> Dict {
        Dict(Ref::new(DictObj { cell: UnsafeCell::new(MapCell::with_capacity(2)) }))
    }

    /// A copy of the value of a key.
    pub fn get(&self, key: impl Into<Any>) -> Option<Any> {
        let (key, hash) = self.0.canonical(key.into());
        self.0.with(|cell| cell.find(&key, hash).map(|entry| entry.value.clone()))
    }

    /// Sets the value of a key and returns the old one.
    pub fn insert(&self, key: impl Into<Any>, value: impl Into<Any>) -> Option<Any> {
        let (key, hash) = self.0.canonical(key.into());
        let value = value.into();
        if key::hooks_hash() && self.to_vec().iter().any(|(key, _)| key::hashes_by_hook(key)) {
            return self.insert_in_copy(key, value);
        }
        self.0.with(|cell| cell.insert(key, hash, value))
    }

    /// Sets the value of a key without moving entries, whose hashes foreign code would tell, under the lock.
    fn insert_in_copy(&self, key: Any, value: Any) -> Option<Any> {
        loop {
            let mut entries = self.0.with(|cell| Map::copy(cell));
            let count = entries.len();
            let old = entries.iter().find(|(other, _)| key::equal(other, &key)).map(|(_, value)| value.clone());
            entries.push((key.clone(), value.clone()));
            let mut copy = build(entries);
            // Whoever came in between changed the number of entries or only values, which are theirs to lose.
            let swapped = self.0.with(|cell| {
                let unchanged = cell.len() == count;
                if unchanged {
                    std::mem::swap(cell, &mut copy);
                }
                unchanged
            });
            drop(copy);
            if swapped {
                return old;
            }
        }
    }

    /// Takes an entry out and returns its value; the order of the others stays.
    pub fn remove(&self, key: impl Into<Any>) -> Option<Any> {
        let (key, hash) = self.0.canonical(key.into());
        let Entry { value, .. } = self.0.with(|cell| cell.remove(&key, hash))?;
        Some(value)
    }

    /// Drops all entries.
    pub fn clear(&self) {
        let old = self.0.with(MapCell::take);
        drop(old);
    }

    /// Changes every value; the dict has no entries while they change.
    pub(crate) fn rewrite(&self, change: Change<'_>) -> Result<(), Error> {
        let mut entries = self.0.with(MapCell::take);
        let result = entries.iter_mut().try_for_each(|entry| change(&mut entry.value));
        for entry in entries {
            self.insert(entry.key, entry.value);
        }
        result
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.with(|cell| cell.len())
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries as they are now.
    pub fn to_vec(&self) -> Vec<(Any, Any)> {
        self.0.with(|cell| Map::copy(cell))
    }

    /// The entries as they are now, as a map.
    pub fn to_map(&self) -> Map {
        Map(Ref::new(MapObj { cell: build(self.to_vec()) }))
    }
}

impl Default for Dict {
    fn default() -> Self {
        Dict::new()
    }
}

impl<K: Into<Any>, V: Into<Any>> FromIterator<(K, V)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Dict {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Dict(Ref::new(DictObj { cell: UnsafeCell::new(build(entries)) }))
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.to_vec()).finish()
    }
}

/// A map converts too: its entries are copied.
impl FromAny for Dict {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.type_index() {
            type_index::MAP => Ok(value.to::<Map>()?.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
            _ => crate::convert::handle_from_any(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dict_keeps_the_order_of_insertion() {
        let dict = Dict::new();
        for key in ["b", "a", "c"] {
            assert!(dict.insert(key, key).is_none());
        }
        dict.remove("a");
        let keys: Vec<String> = dict.to_map().iter().map(|(key, _)| key.to().unwrap()).collect();
        assert_eq!(keys, ["b", "c"]);
    }
}
