//! What can be asked of a value, whether it is owned or borrowed.

use std::ffi::CStr;

use super::{Any, AnyView};
use crate::abi::{ByteArray, RawAny, type_index};
use crate::dlpack::DLTensor;
use crate::object::{Object, ObjectHeader, ObjectRef, Ref};
use crate::{DataType, Error, FromAny, type_info};

/// Implements the questions once for both kinds. What they return borrows the value itself.
macro_rules! readers {
    ($($value:ty)*) => {$(
        impl $value {
            /// The kind of the value.
            #[inline]
            pub fn type_index(&self) -> i32 {
                self.raw.type_index
            }

            /// The name of the value's type.
            pub fn type_key(&self) -> &'static str {
                type_info::key_of(self.raw.type_index)
            }

            /// True if there is no value.
            #[inline]
            pub fn is_none(&self) -> bool {
                self.raw.type_index == type_index::NONE
            }

            /// The value as a `T`; a TypeError that names both types if it is something else.
            #[inline]
            pub fn to<T: FromAny>(&self) -> Result<T, Error> {
                // SAFETY: what the value points at stays alive while `self` is borrowed.
                T::from_any(unsafe { AnyView::from_raw(self.raw) })
            }

            /// The integer, if it is one; a bool counts as 0 or 1.
            #[inline]
            pub fn as_int(&self) -> Option<i64> {
                matches!(self.raw.type_index, type_index::INT | type_index::BOOL).then(|| self.raw.word())
            }

            /// The number, if it is one.
            #[inline]
            pub fn as_float(&self) -> Option<f64> {
                match self.raw.type_index {
                    // SAFETY: the type index says that the payload is a float.
                    type_index::FLOAT => Some(unsafe { self.raw.payload.float }),
                    type_index::INT | type_index::BOOL => Some(self.raw.word() as f64),
                    _ => None,
                }
            }

            /// The object, if it is one.
            #[inline]
            pub fn as_object(&self) -> Option<&ObjectRef> {
                // SAFETY: the payload is the address of a live object, which is what an `ObjectRef` is; the reference is
                // only lent, so the count stays.
                self.raw.is_object().then(|| unsafe { &*(&raw const self.raw.payload.object).cast::<ObjectRef>() })
            }

            /// The object behind the value, if its type is `T`.
            #[inline]
            pub fn downcast_ref<T: Object>(&self) -> Option<&Ref<T>> {
                self.as_object()?.downcast_ref::<T>()
            }

            /// Dimensions and element type, if the value is a tensor or the address of a bare `DLTensor`.
            #[inline]
            pub fn dims_and_dtype(&self) -> Option<(&[i64], DataType)> {
                if let Some(tensor) = self.as_tensor() {
                    return Some((tensor.shape(), tensor.dtype()));
                }
                // SAFETY: what the value leads to stays alive while `self` is borrowed.
                unsafe { bare_tensor(&self.raw) }
            }

            /// The text, if the value is a string.
            pub fn as_str(&self) -> Option<&str> {
                // SAFETY: the text lies in `self`, or in what stays alive while `self` is borrowed.
                unsafe { text(&self.raw) }
            }

            /// The bytes, if the value is some.
            pub fn as_bytes(&self) -> Option<&[u8]> {
                // SAFETY: as above.
                unsafe { bytes(&self.raw) }
            }
        }
    )*};
}

readers!(Any AnyView<'_>);

impl Any {
    /// The bytes of a small string or small bytes, which lie inside the value.
    pub(crate) fn small_payload(&self) -> Option<&[u8]> {
        match self.raw.type_index {
            // SAFETY: the kind says which member holds.
            type_index::SMALL_STR | type_index::SMALL_BYTES => unsafe { small(&self.raw) },
            _ => None,
        }
    }

    /// The bytes of a string or bytes on the heap.
    pub(crate) fn heap_payload(&self) -> Option<&[u8]> {
        match self.raw.type_index {
            // SAFETY: the kind says that the object's cell is a byte array; `self` keeps it alive.
            type_index::STR | type_index::BYTES => Some(unsafe { heap(&self.raw) }),
            _ => None,
        }
    }
}

/// The text of a value that is a string.
///
/// # Safety
/// What `raw` points at stays alive for the lifetime that the caller picks, and so does `raw` itself.
unsafe fn text(raw: &RawAny) -> Option<&str> {
    let bytes = match raw.type_index {
        // SAFETY: the kind says which member holds.
        type_index::SMALL_STR => unsafe { small(raw)? },
        // SAFETY: the object is a string and alive.
        type_index::STR => unsafe { heap(raw) },
        // SAFETY: the address is that of a NUL-terminated string.
        type_index::RAW_STR => unsafe { CStr::from_ptr(raw.payload.ptr.cast()).to_bytes() },
        _ => return None,
    };
    std::str::from_utf8(bytes).ok()
}

/// What a bare tensor says of itself.
///
/// # Safety
/// As for [`text`].
#[cold]
unsafe fn bare_tensor(raw: &RawAny) -> Option<(&[i64], DataType)> {
    if raw.type_index != type_index::DL_TENSOR_PTR {
        return None;
    }
    // SAFETY: the kind says that the payload is null or addresses a tensor, whose shape has as many numbers as it says.
    unsafe {
        let tensor = raw.payload.ptr.cast::<DLTensor>().as_ref()?;
        let ndim = usize::try_from(tensor.ndim).ok()?;
        let dims = if ndim == 0 { &[] } else { std::slice::from_raw_parts(tensor.shape.as_ref()?, ndim) };
        Some((dims, tensor.dtype))
    }
}

/// The bytes of a value that is some.
///
/// # Safety
/// As for [`text`].
unsafe fn bytes(raw: &RawAny) -> Option<&[u8]> {
    match raw.type_index {
        // SAFETY: the kind says which member holds.
        type_index::SMALL_BYTES => unsafe { small(raw) },
        // SAFETY: the object is bytes and alive.
        type_index::BYTES => Some(unsafe { heap(raw) }),
        // SAFETY: the address is that of a byte array.
        type_index::BYTE_ARRAY_PTR => Some(unsafe { (*raw.payload.ptr.cast::<ByteArray>()).as_slice() }),
        _ => None,
    }
}

/// # Safety
/// The payload is bytes.
unsafe fn small(raw: &RawAny) -> Option<&[u8]> {
    // SAFETY: the caller's promise. A length beyond seven is not a value of the interface.
    unsafe { raw.payload.bytes.get(..raw.small_len as usize) }
}

/// # Safety
/// The payload is an object whose cell is a byte array, alive for the lifetime that the caller picks.
unsafe fn heap<'a>(raw: &RawAny) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { (*raw.payload.object.byte_add(size_of::<ObjectHeader>()).cast::<ByteArray>()).as_slice() }
}
