//! Which keys of a map are the same, and how they are hashed.
//!
//! Text, bytes and big integers are compared by content, everything else by its bits, objects therefore by identity;
//! unless the type has hooks, the attributes `__any_hash__` and `__any_equal__`. Code of other languages searches the
//! same maps, so both relations are part of the interface.

use crate::abi::type_index;
use crate::structural::{StructuralKey, bytes_hash, combine};
use crate::type_attr::{self, Attr};
use crate::{Any, BigInt, Error, Function};

/// The text, bytes or words of a value that is compared by content; the index keeps them apart.
fn content(value: &Any) -> Option<(i32, &[u8])> {
    match value.type_index() {
        type_index::SMALL_STR => Some((type_index::STR, value.small_payload()?)),
        type_index::SMALL_BYTES => Some((type_index::BYTES, value.small_payload()?)),
        type_index::STR | type_index::BYTES => Some((value.type_index(), value.heap_payload()?)),
        type_index::BIG_INT => Some((type_index::BIG_INT, BigInt::words_of(value)?)),
        _ => None,
    }
}

/// The two words of a value.
fn bits(value: &Any) -> (i32, u32, i64) {
    let raw = value.as_view().raw();
    (raw.type_index, raw.small_len, raw.word())
}

/// The hash of a key. A hook that fails leaves the key to be found by its identity.
pub(super) fn hash(key: &Any) -> u64 {
    if let Some((index, bytes)) = content(key) {
        return combine(index as u64, bytes_hash(bytes));
    }
    let (index, _, word) = bits(key);
    let own = StructuralKey::hash_of(key).or_else(|| {
        let hook = hook(index, Attr::AnyHash)?;
        hook.call(&[key.as_view()]).ok()?.to().ok()
    });
    combine(index as u64, own.unwrap_or(word) as u64)
}

/// True if the keys are the same without asking a hook.
pub(super) fn equal(a: &Any, b: &Any) -> bool {
    bits(a) == bits(b) || content(a).is_some_and(|content_a| Some(content_a) == content(b))
}

/// What compares keys of a type, if its values are compared neither by their bits nor by their content.
pub(super) fn equal_hook(key: &Any) -> Option<Function> {
    if key.type_index() == type_index::BIG_INT { None } else { hook(key.type_index(), Attr::AnyEqual) }
}

/// True if the hook says that the keys are the same.
pub(super) fn equal_by_hook(hook: &Function, a: &Any, b: &Any) -> Result<bool, Error> {
    hook.call(&[a.as_view(), b.as_view()])?.to()
}

/// True if any type has a hook that hashes.
pub(super) fn hooks_hash() -> bool {
    type_attr::has_foreign_hash()
}

/// True if hashing a key may run code of other languages.
pub(super) fn hashes_by_hook(key: &Any) -> bool {
    content(key).is_none() && StructuralKey::hash_of(key).is_none() && hook(key.type_index(), Attr::AnyHash).is_some()
}

fn hook(index: i32, attr: Attr) -> Option<Function> {
    if index < type_index::OBJECT {
        return None;
    }
    // An address instead of a function is native code in some compiler's own convention, which is not called.
    type_attr::get(attr, index)?.to().ok()
}
