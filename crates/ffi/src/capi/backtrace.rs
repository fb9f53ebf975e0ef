//! Where an error was raised, as C code says it.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};

use super::c_text;
use crate::abi::ByteArray;

/// One thread's latest backtrace and its description.
struct Latest {
    _text: String,
    array: ByteArray,
}

thread_local! {
    static LATEST: RefCell<Option<Box<Latest>>> = const { RefCell::new(None) };
}

/// The caller's place as a line of a backtrace; empty if the caller does not name it. It is valid until the thread asks
/// again. The stack below the caller is not walked: a library without debug information has nothing to say about it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIBacktrace(
    file: *const c_char,
    line: c_int,
    function: *const c_char,
    _cross_ffi_boundary: c_int,
) -> *const ByteArray {
    let named = !file.is_null() && !function.is_null();
    // SAFETY: the interface's contract.
    let (file, function) = unsafe { (c_text(file), c_text(function)) };
    let text = if named { format!("  File \"{file}\", line {line}, in {function}\n") } else { String::new() };
    let array = ByteArray::new(text.as_bytes());
    LATEST.with_borrow_mut(|latest| {
        let latest = latest.insert(Box::new(Latest { _text: text, array }));
        &raw const latest.array
    })
}
