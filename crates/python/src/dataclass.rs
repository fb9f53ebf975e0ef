//! Types of objects that Python declares: fields with a kind of storage, a conversion and a default.
//!
//! The type goes into the type table with all that reflection knows, so that objects of it are printed, compared, hashed,
//! copied and written as JSON like any other, and made from any language.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use relaxide::ffi::abi::{ByteArray, RawAny, type_index};
use relaxide::ffi::capi::{self, CFieldInfo, CTypeInfo, CTypeMetadata};
use relaxide::ffi::reflect::{Getter, flags};
use relaxide::ffi::{self, Any, AnyView, error_slot, type_attr, type_info};

use crate::{convert, error};

/// A field as Python declares it.
#[derive(FromPyObject)]
struct FieldSpec {
    name: String,
    doc: String,
    schema: String,
    /// `"int"`, `"float"`, `"bool"`, or anything else for a field that holds any value.
    storage: String,
    flags: i64,
    default: Option<Py<PyAny>>,
    converter: Py<PyAny>,
}

/// How many bytes a kind of storage takes, and the index of its type.
fn layout(storage: &str) -> (i64, i32) {
    match storage {
        "int" => (8, type_index::INT),
        "float" => (8, type_index::FLOAT),
        "bool" => (1, type_index::BOOL),
        _ => (size_of::<RawAny>() as i64, type_index::ANY),
    }
}

fn check(code: c_int) -> PyResult<()> {
    if code == 0 { Ok(()) } else { Err(error::to_py(error_slot::take_after(code))) }
}

fn global(name: &str, args: &[AnyView<'_>]) -> PyResult<Any> {
    let missing = || PyValueError::new_err(format!("{name} is not registered"));
    ffi::get_global(name).ok_or_else(missing)?.call(args).map_err(error::to_py)
}

/// Converts the value of a field with the Python function that `converter` is.
unsafe extern "C" fn convert_field(converter: *mut c_void, value: *const RawAny, result: *mut RawAny) -> c_int {
    error_slot::guard(|| {
        Python::attach(|py| {
            // SAFETY: the function was leaked when the type was declared; the value is borrowed from the caller.
            let (converter, value) = unsafe { (Borrowed::from_ptr(py, converter.cast()), AnyView::from_raw(*value)) };
            let converted = converter.call1((convert::view_to_py(py, value)?,))?;
            let converted = convert::from_py(&converted)?;
            // SAFETY: the caller has a place for the result.
            unsafe { result.write(converted.into_raw()) };
            Ok(())
        })
        .map_err(|raised| Python::attach(|py| error::from_py(py, raised)))
    })
}

fn info(index: i32) -> PyResult<&'static CTypeInfo> {
    // SAFETY: any index may be asked for; entries live for ever.
    let info = unsafe { capi::TVMFFIGetTypeInfo(index).as_ref() };
    info.ok_or_else(|| PyValueError::new_err(format!("there is no type of index {index}")))
}

/// Where the fields of a refining type begin: behind those of the type that it refines.
fn end_of(info: &CTypeInfo) -> i64 {
    let header = size_of::<ffi::ObjectHeader>() as i64;
    let own = |info: &CTypeInfo| {
        let count = usize::try_from(info.num_fields).unwrap_or(0);
        // SAFETY: a type has as many fields as it says.
        let fields = if count == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(info.fields, count) } };
        fields.iter().map(|field| field.offset + field.size).max().unwrap_or(header)
    };
    // SAFETY: a type has as many ancestors as it is deep.
    let ancestors = (0..usize::try_from(info.type_depth).unwrap_or(0)).map(|at| unsafe { &**info.ancestors.add(at) });
    ancestors.map(own).chain([own(info)]).max().unwrap_or(header)
}

fn up_to(offset: i64, alignment: i64) -> i64 {
    (offset + alignment - 1) / alignment * alignment
}

/// Declares a type that refines another; returns its index.
#[pyfunction]
fn declare_type(
    py: Python<'_>,
    key: &str,
    parent: &str,
    fields: Vec<FieldSpec>,
    kind: i32,
    doc: &str,
) -> PyResult<i32> {
    if type_info::type_index_of_key(key).is_some() {
        return Err(PyValueError::new_err(format!("Type key '{key}' is already registered")));
    }
    let parent = type_info::type_index_of_key(parent)
        .ok_or_else(|| PyValueError::new_err(format!("Cannot find object type index for {parent}")))?;
    let parent_info = info(parent)?;
    let name = ByteArray::new(key.as_bytes());
    // SAFETY: the key is readable, and copied.
    let index =
        unsafe { capi::TVMFFITypeGetOrAllocIndex(&raw const name, -1, parent_info.type_depth + 1, 0, 1, parent) };
    if index < 0 {
        return Err(PyValueError::new_err(format!("the type {key} cannot be declared")));
    }
    let mut offset = end_of(parent_info);
    for field in fields {
        let (size, kind) = layout(&field.storage);
        offset = up_to(offset, size.min(8));
        register_field(py, index, field, offset, size, kind)?;
        offset += size;
    }
    let total = up_to(offset, 8);
    global("ffi._PyClassRegisterTypeAttrColumns", &[i64::from(index).into(), total.into()])?;
    let total_size = i32::try_from(total).map_err(|_| PyValueError::new_err("the type has too many fields"))?;
    let metadata =
        CTypeMetadata { doc: ByteArray::new(doc.as_bytes()), creator: None, total_size, structural_kind: kind };
    // SAFETY: the description is readable and true.
    check(unsafe { capi::TVMFFITypeRegisterMetadata(index, &raw const metadata) })?;
    Ok(index)
}

fn register_field(py: Python<'_>, index: i32, field: FieldSpec, offset: i64, size: i64, kind: i32) -> PyResult<()> {
    let address: i64 = global("ffi.MakeFieldGetter", &[i64::from(kind).into()])?.to().map_err(error::to_py)?;
    let address = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
    // SAFETY: the function gives the addresses of getters.
    let getter = unsafe { std::mem::transmute::<*mut c_void, Getter>(address) };
    let converter = field.converter.into_ptr().expose_provenance() as i64;
    let callback = (convert_field as *const ()).expose_provenance() as i64;
    let setter = global("ffi.MakeFieldSetter", &[i64::from(kind).into(), converter.into(), callback.into()])?;
    let default = match &field.default {
        Some(value) => convert::from_py(value.bind(py))?,
        None => Any::none(),
    };
    let spec = CFieldInfo {
        name: ByteArray::new(field.name.as_bytes()),
        doc: ByteArray::new(field.doc.as_bytes()),
        metadata: ByteArray::new(field.schema.as_bytes()),
        flags: field.flags | flags::SETTER_IS_FUNCTION,
        size,
        alignment: size.min(8),
        offset,
        getter: Some(getter),
        setter: std::ptr::with_exposed_provenance_mut(setter.as_view().raw().word() as usize),
        default: default.as_view().raw(),
        static_type_index: kind,
    };
    // SAFETY: the description is readable and true: the field lies where it says in objects of the type. The table takes
    // copies of texts, and references of its own to setter and default.
    check(unsafe { capi::TVMFFITypeRegisterField(index, &raw const spec) })
}

/// What a class of enumerations keeps of its members.
#[pyfunction]
fn enum_state<'py>(py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let index = type_info::type_index_of_key(key);
    let state = index.and_then(|index| type_attr::get(type_attr::Attr::EnumState, index));
    state.map(|state| convert::to_py(py, state)).transpose()
}

/// Begin to keep the members of a class of enumerations; only once.
#[pyfunction]
fn set_enum_state(key: &str, state: &Bound<'_, PyAny>) -> PyResult<()> {
    let index = type_info::type_index_of_key(key)
        .ok_or_else(|| PyValueError::new_err(format!("Cannot find object type index for {key}")))?;
    type_attr::set(type_attr::Attr::EnumState.name(), index, convert::from_py(state)?).map_err(error::to_py)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(enum_state, m)?)?;
    m.add_function(wrap_pyfunction!(set_enum_state, m)?)?;
    m.add_function(wrap_pyfunction!(declare_type, m)?)
}
