//! Lends the interpreter's functions by which a long run asks whether the user wants to interrupt it.

use std::ffi::c_void;

use pyo3::ffi as c;
use relaxide::ffi::{Error, signal};

/// Lends them.
pub fn register() -> Result<(), Error> {
    let functions = [
        ("PyErr_CheckSignals", c::PyErr_CheckSignals as *mut c_void),
        ("PyGILState_Ensure", c::PyGILState_Ensure as *mut c_void),
        ("PyGILState_Release", c::PyGILState_Release as *mut c_void),
    ];
    // SAFETY: each is the interpreter's function of that name, and stays callable.
    functions.into_iter().try_for_each(|(name, function)| unsafe { signal::register(name, function) })
}
