//! Objects of any type, with their reflected fields and methods as attributes.
//!
//! A type's fields and methods are what the type table says, whoever entered them: Rust, C, or a library. Classes that
//! users register for a type derive from [`Object`]; a value of the type comes to Python as an instance of its class.

use std::ffi::c_void;
use std::sync::OnceLock;

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use relaxide::ffi::abi::RawAny;
use relaxide::ffi::capi::{self, CFieldInfo, CMethodInfo, CTypeInfo};
use relaxide::ffi::{self, Any, AnyView, ObjectRef, error_slot, type_attr, type_info};

use crate::{classes, convert, error};

/// An object of any type.
#[pyclass(frozen, subclass, weakref, dict, module = "relaxide.ffi")]
pub struct Object {
    /// Filled when the object is made, which for a class with a constructor of its own is after its instance.
    handle: OnceLock<ObjectRef>,
}

impl Object {
    /// The object, unless none has been made for this instance.
    pub fn handle(&self) -> Option<ObjectRef> {
        self.handle.get().cloned()
    }

    fn object(&self) -> PyResult<&ObjectRef> {
        self.handle.get().ok_or_else(|| PyValueError::new_err("the object has not been initialized"))
    }

    /// What a subclass in this module begins with.
    pub fn of(object: ObjectRef) -> Object {
        Object { handle: OnceLock::from(object) }
    }

    /// An object as an instance of the class that is registered for its type.
    pub fn wrap(py: Python<'_>, object: ObjectRef) -> PyResult<Bound<'_, PyAny>> {
        let Some(class) = classes::of(py, &object)? else {
            return Ok(Bound::new(py, Object::of(object))?.into_any());
        };
        // The class's own constructor would make another object.
        let instance = class.call_method1("__new__", (&class,))?;
        instance.cast::<Object>()?.get().fill(object)?;
        Ok(instance)
    }

    fn fill(&self, object: ObjectRef) -> PyResult<()> {
        self.handle.set(object).map_err(|_| PyValueError::new_err("the object has been initialized already"))
    }

    fn info(&self) -> PyResult<Members> {
        Members::of(self.object()?.type_index())
    }

    /// The field or method of a name.
    fn member<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        let Some(object) = slf.get().handle.get() else { return Ok(None) };
        let members = Members::of(object.type_index())?;
        if let Some(field) = members.field(name) {
            return convert::to_py(py, read(object, field)?).map(Some);
        }
        let Some(method) = members.method(name) else { return Ok(None) };
        // SAFETY: the table owns the value.
        let function = convert::view_to_py(py, unsafe { AnyView::from_raw(method.method) })?;
        match method.flags & STATIC_METHOD {
            0 => py.import("functools")?.call_method1("partial", (function, slf)).map(Some),
            _ => Ok(Some(function)),
        }
    }
}

#[pymethods]
impl Object {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Object {
        Object { handle: OnceLock::new() }
    }

    /// Make the object by calling a function.
    #[pyo3(signature = (constructor, *args))]
    fn __init_handle_by_constructor__(
        &self,
        constructor: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let made = convert::from_py(&constructor.call1(args)?)?;
        let object = made.as_object().cloned();
        self.fill(object.ok_or_else(|| PyTypeError::new_err(format!("{} is no object", made.type_key())))?)
    }

    /// Make the object by the constructor that its type declares, with fields by position or name.
    #[pyo3(signature = (*args, **kwargs))]
    fn __ffi_init__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let key = slf.getattr("__tvm_ffi_type_key__")?.extract::<String>()?;
        let constructor = constructor_of(index_of(&key)?)
            .ok_or_else(|| PyTypeError::new_err(format!("objects of type {key} cannot be made from Python")))?;
        let function = convert::to_py(slf.py(), constructor)?;
        let given = kwargs.filter(|kwargs| !kwargs.is_empty());
        let Some(kwargs) = given else { return slf.get().__init_handle_by_constructor__(&function, args) };
        // Named arguments follow a mark, each behind its name.
        let mark =
            ffi::get_global("ffi.GetKwargsObject").map(|mark| mark.call(&[])).transpose().map_err(error::to_py)?;
        let mut all: Vec<Bound<'py, PyAny>> = args.iter().collect();
        all.push(convert::to_py(slf.py(), mark.unwrap_or_default())?);
        for (name, value) in kwargs.iter() {
            all.extend([name, value]);
        }
        slf.get().__init_handle_by_constructor__(&function, &PyTuple::new(slf.py(), all)?)
    }

    /// Whether two names stand for the same object.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Object>().is_ok_and(|other| match (self.handle.get(), other.get().handle.get()) {
            (Some(a), Some(b)) => a == b,
            _ => std::ptr::eq(self, other.get()),
        })
    }

    fn is_(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> usize {
        self.handle.get().map_or(0, |object| object.as_ptr() as usize >> 4)
    }

    /// The address of the object; 0 before there is one.
    fn __chandle__(&self) -> usize {
        self.handle.get().map_or(0, |object| object.as_ptr() as usize)
    }

    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        Object::member(slf, name)?.ok_or_else(|| {
            let kind = slf.get_type().name().map_or_else(|_| "Object".into(), |name| name.to_string());
            PyAttributeError::new_err(format!("'{kind}' object has no attribute '{name}'"))
        })
    }

    /// A reflected field or method, where the class gives its name another meaning.
    fn _field<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        Object::__getattr__(slf, name)
    }

    fn __setattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Some(object) = slf.get().handle.get()
            && let Some(field) = Members::of(object.type_index())?.field(name.to_cow()?.as_ref())
        {
            return write(object, field, &convert::from_py(value)?);
        }
        let py = slf.py();
        py.get_type::<PyAny>().call_method1("__setattr__", (slf, name, value)).map(|_| ())
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<String>> {
        let own = slf.py().get_type::<PyAny>().call_method1("__dir__", (slf,))?.extract::<Vec<String>>()?;
        let members = slf.get().info().map_or_else(|_| Vec::new(), |members| members.names());
        Ok(own.into_iter().chain(members).collect())
    }

    fn __repr__(&self) -> PyResult<String> {
        let Some(object) = self.handle.get() else { return Ok("<an object that is not initialized>".into()) };
        let printed = ffi::get_global("ffi.ReprPrint").map(|print| print.call(&[AnyView::from(object)]));
        let printed = printed.transpose().map_err(error::to_py)?.and_then(|text| text.as_str().map(str::to_string));
        Ok(printed.unwrap_or_else(|| object.type_key().to_string()))
    }
}

/// Set where a method takes no object.
const STATIC_METHOD: i64 = 1 << 2;
/// Set where a field may be written.
const WRITABLE: i64 = 1;
/// Set where a field is written by a function object.
const SETTER_IS_FUNCTION: i64 = 1 << 11;

/// The fields and methods of a type and of those that it refines.
struct Members {
    fields: Vec<&'static CFieldInfo>,
    methods: Vec<&'static CMethodInfo>,
}

impl Members {
    fn of(index: i32) -> PyResult<Members> {
        // SAFETY: any index may be asked for, and the table's entries live for ever.
        let info = unsafe { capi::TVMFFIGetTypeInfo(index).as_ref() };
        let info = info.ok_or_else(|| PyTypeError::new_err(format!("there is no type of index {index}")))?;
        // SAFETY: a type has as many ancestors as it is deep; their entries live for ever.
        let ancestors = (0..info.type_depth.max(0) as usize).map(|at| unsafe { &**info.ancestors.add(at) });
        let (mut fields, mut methods) = (Vec::new(), Vec::new());
        for level in ancestors.chain([info]) {
            fields.extend(slice(level.fields, level.num_fields));
            methods.extend(slice(level.methods, level.num_methods));
        }
        Ok(Members { fields, methods })
    }

    /// The last of that name: a type may refine a field of the type that it refines.
    fn field(&self, name: &str) -> Option<&'static CFieldInfo> {
        // SAFETY: names in the table live for ever.
        self.fields.iter().rev().find(|field| unsafe { field.name.as_slice() } == name.as_bytes()).copied()
    }

    fn method(&self, name: &str) -> Option<&'static CMethodInfo> {
        // SAFETY: as above.
        self.methods.iter().rev().find(|method| unsafe { method.name.as_slice() } == name.as_bytes()).copied()
    }

    fn names(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|field| field.name);
        let names = fields.chain(self.methods.iter().map(|method| method.name));
        // SAFETY: as above.
        names.map(|name| String::from_utf8_lossy(unsafe { name.as_slice() }).into_owned()).collect()
    }
}

/// A table of a type.
fn slice<T>(first: *const T, count: i32) -> &'static [T] {
    match usize::try_from(count) {
        // SAFETY: tables have as many entries as the type says and live for ever.
        Ok(count) if count > 0 && !first.is_null() => unsafe { std::slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

/// Reads a field of an object of the type that declares it.
/// The value of a reflected field of an object.
pub fn field<'py>(py: Python<'py>, object: &ObjectRef, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match Members::of(object.type_index())?.field(name) {
        Some(field) => convert::to_py(py, read(object, field)?),
        None => Err(PyAttributeError::new_err(format!("{} has no field {name}", object.type_key()))),
    }
}

fn read(object: &ObjectRef, field: &CFieldInfo) -> PyResult<Any> {
    let Some(getter) = field.getter else { return Err(PyAttributeError::new_err("the field cannot be read")) };
    let mut out = RawAny::NONE;
    // SAFETY: the field lies in the object at that distance, and the getter is its own; it leaves an owned value.
    unsafe {
        let address = object.as_ptr().cast::<c_void>().byte_offset(field.offset as isize);
        match getter(address, &raw mut out) {
            0 => Ok(Any::from_raw(out)),
            code => Err(error::to_py(error_slot::take_after(code))),
        }
    }
}

/// Writes a field of an object of the type that declares it.
fn write(object: &ObjectRef, field: &CFieldInfo, value: &Any) -> PyResult<()> {
    // SAFETY: the name lives for ever.
    let name = || String::from_utf8_lossy(unsafe { field.name.as_slice() });
    if field.flags & WRITABLE == 0 || field.setter.is_null() {
        return Err(PyAttributeError::new_err(format!(
            "property '{}' of '{}' object has no setter",
            name(),
            object.type_key()
        )));
    }
    // SAFETY: the field lies in the object at that distance.
    let address = unsafe { object.as_ptr().cast::<c_void>().byte_offset(field.offset as isize) };
    let view = value.as_view();
    let code = if field.flags & SETTER_IS_FUNCTION != 0 {
        let (address, mut result) = (Any::from_ptr(address), RawAny::NONE);
        let args = [address.as_view().raw(), view.raw()];
        // SAFETY: the flag says that the setter is a function object, of an address and a value.
        unsafe { capi::TVMFFIFunctionCall(field.setter, args.as_ptr(), 2, &raw mut result) }
    } else {
        type Setter = unsafe extern "C" fn(*mut c_void, *const RawAny) -> std::ffi::c_int;
        let raw = view.raw();
        // SAFETY: without the flag the setter is a C function of this type.
        unsafe { std::mem::transmute::<*mut c_void, Setter>(field.setter)(address, &raw const raw) }
    };
    match code {
        0 => Ok(()),
        code => Err(error::to_py(error_slot::take_after(code))),
    }
}

/// The function that makes objects of a type: a method, or else an attribute of the type.
fn constructor_of(index: i32) -> Option<Any> {
    let method = Members::of(index).ok()?.method("__ffi_init__").map(|method| {
        // SAFETY: the table owns the value.
        unsafe { AnyView::from_raw(method.method) }.to_owned()
    });
    method.or_else(|| type_attr::get(type_attr::Attr::Init, index))
}

/// Whether objects of a type can be made.
#[pyfunction]
fn has_constructor(key: &str) -> PyResult<bool> {
    Ok(constructor_of(index_of(key)?).is_some())
}

/// The index of a type.
#[pyfunction]
fn type_index(key: &str) -> PyResult<i32> {
    index_of(key)
}

/// The reflected fields of a type by name: `(name, whether it can be written)`.
#[pyfunction]
fn type_fields(key: &str) -> PyResult<Vec<(String, bool)>> {
    let fields = Members::of(index_of(key)?)?.fields;
    // SAFETY: names in the table live for ever.
    let name = |field: &CFieldInfo| String::from_utf8_lossy(unsafe { field.name.as_slice() }).into_owned();
    Ok(fields.into_iter().map(|field| (name(field), field.flags & WRITABLE != 0)).collect())
}

/// The reflected static methods of a type by name.
#[pyfunction]
fn type_static_methods<'py>(py: Python<'py>, key: &str) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let methods = Members::of(index_of(key)?)?.methods;
    let chosen = methods.into_iter().filter(|method| method.flags & STATIC_METHOD != 0);
    let entry = |method: &CMethodInfo| {
        // SAFETY: the table owns name and value for ever.
        let (name, view) = unsafe { (method.name.as_slice(), AnyView::from_raw(method.method)) };
        Ok((String::from_utf8_lossy(name).into_owned(), convert::view_to_py(py, view)?))
    };
    chosen.map(entry).collect()
}

/// The keys of a type and of those that it refines, the root first.
#[pyfunction]
fn type_ancestors(key: &str) -> PyResult<Vec<String>> {
    let index = index_of(key)?;
    // SAFETY: the table's entries live for ever; a type has as many ancestors as it is deep.
    let levels = unsafe {
        let info: &CTypeInfo =
            capi::TVMFFIGetTypeInfo(index).as_ref().ok_or_else(|| PyTypeError::new_err("the type is gone"))?;
        (0..info.type_depth.max(0) as usize).map(|at| &**info.ancestors.add(at)).chain([info]).collect::<Vec<_>>()
    };
    // SAFETY: as above.
    Ok(levels.iter().map(|level| String::from_utf8_lossy(unsafe { level.type_key.as_slice() }).into_owned()).collect())
}

fn index_of(key: &str) -> PyResult<i32> {
    type_info::type_index_of_key(key)
        .ok_or_else(|| PyValueError::new_err(format!("Cannot find object type index for {key}")))
}

/// Whether a class is registered for a key.
#[pyfunction]
fn registered_class<'py>(py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyType>>> {
    Ok(classes::of_object(py, index_of(key)?))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Object>()?;
    m.add_function(wrap_pyfunction!(type_fields, m)?)?;
    m.add_function(wrap_pyfunction!(type_static_methods, m)?)?;
    m.add_function(wrap_pyfunction!(type_ancestors, m)?)?;
    for function in [
        wrap_pyfunction!(registered_class, m)?,
        wrap_pyfunction!(has_constructor, m)?,
        wrap_pyfunction!(type_index, m)?,
    ] {
        m.add_function(function)?;
    }
    Ok(())
}
