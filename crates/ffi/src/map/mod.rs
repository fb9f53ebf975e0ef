//! [`Map`] and [`Dict`]: values by value, immutable and mutable. Both keep the order of insertion.
//!
//! Code of other languages reads both in memory and changes dicts there, so the layout ([`cell`], [`dense`]) and the hash
//! ([`key`]) are those of the interface.

mod cell;
mod dense;
mod dict;
mod key;

use std::fmt;

use indexmap::IndexMap;

use crate::abi::type_index;
use crate::handle::object_handle;
use crate::object::{ObjectBox, ObjectHeader, Ref};
use crate::seq::Change;
use crate::{Any, AnyView, Error, FromAny, StructuralEqual, StructuralHash};

use cell::MapCell;
pub use dict::Dict;
pub(crate) use dict::DictObj;

/// True if two values are the same key.
pub(crate) fn same_key(a: &Any, b: &Any) -> bool {
    key::equal(a, b)
        || a.type_index() == b.type_index()
            && key::equal_hook(a).is_some_and(|hook| key::equal_by_hook(&hook, a, b).unwrap_or(false))
}

/// The object behind a [`Map`].
#[repr(C)]
pub(crate) struct MapObj {
    cell: MapCell,
}

// SAFETY: entries are `Send + Sync` and do not change after construction.
unsafe impl Send for MapObj {}
// SAFETY: as above.
unsafe impl Sync for MapObj {}

impl MapObj {
    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        eq.maps(&Map::copy(&self.cell), &Map::copy(&other.cell))
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash.map(&Map::copy(&self.cell));
    }
}

/// Changes the values of a map that nobody else can see; it has no entries while they change.
///
/// # Safety
/// The map is alive, and the caller's reference is the only one.
pub(crate) unsafe fn rewrite_map(map: *mut ObjectHeader, change: Change<'_>) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let cell = unsafe { &raw mut (*map.cast::<ObjectBox<MapObj>>()).value.cell };
    // SAFETY: as above; no reference to the cell lives while foreign code runs.
    let mut entries = unsafe { (*cell).take() };
    let result = entries.iter_mut().try_for_each(|entry| change(&mut entry.value));
    let changed = build(entries.into_iter().map(|entry| (entry.key, entry.value)).collect());
    // SAFETY: as above.
    unsafe { *cell = changed };
    result
}

/// An immutable map. Copies share it.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Map(Ref<MapObj>);

object_handle!(Map, MapObj, "ffi.Map", type_index::MAP, by content);

impl Map {
    /// The value of a key.
    pub fn get(&self, key: impl Into<Any>) -> Option<&Any> {
        let key = key.into();
        let hash = key::hash(&key);
        let key = self.canonical(key, hash);
        self.0.cell.find(&key, hash).map(|entry| &entry.value)
    }

    /// The key in the map that is the same by the type's hook, or the key itself.
    fn canonical(&self, key: Any, hash: u64) -> Any {
        choose(key, |key| self.0.cell.candidates(key, hash))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.cell.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, in the order of insertion.
    pub fn iter(&self) -> Entries<'_> {
        Entries { cell: &self.0.cell, place: self.0.cell.first() }
    }

    fn copy(cell: &MapCell) -> Vec<(Any, Any)> {
        Entries { cell, place: cell.first() }.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// The first of the candidates that the hook of the key's type calls the same, or the key itself.
fn choose(key: Any, candidates: impl FnOnce(&Any) -> Vec<Any>) -> Any {
    let Some(hook) = key::equal_hook(&key) else { return key };
    let same = |candidate: &Any| key::equal_by_hook(&hook, candidate, &key).unwrap_or(false);
    candidates(&key).into_iter().find(same).unwrap_or(key)
}

/// The entries of a [`Map`].
#[derive(Clone)]
pub struct Entries<'a> {
    cell: &'a MapCell,
    place: u64,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a Any, &'a Any);

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, next) = self.cell.at(self.place)?;
        self.place = next;
        Some((&entry.key, &entry.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.cell.len()))
    }
}

/// A cell with those entries; of the same keys the last value counts.
fn build(entries: Vec<(Any, Any)>) -> MapCell {
    let mut cell = MapCell::with_capacity(entries.len());
    for (key, value) in entries {
        let hash = key::hash(&key);
        let key = choose(key, |key| cell.candidates(key, hash));
        cell.insert(key, hash, value);
    }
    cell
}

impl<K: Into<Any>, V: Into<Any>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Map(Ref::new(MapObj { cell: build(entries) }))
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A dict converts too: its entries are copied.
impl FromAny for Map {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.type_index() {
            type_index::DICT => Ok(value.to::<Dict>()?.to_map()),
            _ => crate::convert::handle_from_any(value),
        }
    }
}

impl<V: FromAny> FromAny for IndexMap<String, V> {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        let map: Map = value.to()?;
        map.iter().map(|(key, value)| Ok((key.to()?, value.to()?))).collect()
    }
}

impl<V: Into<Any>> From<IndexMap<String, V>> for Any {
    fn from(entries: IndexMap<String, V>) -> Any {
        entries.into_iter().collect::<Map>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_compare_text_by_content_and_objects_by_identity() {
        let map: Map =
            [(Any::from("a long key"), 1i64), (Any::from(7i64), 2), (Any::from(true), 3)].into_iter().collect();
        assert_eq!(map.get("a long key").unwrap().as_int(), Some(1));
        assert_eq!(map.get(7i64).unwrap().as_int(), Some(2));
        assert_eq!(map.get(true).unwrap().as_int(), Some(3));
        assert!(map.get(1i64).is_none(), "an integer is not a bool");
        let array = crate::Array::empty();
        let by_object: Map = [(array.clone(), 1i64)].into_iter().collect();
        assert!(by_object.get(array).is_some());
        assert!(by_object.get(crate::Array::empty()).is_none());
    }

    proptest! {
        #[test]
        fn a_dict_behaves_like_an_index_map(steps in proptest::collection::vec((0u8..4, 0i64..90), 0..400)) {
            let (dict, mut model) = (Dict::new(), IndexMap::new());
            for (step, key) in steps {
                let text = format!("key number {key}");
                match step {
                    0 => prop_assert_eq!(dict.remove(text.as_str()).and_then(|v| v.as_int()), model.shift_remove(&text)),
                    1 => prop_assert_eq!(dict.get(text.as_str()).and_then(|v| v.as_int()), model.get(&text).copied()),
                    _ => prop_assert_eq!(
                        dict.insert(text.as_str(), key * 2).and_then(|v| v.as_int()),
                        model.insert(text, key * 2)
                    ),
                }
                prop_assert_eq!(dict.len(), model.len());
            }
            let entries: Vec<(String, i64)> =
                dict.to_map().iter().map(|(key, value)| (key.to().unwrap(), value.to().unwrap())).collect();
            prop_assert_eq!(entries, model.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn a_map_finds_what_it_was_made_of(keys in proptest::collection::vec(any::<i64>(), 0..200)) {
            let map: Map = keys.iter().map(|key| (*key, key.wrapping_mul(3))).collect();
            for key in &keys {
                prop_assert_eq!(map.get(*key).and_then(Any::as_int), Some(key.wrapping_mul(3)));
            }
        }
    }
}
