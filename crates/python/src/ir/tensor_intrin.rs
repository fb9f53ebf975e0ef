//! Tensor intrinsics to Python: made known by name, and looked up.

use pyo3::prelude::*;
use relaxide::ffi::{Any, Array, Error, ErrorKind, Ref};
use relaxide::tir::PrimFunc;
use relaxide::tir::s_tir::TensorIntrin;

use crate::{convert, error};

fn kernel(given: &Bound<'_, PyAny>) -> PyResult<Ref<PrimFunc>> {
    convert::from_py(given)?.to().map_err(error::to_py)
}

/// Makes an intrinsic known.
#[pyfunction]
fn register_tensor_intrin(
    name: &str,
    desc: &Bound<'_, PyAny>,
    implementation: &Bound<'_, PyAny>,
    replace: bool,
) -> PyResult<()> {
    let intrin = TensorIntrin { desc: kernel(desc)?, implementation: kernel(implementation)? };
    TensorIntrin::register(name, intrin, replace)
        .map_err(|e| error::to_py(Error::new(ErrorKind::ValueError, e.to_string())))
}

/// The description and the implementation of an intrinsic, if it is known.
#[pyfunction]
fn get_tensor_intrin<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let pair = |i: TensorIntrin| [Any::from(i.desc), Any::from(i.implementation)].into_iter().collect::<Array>();
    TensorIntrin::get(name).map(|intrin| convert::to_py(py, pair(intrin).into())).transpose()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(register_tensor_intrin, m)?)?;
    m.add_function(wrap_pyfunction!(get_tensor_intrin, m)?)
}
