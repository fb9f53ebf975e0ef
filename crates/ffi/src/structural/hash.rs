//! Hashing a graph so that structurally equal graphs have equal hashes.

use std::collections::HashMap;

use crate::Any;
use crate::abi::type_index;
use crate::object::{Handle, NodeKind, Object, ObjectHeader, ObjectRef, Ref};
use crate::type_info::type_info;

/// A hash in progress.
#[derive(Debug, Default)]
pub struct StructuralHash {
    state: u64,
    defining: bool,
    /// How many variables have been defined so far; each is hashed as its number.
    variables: u64,
    /// The hashes of variables and of shared nodes. The objects are kept alive so that addresses stay theirs.
    known: HashMap<(*const ObjectHeader, bool), (ObjectRef, u64)>,
}

impl StructuralHash {
    /// A hash of nothing, outside of any defining position.
    pub fn new() -> StructuralHash {
        StructuralHash::default()
    }

    /// Adds one word.
    #[inline]
    pub fn combine(&mut self, word: u64) {
        let key = self.state;
        self.state = key ^ word.wrapping_add(0x9e37_79b9).wrapping_add(key << 6).wrapping_add(key >> 2);
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.combine(bytes_hash(bytes));
    }

    /// Hashes something in which free variables are defined.
    pub fn def_region(&mut self, hash: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.defining, true);
        hash(self);
        self.defining = outer;
    }

    /// Adds a node of a known Rust type.
    pub fn node<T: Object>(&mut self, node: &Ref<T>) {
        let hash = match T::KIND {
            NodeKind::Unique => Ref::as_ptr(node) as u64,
            NodeKind::Var => self.variable(node),
            NodeKind::Tree => self.tree(node),
        };
        self.combine(hash);
    }

    /// Adds an object of any type.
    pub fn object(&mut self, object: &ObjectRef) {
        match type_info(object.type_index()).and_then(|info| info.rust()) {
            Some(rust) => (rust.hash)(object, self),
            None => self.combine(object.as_ptr() as u64),
        }
    }

    /// Adds a value of any type.
    pub fn value(&mut self, value: &Any) {
        if let Some(text) = value.as_str() {
            self.combine(type_index::STR as u64);
            return self.bytes(text.as_bytes());
        }
        if let Some(bytes) = value.as_bytes() {
            self.combine(type_index::BYTES as u64);
            return self.bytes(bytes);
        }
        if let Some(object) = value.as_object() {
            return self.object(object);
        }
        self.combine(value.type_index() as u64);
        match value.type_index() {
            type_index::FLOAT => self.combine(value.as_view().as_float().map_or(0, crate::field::float_bits)),
            _ => self.combine(value.as_view().raw().word() as u64),
        }
    }

    /// Adds a sequence of values.
    pub fn sequence(&mut self, values: &[Any]) {
        self.combine(values.len() as u64);
        values.iter().for_each(|value| self.value(value));
    }

    /// The hash of everything that was added.
    pub fn finish(self) -> u64 {
        self.state
    }

    fn tree<T: Object>(&mut self, node: &Ref<T>) -> u64 {
        let key = (Ref::as_ptr(node).cast_const(), self.defining);
        let shared = Ref::strong_count(node) > 1;
        if shared && let Some((_, hash)) = self.known.get(&key) {
            return *hash;
        }
        let hash = self.content::<T>(node);
        if shared {
            self.known.insert(key, (node.as_object().clone(), hash));
        }
        hash
    }

    fn variable<T: Object>(&mut self, node: &Ref<T>) -> u64 {
        // A variable has one hash, wherever it occurs.
        let key = (Ref::as_ptr(node).cast_const(), false);
        if let Some((_, hash)) = self.known.get(&key) {
            return *hash;
        }
        let hash = if self.defining {
            let content = self.content::<T>(node);
            self.variables += 1;
            content ^ self.variables.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        } else {
            key.0 as u64
        };
        self.known.insert(key, (node.as_object().clone(), hash));
        hash
    }

    /// The hash of a node's type and fields, by itself.
    fn content<T: Object>(&mut self, node: &T) -> u64 {
        let outer = std::mem::replace(&mut self.state, bytes_hash(T::TYPE_KEY.as_bytes()));
        node.fields_hash(self);
        std::mem::replace(&mut self.state, outer)
    }
}

/// Bytes as a polynomial over little-endian words, the last one padded with zeros, modulo a prime.
pub(crate) fn bytes_hash(bytes: &[u8]) -> u64 {
    const FACTOR: u128 = 1_099_511_628_211;
    const PRIME: u128 = 2_147_483_647;
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(0, |hash, word| ((u128::from(hash) * FACTOR + u128::from(word)) % PRIME) as u64)
}
