//! [`List`]: a mutable sequence of values that everyone who holds it sees change.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Range;

use crate::abi::type_index;
use crate::container_lock::lock;
use crate::handle::object_handle;
use crate::object::{Object, Ref};
use crate::seq::{Change, SeqCell, allocate_memory, free_memory};
use crate::{Any, AnyView, Array, Error, ErrorKind, FromAny, StructuralEqual, StructuralHash};

/// The object behind a [`List`].
#[repr(C)]
pub(crate) struct ListObj {
    seq: UnsafeCell<SeqCell>,
}

// SAFETY: Rust touches the cell under its lock only; the interface makes C callers order their accesses among themselves.
unsafe impl Send for ListObj {}
// SAFETY: as above.
unsafe impl Sync for ListObj {}

/// A mutable sequence of values. Copies are the same list.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct List(Ref<ListObj>);

object_handle!(List, ListObj, "ffi.List", type_index::LIST, by content);

impl ListObj {
    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        // The locks are not held while comparing: a list may contain itself.
        let (a, b) = (self.copy(), other.copy());
        eq.sequences(&a, &b)
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash.sequence(&self.copy());
    }

    fn copy(&self) -> Vec<Any> {
        // SAFETY: the slice lives as long as the lock is held.
        self.with(|seq| unsafe { seq.items() }.to_vec())
    }

    /// Runs `body`, which must not run foreign code, under the lock.
    fn with<R>(&self, body: impl FnOnce(&mut SeqCell) -> R) -> R {
        let _lock = lock(self);
        // SAFETY: the lock is held.
        body(unsafe { &mut *self.seq.get() })
    }

    /// Changes the values as a vector. What is taken out is returned, so that it is dropped after the lock is.
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Any>) -> R) -> R {
        self.with(|seq| {
            let mut values = seq.take();
            let result = change(&mut values);
            seq.append(values);
            result
        })
    }
}

impl List {
    /// A list of those values.
    pub fn from_vec(values: Vec<Any>) -> List {
        let capacity = values.len();
        let data = allocate_memory::<Any>(capacity).as_ptr();
        let mut seq = SeqCell { data, size: 0, capacity: capacity as i64, data_deleter: Some(free_memory) };
        seq.append(values);
        List(Ref::new(ListObj { seq: UnsafeCell::new(seq) }))
    }

    /// Changes every value; the list has none while they change.
    pub(crate) fn rewrite(&self, change: Change<'_>) -> Result<(), Error> {
        let mut values = self.0.with(SeqCell::take);
        let result = values.iter_mut().try_for_each(change);
        self.0.with(|seq| seq.append(values));
        result
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.with(|seq| seq.size.max(0) as usize)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of the value at a position.
    pub fn get(&self, position: usize) -> Option<Any> {
        // SAFETY: the slice lives as long as the lock is held.
        self.0.with(|seq| unsafe { seq.items() }.get(position).cloned())
    }

    /// Copies of the values.
    pub fn to_vec(&self) -> Vec<Any> {
        self.0.copy()
    }

    /// Adds a value at the end.
    pub fn push(&self, value: impl Into<Any>) {
        let values = vec![value.into()];
        self.0.with(|seq| seq.append(values));
    }

    /// Takes the last value.
    pub fn pop(&self) -> Option<Any> {
        self.0.with(SeqCell::pop)
    }

    /// Replaces the value at a position and returns the old one.
    pub fn set(&self, position: usize, value: impl Into<Any>) -> Result<Any, Error> {
        let value = value.into();
        self.0.with(|seq| {
            // SAFETY: the slice lives as long as the lock is held.
            let values = unsafe { seq.items_mut() };
            let size = values.len();
            let slot = values.get_mut(position).ok_or_else(|| out_of_range(position, size))?;
            Ok(std::mem::replace(slot, value))
        })
    }

    /// Puts a value before the one at a position.
    pub fn insert(&self, position: usize, value: impl Into<Any>) -> Result<(), Error> {
        self.splice(position..position, vec![value.into()])
    }

    /// Takes the value at a position out.
    pub fn remove(&self, position: usize) -> Result<Any, Error> {
        self.0.change(|values| {
            if position >= values.len() {
                return Err(out_of_range(position, values.len()));
            }
            Ok(values.remove(position))
        })
    }

    /// Puts values in the place of those in a range.
    pub fn splice(&self, range: Range<usize>, replacement: Vec<Any>) -> Result<(), Error> {
        let removed: Vec<Any> = self.0.change(|values| {
            if range.start > range.end || range.end > values.len() {
                return Err(out_of_range(range.end.max(range.start), values.len()));
            }
            Ok(values.splice(range, replacement).collect())
        })?;
        drop(removed);
        Ok(())
    }

    /// Turns the order around.
    pub fn reverse(&self) {
        // SAFETY: the slice lives as long as the lock is held.
        self.0.with(|seq| unsafe { seq.items_mut() }.reverse());
    }

    /// Drops all values.
    pub fn clear(&self) {
        let old = self.0.with(SeqCell::take);
        drop(old);
    }
}

fn out_of_range(position: usize, size: usize) -> Error {
    Error::new(ErrorKind::IndexError, format!("position {position} is outside of a list of {size}"))
}

impl FromIterator<Any> for List {
    fn from_iter<I: IntoIterator<Item = Any>>(values: I) -> List {
        List::from_vec(values.into_iter().collect())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", ListObj::TYPE_KEY, self.to_vec())
    }
}

/// An array converts too: its values are copied.
impl FromAny for List {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.type_index() {
            type_index::ARRAY => Ok(value.to::<Array>()?.iter().cloned().collect()),
            _ => crate::convert::handle_from_any(value),
        }
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

    #[test]
    fn a_list_that_contains_itself_can_be_emptied() {
        let list = List::from_vec(Vec::new());
        for _ in 0..10 {
            list.push(&list);
        }
        list.splice(2..8, vec![1i64.into()]).unwrap();
        list.reverse();
        assert_eq!(list.len(), 5);
        assert!(list.splice(3..9, Vec::new()).is_err());
        list.clear();
        assert!(list.is_empty());
    }
}
