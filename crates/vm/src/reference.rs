//! [`RefValue`]: a value that may be replaced.
//!
//! Relay has references; the documents of the two machines have no instructions for them. In both a reference is an object that
//! functions of the machine itself look into: `vm.builtin.reference_*` here, `relay.vm.ref_*` in the Relay VM.

use std::sync::{Mutex, PoisonError};

use relaxide_ffi::{Any, Object, Ref};

/// A reference.
#[derive(Object)]
#[object(key = "relay.vm.Ref")]
pub struct RefValue {
    #[field(hidden)]
    value: Mutex<Any>,
}

impl RefValue {
    /// A reference to a value.
    pub fn new(value: Any) -> Ref<RefValue> {
        Ref::new(RefValue { value: Mutex::new(value) })
    }

    /// What it holds.
    pub fn get(&self) -> Any {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has it hold something else.
    pub fn set(&self, value: Any) {
        let old = std::mem::replace(&mut *self.value.lock().unwrap_or_else(PoisonError::into_inner), value);
        // Dropped without the lock: it may be the last reference to much.
        drop(old);
    }
}

impl std::fmt::Debug for RefValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RefValue")
    }
}
