//! Calls both ways: the path that every call from Python and every callback takes.
//!
//! Arguments are views of what the Python objects hold, which the caller's tuple keeps alive; only values that have to be
//! made first, such as strings and containers, are owned by the call. Up to eight arguments need no memory.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use relaxide::ffi::{self, Any, AnyView};

use crate::{convert, error};

/// How many arguments a call has without taking memory for them.
const INLINE: usize = 8;

/// Calls a function without the interpreter's lock; a callback takes it again.
pub fn call<'py>(py: Python<'py>, function: &ffi::Function, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let result = with_views(args, |views| py.detach(|| function.call(views)))?;
    match result {
        Ok(value) => convert::to_py(py, value),
        Err(failed) => Err(error::to_py(failed)),
    }
}

/// Runs `with` on the values of a tuple.
pub fn with_views<T>(args: &Bound<'_, PyTuple>, with: impl FnOnce(&[AnyView<'_>]) -> T) -> PyResult<T> {
    let count = args.len();
    let mut made = Vec::new();
    let mut inline = [AnyView::none(); INLINE];
    let mut large = Vec::new();
    let views = match inline.get_mut(..count) {
        Some(views) => views,
        None => {
            large.resize(count, AnyView::none());
            large.as_mut_slice()
        }
    };
    for (index, view) in views.iter_mut().enumerate() {
        // SAFETY: the index is below the length; the tuple keeps its items.
        let item = unsafe { pyo3::ffi::PyTuple_GetItem(args.as_ptr(), index as isize) };
        // SAFETY: the item is a live object while the tuple is borrowed.
        let item = unsafe { Borrowed::from_ptr_or_err(args.py(), item)? };
        let seen = convert::view_of(&item, &mut made)?;
        // SAFETY: what is seen belongs to the item, which the tuple keeps, or to `made`; both outlive the views.
        *view = unsafe { AnyView::from_raw(seen.raw()) };
    }
    let result = with(views);
    drop(made);
    Ok(result)
}

/// A Python callable as a function.
pub fn from_callable(callable: &Bound<'_, PyAny>) -> ffi::Function {
    let callable = Callable(callable.clone().unbind());
    ffi::Function::new(move |args| {
        Python::attach(|py| callable.call(py, args).map_err(|exception| error::from_py(py, exception)))
    })
}

struct Callable(Py<PyAny>);

impl Callable {
    fn call(&self, py: Python<'_>, args: &[AnyView<'_>]) -> PyResult<Any> {
        // SAFETY: a tuple of that many items is filled before anybody else sees it; each item is a new reference, which
        // the tuple takes. A tuple that is dropped half full has null items, which Python allows.
        let result = unsafe {
            let tuple = Bound::from_owned_ptr_or_err(py, pyo3::ffi::PyTuple_New(args.len() as isize))?;
            for (index, arg) in args.iter().enumerate() {
                let item = convert::view_to_py(py, *arg)?.into_ptr();
                pyo3::ffi::PyTuple_SetItem(tuple.as_ptr(), index as isize, item);
            }
            let called = pyo3::ffi::PyObject_Call(self.0.as_ptr(), tuple.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(py, called)?
        };
        convert::from_py(&result)
    }
}
