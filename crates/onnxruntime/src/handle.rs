//! Handles: objects that the caller holds by their address.
//!
//! Each begins with a mark of its kind, so that null, a handle of another kind, and in most cases one that was released are refused
//! and not followed.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::border::{check_place, put};
use crate::status::{Result, invalid, quietly};

/// What can stand behind a handle.
pub trait HandleKind: Sized {
    /// The name of the handle in C.
    const NAME: &str;
}

/// An object with its mark.
#[derive(Debug)]
#[repr(C)]
pub struct Handle<T> {
    mark: AtomicU64,
    value: T,
}

impl<T: HandleKind> Handle<T> {
    const MARK: u64 = mark(T::NAME);

    /// An object that another one holds, and that callers borrow.
    pub const fn new(value: T) -> Handle<T> {
        Handle { mark: AtomicU64::new(Self::MARK), value }
    }

    /// The object without its mark.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Handle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Handle<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: HandleKind + Clone> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle::new(self.value.clone())
    }
}

/// FNV-1a of the name.
const fn mark(name: &str) -> u64 {
    let (bytes, mut hash, mut i) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x100_0000_01b3);
        i += 1;
    }
    hash
}

/// Gives an object to the caller.
pub fn give<T: HandleKind>(value: T) -> *mut Handle<T> {
    Box::into_raw(Box::new(Handle::new(value)))
}

/// Gives an object to the caller by way of a place for its handle.
///
/// # Safety
/// `place` is null or can be written.
pub unsafe fn put_new<T: HandleKind>(place: *mut *mut Handle<T>, value: T) -> Result<()> {
    check_place(place)?;
    // SAFETY: the caller's promise.
    unsafe { put(place, give(value)) }
}

/// Whether an address can be that of a live object of the kind.
///
/// # Safety
/// The address is null, or its first eight bytes can be read.
unsafe fn is_live<T: HandleKind>(handle: *const Handle<T>) -> bool {
    // SAFETY: the caller's promise.
    !handle.is_null() && handle.is_aligned() && unsafe { (*handle).mark.load(Ordering::Relaxed) } == Handle::<T>::MARK
}

fn refused<T: HandleKind, R>(handle: *const Handle<T>, what: &str) -> Result<R> {
    let kind = T::NAME;
    Err(match handle.is_null() {
        true => invalid(format!("{what} is null; an {kind} is expected")),
        false => invalid(format!("{what} is no {kind}: it is a handle of another kind, or was released before")),
    })
}

/// What a handle stands for.
///
/// # Safety
/// The address is null, or that of a handle of this library that lives for as long as the result is used.
pub unsafe fn at<'a, T: HandleKind>(handle: *const Handle<T>, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    match unsafe { is_live(handle) } {
        // SAFETY: as above.
        true => Ok(unsafe { &(*handle).value }),
        false => refused(handle, what),
    }
}

/// The same, to change it.
///
/// # Safety
/// As for [`at`]; nobody else uses the object meanwhile.
pub unsafe fn at_mut<'a, T: HandleKind>(handle: *mut Handle<T>, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    match unsafe { is_live(handle) } {
        // SAFETY: as above.
        true => Ok(unsafe { &mut (*handle).value }),
        false => refused(handle, what),
    }
}

/// Takes an object back. Null is nothing to release; what is no live handle of the kind is left alone.
///
/// # Safety
/// As for [`at`]; the object was given by [`give`], and nobody uses it any more.
pub unsafe fn release<T: HandleKind>(handle: *mut Handle<T>) {
    // SAFETY: the caller's promise.
    if unsafe { is_live(handle) } {
        // SAFETY: as above. The mark goes first, so that a second release finds none.
        quietly((), || unsafe {
            (*handle).mark.store(0, Ordering::Relaxed);
            drop(Box::from_raw(handle));
        });
    }
}
