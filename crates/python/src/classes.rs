//! Classes that the Python package gives to values whose behaviour is a Python type's: element types are text, shapes are
//! tuples, and types that users register have classes of their own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use relaxide::ffi::{ObjectRef, type_info};

/// The class of element types, a subclass of `str`.
static DTYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
/// The class of shapes, a subclass of `tuple`.
static SHAPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
/// The classes of object types, by type index.
static OBJECTS: RwLock<Vec<Option<Py<PyType>>>> = RwLock::new(Vec::new());

/// The class of element types, once the package has said.
pub fn dtype(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    DTYPE.get(py).map(|class| class.bind(py))
}

/// The class of shapes, once the package has said.
pub fn shape(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    SHAPE.get(py).map(|class| class.bind(py))
}

/// What tells the kinds of a type apart: a field, and a dictionary from its values to classes. By type index.
static KINDS: RwLock<Vec<(i32, String, Py<PyDict>)>> = RwLock::new(Vec::new());

/// The class for an object: that of its kind where its type has several, else that of its type.
pub fn of<'py>(py: Python<'py>, object: &ObjectRef) -> PyResult<Option<Bound<'py, PyType>>> {
    let index = object.type_index();
    let found = {
        let kinds = KINDS.read().unwrap_or_else(PoisonError::into_inner);
        let own = kinds.iter().find(|(own, ..)| *own == index);
        own.map(|(_, field, classes)| (field.clone(), classes.clone_ref(py)))
    };
    if let Some((field, classes)) = found
        && let Some(class) = classes.bind(py).get_item(crate::object::field(py, object, &field)?)?
    {
        return Ok(Some(class.cast_into::<PyType>()?));
    }
    Ok(of_object(py, index))
}

/// The class that was registered for a type of object, or for the nearest of its ancestors.
pub fn of_object<'py>(py: Python<'py>, index: i32) -> Option<Bound<'py, PyType>> {
    let classes = OBJECTS.read().unwrap_or_else(PoisonError::into_inner);
    let own = |index: i32| Some(classes.get(usize::try_from(index).ok()?)?.as_ref()?.bind(py).clone());
    own(index).or_else(|| {
        let info = type_info::type_info(index)?;
        info.ancestors().iter().rev().find_map(|ancestor| own(*ancestor))
    })
}

/// Which of tensors, functions and modules have a class that a user registered: a bit each, so that values that have none
/// cost one look.
static REPLACED: AtomicU32 = AtomicU32::new(0);

fn bit(index: i32) -> u32 {
    use relaxide::ffi::abi::type_index;
    match index {
        type_index::TENSOR => 1,
        type_index::FUNCTION => 2,
        type_index::MODULE => 4,
        _ => 0,
    }
}

/// The class that a user registered for tensors, functions or modules, whose own classes are this module's.
#[inline]
pub fn replacing(py: Python<'_>, index: i32) -> Option<Bound<'_, PyType>> {
    match REPLACED.load(Ordering::Relaxed) & bit(index) {
        0 => None,
        _ => of_object(py, index),
    }
}

/// What a registered class of tensors, functions or modules must refine: its values are instances of that.
fn own_class<'py>(py: Python<'py>, index: i32) -> PyResult<Option<Bound<'py, PyType>>> {
    Ok(match bit(index) {
        1 => Some(py.get_type::<crate::tensor::Tensor>()),
        2 => Some(crate::vectorcall::function_class(py)?.clone()),
        4 => Some(py.get_type::<crate::module::Module>()),
        _ => None,
    })
}

#[pyfunction]
fn set_dtype_class(py: Python<'_>, class: Py<PyType>) {
    let _ = DTYPE.set(py, class);
}

#[pyfunction]
fn set_shape_class(py: Python<'_>, class: Py<PyType>) {
    let _ = SHAPE.set(py, class);
}

/// Gives a type of object a class; returns the type's index.
#[pyfunction]
fn set_object_class(py: Python<'_>, key: &str, class: Py<PyType>) -> PyResult<i32> {
    let index = type_info::type_index_of_key(key)
        .ok_or_else(|| PyValueError::new_err(format!("Cannot find object type index for {key}")))?;
    if let Some(own) = own_class(py, index)? {
        let class = class.bind(py);
        if !class.is_subclass(&own)? {
            let message = format!("the class {} for {key} does not derive from {}", class.name()?, own.name()?);
            return Err(PyTypeError::new_err(message));
        }
        match class.is(&own) {
            true => REPLACED.fetch_and(!bit(index), Ordering::Relaxed),
            false => REPLACED.fetch_or(bit(index), Ordering::Relaxed),
        };
    }
    let position = usize::try_from(index).unwrap_or(0);
    let mut classes = OBJECTS.write().unwrap_or_else(PoisonError::into_inner);
    if classes.len() <= position {
        classes.resize_with(position + 1, || None);
    }
    classes[position] = Some(class);
    Ok(index)
}

/// Give the kinds of a type classes of their own: those whose field has a value are instances of the class for it.
#[pyfunction]
fn set_kind_classes(key: &str, field: String, classes: Py<PyDict>) -> PyResult<()> {
    let index = type_info::type_index_of_key(key)
        .ok_or_else(|| PyValueError::new_err(format!("Cannot find object type index for {key}")))?;
    let mut kinds = KINDS.write().unwrap_or_else(PoisonError::into_inner);
    kinds.retain(|(own, ..)| *own != index);
    kinds.push((index, field, classes));
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_dtype_class, m)?)?;
    m.add_function(wrap_pyfunction!(set_shape_class, m)?)?;
    m.add_function(wrap_pyfunction!(set_kind_classes, m)?)?;
    m.add_function(wrap_pyfunction!(set_object_class, m)?)
}
