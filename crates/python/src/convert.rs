//! Values both ways.
//!
//! The types that calls are made of most (tensors, numbers, text, `None`) are told by their exact type, one comparison of
//! addresses each; everything else by asking what it can do, in the order that `tvm_ffi` asks.

use std::cell::Cell;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTypeInfo, intern};
use relaxide::ffi::{self, Any, AnyView, Array, Map, ObjectRef, Ref};
use relaxide::ir::IRModule as IrModule;
use relaxide::relax::PrimValue;

use crate::call::from_callable;
use crate::container;
use crate::device::{DataType, Device};
use crate::function::Function;
use crate::ir::module::IRModule;
use crate::module::Module;
use crate::object::Object;
use crate::program::Target;
use crate::tensor::Tensor;
use crate::{classes, error, opaque};

/// The values that calls are made of most, told by their exact type. Nothing is made and no count changes.
///
/// # Safety
/// The object is alive, and stays so for as long as the view is used.
#[inline]
pub unsafe fn plain<'a>(py: Python<'_>, value: *mut pyo3::ffi::PyObject) -> Option<AnyView<'a>> {
    // SAFETY: the object is alive. Where its exact type is known, so is its layout.
    unsafe {
        let kind = pyo3::ffi::Py_TYPE(value);
        if kind == Tensor::type_object_raw(py) {
            let tensor = Borrowed::from_ptr(py, value).cast_unchecked::<Tensor>();
            return Some(AnyView::from_raw(AnyView::from(&tensor.get().0).raw()));
        }
        if kind == PyInt::type_object_raw(py) {
            let int = pyo3::ffi::PyLong_AsLongLong(value);
            // A failure is looked at where there is time for it.
            return if int == -1 {
                pyo3::ffi::PyErr_Clear();
                None
            } else {
                Some(int.into())
            };
        }
        if kind == PyFloat::type_object_raw(py) {
            return Some(pyo3::ffi::PyFloat_AsDouble(value).into());
        }
        if value == pyo3::ffi::Py_None() {
            return Some(AnyView::none());
        }
    }
    None
}

/// The values that calls return most, as new references; nothing where that fails or the value is of another kind.
#[inline]
pub fn plain_to_py(py: Python<'_>, value: &Any) -> Option<*mut pyo3::ffi::PyObject> {
    use ffi::abi::type_index as index;
    let value = value.as_view();
    match value.type_index() {
        index::TENSOR | index::NONE | index::INT | index::FLOAT | index::BOOL => {
            view_to_py(py, value).ok().map(Bound::into_ptr)
        }
        _ => None,
    }
}

/// A Python value as a value.
pub fn from_py(value: &Bound<'_, PyAny>) -> PyResult<Any> {
    if value.is_none() {
        return Ok(Any::none());
    }
    if let Ok(tensor) = value.cast::<Tensor>() {
        return Ok(tensor.get().0.clone().into());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(int) = value.cast::<PyInt>() {
        return integer(int);
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(float.value().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return string(text);
    }
    if let Some(own) = own_class(value) {
        return Ok(own);
    }
    let _level = Level::enter()?;
    match container(value)? {
        Some(value) => Ok(value),
        None => foreign(value),
    }
}

/// Values inside of values that are converted; Python's own limit. A list may hold itself.
const MOST_LEVELS: u32 = 1000;

/// One level of nested values.
struct Level;

thread_local! {
    static LEVELS: Cell<u32> = const { Cell::new(0) };
}

impl Level {
    fn enter() -> PyResult<Level> {
        let levels = LEVELS.get();
        if levels == MOST_LEVELS {
            let message = format!("a value holds values more than {MOST_LEVELS} levels deep; does it hold itself?");
            return Err(pyo3::exceptions::PyRecursionError::new_err(message));
        }
        LEVELS.set(levels + 1);
        Ok(Level)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        LEVELS.set(LEVELS.get() - 1);
    }
}

fn integer(int: &Bound<'_, PyInt>) -> PyResult<Any> {
    let overflow = |_| {
        let message = format!("{int} does not fit in 64 bits");
        pyo3::exceptions::PyOverflowError::new_err(message)
    };
    int.extract::<i64>().map(Any::from).map_err(overflow)
}

/// Text, or the element type that it stands for if it is of that class.
fn string(text: &Bound<'_, PyString>) -> PyResult<Any> {
    let content = text.to_cow()?;
    let is_dtype = !text.is_exact_instance_of::<PyString>()
        && classes::dtype(text.py()).is_some_and(|class| text.is_instance(class).unwrap_or(false));
    if is_dtype {
        return content.parse::<ffi::DataType>().map(Any::from).map_err(error::to_py);
    }
    Ok(content.as_ref().into())
}

/// A value that is one of this module's classes.
fn own_class(value: &Bound<'_, PyAny>) -> Option<Any> {
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
        return object.get().handle().map(Any::from);
    }
    if let Ok(module) = value.cast::<IRModule>() {
        return Some(module.get().get().into());
    }
    if let Ok(target) = value.cast::<Target>() {
        return Some(Ref::new(target.get().0.clone()).into());
    }
    None
}

/// Python's containers: what is in them is converted too.
fn container(value: &Bound<'_, PyAny>) -> PyResult<Option<Any>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Some(ffi::Bytes::new(bytes.as_bytes()).into()));
    }
    if let Ok(bytes) = value.cast::<pyo3::types::PyByteArray>() {
        return Ok(Some(ffi::Bytes::new(&bytes.to_vec()).into()));
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        if !tuple.is_exact_instance_of::<PyTuple>() && is_shape(tuple) {
            return Ok(Some(ffi::Shape::new(&tuple.extract::<Vec<i64>>()?).into()));
        }
        return Ok(Some(tuple.iter().map(|item| from_py(&item)).collect::<PyResult<Array>>()?.into()));
    }
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(Some(list.iter().map(|item| from_py(&item)).collect::<PyResult<Array>>()?.into()));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let pairs = dict.iter().map(|(key, item)| Ok((from_py(&key)?, from_py(&item)?)));
        return Ok(Some(pairs.collect::<PyResult<Map>>()?.into()));
    }
    Ok(None)
}

fn is_shape(tuple: &Bound<'_, PyTuple>) -> bool {
    classes::shape(tuple.py()).is_some_and(|class| tuple.is_instance(class).unwrap_or(false))
}

/// A value of another library; what nothing else is known of is passed on as it is.
fn foreign(value: &Bound<'_, PyAny>) -> PyResult<Any> {
    let py = value.py();
    if !value.is_instance_of::<PyType>() {
        if is_text_array(value)? {
            return from_py(&py.import("relaxide.runtime")?.getattr("TextTensor")?.call1((value,))?);
        }
        if value.hasattr(intern!(py, "__dlpack__"))? {
            return Ok(Tensor::_from_dlpack(value, 0, false)?.0.into());
        }
        if let Some(converted) = number(value)? {
            return Ok(converted);
        }
        // Of its class: there are objects that have an attribute of any name.
        if value.get_type().hasattr(intern!(py, "asobject"))? {
            return from_py(&value.call_method0(intern!(py, "asobject"))?);
        }
    }
    if value.is_instance(&py.import("ctypes")?.getattr("c_void_p")?)? {
        let address: Option<usize> = value.getattr("value")?.extract()?;
        return Ok(Any::from_ptr(std::ptr::without_provenance_mut(address.unwrap_or(0))));
    }
    if value.is_instance_of::<pyo3::exceptions::PyBaseException>() {
        return Ok(error::from_py(py, PyErr::from_value(value.clone())).into());
    }
    if is_numpy_dtype(value)? {
        return Ok(crate::device::data_type(value)?.into());
    }
    if value.is_callable() {
        return Ok(from_callable(value).into());
    }
    opaque::wrap(value).map(Any::from).map_err(error::to_py)
}

/// A number of another library, such as numpy's scalars.
fn number(value: &Bound<'_, PyAny>) -> PyResult<Option<Any>> {
    let py = value.py();
    if value.hasattr(intern!(py, "__index__"))? {
        return value.extract::<i64>().map(|int| Some(int.into()));
    }
    if value.hasattr(intern!(py, "__float__"))? && value.hasattr(intern!(py, "is_integer"))? {
        return value.extract::<f64>().map(|float| Some(float.into()));
    }
    Ok(None)
}

/// Whether it is an array of numpy that holds texts, which no memory is shared with.
fn is_text_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = value.py().import("sys")?.getattr("modules")?;
    let Some(numpy) = modules.cast::<PyDict>()?.get_item("numpy")? else { return Ok(false) };
    if !value.is_instance(&numpy.getattr("ndarray")?)? {
        return Ok(false);
    }
    let kind: String = value.getattr("dtype")?.getattr("kind")?.extract()?;
    Ok(matches!(kind.as_str(), "U" | "S" | "T" | "O"))
}

fn is_numpy_dtype(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    // Without numpy in the process there are none of its types.
    let modules = value.py().import("sys")?.getattr("modules")?;
    match modules.cast::<PyDict>()?.get_item("numpy")? {
        Some(numpy) => value.is_instance(&numpy.getattr("dtype")?),
        None => Ok(false),
    }
}

/// A value as a Python value.
#[inline]
pub fn to_py<'py>(py: Python<'py>, value: Any) -> PyResult<Bound<'py, PyAny>> {
    view_to_py(py, value.as_view())
}

/// A borrowed value as a Python value.
#[inline]
pub fn view_to_py<'py>(py: Python<'py>, value: AnyView<'_>) -> PyResult<Bound<'py, PyAny>> {
    use ffi::abi::type_index as index;
    match value.type_index() {
        index::TENSOR => {
            let tensor = value.as_tensor().cloned().ok_or_else(|| no_form(value))?;
            Tensor::wrap(py, tensor)
        }
        index::NONE => Ok(py.None().into_bound(py)),
        index::INT => Ok(value.as_int().into_pyobject(py)?.into_any()),
        index::FLOAT => Ok(value.as_float().into_pyobject(py)?.into_any()),
        index::BOOL => Ok(PyBool::new(py, value.as_int() == Some(1)).to_owned().into_any()),
        _ => rarer(py, value),
    }
}

fn rarer<'py>(py: Python<'py>, value: AnyView<'_>) -> PyResult<Bound<'py, PyAny>> {
    use ffi::abi::type_index as index;
    let get = error::to_py;
    if let Some(text) = value.as_str() {
        return Ok(PyString::new(py, text).into_any());
    }
    Ok(match value.type_index() {
        index::OPAQUE_PTR => py.import("ctypes")?.call_method1("c_void_p", (value.raw().word(),))?,
        index::DATA_TYPE => data_type(py, value.to().map_err(get)?)?,
        index::DEVICE => Bound::new(py, Device(value.to().map_err(get)?))?.into_any(),
        index::SHAPE => shape(py, &value.to().map_err(get)?)?,
        index::FUNCTION => crate::vectorcall::wrap(py, value.to().map_err(get)?)?,
        index::MODULE => Module::wrap(py, value.to().map_err(get)?)?,
        index::ARRAY => container::Array::wrap(py, value.to().map_err(get)?)?,
        index::LIST => container::List::wrap(py, value.to().map_err(get)?)?,
        index::MAP => container::Map::wrap(py, value.to().map_err(get)?)?,
        index::DICT => container::Dict::wrap(py, value.to().map_err(get)?)?,
        index::ERROR => error::to_py(value.to().map_err(get)?).into_value(py).into_bound(py).into_any(),
        index::DL_TENSOR_PTR => {
            // SAFETY: what Python is handed is an argument of a function that is being called; the Python function is told
            // not to keep it.
            let tensor = unsafe { ffi::Tensor::borrowed(value) }.ok_or_else(|| no_form(value))?;
            to_py(py, tensor.map_err(get)?.into())?
        }
        index::RAW_STR | index::BYTE_ARRAY_PTR | index::OBJECT_RVALUE_REF => {
            let owned = value.to_owned();
            if owned.type_index() == value.type_index() {
                return Err(no_form(value));
            }
            to_py(py, owned)?
        }
        _ => {
            if let Ok(bytes) = value.to::<ffi::Bytes>() {
                return Ok(PyBytes::new(py, bytes.as_slice()).into_any());
            }
            if let Some(original) = opaque::unwrap(py, value) {
                return Ok(original);
            }
            // A scalar that stands for a value is that scalar.
            if let Some(scalar) = value.downcast_ref::<PrimValue>() {
                return to_py(py, scalar.value.clone().into());
            }
            if let Some(module) = value.downcast_ref::<IrModule>() {
                return Ok(Bound::new(py, IRModule::of(module.clone()))?.into_any());
            }
            if let Some(target) = value.downcast_ref::<relaxide::ir::Target>() {
                return Ok(Bound::new(py, Target(relaxide::Target::clone(target)))?.into_any());
            }
            let object: ObjectRef = value.as_object().cloned().ok_or_else(|| no_form(value))?;
            Object::wrap(py, object)?
        }
    })
}

#[cold]
fn no_form(value: AnyView<'_>) -> PyErr {
    PyTypeError::new_err(format!("a value of kind {} has no form in Python", value.type_key()))
}

/// An element type as the package's class for it.
pub fn data_type<'py>(py: Python<'py>, dtype: ffi::DataType) -> PyResult<Bound<'py, PyAny>> {
    let text = PyString::new(py, &dtype.to_string());
    match classes::dtype(py) {
        Some(class) => class.call1((text,)),
        None => Ok(text.into_any()),
    }
}

/// A shape as the package's class for it.
pub fn shape<'py>(py: Python<'py>, dims: &ffi::Shape) -> PyResult<Bound<'py, PyAny>> {
    let tuple = PyTuple::new(py, dims.as_slice())?;
    match classes::shape(py) {
        Some(class) => class.call1((tuple,)),
        None => Ok(tuple.into_any()),
    }
}

/// A value as the package's class for it, whatever it is: what Python's own values become when they are containers.
#[pyfunction]
fn convert<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    to_py(value.py(), from_py(value)?)
}

/// The key of a value's type.
#[pyfunction]
fn type_key_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match from_py(value)?.type_key() {
        "" => Err(PyValueError::new_err("the value has no type")),
        key => Ok(key.to_string()),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(convert, m)?)?;
    m.add_function(wrap_pyfunction!(type_key_of, m)?)
}
