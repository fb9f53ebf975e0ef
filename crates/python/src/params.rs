//! Weights by name as bytes, in the form that TVM saves them in.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use relaxide::ffi::Tensor;
use relaxide::vm::executable::params;

use crate::convert;
use crate::error::to_py;

/// The bytes of a dictionary from names to tensors.
#[pyfunction]
fn save_params<'py>(py: Python<'py>, tensors: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let entry = |item: Bound<'py, PyAny>| {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        Ok((name, convert::from_py(&value)?.to::<Tensor>().map_err(to_py)?))
    };
    let items = tensors.call_method0("items")?;
    let all = items.try_iter()?.map(|item| entry(item?)).collect::<PyResult<Vec<_>>>()?;
    let bytes = params::save(&all).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The dictionary from names to tensors that bytes hold.
#[pyfunction]
fn load_params<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let all = params::load(bytes).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let tensors = PyDict::new(py);
    for (name, tensor) in all {
        tensors.set_item(name, convert::to_py(py, tensor.into())?)?;
    }
    Ok(tensors)
}

/// The tensors of a file of weights by name.
#[pyfunction]
fn read_tensors(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let all = py.detach(|| relaxide::read_tensors(&path)).map_err(to_py)?;
    let tensors = PyDict::new(py);
    for (name, tensor) in all {
        tensors.set_item(name, convert::to_py(py, tensor.into())?)?;
    }
    Ok(tensors)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(save_params, m)?)?;
    m.add_function(wrap_pyfunction!(load_params, m)?)?;
    m.add_function(wrap_pyfunction!(read_tensors, m)?)
}
