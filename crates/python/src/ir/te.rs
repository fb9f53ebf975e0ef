//! The compute language to Python: tensors by an expression for each element, and kernels of them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use relaxide::ffi::{Any, DataType};
use relaxide::ir::prim::PrimExpr;
use relaxide::tir::te;

use super::args;
use crate::device::data_type;
use crate::{convert, error};

/// A tensor of a compute graph.
#[pyclass(frozen, subclass, from_py_object, module = "relaxide.te")]
#[derive(Clone)]
pub struct TeTensor(te::Tensor);

/// An axis that a reduction runs over.
#[pyclass(frozen, from_py_object, module = "relaxide.te")]
#[derive(Clone)]
pub struct ReduceAxis(te::ReduceAxis);

/// A reduction, which is the whole body of a compute.
#[pyclass(frozen, from_py_object, module = "relaxide.te")]
#[derive(Clone)]
pub struct Reduction(te::Reduction);

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<PrimExpr> {
    if let Ok(axis) = value.extract::<ReduceAxis>() {
        return Ok(axis.0.var());
    }
    args::prim_expr(convert::from_py(value)?.as_view()).map_err(error::to_py)
}

fn scalars(value: &Bound<'_, PyAny>) -> PyResult<Vec<PrimExpr>> {
    let items = value.try_iter()?.map(|item| scalar(&item?)).collect::<PyResult<Vec<_>>>()?;
    Ok(items)
}

fn give<'py>(py: Python<'py>, value: impl Into<Any>) -> PyResult<Bound<'py, PyAny>> {
    convert::to_py(py, value.into())
}

#[pymethods]
impl TeTensor {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Its element type.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::data_type(py, self.0.dtype())
    }

    /// How many dimensions it has.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// Its dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape().iter().map(|dim| give(py, dim.clone())).collect::<PyResult<Vec<_>>>()?)
    }

    /// One element.
    #[pyo3(signature = (*indices))]
    fn __call__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        if indices.len() != self.0.ndim() {
            let message = format!("{} has {} dimensions, not {}", self.0.name(), self.0.ndim(), indices.len());
            return Err(PyValueError::new_err(message));
        }
        give(py, self.0.at(&scalars(indices)?))
    }

    fn __repr__(&self) -> String {
        let dims: Vec<String> = self.0.shape().iter().map(relaxide::script::print_prim).collect();
        format!("Tensor(shape=[{}], name={}, dtype={})", dims.join(", "), self.0.name(), self.0.dtype())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.extract::<TeTensor>().is_ok_and(|other| other.0 == self.0)
    }

    fn __hash__(&self) -> usize {
        relaxide::ffi::Ref::as_ptr(self.0.buffer()) as usize >> 4
    }
}

#[pymethods]
impl ReduceAxis {
    /// The axis as an index.
    #[getter]
    fn var<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give(py, self.0.var())
    }

    /// How many values it takes.
    #[getter]
    fn extent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        give(py, self.0.extent().clone())
    }

    /// The axis as an index, where it stands in an expression.
    fn asobject<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.var(py)
    }
}

#[pyfunction]
fn te_placeholder(shape: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>, name: &str) -> PyResult<TeTensor> {
    Ok(TeTensor(te::placeholder(name, scalars(shape)?, data_type(dtype)?)))
}

/// What a body gives for each output.
fn body(value: &Bound<'_, PyAny>) -> PyResult<te::Body> {
    match value.extract::<Reduction>() {
        Ok(reduction) => Ok(te::Body::Reduction(reduction.0)),
        Err(_) => scalar(value).map(te::Body::Element),
    }
}

/// The tensor whose element at some axis values is what a function says.
#[pyfunction]
fn te_compute<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    axes: Vec<String>,
    fcompute: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<TeTensor> {
    let names: Vec<&str> = axes.iter().map(String::as_str).collect();
    let compute = te::Compute::new(name, scalars(shape)?).axes(&names);
    let call = |axes: &[PrimExpr]| {
        let axes = axes.iter().map(|axis| give(py, axis.clone())).collect::<PyResult<Vec<_>>>()?;
        let value = fcompute.call1(PyTuple::new(py, axes)?)?;
        if value.is_instance_of::<PyTuple>() || value.is_instance_of::<pyo3::types::PyList>() {
            let message = "a compute of several tensors is written as several computes";
            return Err(PyTypeError::new_err(message));
        }
        body(&value)
    };
    // The function runs inside of the builder, which takes no errors from it: one waits here.
    let mut failed = None;
    let tensor = compute.build(|axes| {
        call(axes).unwrap_or_else(|error| {
            failed = Some(error);
            te::Body::Element(PrimExpr::from(0))
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(TeTensor(tensor)),
    }
}

#[pyfunction]
fn te_reduce_axis(extent: &Bound<'_, PyAny>, name: &str) -> PyResult<ReduceAxis> {
    Ok(ReduceAxis(te::reduce_axis_named(name, scalar(extent)?)))
}

#[pyfunction]
fn te_reduce(kind: &str, value: &Bound<'_, PyAny>, axes: Vec<ReduceAxis>) -> PyResult<Reduction> {
    let value = scalar(value)?;
    let axes: Vec<te::ReduceAxis> = axes.into_iter().map(|axis| axis.0).collect();
    Ok(Reduction(match kind {
        "sum" => te::sum(value, axes),
        "prod" => te::prod(value, axes),
        "max" => te::max(value, axes),
        "min" => te::min(value, axes),
        _ => return Err(PyValueError::new_err(format!("there is no reduction {kind}"))),
    }))
}

/// The kernel of tensors: inputs first, then outputs.
#[pyfunction]
fn te_create_prim_func<'py>(py: Python<'py>, tensors: Vec<TeTensor>) -> PyResult<Bound<'py, PyAny>> {
    let tensors: Vec<te::Tensor> = tensors.into_iter().map(|tensor| tensor.0).collect();
    let kernel = te::create_prim_func(&tensors).map_err(|error| PyValueError::new_err(error.to_string()))?;
    give(py, relaxide::ffi::Ref::new(kernel))
}

/// The kernel of inputs and outputs, and the scalars that it takes between them.
#[pyfunction]
fn te_make_kernel<'py>(
    py: Python<'py>,
    name: &str,
    inputs: Vec<TeTensor>,
    outputs: Vec<TeTensor>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>)> {
    let of = |tensors: Vec<TeTensor>| tensors.into_iter().map(|tensor| tensor.0).collect();
    let (kernel, scalars) = relaxide::relax::builder::make_kernel(name, of(inputs), of(outputs))
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let scalars = scalars.into_iter().map(|var| give(py, var)).collect::<PyResult<Vec<_>>>()?;
    Ok((give(py, relaxide::ffi::Ref::new(kernel))?, scalars))
}

/// The element type of a scalar expression.
#[pyfunction]
fn te_dtype<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let dtype: DataType = scalar(value)?.dtype();
    convert::data_type(py, dtype)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TeTensor>()?;
    m.add_class::<ReduceAxis>()?;
    m.add_class::<Reduction>()?;
    m.add_function(wrap_pyfunction!(te_placeholder, m)?)?;
    m.add_function(wrap_pyfunction!(te_compute, m)?)?;
    m.add_function(wrap_pyfunction!(te_reduce_axis, m)?)?;
    m.add_function(wrap_pyfunction!(te_reduce, m)?)?;
    m.add_function(wrap_pyfunction!(te_create_prim_func, m)?)?;
    m.add_function(wrap_pyfunction!(te_make_kernel, m)?)?;
    m.add_function(wrap_pyfunction!(te_dtype, m)?)
}
