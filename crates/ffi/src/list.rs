//! [`List`]: a mutable sequence of values that everyone who holds it sees change.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::type_index;
use crate::array::SeqCell;
use crate::handle::{exact_from_any, object_handle};
use crate::object::{Object, Ref};
use crate::{Any, Error, ErrorKind, StructuralEqual, StructuralHash};

/// The object behind a [`List`]: the cell that C reads, and the vector that it describes.
#[repr(C)]
pub(crate) struct ListObj {
    seq: std::cell::UnsafeCell<SeqCell>,
    values: Mutex<Vec<Any>>,
}

// SAFETY: Rust touches the cell and the vector only under the lock; the interface makes C callers order their accesses
// among themselves.
unsafe impl Send for ListObj {}
// SAFETY: as above.
unsafe impl Sync for ListObj {}

/// A mutable sequence of values. Copies are the same list.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct List(Ref<ListObj>);

object_handle!(List, ListObj, "ffi.List", type_index::LIST, by content);
exact_from_any!(List);

impl ListObj {
    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        // The locks are not held while comparing: a list may contain itself.
        let (a, b) = (self.lock().clone(), other.lock().clone());
        eq.sequences(&a, &b)
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        let values = self.lock().clone();
        hash.sequence(&values);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Any>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the cell describe the vector again.
    fn refresh(&self, values: &mut MutexGuard<'_, Vec<Any>>) {
        let (size, capacity) = (values.len() as i64, values.capacity() as i64);
        let cell = SeqCell { data: values.as_mut_ptr(), size, capacity, data_deleter: None };
        // SAFETY: the caller holds the lock, under which alone the cell is written.
        unsafe { self.seq.get().write(cell) };
    }
}

impl List {
    /// A list of those values.
    pub fn from_vec(values: Vec<Any>) -> List {
        let empty = SeqCell { data: std::ptr::null_mut(), size: 0, capacity: 0, data_deleter: None };
        let list = List(Ref::new(ListObj { seq: std::cell::UnsafeCell::new(empty), values: Mutex::new(values) }));
        list.0.refresh(&mut list.0.lock());
        list
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the value at a position.
    pub fn get(&self, position: usize) -> Option<Any> {
        self.0.lock().get(position).cloned()
    }

    /// Copies of the values.
    pub fn to_vec(&self) -> Vec<Any> {
        self.0.lock().clone()
    }

    /// Adds a value at the end.
    pub fn push(&self, value: impl Into<Any>) {
        let value = value.into();
        self.change(|values| values.push(value));
    }

    /// Takes the last value.
    pub fn pop(&self) -> Option<Any> {
        self.change(Vec::pop)
    }

    /// Replaces the value at a position and returns the old one.
    pub fn set(&self, position: usize, value: impl Into<Any>) -> Result<Any, Error> {
        let value = value.into();
        self.change(|values| {
            let size = values.len();
            let slot = values.get_mut(position).ok_or_else(|| out_of_range(position, size))?;
            Ok(std::mem::replace(slot, value))
        })
    }

    /// Puts a value before the one at a position.
    pub fn insert(&self, position: usize, value: impl Into<Any>) -> Result<(), Error> {
        let value = value.into();
        self.change(|values| {
            if position > values.len() {
                return Err(out_of_range(position, values.len()));
            }
            values.insert(position, value);
            Ok(())
        })
    }

    /// Takes the value at a position out.
    pub fn remove(&self, position: usize) -> Result<Any, Error> {
        self.change(|values| {
            if position >= values.len() {
                return Err(out_of_range(position, values.len()));
            }
            Ok(values.remove(position))
        })
    }

    /// Drops all values.
    pub fn clear(&self) {
        let old = self.change(std::mem::take);
        drop(old);
    }

    /// Changes the values under the lock. What is taken out is returned, so that it is dropped after the lock is.
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Any>) -> R) -> R {
        let mut values = self.0.lock();
        let result = change(&mut values);
        self.0.refresh(&mut values);
        result
    }
}

fn out_of_range(position: usize, size: usize) -> Error {
    Error::new(ErrorKind::IndexError, format!("position {position} is outside of a list of {size}"))
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", ListObj::TYPE_KEY, self.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_see_each_others_changes() {
        let list = List::from_vec(vec![1i64.into()]);
        let copy = list.clone();
        copy.push("text");
        assert_eq!(list.len(), 2);
        assert_eq!(list.get(1).unwrap().as_str(), Some("text"));
        list.set(0, 5i64).unwrap();
        assert_eq!(copy.remove(0).unwrap().as_int(), Some(5));
        assert!(list.set(7, 0i64).unwrap_err().is(ErrorKind::IndexError));
        assert!(list.pop().is_some() && list.pop().is_none());
    }
}
