//! Python callables as functions: the path that every callback takes.

use std::ptr::null_mut;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use relaxide::ffi::{self, Any, AnyView, HostLock};

use crate::vectorcall::ARGUMENTS_OFFSET;
use crate::{convert, error};

/// How many arguments a call has without taking memory for them.
const INLINE: usize = 8;

/// The interpreter's lock, for callers that keep it between callbacks.
static INTERPRETER: HostLock = HostLock {
    // SAFETY: a callback of this interpreter is about to be called, so it is there.
    take: || match unsafe { pyo3::ffi::PyGILState_Ensure() } {
        pyo3::ffi::PyGILState_STATE::PyGILState_LOCKED => 0,
        pyo3::ffi::PyGILState_STATE::PyGILState_UNLOCKED => 1,
    },
    give_up: |token| {
        let state = match token {
            0 => pyo3::ffi::PyGILState_STATE::PyGILState_LOCKED,
            _ => pyo3::ffi::PyGILState_STATE::PyGILState_UNLOCKED,
        };
        // SAFETY: this undoes what `take` did on this thread.
        unsafe { pyo3::ffi::PyGILState_Release(state) }
    },
};

/// A Python callable as a function.
pub fn from_callable(callable: &Bound<'_, PyAny>) -> ffi::Function {
    let callable = Callable(callable.clone().unbind());
    ffi::Function::new_hosted(&INTERPRETER, move |args| {
        Python::attach(|py| callable.call(py, args).map_err(|exception| error::from_py(py, exception)))
    })
}

unsafe extern "C-unwind" {
    /// Calls an object with an array of arguments.
    fn PyObject_Vectorcall(
        callable: *mut PyObject,
        args: *const *mut PyObject,
        count_and_flag: usize,
        names: *mut PyObject,
    ) -> *mut PyObject;
}

/// Stops its thread for ever when it is dropped.
struct Hang;

impl Drop for Hang {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls an object. An interpreter that ends lets go of the threads that are still in it by `pthread_exit` (before Python
/// 3.14), which unwinds their stacks; frames of Rust do not survive that, and the process would abort in the place of ending
/// with its own exit code. So such a thread stops here, as threads do from Python 3.14 on.
///
/// # Safety
/// As `PyObject_Vectorcall`: the thread is attached; `args` are that many objects.
unsafe fn call_or_hang(callable: *mut PyObject, args: *const *mut PyObject, count_and_flag: usize) -> *mut PyObject {
    let hang = Hang;
    // SAFETY: the caller's promise. A forced unwind runs the drop of `hang`, which does not end.
    let result = unsafe { PyObject_Vectorcall(callable, args, count_and_flag, null_mut()) };
    std::mem::forget(hang);
    result
}

struct Callable(Py<PyAny>);

impl Callable {
    fn call(&self, py: Python<'_>, args: &[AnyView<'_>]) -> PyResult<Any> {
        let mut inline = [null_mut(); INLINE + 1];
        let mut large = Vec::new();
        let slots = match inline.get_mut(..=args.len()) {
            Some(slots) => slots,
            None => {
                large.resize(args.len() + 1, null_mut());
                large.as_mut_slice()
            }
        };
        let mut given = Given { slots, count: 0 };
        for arg in args {
            given.push(convert::view_to_py(py, *arg)?);
        }
        // SAFETY: the slots behind the first hold that many objects; the first is the callee's to use.
        let result = unsafe {
            let first = given.slots.as_ptr().add(1);
            let called = call_or_hang(self.0.as_ptr(), first, given.count | ARGUMENTS_OFFSET);
            Bound::from_owned_ptr_or_err(py, called)?
        };
        drop(given);
        convert::from_py(&result)
    }
}

/// Arguments behind a slot that is the callee's; each is a reference of ours.
struct Given<'a> {
    slots: &'a mut [*mut pyo3::ffi::PyObject],
    count: usize,
}

impl Given<'_> {
    fn push(&mut self, object: Bound<'_, PyAny>) {
        self.count += 1;
        self.slots[self.count] = object.into_ptr();
    }
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        for object in &self.slots[1..=self.count] {
            // SAFETY: `push` put a reference here; the thread is attached, since the arguments were made.
            unsafe { pyo3::ffi::Py_DECREF(*object) };
        }
    }
}
