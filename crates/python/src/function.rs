//! Functions both ways, and the table of global ones.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use relaxide::ffi::{self, Any, AnyView};

use crate::{convert, error};

/// A function of any language.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Function(pub ffi::Function);

#[pymethods]
impl Function {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let args = args.iter().map(|arg| convert::from_py(&arg)).collect::<PyResult<Vec<Any>>>()?;
        // Kernels run without the interpreter's lock; a callback takes it again.
        let result = py.detach(|| {
            let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
            self.0.call(&views)
        });
        convert::to_py(py, result.map_err(error::to_py)?.as_view())
    }
}

/// A Python callable as a function.
pub fn from_callable(callable: &Bound<'_, PyAny>) -> ffi::Function {
    let callable: Py<PyAny> = callable.clone().unbind();
    ffi::Function::new(move |args| {
        Python::attach(|py| {
            let call = || {
                let args = args.iter().map(|arg| convert::to_py(py, *arg)).collect::<PyResult<Vec<_>>>()?;
                let result = callable.bind(py).call1(PyTuple::new(py, args)?)?;
                convert::from_py(&result)
            };
            call().map_err(|exception| error::from_py(py, exception))
        })
    })
}

#[pyfunction]
#[pyo3(signature = (name, allow_missing=false))]
fn get_global_func(name: &str, allow_missing: bool) -> PyResult<Option<Function>> {
    match ffi::get_global(name) {
        None if !allow_missing => Err(PyValueError::new_err(format!("Cannot find global function {name}"))),
        found => Ok(found.map(Function)),
    }
}

#[pyfunction]
fn register_global_func(name: &str, func: &Bound<'_, PyAny>, overrides: bool) -> PyResult<()> {
    let function = match func.cast::<Function>() {
        Ok(function) => function.get().0.clone(),
        Err(_) => from_callable(func),
    };
    if overrides {
        ffi::replace_global(name, function);
        return Ok(());
    }
    ffi::register_global(name, function).map_err(error::to_py)
}

#[pyfunction]
fn num_threads() -> usize {
    relaxide::num_threads()
}

#[pyfunction]
fn set_num_threads(count: usize) -> PyResult<()> {
    relaxide::set_num_threads(count).map_err(error::to_py)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(get_global_func, m)?)?;
    m.add_function(wrap_pyfunction!(register_global_func, m)?)?;
    m.add_function(wrap_pyfunction!(num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)
}
