//! The calling thread's slot for an error that is on its way across the C ABI.
//!
//! A function that fails leaves its error here and returns non-zero; its caller takes it out.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, ErrorKind};

thread_local! {
    static RAISED: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Leaves an error for the caller; one that is still there is dropped.
pub fn set(error: Error) {
    RAISED.set(Some(error));
}

/// Takes the error out, if there is one.
pub fn take() -> Option<Error> {
    RAISED.take()
}

/// The error of a call that returned `code`, which is not zero.
#[cold]
pub fn take_after(code: c_int) -> Error {
    take().unwrap_or_else(|| {
        Error::new(ErrorKind::RuntimeError, format!("a function failed with code {code} and did not say why"))
    })
}

/// Runs the body of a C function: 0 if it succeeds, -1 with the error in the slot if it fails or panics.
pub fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    // A panic leaves nothing behind that is used again: the body's values are dropped, the error is all that goes on.
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(panic) => Error::from_panic(&*panic),
    };
    set(error);
    -1
}
