//! Values other than tensors: what a function may take and return besides them.

use std::ffi::{c_char, c_int};

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Shape};

use crate::border::{array, at, guard, put, release, text};
use crate::tensor::{self, RelaxideTensor};

/// A value of any kind.
pub struct RelaxideValue {
    value: Any,
    /// The integers of a shape and the text of a string lie in the value; text needs its NUL, so a copy is kept.
    text: std::sync::OnceLock<std::ffi::CString>,
}

/// The kinds of value; those that have no number here are `Other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum RelaxideKind {
    /// No value.
    None = 0,
    /// An integer or a bool.
    Int = 1,
    /// A number.
    Float = 2,
    /// Text.
    Str = 3,
    /// A shape.
    Shape = 4,
    /// A tensor.
    Tensor = 5,
    /// A tuple.
    Tuple = 6,
    /// Anything else.
    Other = 7,
}

impl RelaxideValue {
    pub(crate) fn new(value: Any) -> RelaxideValue {
        RelaxideValue { value, text: std::sync::OnceLock::new() }
    }

    pub(crate) fn give(value: Any) -> *mut RelaxideValue {
        Box::into_raw(Box::new(RelaxideValue::new(value)))
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn into_value(self) -> Any {
        self.value
    }

    pub(crate) fn view(&self) -> AnyView<'_> {
        self.value.as_view()
    }

    fn kind(&self) -> RelaxideKind {
        match self.value.type_index() {
            type_index::NONE => RelaxideKind::None,
            type_index::INT | type_index::BOOL => RelaxideKind::Int,
            type_index::FLOAT => RelaxideKind::Float,
            type_index::SMALL_STR | type_index::STR => RelaxideKind::Str,
            type_index::SHAPE => RelaxideKind::Shape,
            type_index::TENSOR => RelaxideKind::Tensor,
            type_index::ARRAY => RelaxideKind::Tuple,
            _ => RelaxideKind::Other,
        }
    }

    fn expected(&self, what: &str) -> Error {
        Error::type_mismatch(what, self.value.type_key())
    }
}

/// Writes a new value.
///
/// # Safety
/// `place` is null or can be written.
unsafe fn make(place: *mut *mut RelaxideValue, value: impl FnOnce() -> Result<Any, Error>) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe {
            at(place, "value")?;
            put(place, RelaxideValue::give(value()?), "value")
        }
    })
}

/// Makes an integer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_int(int: i64, value: *mut *mut RelaxideValue) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { make(value, || Ok(int.into())) }
}

/// Makes a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_float(float: f64, value: *mut *mut RelaxideValue) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { make(value, || Ok(float.into())) }
}

/// Makes text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_str(text: *const c_char, value: *mut *mut RelaxideValue) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { make(value, || Ok(self::text(text, "text")?.into())) }
}

/// Makes a shape.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_shape(dims: *const i64, ndim: usize, value: *mut *mut RelaxideValue) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { make(value, || Ok(Shape::new(array(dims, ndim, "dims")?).into())) }
}

/// Makes a value of a tensor, which the caller keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_tensor(tensor: *const RelaxideTensor, value: *mut *mut RelaxideValue) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { make(value, || Ok(tensor::tensor(tensor, "tensor")?.into())) }
}

/// Makes a tuple of values, which the caller keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_tuple(
    fields: *const *const RelaxideValue,
    count: usize,
    value: *mut *mut RelaxideValue,
) -> c_int {
    // SAFETY: the interface's contract.
    unsafe {
        make(value, || {
            let fields = array(fields, count, "fields")?.iter().enumerate();
            let fields = fields.map(|(i, field)| Ok(at(*field, &format!("field {i}"))?.value.clone()));
            Ok(fields.collect::<Result<Array, Error>>()?.into())
        })
    }
}

/// Gives another handle of the same value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_share(value: *const RelaxideValue, shared: *mut *mut RelaxideValue) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(shared, "shared")?;
            put(shared, RelaxideValue::give(at(value, "value")?.value.clone()), "shared")
        }
    })
}

/// Frees a value; null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_free(value: *mut RelaxideValue) {
    if !value.is_null() {
        // SAFETY: the handle came from this library and is given up.
        release(|| drop(unsafe { Box::from_raw(value) }));
    }
}

/// Reads something of a value.
///
/// # Safety
/// `value` is null or live, `place` null or writable.
unsafe fn read<T>(
    value: *const RelaxideValue,
    place: *mut T,
    get: impl FnOnce(&RelaxideValue) -> Result<T, Error>,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe {
            at(place, "result")?;
            put(place, get(at(value, "value")?)?, "result")
        }
    })
}

/// The kind of a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_kind(value: *const RelaxideValue, kind: *mut RelaxideKind) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { read(value, kind, |value| Ok(value.kind())) }
}

/// The integer in a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_as_int(value: *const RelaxideValue, int: *mut i64) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { read(value, int, |value| value.value.as_int().ok_or_else(|| value.expected("int"))) }
}

/// The number in a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_as_float(value: *const RelaxideValue, float: *mut f64) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { read(value, float, |value| value.view().as_float().ok_or_else(|| value.expected("float"))) }
}

/// The text in a value, valid as long as the value lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_as_str(value: *const RelaxideValue, text: *mut *const c_char) -> c_int {
    // SAFETY: the interface's contract.
    unsafe {
        read(value, text, |value| {
            let text = value.value.as_str().ok_or_else(|| value.expected("str"))?;
            Ok(value.text.get_or_init(|| crate::error::c_string(text)).as_ptr())
        })
    }
}

/// The integers of a shape, valid as long as the value lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_as_shape(
    value: *const RelaxideValue,
    dims: *mut *const i64,
    ndim: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract; the integers lie in the object that the value keeps.
        unsafe {
            let value = at(value, "value")?;
            let view = value.view();
            let shape = view.as_shape().ok_or_else(|| value.expected("shape"))?;
            put(dims, shape.as_ptr(), "dims")?;
            put(ndim, shape.len(), "ndim")
        }
    })
}

/// The tensor in a value; the caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_as_tensor(
    value: *const RelaxideValue,
    tensor: *mut *mut RelaxideTensor,
) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { read(value, tensor, |value| value.value.to().map(tensor::give)) }
}

/// How many fields a tuple has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_tuple_size(value: *const RelaxideValue, size: *mut usize) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { read(value, size, |value| Ok(value.value.to::<Array>()?.len())) }
}

/// A field of a tuple; the caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_value_field(
    value: *const RelaxideValue,
    index: usize,
    field: *mut *mut RelaxideValue,
) -> c_int {
    // SAFETY: the interface's contract.
    unsafe {
        read(value, field, |value| {
            let tuple = value.value.to::<Array>()?;
            let beyond =
                || Error::new(ErrorKind::IndexError, format!("there is no field {index}: there are {}", tuple.len()));
            Ok(RelaxideValue::give(tuple.get(index).cloned().ok_or_else(beyond)?))
        })
    }
}
