//! The locks that order changes of mutable containers.
//!
//! A [`List`](crate::List) or [`Dict`](crate::Dict) may come from another language, which leaves no room for a lock in
//! the object. So the locks lie here, and a container's address picks its own. Code that holds one touches nothing but the
//! container's memory: values are compared by hooks, and dropped, before or after; so no thread waits for a second lock.
//! Callers in other languages take no lock; the interface makes them order their accesses among themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fork::{self, Held};

const COUNT: usize = 32;

static LOCKS: [Mutex<()>; COUNT] = [const { Mutex::new(()) }; COUNT];

/// Holds the locks across a fork.
pub(crate) fn hold() -> impl Iterator<Item = Held> {
    LOCKS.iter().filter_map(fork::hold)
}

/// Waits until nobody else in Rust uses the container at that address.
pub(crate) fn lock<T>(container: *const T) -> MutexGuard<'static, ()> {
    // Objects are at least 32 bytes apart, so the bits below say nothing.
    LOCKS[(container.addr() >> 5) % COUNT].lock().unwrap_or_else(PoisonError::into_inner)
}
