//! Hashing a graph so that structurally equal graphs have equal hashes.
//!
//! The values are those that other implementations of the interface compute: every value has a hash of its own, and what
//! holds values folds theirs into one that began with the name of its type.

use std::collections::HashMap;

use super::{CompareOptions, Region};
use crate::abi::type_index;
use crate::borrow_cell::borrow_for;
use crate::object::{NodeKind, Object, ObjectRef, Ref};
use crate::reflect::{self, flags};
use crate::stack::{Stack, used_up};
use crate::type_attr::{self, Attr};
use crate::type_info::type_info;
use crate::{Any, AnyView, Error, ErrorKind, Function, Handle};

/// A hash in progress.
#[derive(Debug, Default)]
pub struct StructuralHash {
    state: u64,
    region: Region,
    skip_tensor_content: bool,
    stack: Stack,
    /// How many variables have been defined so far; each is hashed with its number.
    variables: u64,
    /// How many nodes have been met whose identity counts.
    nodes: u64,
    /// Why the hash cannot be finished.
    error: Option<Error>,
    /// The hashes of variables and of shared nodes. The objects are kept alive so that addresses stay theirs.
    known: HashMap<usize, (ObjectRef, u64)>,
}

impl StructuralHash {
    /// A hash of nothing, outside of any defining position.
    pub fn new() -> StructuralHash {
        StructuralHash::default()
    }

    /// A hash with the two switches that front ends have.
    pub(crate) fn with_options(options: CompareOptions) -> StructuralHash {
        let region = if options.map_free_vars { Region::Pattern } else { Region::None };
        StructuralHash { region, skip_tensor_content: options.skip_tensor_content, ..StructuralHash::default() }
    }

    /// Folds one word in.
    #[inline]
    pub fn combine(&mut self, word: u64) {
        self.state = combine(self.state, word);
    }

    /// Folds in the hash of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.combine(bytes_hash(bytes));
    }

    /// Folds in the hash of a plain value of that type.
    #[inline]
    pub fn word(&mut self, type_index: i32, word: u64) {
        self.combine(combine(type_index as u64, word));
    }

    /// Folds in the hash of something that holds values: it begins with its type's name, and `body` folds into it.
    pub fn nested(&mut self, key: &str, body: impl FnOnce(&mut Self)) {
        let hash = self.alone(key, body);
        self.combine(hash);
    }

    fn alone(&mut self, key: &str, body: impl FnOnce(&mut Self)) -> u64 {
        let outer = std::mem::replace(&mut self.state, key_hash(key));
        body(self);
        std::mem::replace(&mut self.state, outer)
    }

    /// Hashes something in which free variables are defined.
    pub fn def_region(&mut self, hash: impl FnOnce(&mut Self)) {
        self.in_region(Region::Pattern, hash);
    }

    fn in_region<R>(&mut self, region: Region, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.region;
        self.region = outer.enter(region);
        let result = body(self);
        self.region = outer;
        result
    }

    /// Folds in a node of a known Rust type.
    pub fn node<T: Object>(&mut self, node: &Ref<T>) {
        let hash = self.own_node(node);
        self.combine(hash);
    }

    /// The own hash of a node of a known Rust type.
    pub(crate) fn own_node<T: Object>(&mut self, node: &Ref<T>) -> u64 {
        if self.is_too_deep() {
            return 0;
        }
        let fields = |hash: &mut Self| hash.alone(T::TYPE_KEY, |hash| node.fields_hash(hash));
        match T::KIND {
            NodeKind::Unique => Ref::as_ptr(node) as u64,
            NodeKind::Var => self.remember(node.as_object(), &mut |hash, object| hash.variable(object, fields)),
            NodeKind::Tree if Ref::strong_count(node) > 1 => {
                self.remember(node.as_object(), &mut |hash, _| fields(hash))
            }
            NodeKind::Tree => fields(self),
        }
    }

    /// Folds in an object of any type.
    pub fn object(&mut self, object: &ObjectRef) {
        let hash = self.own_object(object);
        self.combine(hash);
    }

    fn own_object(&mut self, object: &ObjectRef) -> u64 {
        if self.is_too_deep() {
            return 0;
        }
        match type_info(object.type_index()).and_then(|info| info.rust()) {
            Some(rust) => (rust.hash)(object, self),
            None => self.reflected(object),
        }
    }

    /// Folds in a value of any type.
    pub fn value(&mut self, value: &Any) {
        let hash = self.own_value(value);
        self.combine(hash);
    }

    fn own_value(&mut self, value: &Any) -> u64 {
        match (plain_hash(value), value.as_object()) {
            (None, Some(object)) => self.own_object(object),
            (hash, _) => hash.unwrap_or(0),
        }
    }

    /// True if there is no stack for what comes, which is then left out.
    fn is_too_deep(&mut self) -> bool {
        let too_deep = self.stack.is_used_up();
        if too_deep {
            self.error.get_or_insert_with(used_up);
        }
        too_deep
    }

    /// Folds in the values of a sequence.
    pub fn sequence(&mut self, values: &[Any]) {
        self.combine(values.len() as u64);
        values.iter().for_each(|value| self.value(value));
    }

    /// Folds in the entries of a map so that their order does not matter: sorted by the hashes of the keys. Keys whose
    /// hash is not known without regard to order are left out, and so are the values of keys whose hashes agree.
    pub(crate) fn map(&mut self, entries: &[(Any, Any)]) {
        self.combine(entries.len() as u64);
        let mut sorted: Vec<(u64, &Any)> =
            entries.iter().filter_map(|(key, value)| Some((self.key(key)?, value))).collect();
        sorted.sort_by_key(|(hash, _)| *hash);
        for ties in sorted.chunk_by(|(a, _), (b, _)| a == b) {
            match ties {
                [(hash, value)] => {
                    self.combine(*hash);
                    self.value(value);
                }
                [(hash, _), ..] => self.combine(*hash),
                [] => {}
            }
        }
    }

    /// The hash of a key as far as it does not depend on what was hashed before.
    fn key(&self, key: &Any) -> Option<u64> {
        plain_hash(key).or_else(|| self.known.get(&key.as_object()?.as_ptr().addr()).map(|(_, hash)| *hash))
    }

    /// True if the content of tensors counts.
    pub(crate) fn hashes_tensor_content(&self) -> bool {
        !self.skip_tensor_content
    }

    /// The hash of everything that was added.
    pub fn finish(self) -> u64 {
        self.state
    }

    /// The hash of one value, or why it cannot be hashed.
    pub(crate) fn of_value(mut self, value: &Any) -> Result<u64, Error> {
        let hash = self.own_value(value);
        self.error.map_or(Ok(hash), Err)
    }

    /// The hash of an object, computed once.
    fn remember(&mut self, object: &ObjectRef, compute: &mut dyn FnMut(&mut Self, &ObjectRef) -> u64) -> u64 {
        let key = object.as_ptr().addr();
        if let Some((_, hash)) = self.known.get(&key) {
            return *hash;
        }
        let hash = compute(self, object);
        self.known.insert(key, (object.clone(), hash));
        hash
    }

    /// The hash of a variable: its content and number where it is defined, else its identity. The content is looked at
    /// in either case, because variables may be defined there.
    fn variable(&mut self, object: &ObjectRef, content: impl FnOnce(&mut Self) -> u64) -> u64 {
        let outer = self.region;
        if outer == Region::Simple {
            self.region = Region::None;
        }
        let hash = content(self);
        self.region = outer;
        if outer == Region::None {
            return object.as_ptr() as u64;
        }
        self.variables += 1;
        combine(hash, self.variables - 1)
    }

    /// The own hash of an object that only reflection knows.
    fn reflected(&mut self, object: &ObjectRef) -> u64 {
        use super::kind;
        let kind = match super::structural_kind(object) {
            Ok(kind) => kind,
            Err(error) => {
                self.error.get_or_insert(error);
                return 0;
            }
        };
        self.remember(object, &mut |hash, object| match kind {
            kind::VARIABLE => hash.variable(object, |hash| hash.reflected_fields(object)),
            kind::DAG => {
                let content = hash.reflected_fields(object);
                hash.nodes += 1;
                combine(content, hash.nodes - 1)
            }
            _ => hash.reflected_fields(object),
        })
    }

    fn reflected_fields(&mut self, object: &ObjectRef) -> u64 {
        let hook = type_attr::get(Attr::StructuralHash, object.type_index());
        if let Some(hook) = hook.and_then(|hook| hook.to::<Function>().ok()) {
            let begin = key_hash(object.type_key());
            let result = borrow_for(self, StructuralHash::answer, |callback| {
                hook.call(&[object.into(), (begin as i64).into(), callback.into()]).and_then(|hash| hash.to::<i64>())
            });
            return result.map_or_else(
                |error| {
                    self.error.get_or_insert(error);
                    0
                },
                |hash| hash as u64,
            );
        }
        self.alone(object.type_key(), |hash| {
            for field in reflect::members(object.type_index()).filter(|field| field.flags & flags::IGNORED == 0) {
                match reflect::get_field(object, field) {
                    Ok(value) => hash.in_region(Region::of_field(field.flags), |hash| hash.value(&value)),
                    Err(error) => {
                        hash.error.get_or_insert(error);
                    }
                }
            }
        })
    }

    /// What a hook calls: `(value, hash so far, kind of region) -> int`.
    fn answer(&mut self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let [value, begin, region] = args else {
            return Err(Error::new(ErrorKind::TypeError, format!("expected 3 arguments but got {}", args.len())));
        };
        let (value, begin, region) = (value.to_owned(), begin.to::<i64>()?, Region::of_index(region.to()?));
        let hash = self.in_region(region, |hash| hash.own_value(&value));
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok((combine(begin as u64, hash) as i64).into()),
        }
    }
}

/// Folds a word into a hash.
#[inline]
pub(crate) fn combine(hash: u64, word: u64) -> u64 {
    hash ^ word.wrapping_add(0x9e37_79b9).wrapping_add(hash << 6).wrapping_add(hash >> 2)
}

/// The own hash of a value that is no object other than text, bytes or a big integer.
fn plain_hash(value: &Any) -> Option<u64> {
    if let Some(text) = value.as_str() {
        return Some(combine(type_index::STR as u64, bytes_hash(text.as_bytes())));
    }
    // Bytes that are held in the value itself count as the plain value that they are, short text as text.
    if value.type_index() != type_index::SMALL_BYTES
        && let Some(bytes) = value.as_bytes()
    {
        return Some(combine(type_index::BYTES as u64, bytes_hash(bytes)));
    }
    if let Some(words) = crate::BigInt::words_of(value) {
        return Some(combine(type_index::BIG_INT as u64, bytes_hash(words)));
    }
    if value.as_object().is_some() {
        return None;
    }
    let word = match value.type_index() {
        type_index::FLOAT => value.as_float().map_or(0, crate::field::float_bits),
        _ => value.as_view().raw().word() as u64,
    };
    Some(combine(value.type_index() as u64, word))
}

/// The hash of a type's key, as the interface gives it with a type: MurmurHash2 of 64 bits.
pub(crate) fn key_hash(key: &str) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xc70f_6907;
    let mix = |word: u64| word ^ (word >> 47);
    let (words, rest) = key.as_bytes().as_chunks::<8>();
    let mut hash = SEED ^ (key.len() as u64).wrapping_mul(FACTOR);
    for word in words {
        let word = mix(u64::from_le_bytes(*word).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
        hash = (hash ^ word).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    mix(mix(hash).wrapping_mul(FACTOR))
}

/// Bytes as a polynomial over little-endian words, the last one padded with zeros, reduced by a prime after each word.
pub(crate) fn bytes_hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 1_099_511_628_211;
    const PRIME: u64 = 2_147_483_647;
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(0, |hash: u64, word| hash.wrapping_mul(FACTOR).wrapping_add(word) % PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Map, value_hash};

    #[test]
    fn hashes_are_those_of_the_interface() {
        assert_eq!(key_hash("ffi.Array"), 9_300_778_484_448_642_049);
        assert_eq!(key_hash("None"), 18_116_513_903_021_958_570);
        let hash = |value: Any| value_hash(&value, CompareOptions::default()).unwrap();
        assert_eq!(hash(1i64.into()), 2_654_435_835);
        assert_eq!(hash("a longer string".into()), 4_709_278_054);
        assert_eq!(hash(Array::empty().into()), 16_435_870_007_801_073_400);
        assert_eq!(hash(vec![1i64].into()), 15_786_762_492_048_025_801);
        let map: Map = [(1i64, 2i64), (3, 4)].into_iter().collect();
        assert_eq!(hash(map.into()), 8_387_368_695_272_552_021);
        assert_eq!(hash(crate::Shape::new(&[1, 2]).into()), 284_796_581_919_864_599);
    }
}
