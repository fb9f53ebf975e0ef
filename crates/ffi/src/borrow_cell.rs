//! Lending a Rust value to foreign code for the time of a call, behind a function.
//!
//! Hooks are given a function that leads back into the traversal that called them. The function may outlive the call, be
//! called by another thread, or by itself; the traversal is one Rust value that only one caller may change. So the
//! function reaches it through a cell that is emptied when the hook returns, and that one caller at a time can hold.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Any, AnyView, Error, ErrorKind, Function};

struct Cell(Mutex<*mut c_void>);

// SAFETY: the address is followed only under the lock, to a value that may be used from any thread.
unsafe impl Send for Cell {}
// SAFETY: as above.
unsafe impl Sync for Cell {}

/// Empties the cell, also if the call unwinds.
struct Return<'a>(&'a Cell);

impl Drop for Return<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = std::ptr::null_mut();
    }
}

/// What the function with the borrow does.
pub(crate) type BorrowBody<T> = fn(&mut T, &[AnyView<'_>]) -> Result<Any, Error>;

/// Runs `call` with a function that runs `body` on `value` for as long as `call` does.
pub(crate) fn borrow_for<T: Send + 'static, R>(
    value: &mut T,
    body: BorrowBody<T>,
    call: impl FnOnce(&Function) -> R,
) -> R {
    let cell = Arc::new(Cell(Mutex::new(std::ptr::from_mut(value).cast())));
    let borrowed = Arc::clone(&cell);
    let function = Function::new(move |args| {
        let refuse = |why: &str| Err(Error::new(ErrorKind::RuntimeError, why.to_string()));
        let Ok(address) = borrowed.0.try_lock() else {
            return refuse("the function of a hook was called while it runs");
        };
        // SAFETY: the address is that of `value`, which nobody else uses until `call` returns, or null after that; the
        // lock is held, so that this is the only reference.
        match unsafe { address.cast::<T>().as_mut() } {
            Some(value) => body(value, args),
            None => refuse("the function of a hook was called after the hook returned"),
        }
    });
    let _return = Return(&cell);
    call(&function)
}
