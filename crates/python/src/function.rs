//! Functions, and the table of global ones.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use relaxide::ffi::{self, Handle};

use crate::call::from_callable;
use crate::{error, vectorcall};

/// A function of any language. What Python sees is its subclass in [`vectorcall`].
#[pyclass(frozen, subclass, from_py_object, weakref, module = "relaxide.ffi")]
#[derive(Clone)]
pub struct Function(pub ffi::Function);

#[pymethods]
impl Function {
    #[new]
    fn new() -> PyResult<Function> {
        let refused = || PyTypeError::new_err("functions are made by convert_func, of a callable");
        vectorcall::handed().map(Function).ok_or_else(refused)
    }

    /// Whether two names stand for the same function.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Function>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn is_(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> usize {
        self.0.as_object().as_ptr() as usize >> 4
    }

    /// The address of the function object.
    fn __chandle__(&self) -> usize {
        self.0.as_object().as_ptr() as usize
    }

    fn __repr__(&self) -> &'static str {
        "ffi.Function"
    }
}

/// The function that a Python value is, or that calls it.
#[pyfunction]
fn convert_func<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match value.is_instance_of::<Function>() {
        true => Ok(value.clone()),
        false => vectorcall::wrap(value.py(), function_of(value)?),
    }
}

fn function_of(value: &Bound<'_, PyAny>) -> PyResult<ffi::Function> {
    if let Ok(function) = value.cast::<Function>() {
        return Ok(function.get().0.clone());
    }
    if !value.is_callable() {
        let name = value.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!("Expect function to be callable, got {name}")));
    }
    Ok(from_callable(value))
}

#[pyfunction]
#[pyo3(signature = (name, allow_missing=false))]
fn get_global_func<'py>(py: Python<'py>, name: &str, allow_missing: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
    match ffi::get_global(name) {
        None if !allow_missing => Err(PyValueError::new_err(format!("Cannot find global function {name}"))),
        found => found.map(|function| vectorcall::wrap(py, function)).transpose(),
    }
}

#[pyfunction]
fn register_global_func(name: &str, func: &Bound<'_, PyAny>, overrides: bool) -> PyResult<()> {
    let function = function_of(func)?;
    if overrides {
        ffi::replace_global(name, function);
        return Ok(());
    }
    ffi::register_global(name, function).map_err(error::to_py)
}

#[pyfunction]
fn remove_global_func(name: &str) -> PyResult<()> {
    let missing = || PyValueError::new_err(format!("Cannot find global function {name}"));
    ffi::remove_global(name).map(|_| ()).ok_or_else(missing)
}

#[pyfunction]
fn list_global_func_names() -> Vec<String> {
    ffi::global_names()
}

/// What is known of a global function: `(documentation, JSON)`; both may be empty.
#[pyfunction]
fn describe_global_func(name: &str) -> PyResult<(String, String)> {
    let missing = || PyValueError::new_err(format!("Cannot find global function {name}"));
    ffi::describe_global(name).map(|found| (found.doc, found.metadata)).ok_or_else(missing)
}

#[pyfunction]
fn num_threads() -> usize {
    relaxide::num_threads()
}

#[pyfunction]
fn set_num_threads(count: usize) -> PyResult<()> {
    relaxide::set_num_threads(count).map_err(error::to_py)
}

/// Gives the memory to the system that is kept for later calls.
#[pyfunction]
fn release_cached_memory(py: Python<'_>) {
    py.detach(relaxide::runtime::memory::release_cached);
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("Function", vectorcall::function_class(m.py())?)?;
    m.add_function(wrap_pyfunction!(convert_func, m)?)?;
    m.add_function(wrap_pyfunction!(get_global_func, m)?)?;
    m.add_function(wrap_pyfunction!(register_global_func, m)?)?;
    m.add_function(wrap_pyfunction!(remove_global_func, m)?)?;
    m.add_function(wrap_pyfunction!(list_global_func_names, m)?)?;
    m.add_function(wrap_pyfunction!(describe_global_func, m)?)?;
    m.add_function(wrap_pyfunction!(num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(release_cached_memory, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)
}
