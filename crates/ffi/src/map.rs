//! [`Map`] and [`Dict`]: values by value, immutable and mutable. Both keep the order of insertion.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use indexmap::IndexMap;

use crate::abi::type_index;
use crate::handle::{exact_from_any, object_handle};
use crate::object::Ref;
use crate::{Any, AnyView, Error, FromAny, StructuralEqual, StructuralHash};

/// A value as a key: text and bytes by content, everything else by its bits, objects therefore by identity.
#[derive(Clone, Debug)]
pub struct Key(Any);

impl Key {
    /// The value.
    pub fn value(&self) -> &Any {
        &self.0
    }

    /// The text or bytes of a value that is compared by content; the tag keeps the two apart.
    fn content(&self) -> Option<(bool, &[u8])> {
        match self.0.type_index() {
            type_index::SMALL_STR | type_index::STR => Some((true, self.0.as_str()?.as_bytes())),
            type_index::SMALL_BYTES | type_index::BYTES => Some((false, self.0.as_bytes()?)),
            _ => None,
        }
    }

    fn bits_unless_content(&self) -> Option<(i32, i64)> {
        self.content().is_none().then(|| self.bits())
    }

    fn bits(&self) -> (i32, i64) {
        let raw = self.0.as_view().raw();
        (raw.type_index, raw.word())
    }
}

impl<T: Into<Any>> From<T> for Key {
    fn from(value: T) -> Key {
        Key(value.into())
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (self.content(), other.content()) {
            (None, None) => self.bits() == other.bits(),
            (a, b) => a == b,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.content() {
            Some(content) => content.hash(state),
            None => self.bits().hash(state),
        }
    }
}

/// The object behind a [`Map`].
pub(crate) struct MapObj {
    entries: IndexMap<Key, Any>,
}

impl MapObj {
    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        maps_equal(&self.entries, &other.entries, eq)
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash_map(&self.entries, hash);
    }
}

/// True if every key of one map has its counterpart in the other, with an equal value. Keys that are objects may have
/// been matched with other objects before: variables, say.
fn maps_equal(a: &IndexMap<Key, Any>, b: &IndexMap<Key, Any>, eq: &mut StructuralEqual) -> bool {
    if a.len() != b.len() {
        return eq.fail(format_args!("{} entries against {}", a.len(), b.len()));
    }
    a.iter().all(|(key, value)| {
        let text = key.0.as_str().map_or_else(|| format!("{:?}", key.0), str::to_string);
        eq.key(&text, |eq| {
            let counterpart = b.get(key).or_else(|| b.get(&Key(eq.counterpart(&key.0)?)));
            match counterpart {
                Some(other) => eq.values(value, other),
                None => eq.fail("only the first has this key"),
            }
        })
    })
}

/// Hashes what does not depend on the order: the size, and the entries whose keys are plain values, sorted.
fn hash_map(entries: &IndexMap<Key, Any>, hash: &mut StructuralHash) {
    hash.combine(entries.len() as u64);
    let mut sorted: Vec<_> =
        entries.iter().filter(|(key, _)| key.0.as_object().is_none() || key.content().is_some()).collect();
    sorted
        .sort_by(|(a, _), (b, _)| (a.content(), a.bits_unless_content()).cmp(&(b.content(), b.bits_unless_content())));
    for (key, value) in sorted {
        hash.value(&key.0);
        hash.value(value);
    }
}

/// An immutable map. Copies share it.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Map(Ref<MapObj>);

object_handle!(Map, MapObj, "ffi.Map", type_index::MAP, by content);

impl Map {
    /// The value of a key.
    pub fn get(&self, key: impl Into<Any>) -> Option<&Any> {
        self.0.entries.get(&Key(key.into()))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// The entries, in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&Any, &Any)> {
        self.0.entries.iter().map(|(key, value)| (&key.0, value))
    }
}

impl<K: Into<Any>, V: Into<Any>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map {
        let entries = entries.into_iter().map(|(key, value)| (Key(key.into()), value.into()));
        Map(Ref::new(MapObj { entries: entries.collect() }))
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

/// The object behind a [`Dict`].
pub(crate) struct DictObj {
    entries: RwLock<IndexMap<Key, Any>>,
}

impl DictObj {
    fn snapshot(&self) -> IndexMap<Key, Any> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        maps_equal(&self.snapshot(), &other.snapshot(), eq)
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash_map(&self.snapshot(), hash);
    }
}

/// A mutable map. Copies are the same map.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Dict(Ref<DictObj>);

object_handle!(Dict, DictObj, "ffi.Dict", type_index::DICT, by content);
exact_from_any!(Dict);

impl Dict {
    /// A map of no entries.
    pub fn new() -> Dict {
        Dict(Ref::new(DictObj { entries: RwLock::new(IndexMap::new()) }))
    }

    /// A copy of the value of a key.
    pub fn get(&self, key: impl Into<Any>) -> Option<Any> {
        self.read(|entries| entries.get(&Key(key.into())).cloned())
    }

    /// Sets the value of a key and returns the old one.
    pub fn insert(&self, key: impl Into<Any>, value: impl Into<Any>) -> Option<Any> {
        let (key, value) = (Key(key.into()), value.into());
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).insert(key, value)
    }

    /// Takes an entry out and returns its value; the order of the others stays.
    pub fn remove(&self, key: impl Into<Any>) -> Option<Any> {
        let key = Key(key.into());
        self.0.entries.write().unwrap_or_else(PoisonError::into_inner).shift_remove(&key)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.read(IndexMap::len)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries as they are now.
    pub fn to_map(&self) -> Map {
        Map(Ref::new(MapObj { entries: self.read(IndexMap::clone) }))
    }

    fn read<R>(&self, read: impl FnOnce(&IndexMap<Key, Any>) -> R) -> R {
        read(&self.0.entries.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for Dict {
    fn default() -> Self {
        Dict::new()
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_map().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_compare_text_by_content_and_objects_by_identity() {
        let map: Map =
            [(Any::from("a long key"), 1i64), (Any::from(7i64), 2), (Any::from(true), 3)].into_iter().collect();
        assert_eq!(map.get("a long key").unwrap().as_int(), Some(1));
        assert_eq!(map.get(7i64).unwrap().as_int(), Some(2));
        assert_eq!(map.get(true).unwrap().as_int(), Some(3));
        assert!(map.get(1i64).is_none(), "an integer is not a truth value");
        let array = crate::Array::empty();
        let by_object: Map = [(array.clone(), 1i64)].into_iter().collect();
        assert!(by_object.get(array).is_some());
        assert!(by_object.get(crate::Array::empty()).is_none());
    }

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
