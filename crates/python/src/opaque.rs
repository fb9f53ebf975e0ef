//! Python objects that other languages only pass on, and exceptions on their way through them.
//!
//! Such an object travels as an object of type `ffi.OpaquePyObject`, whose cell is one address, and comes back as the very
//! same Python object.

use std::ffi::c_void;

use pyo3::prelude::*;
use relaxide::ffi::abi::type_index;
use relaxide::ffi::{Any, AnyView, Error, ErrorKind, ObjectHeader, ObjectRef, capi, error_slot};

/// Wraps an object, with a reference to it.
pub fn wrap(object: &Bound<'_, PyAny>) -> Result<ObjectRef, Error> {
    let handle = object.clone().into_ptr().cast::<c_void>();
    let mut made = std::ptr::null_mut();
    // SAFETY: the deleter takes the reference back that the handle holds, once.
    let code =
        unsafe { capi::TVMFFIObjectCreateOpaque(handle, type_index::OPAQUE_PY_OBJECT, Some(release), &raw mut made) };
    if code != 0 {
        return Err(error_slot::take_after(code));
    }
    let header = std::ptr::NonNull::new(made.cast::<ObjectHeader>());
    let header = header.ok_or_else(|| Error::new(ErrorKind::InternalError, "an opaque object is null"))?;
    // SAFETY: the call above gave a reference to us.
    Ok(unsafe { ObjectRef::from_header(header) })
}

unsafe extern "C" fn release(handle: *mut c_void) {
    // Where the interpreter is gone, so are its objects.
    let _ = Python::try_attach(|py| {
        // SAFETY: `wrap` put a reference into the handle.
        drop(unsafe { Bound::from_owned_ptr_or_opt(py, handle.cast()) });
    });
}

/// The Python object in a value, if there is one.
pub fn unwrap<'py>(py: Python<'py>, value: AnyView<'_>) -> Option<Bound<'py, PyAny>> {
    if value.type_index() != type_index::OPAQUE_PY_OBJECT {
        return None;
    }
    let object = value.as_object()?;
    // SAFETY: the cell of this type is one address behind the header, which `wrap` filled; the value keeps it alive.
    unsafe {
        let cell =
            object.as_ptr().cast::<c_void>().byte_add(size_of::<ObjectHeader>()).cast::<*mut pyo3::ffi::PyObject>();
        Bound::from_borrowed_ptr_or_opt(py, *cell)
    }
}

/// The exception that an error carries, if it began as one.
pub fn exception_of<'py>(py: Python<'py>, error: &Error) -> Option<Bound<'py, PyAny>> {
    let extra: Any = error.extra_context()?.into();
    unwrap(py, extra.as_view())
}
