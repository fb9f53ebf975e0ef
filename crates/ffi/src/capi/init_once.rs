//! Handles that compiled code fills in on first use.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fork::{self, Held};
use crate::{Error, ErrorKind, error_slot};

static INITIALIZING: Mutex<()> = Mutex::new(());

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold(&INITIALIZING)
}

thread_local! {
    /// True while this thread holds the lock: an initializer may need another handle.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// The lock that serializes initializers, taken once per thread however deep they nest.
struct InitGuard {
    outermost: Option<MutexGuard<'static, ()>>,
}

impl InitGuard {
    fn wait() -> InitGuard {
        if HOLDS.get() {
            return InitGuard { outermost: None };
        }
        let guard = INITIALIZING.lock().unwrap_or_else(PoisonError::into_inner);
        HOLDS.set(true);
        InitGuard { outermost: Some(guard) }
    }
}

impl Drop for InitGuard {
    fn drop(&mut self) {
        if self.outermost.is_some() {
            HOLDS.set(false);
        }
    }
}

/// Fills a handle in by `init`, once; if that fails, the next call tries again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIHandleInitOnce(
    handle: *mut *mut c_void,
    init: Option<unsafe extern "C" fn(result: *mut *mut c_void) -> c_int>,
) -> c_int {
    if handle.is_null() {
        error_slot::set(Error::new(ErrorKind::ValueError, "the place for a handle is null"));
        return -1;
    }
    // SAFETY: the interface's contract: the handle is shared by threads only through these functions.
    let slot = unsafe { AtomicPtr::from_ptr(handle) };
    if !slot.load(Ordering::Acquire).is_null() {
        return 0;
    }
    let _turn = InitGuard::wait();
    if !slot.load(Ordering::Acquire).is_null() {
        return 0;
    }
    let Some(init) = init else {
        error_slot::set(Error::new(ErrorKind::ValueError, "the initializer of a handle is null"));
        return -1;
    };
    let mut result = std::ptr::null_mut();
    // SAFETY: the interface's contract.
    let code = unsafe { init(&raw mut result) };
    if code != 0 {
        return code;
    }
    if result.is_null() {
        error_slot::set(Error::new(ErrorKind::RuntimeError, "the initializer of a handle made nothing"));
        return -1;
    }
    slot.store(result, Ordering::Release);
    0
}

/// Empties a handle by `deinit`, if it is filled in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIHandleDeinitOnce(
    handle: *mut *mut c_void,
    deinit: Option<unsafe extern "C" fn(handle: *mut c_void) -> c_int>,
) -> c_int {
    if handle.is_null() {
        error_slot::set(Error::new(ErrorKind::ValueError, "the place for a handle is null"));
        return -1;
    }
    // SAFETY: the interface's contract: the handle is shared by threads only through these functions.
    let slot = unsafe { AtomicPtr::from_ptr(handle) };
    let _turn = InitGuard::wait();
    let old = slot.swap(std::ptr::null_mut(), Ordering::AcqRel);
    match deinit {
        // SAFETY: the interface's contract.
        Some(deinit) if !old.is_null() => unsafe { deinit(old) },
        _ => 0,
    }
}
