//! What C gives and takes: texts, arrays, places for results.

use std::ffi::{CStr, CString, c_char};

use crate::status::{Result, invalid};

/// Text for C. What follows a NUL would be lost, so the NUL is left out.
pub fn c_string(text: impl AsRef<str>) -> CString {
    CString::new(text.as_ref().replace('\0', "")).unwrap_or_default()
}

/// A text of C.
///
/// # Safety
/// `text` is null, or ends with a NUL and lives for as long as the result is used.
pub unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(invalid(format!("{what} is null; a text is expected")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| invalid(format!("{what} is not UTF-8: {bytes:?}")))
}

/// A list of texts of C.
///
/// # Safety
/// As for [`array`] and, for each element, [`text`].
pub unsafe fn texts<'a>(first: *const *const c_char, count: usize, what: &str) -> Result<Vec<&'a str>> {
    // SAFETY: the caller's promise.
    unsafe { array(first, count, what)?.iter().map(|item| text(*item, what)).collect() }
}

/// An array of C.
///
/// # Safety
/// `first` is null or has `count` elements for as long as the result is used.
pub unsafe fn array<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    check_array(first, count, what)?;
    // SAFETY: the caller's promise.
    Ok(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } })
}

/// An array of C to write to.
///
/// # Safety
/// As for [`array`]; nobody else uses the elements meanwhile.
pub unsafe fn array_mut<'a, T>(first: *mut T, count: usize, what: &str) -> Result<&'a mut [T]> {
    check_array(first, count, what)?;
    // SAFETY: the caller's promise.
    Ok(if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(first, count) } })
}

fn check_array<T>(first: *const T, count: usize, what: &str) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    if first.is_null() {
        return Err(invalid(format!("{what} is null; {count} elements are expected")));
    }
    if count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(invalid(format!("{what}: {count} elements are more than memory holds")));
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
/// `place` is null or can be written; what it holds needs no drop.
pub unsafe fn put<T>(place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(invalid("the place for the result is null"));
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Refuses a missing place for a result before work is done for it.
pub fn check_place<T>(place: *const T) -> Result<()> {
    match place.is_null() {
        true => Err(invalid("the place for the result is null")),
        false => Ok(()),
    }
}
