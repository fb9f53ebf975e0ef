//! What every function does at the border: keep panics and errors in, refuse null, read text.

use std::ffi::{CStr, c_char, c_int};

use relaxide_ffi::{Error, ErrorKind, error_slot};

use crate::error;

/// Runs the body of a function: 0, or -1 with the last error set.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    // The C ABI below catches panics the same way and leaves the error in its own slot; from there it becomes the last one.
    let code = error_slot::guard(body);
    if code != 0 {
        error::set(&error_slot::take_after(code));
    }
    code
}

/// Frees a handle; a panic of whatever is dropped ends here.
pub(crate) fn release(body: impl FnOnce()) {
    guard(|| {
        body();
        Ok(())
    });
}

/// An error of the caller's.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ValueError, message)
}

pub(crate) fn null(what: &str) -> Error {
    invalid(format!("{what} is null"))
}

/// What an address leads to.
///
/// # Safety
/// `address` is null or valid for as long as the caller uses the result.
pub(crate) unsafe fn at<'a, T>(address: *const T, what: &str) -> Result<&'a T, Error> {
    // SAFETY: the caller's promise.
    unsafe { address.as_ref() }.ok_or_else(|| null(what))
}

/// Writes a result.
///
/// # Safety
/// `place` is null or can be written; what it holds needs no drop.
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<(), Error> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// An array.
///
/// # Safety
/// `first` is null or has `count` elements for as long as the caller uses the result.
pub(crate) unsafe fn array<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Error> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() => Err(null(what)),
        _ if count > isize::MAX as usize / size_of::<T>().max(1) => {
            Err(invalid(format!("{what}: {count} elements are more than memory holds")))
        }
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// A C string.
///
/// # Safety
/// `text` is null or a NUL-terminated string for as long as the caller uses the result.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Error> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| invalid(format!("{what} is not UTF-8")))
}
