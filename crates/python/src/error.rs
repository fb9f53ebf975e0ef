//! Errors both ways: kinds become exception types, and a Python exception that passes through compiled code comes out as it
//! went in.

use std::cell::RefCell;

use pyo3::exceptions::*;
use pyo3::prelude::*;
use relaxide::ffi::Error;

thread_local! {
    /// The exception of the innermost Python callback that failed, with the text by which its way out is recognised.
    static PENDING: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// An error as an exception.
pub fn to_py(error: Error) -> PyErr {
    let message = error.message().to_string();
    let pending = PENDING.with_borrow_mut(|pending| pending.take_if(|(text, _)| message.contains(text.as_str())));
    if let Some((_, original)) = pending {
        return original;
    }
    match error.kind() {
        "ValueError" => PyValueError::new_err(message),
        "TypeError" => PyTypeError::new_err(message),
        "IndexError" => PyIndexError::new_err(message),
        "KeyError" => PyKeyError::new_err(message),
        "AttributeError" => PyAttributeError::new_err(message),
        "NotImplementedError" => PyNotImplementedError::new_err(message),
        "OverflowError" => PyOverflowError::new_err(message),
        "MemoryError" => PyMemoryError::new_err(message),
        "OSError" => PyOSError::new_err(message),
        "SyntaxError" => PySyntaxError::new_err(message),
        "AssertionError" => PyAssertionError::new_err(message),
        "RuntimeError" => PyRuntimeError::new_err(message),
        kind => PyRuntimeError::new_err(format!("{kind}: {message}")),
    }
}

/// An exception as an error. The exception itself is kept, so that its traceback is not lost.
pub fn from_py(py: Python<'_>, exception: PyErr) -> Error {
    let kind = exception.get_type(py).name().map_or_else(|_| "RuntimeError".into(), |name| name.to_string());
    let message = exception.value(py).to_string();
    PENDING.with_borrow_mut(|pending| *pending = Some((message.clone(), exception)));
    Error::new(kind, message)
}

/// Any of the compiler's errors as an exception.
pub fn compiler(error: relaxide::Error) -> PyErr {
    let text = match error.help() {
        Some(help) => format!("{error}\nhelp: {help}"),
        None => error.to_string(),
    };
    match error.kind() {
        "ValueError" => PyValueError::new_err(text),
        "SyntaxError" => PySyntaxError::new_err(text),
        "NotImplementedError" => PyNotImplementedError::new_err(text),
        "OSError" => PyOSError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}
