//! What registers hold beside tensors.

use std::sync::{Mutex, PoisonError};

use relaxide_ffi::{Any, Object, Ref};

/// A value of a data type, or a tuple.
#[derive(Object)]
#[object(key = "relay.vm.ADT")]
pub struct Adt {
    /// What constructor made it; 0 for a tuple.
    pub tag: i64,
    /// The fields.
    pub fields: Vec<Any>,
}

impl Adt {
    /// A value.
    pub fn new(tag: i64, fields: Vec<Any>) -> Ref<Adt> {
        Ref::new(Adt { tag, fields })
    }

    /// A tuple.
    pub fn tuple(fields: Vec<Any>) -> Ref<Adt> {
        Adt::new(0, fields)
    }
}

impl std::fmt::Debug for Adt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Adt({}, {} fields)", self.tag, self.fields.len())
    }
}

/// A function with what it captured.
#[derive(Object)]
#[object(key = "relay.vm.Closure")]
pub struct Closure {
    /// The function's index in its executable.
    pub func: i64,
    /// What it captured, which stands in front of the arguments.
    pub free: Vec<Any>,
    /// Which machine it belongs to: no other may run it.
    #[field(hidden)]
    pub(crate) machine: u64,
}

impl std::fmt::Debug for Closure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Closure({}, {} captured)", self.func, self.free.len())
    }
}

/// A reference: a value that may be replaced. The document's machine has none; here a reference is an object that two
/// kernels of the machine itself, `relay.ref_read` and `relay.ref_write`, look into.
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
