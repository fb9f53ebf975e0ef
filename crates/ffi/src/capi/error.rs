//! Raising and making errors from C.

use std::ffi::{c_char, c_int};

use super::{ObjectHandle, borrow, borrow_object, bytes, c_text, give, place};
use crate::abi::ByteArray;
use crate::{Error, ObjectRef, error_slot};

/// Moves the thread's error to the caller; null if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIErrorMoveFromRaised(result: *mut ObjectHandle) {
    if result.is_null() {
        return;
    }
    let handle = error_slot::take().map_or(std::ptr::null_mut(), give);
    // SAFETY: the interface's contract.
    unsafe { result.write(handle) };
}

/// Leaves an error, which the caller keeps a reference to, in the thread's slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIErrorSetRaised(error: ObjectHandle) {
    // SAFETY: the interface's contract.
    let error = unsafe { borrow::<Error>(error) };
    error_slot::set(error.unwrap_or_else(|not_an_error| not_an_error.context("raising an error")));
}

/// Leaves an error of that kind and message in the thread's slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIErrorSetRaisedFromCStr(kind: *const c_char, message: *const c_char) {
    // SAFETY: the interface's contract.
    let (kind, message) = unsafe { (c_text(kind), c_text(message)) };
    error_slot::set(Error::new(kind, message));
}

/// Leaves an error in the thread's slot whose message comes in parts, so that compiled code can share them between
/// messages; parts that are null are skipped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIErrorSetRaisedFromCStrParts(
    kind: *const c_char,
    parts: *const *const c_char,
    num_parts: i32,
) {
    let count = if parts.is_null() { 0 } else { usize::try_from(num_parts).unwrap_or(0) };
    // SAFETY: the interface's contract.
    let message: String = (0..count).map(|i| unsafe { c_text(*parts.add(i)) }).collect();
    // SAFETY: as above.
    error_slot::set(Error::new(unsafe { c_text(kind) }, message));
}

/// Makes an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIErrorCreate(
    kind: *const ByteArray,
    message: *const ByteArray,
    backtrace: *const ByteArray,
    out: *mut ObjectHandle,
) -> c_int {
    let null = std::ptr::null_mut();
    // SAFETY: the interface's contract.
    unsafe { TVMFFIErrorCreateWithCauseAndExtraContext(kind, message, backtrace, null, null, out) }
}

/// Makes an error that refers to its cause and to whatever else is worth knowing; either may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIErrorCreateWithCauseAndExtraContext(
    kind: *const ByteArray,
    message: *const ByteArray,
    backtrace: *const ByteArray,
    cause: ObjectHandle,
    extra: ObjectHandle,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            let text = |array| Ok::<_, Error>(String::from_utf8_lossy(bytes(array)?).into_owned());
            let object = |handle: ObjectHandle| -> Result<Option<ObjectRef>, Error> {
                if handle.is_null() { Ok(None) } else { borrow_object(handle).map(Some) }
            };
            let (kind, message, backtrace) = (text(kind)?, text(message)?, text(backtrace)?);
            place(out)?.write(give(Error::with_backtrace(kind, message, &backtrace, object(cause)?, object(extra)?)));
        }
        Ok(())
    })
}
