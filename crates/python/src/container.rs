//! Containers as Python sees them: items are converted when they are asked for.
//!
//! The four share objects with the other side: what Python appends to a [`List`], a function sees. What the sequence and
//! mapping protocols need beyond these methods, the package's classes add.

use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use relaxide::ffi::{self, Any, Handle};

use crate::classes;
use crate::convert::{from_py, to_py};
use crate::error;
use crate::object::Object;

/// Declares a container class over a handle of `ffi`.
macro_rules! container {
    ($(#[$doc:meta])* $name:ident, $key:literal) => {
        $(#[$doc])*
        #[pyclass(frozen, subclass, extends = Object, module = "relaxide.ffi")]
        pub struct $name(ffi::$name);

        impl $name {
            /// A handle as an instance of the package's class.
            pub fn wrap(py: Python<'_>, value: ffi::$name) -> PyResult<Bound<'_, PyAny>> {
                let Some(class) = classes::of_object(py, value.as_object().type_index()) else {
                    let base = PyClassInitializer::from(Object::of(value.as_object().clone()));
                    return Ok(Bound::new(py, base.add_subclass($name(value)))?.into_any());
                };
                HANDED.with(|handed| handed.set(Some(value.into())));
                let made = class.call_method1("__new__", (&class,));
                HANDED.with(|handed| handed.set(None));
                made
            }
        }
    };
}

thread_local! {
    /// The container that the class that is about to be instantiated is for.
    static HANDED: std::cell::Cell<Option<Any>> = const { std::cell::Cell::new(None) };
}

/// What `__new__` works on: the container that [`wrap`](Array::wrap) handed over, or one of the given items.
fn handed_or<T: ffi::FromAny>(make: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    match HANDED.with(std::cell::Cell::take) {
        Some(value) => value.to().map_err(error::to_py),
        None => make(),
    }
}

fn with_base<T: Handle, C: pyo3::PyClass<BaseType = Object>>(value: &T, class: C) -> PyClassInitializer<C> {
    PyClassInitializer::from(Object::of(value.as_object().clone())).add_subclass(class)
}

container! {
    /// An immutable sequence.
    Array, "ffi.Array"
}
container! {
    /// A sequence that can change.
    List, "ffi.List"
}
container! {
    /// An immutable mapping.
    Map, "ffi.Map"
}
container! {
    /// A mapping that can change.
    Dict, "ffi.Dict"
}

fn items(iterable: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Any>> {
    match iterable {
        None => Ok(Vec::new()),
        Some(iterable) => iterable.try_iter()?.map(|item| from_py(&item?)).collect(),
    }
}

fn pairs(mapping: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(Any, Any)>> {
    let Some(mapping) = mapping else { return Ok(Vec::new()) };
    let entries = mapping.call_method0("items")?;
    let pair = |entry: Bound<'_, PyAny>| {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = entry.extract()?;
        Ok((from_py(&key)?, from_py(&value)?))
    };
    entries.try_iter()?.map(|entry| pair(entry?)).collect()
}

/// A position counted from the front.
fn position(index: isize, len: usize) -> PyResult<usize> {
    let at = if index < 0 { index + len as isize } else { index };
    let found = usize::try_from(at).ok().filter(|at| *at < len);
    found.ok_or_else(|| PyIndexError::new_err(format!("Index out of range. size: {len}, got index {index}")))
}

#[pymethods]
impl Array {
    #[new]
    #[pyo3(signature = (input_list=None))]
    fn new(input_list: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<Array>> {
        let array = handed_or(|| Ok(ffi::Array::from_vec(items(input_list)?)))?;
        Ok(with_base(&array, Array(array.clone())))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn _get<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let at = position(index, self.0.len())?;
        to_py(py, self.0.get(at).cloned().unwrap_or_default())
    }

    /// All items, converted.
    fn _items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let items = self.0.iter().map(|item| to_py(py, item.clone())).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, items)
    }
}

#[pymethods]
impl List {
    #[new]
    #[pyo3(signature = (input_list=None))]
    fn new(input_list: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<List>> {
        let list = handed_or(|| Ok(ffi::List::from_vec(items(input_list)?)))?;
        Ok(with_base(&list, List(list.clone())))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn _get<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let at = position(index, self.0.len())?;
        to_py(py, self.0.get(at).unwrap_or_default())
    }

    fn _items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let items = self.0.to_vec().into_iter().map(|item| to_py(py, item)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, items)
    }

    fn _set(&self, index: isize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (at, value) = (position(index, self.0.len())?, from_py(value)?);
        self.0.set(at, value).map(|_| ()).map_err(error::to_py)
    }

    fn _remove<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyAny>> {
        let at = position(index, self.0.len())?;
        to_py(py, self.0.remove(at).map_err(error::to_py)?)
    }

    /// Put a value before a position.
    fn insert(&self, index: isize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let len = self.0.len() as isize;
        let at = if index < 0 { (index + len).max(0) } else { index.min(len) };
        self.0.insert(at.unsigned_abs(), from_py(value)?).map_err(error::to_py)
    }

    /// Put a value behind the last.
    fn append(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.push(from_py(value)?);
        Ok(())
    }

    /// Remove all values.
    fn clear(&self) {
        self.0.clear();
    }
}

/// The value of a key as Python's mappings give it.
fn of_key<'py>(key: &Bound<'py, PyAny>, found: Option<Any>) -> PyResult<Bound<'py, PyAny>> {
    match found {
        Some(value) => to_py(key.py(), value),
        None => Err(PyKeyError::new_err("key is not in Map")),
    }
}

fn keys<'py>(py: Python<'py>, keys: impl Iterator<Item = Any>) -> PyResult<Bound<'py, PyTuple>> {
    let keys = keys.map(|key| to_py(py, key)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, keys)
}

#[pymethods]
impl Map {
    #[new]
    #[pyo3(signature = (input_dict=None))]
    fn new(input_dict: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<Map>> {
        let map = handed_or(|| Ok(ffi::Map::from_iter(pairs(input_dict)?)))?;
        Ok(with_base(&map, Map(map.clone())))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        of_key(key, self.0.get(from_py(key)?).cloned())
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.get(from_py(key)?).is_some())
    }

    fn _keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        keys(py, self.0.iter().map(|(key, _)| key.clone()))
    }
}

#[pymethods]
impl Dict {
    #[new]
    #[pyo3(signature = (input_dict=None))]
    fn new(input_dict: Option<&Bound<'_, PyAny>>) -> PyResult<PyClassInitializer<Dict>> {
        let make = || {
            let dict = ffi::Dict::new();
            for (key, value) in pairs(input_dict)? {
                dict.insert(key, value);
            }
            Ok(dict)
        };
        let dict = handed_or(make)?;
        Ok(with_base(&dict, Dict(dict.clone())))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        of_key(key, self.0.get(from_py(key)?))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.insert(from_py(key)?, from_py(value)?);
        Ok(())
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let removed = self.0.remove(from_py(key)?);
        removed.map(|_| ()).ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.0.get(from_py(key)?).is_some())
    }

    fn _keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        keys(py, self.0.to_map().iter().map(|(key, _)| key.clone()))
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Array>()?;
    m.add_class::<List>()?;
    m.add_class::<Map>()?;
    m.add_class::<Dict>()
}
