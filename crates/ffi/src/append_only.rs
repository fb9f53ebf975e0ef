//! A table that only grows, for readers that take no lock: what was handed out stays where it is.

use std::ops::{Deref, DerefMut};

/// The values, and the memory that they had before there were too many for it.
pub(crate) struct AppendOnly<T> {
    values: Vec<T>,
    outgrown: Vec<Vec<T>>,
}

impl<T> AppendOnly<T> {
    pub(crate) const fn new() -> AppendOnly<T> {
        AppendOnly { values: Vec::new(), outgrown: Vec::new() }
    }
}

impl<T> Default for AppendOnly<T> {
    fn default() -> AppendOnly<T> {
        AppendOnly::new()
    }
}

impl<T: Clone> AppendOnly<T> {
    /// Makes room for that many values in all.
    fn reserve(&mut self, size: usize) {
        if size > self.values.capacity() {
            let mut larger = Vec::with_capacity(size.next_power_of_two().max(8));
            larger.extend(self.values.iter().cloned());
            self.outgrown.push(std::mem::replace(&mut self.values, larger));
        }
    }

    /// Adds a value.
    pub(crate) fn push(&mut self, value: T) {
        self.reserve(self.values.len() + 1);
        self.values.push(value);
    }

    /// Adds values until there are that many.
    pub(crate) fn fill(&mut self, size: usize, value: T) {
        self.reserve(size);
        self.values.resize(size.max(self.values.len()), value);
    }
}

impl<T> Deref for AppendOnly<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for AppendOnly<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}
