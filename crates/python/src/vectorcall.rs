//! The class of functions with the interpreter's fast calling convention.
//!
//! A class that PyO3 makes is called with a tuple, which the interpreter has to make for every call. The class that Python
//! sees is therefore a subclass of it that adds one word to each instance, the address of [`enter`]: the interpreter hands
//! that a plain array. The convention (PEP 590) is in Python's stable interface since 3.12 and the same since 3.9.
//!
//! [`enter`] does not note with PyO3 that the thread is attached, which would cost a fifth of a short call. So it drops no
//! reference of PyO3's, and leaves what is rarer than numbers and tensors to functions that do note it.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};

use pyo3::exceptions::PyTypeError;
use pyo3::ffi as c;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use relaxide::ffi::{self, Any, AnyView};

use crate::function::Function;
use crate::{classes, convert, error};

unsafe extern "C" {
    fn PyVectorcall_Call(
        callable: *mut c::PyObject,
        args: *mut c::PyObject,
        named: *mut c::PyObject,
    ) -> *mut c::PyObject;
}

/// Set in a count of arguments where the word before the first may be overwritten by the callee.
pub const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);
/// The class flag that says that instances hold a fast entry point.
const HAVE_VECTORCALL: std::ffi::c_ulong = 1 << 11;
/// How many arguments a call has without taking memory for them.
const INLINE: usize = 8;

/// The class, and where in an instance the entry point is.
struct Class {
    class: Py<PyType>,
    offset: usize,
}

thread_local! {
    /// The function that the instance that is about to be made is for.
    static HANDED: Cell<Option<ffi::Function>> = const { Cell::new(None) };
}

/// What `__new__` makes an instance of; nothing where it is called by a user.
pub fn handed() -> Option<ffi::Function> {
    HANDED.take()
}

/// A function as an instance of the class.
pub fn wrap(py: Python<'_>, function: ffi::Function) -> PyResult<Bound<'_, PyAny>> {
    let Class { class, offset } = class(py)?;
    HANDED.set(Some(function));
    let made = match classes::replacing(py, ffi::abi::type_index::FUNCTION) {
        None => class.bind(py).call0(),
        // The class's own constructor would make another function.
        Some(class) => class.call_method1("__new__", (&class,)),
    };
    HANDED.set(None);
    let made = made?;
    if !made.is_instance(class.bind(py))? {
        return Err(PyTypeError::new_err("the class that is registered for functions makes something else"));
    }
    // SAFETY: instances of the class have a word at this distance, which nobody has read yet.
    unsafe { made.as_ptr().byte_add(*offset).cast::<VectorcallFunction>().write(enter) };
    Ok(made)
}

type VectorcallFunction =
    unsafe extern "C" fn(*mut c::PyObject, *const *mut c::PyObject, usize, *mut c::PyObject) -> *mut c::PyObject;

fn class(py: Python<'_>) -> PyResult<&Class> {
    static CLASS: PyOnceLock<Class> = PyOnceLock::new();
    CLASS.get_or_try_init(py, || make_class(py))
}

/// The class as Python sees it.
pub fn function_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(class(py)?.class.bind(py))
}

fn make_class(py: Python<'_>) -> PyResult<Class> {
    let base = py.get_type::<Function>();
    let offset: usize = base.getattr("__basicsize__")?.extract()?;
    let none = c::PyMemberDef { name: null(), type_code: 0, offset: 0, flags: 0, doc: null() };
    let mut members = [
        c::PyMemberDef {
            name: c"__vectorcalloffset__".as_ptr(),
            type_code: c::Py_T_PYSSIZET,
            offset: offset as isize,
            flags: c::Py_READONLY,
            doc: null(),
        },
        none,
    ];
    let mut slots = [
        c::PyType_Slot { slot: c::Py_tp_members, pfunc: members.as_mut_ptr().cast() },
        c::PyType_Slot { slot: c::Py_tp_call, pfunc: PyVectorcall_Call as *mut c_void },
        c::PyType_Slot { slot: c::Py_tp_doc, pfunc: c"A function of any language.".as_ptr().cast_mut().cast() },
        c::PyType_Slot { slot: 0, pfunc: null_mut() },
    ];
    let mut spec = c::PyType_Spec {
        name: c"relaxide.ffi.Function".as_ptr(),
        basicsize: (offset + size_of::<VectorcallFunction>()) as c_int,
        itemsize: 0,
        flags: (c::Py_TPFLAGS_DEFAULT | c::Py_TPFLAGS_BASETYPE | HAVE_VECTORCALL) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    let bases = PyTuple::new(py, [base])?;
    // SAFETY: the specification is well formed: the instance has room for the word that it names. Python copies all of it
    // but the name, which lives for ever.
    let class = unsafe {
        let made = c::PyType_FromSpecWithBases(&raw mut spec, bases.as_ptr());
        Bound::from_owned_ptr_or_err(py, made)?
    };
    Ok(Class { class: class.cast_into::<PyType>()?.unbind(), offset })
}

/// The entry point of every call from Python.
unsafe extern "C" fn enter(
    callable: *mut c::PyObject,
    args: *const *mut c::PyObject,
    count_and_flag: usize,
    names: *mut c::PyObject,
) -> *mut c::PyObject {
    // SAFETY: the interpreter calls this while it is attached to the thread.
    let py = unsafe { Python::assume_attached() };
    let count = count_and_flag & !ARGUMENTS_OFFSET;
    let args: &[*mut c::PyObject] = match count {
        0 => &[],
        // SAFETY: the interpreter gives that many objects, which it keeps during the call.
        _ => unsafe { std::slice::from_raw_parts(args, count) },
    };
    let run = || {
        // SAFETY: only instances of the class have this entry point.
        let function = unsafe { Borrowed::from_ptr(py, callable).cast_unchecked::<Function>() };
        match names.is_null() {
            true => call(py, &function.get().0, args),
            false => Err(Python::attach(|_| PyTypeError::new_err("functions take no named arguments"))),
        }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(object)) => object,
        Ok(Err(exception)) => fail(exception),
        Err(_) => fail(Python::attach(|_| PanicException::new_err("a conversion panicked: this is a bug"))),
    }
}

#[cold]
fn fail(exception: PyErr) -> *mut c::PyObject {
    Python::attach(|py| exception.restore(py));
    null_mut()
}

/// Calls a function without the interpreter's lock; a callback takes it again.
fn call(py: Python<'_>, function: &ffi::Function, args: &[*mut c::PyObject]) -> PyResult<*mut c::PyObject> {
    let mut views = [AnyView::none(); INLINE];
    let Some(views) = views.get_mut(..args.len()) else { return call_any(function, args) };
    for (view, arg) in views.iter_mut().zip(args) {
        // SAFETY: the caller keeps the object during the call.
        match unsafe { convert::plain(py, *arg) } {
            Some(plain) => *view = plain,
            None => return call_any(function, args),
        }
    }
    let mut result = Any::none();
    // PyO3 notes that the thread is detached: a callback may be below one that it attached.
    let outcome = py.detach(|| function.call_into(views, &mut result));
    if outcome.is_ok()
        && let Some(object) = convert::plain_to_py(py, &result)
    {
        return Ok(object);
    }
    finish(outcome, result)
}

/// A call with arguments that have to be converted first.
#[cold]
fn call_any(function: &ffi::Function, args: &[*mut c::PyObject]) -> PyResult<*mut c::PyObject> {
    Python::attach(|py| {
        let mut made = Vec::with_capacity(args.len());
        for arg in args {
            // SAFETY: the caller keeps the object during the call.
            let arg = unsafe { Borrowed::from_ptr(py, *arg) };
            made.push(convert::from_py(&arg)?);
        }
        let views: Vec<AnyView<'_>> = made.iter().map(Any::as_view).collect();
        let outcome = py.detach(|| function.call(&views));
        Ok(convert::to_py(py, outcome.map_err(error::to_py)?)?.into_ptr())
    })
}

#[cold]
fn finish(outcome: Result<(), ffi::Error>, result: Any) -> PyResult<*mut c::PyObject> {
    Python::attach(|py| {
        outcome.map_err(error::to_py)?;
        Ok(convert::to_py(py, result)?.into_ptr())
    })
}
