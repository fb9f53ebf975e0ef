//! [`StructuralKey`]: a value as a key that is found by structural equality.

use crate::Object;
use crate::object::{Handle, Ref};
use crate::{Any, Error};

/// The object behind a [`StructuralKey`].
#[derive(Object)]
#[object(key = "ffi.StructuralKey")]
#[repr(C)]
pub(crate) struct StructuralKeyObj {
    key: Any,
    hash_i64: i64,
}

impl StructuralKeyObj {
    /// The same key again.
    pub(crate) fn copy(&self) -> StructuralKeyObj {
        StructuralKeyObj { key: self.key.clone(), hash_i64: self.hash_i64 }
    }
}

/// A value and its structural hash.
#[derive(Clone)]
pub struct StructuralKey(Ref<StructuralKeyObj>);

impl StructuralKey {
    /// Hashes a value; an error if its type has no structural hash.
    pub fn new(key: Any) -> Result<StructuralKey, Error> {
        let hash_i64 = super::value_hash(&key, super::CompareOptions::default())? as i64;
        Ok(StructuralKey(Ref::new(StructuralKeyObj { key, hash_i64 })))
    }

    /// The hash of a value that is such a key.
    pub(crate) fn hash_of(value: &Any) -> Option<i64> {
        value.downcast_ref::<StructuralKeyObj>().map(|key| key.hash_i64)
    }

    /// True if two values are such keys of structurally equal values.
    pub(crate) fn same(a: &Any, b: &Any) -> Result<bool, Error> {
        let (a, b): (Ref<StructuralKeyObj>, Ref<StructuralKeyObj>) = (a.to()?, b.to()?);
        if Ref::ptr_eq(&a, &b) {
            return Ok(true);
        }
        Ok(a.hash_i64 == b.hash_i64
            && super::first_mismatch(&a.key, &b.key, super::CompareOptions::default())?.is_none())
    }
}

impl From<StructuralKey> for Any {
    fn from(key: StructuralKey) -> Any {
        key.0.as_object().into()
    }
}
