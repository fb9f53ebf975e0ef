//! The last error of each thread.
//!
//! It stays until the next function of this interface fails in the same thread, and with it the text that was handed out.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use relaxide_ffi::Error;

#[derive(Default)]
struct LastError {
    kind: CString,
    message: CString,
    /// How many failures the thread has met, with this one.
    failures: u64,
}

thread_local! {
    static LAST: RefCell<LastError> = RefCell::default();
}

/// Text for C: what follows a NUL would be lost, so the NUL is left out.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Keeps an error for the caller to ask for.
pub(crate) fn set(error: &Error) {
    LAST.with_borrow_mut(|last| {
        let (kind, message) = (c_string(error.kind()), c_string(error.message()));
        *last = LastError { kind, message, failures: last.failures.wrapping_add(1) };
    });
}

/// How many failures the calling thread has met.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn failures() -> u64 {
    LAST.with_borrow(|last| last.failures)
}

/// The calling thread's last error, if it met one since it had met so many.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn since(failures: u64) -> Option<Error> {
    LAST.with_borrow(|last| {
        let text = |text: &CString| text.to_string_lossy().into_owned();
        (last.failures != failures).then(|| Error::new(text(&last.kind), text(&last.message)))
    })
}

/// The kind of the calling thread's last error, such as `ValueError`; empty if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_error_kind() -> *const c_char {
    LAST.with_borrow(|last| last.kind.as_ptr())
}

/// The message of the calling thread's last error; empty if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_error_message() -> *const c_char {
    LAST.with_borrow(|last| last.message.as_ptr())
}
