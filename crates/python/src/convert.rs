//! Values both ways.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use relaxide::ffi::{self, Any, AnyView, Array, Map, ObjectRef};
use relaxide::ir::IRModule as IrModule;

use crate::device::{DataType, Device};
use crate::function::Function;
use crate::module::Module;
use crate::program::IRModule;
use crate::tensor::{ShapeTuple, Tensor};

/// An object that Python only passes on.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Object(pub ObjectRef);

#[pymethods]
impl Object {
    /// The key of the object's type.
    #[getter]
    fn type_key(&self) -> String {
        self.0.type_key().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.0.type_key())
    }
}

/// A Python value as a value.
pub fn from_py(value: &Bound<'_, PyAny>) -> PyResult<Any> {
    if let Ok(tensor) = value.cast::<Tensor>() {
        return Ok(tensor.get().0.clone().into());
    }
    if value.is_none() {
        return Ok(Any::none());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(int) = value.cast::<PyInt>() {
        let int: i64 = int.extract().map_err(|_| PyOverflowError::new_err(format!("{int} does not fit in 64 bits")))?;
        return Ok(int.into());
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(float.value().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.as_ref().into());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(ffi::Bytes::new(bytes.as_bytes()).into());
    }
    own_class(value).map_or_else(|| foreign(value), Ok)
}

/// A value that is one of this module's classes.
fn own_class(value: &Bound<'_, PyAny>) -> Option<Any> {
    if let Ok(shape) = value.cast::<ShapeTuple>() {
        return Some(shape.get().0.clone().into());
    }
    if let Ok(function) = value.cast::<Function>() {
        return Some(function.get().0.clone().into());
    }
    if let Ok(module) = value.cast::<Module>() {
        return Some(module.get().0.clone().into());
    }
    if let Ok(device) = value.cast::<Device>() {
        return Some(device.get().0.into());
    }
    if let Ok(dtype) = value.cast::<DataType>() {
        return Some(dtype.get().0.into());
    }
    if let Ok(object) = value.cast::<Object>() {
        return Some(object.get().0.clone().into());
    }
    if let Ok(module) = value.cast::<IRModule>() {
        return Some(module.get().0.clone().into());
    }
    None
}

/// A value of Python's own or of another library.
fn foreign(value: &Bound<'_, PyAny>) -> PyResult<Any> {
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(list.iter().map(|item| from_py(&item)).collect::<PyResult<Array>>()?.into());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return Ok(tuple.iter().map(|item| from_py(&item)).collect::<PyResult<Array>>()?.into());
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let pairs = dict.iter().map(|(key, item)| Ok((from_py(&key)?, from_py(&item)?)));
        return Ok(pairs.collect::<PyResult<Map>>()?.into());
    }
    if value.hasattr("__dlpack__")? {
        return Ok(Tensor::_from_dlpack(value)?.0.into());
    }
    if let Ok(float) = value.extract::<f64>() {
        return Ok(float.into());
    }
    if value.is_instance(&value.py().import("ctypes")?.getattr("c_void_p")?)? {
        let address: Option<usize> = value.getattr("value")?.extract()?;
        return Ok(Any::from_ptr(std::ptr::without_provenance_mut(address.unwrap_or(0))));
    }
    if value.is_callable() {
        return Ok(crate::function::from_callable(value).into());
    }
    let name = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "a value of type {name} cannot be passed; expected a tensor, number, text, list or function"
    )))
}

/// A value as a Python value.
pub fn to_py<'py>(py: Python<'py>, value: AnyView<'_>) -> PyResult<Bound<'py, PyAny>> {
    use ffi::abi::type_index as index;
    let get = |error| crate::error::to_py(error);
    Ok(match value.type_index() {
        index::NONE => py.None().into_bound(py),
        index::BOOL => PyBool::new(py, value.as_int() == Some(1)).to_owned().into_any(),
        index::INT => value.as_int().into_pyobject(py)?.into_any(),
        index::FLOAT => value.as_float().into_pyobject(py)?.into_any(),
        index::OPAQUE_PTR => py.import("ctypes")?.call_method1("c_void_p", (value.raw().word(),))?,
        index::DATA_TYPE => PyString::new(py, &value.to::<ffi::DataType>().map_err(get)?.to_string()).into_any(),
        index::DEVICE => Bound::new(py, Device(value.to().map_err(get)?))?.into_any(),
        index::TENSOR => Bound::new(py, Tensor(value.to().map_err(get)?))?.into_any(),
        index::SHAPE => Bound::new(py, ShapeTuple(value.to().map_err(get)?))?.into_any(),
        index::FUNCTION => Bound::new(py, Function(value.to().map_err(get)?))?.into_any(),
        index::MODULE => Bound::new(py, Module(value.to().map_err(get)?))?.into_any(),
        index::ARRAY => {
            let array: Array = value.to().map_err(get)?;
            let items = array.iter().map(|item| to_py(py, item.as_view())).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any()
        }
        index::MAP => {
            let map: Map = value.to().map_err(get)?;
            let dict = PyDict::new(py);
            for (key, item) in map.iter() {
                dict.set_item(to_py(py, key.as_view())?, to_py(py, item.as_view())?)?;
            }
            dict.into_any()
        }
        _ => {
            if let Some(text) = value.as_str() {
                return Ok(PyString::new(py, text).into_any());
            }
            if let Ok(bytes) = value.to::<ffi::Bytes>() {
                return Ok(PyBytes::new(py, bytes.as_slice()).into_any());
            }
            if let Some(module) = value.downcast_ref::<IrModule>() {
                return Ok(Bound::new(py, IRModule(module.clone()))?.into_any());
            }
            let object: ObjectRef = value.as_object().cloned().ok_or_else(|| {
                PyTypeError::new_err(format!("a value of kind {} has no form in Python", value.type_key()))
            })?;
            Bound::new(py, Object(object))?.into_any()
        }
    })
}
