//! Making values of Rust types.

use std::marker::PhantomData;

use super::{Any, AnyView};
use crate::abi::{ByteArray, RawAny, type_index};
use crate::object::{Handle, Object, ObjectRef, Ref};
use crate::{DataType, Device, Str};

/// Implements conversions of plain values to both `Any` and views.
macro_rules! from_plain {
    ($($from:ty: |$value:ident| $raw:expr;)*) => {$(
        impl From<$from> for Any {
            #[inline]
            fn from($value: $from) -> Any {
                Any { raw: $raw }
            }
        }

        impl From<$from> for AnyView<'_> {
            #[inline]
            fn from($value: $from) -> Self {
                AnyView { raw: $raw, borrows: PhantomData }
            }
        }
    )*};
}

from_plain! {
    (): |_unit| RawAny::NONE;
    i64: |value| RawAny::from_word(type_index::INT, value);
    i32: |value| RawAny::from_word(type_index::INT, value.into());
    i16: |value| RawAny::from_word(type_index::INT, value.into());
    i8: |value| RawAny::from_word(type_index::INT, value.into());
    u32: |value| RawAny::from_word(type_index::INT, value.into());
    u16: |value| RawAny::from_word(type_index::INT, value.into());
    u8: |value| RawAny::from_word(type_index::INT, value.into());
    u64: |value| RawAny::from_word(type_index::INT, value as i64);
    usize: |value| RawAny::from_word(type_index::INT, value as i64);
    bool: |value| RawAny::from_word(type_index::BOOL, value.into());
    f64: |value| RawAny::from_word(type_index::FLOAT, value.to_bits() as i64);
    f32: |value| RawAny::from_word(type_index::FLOAT, f64::from(value).to_bits() as i64);
    DataType: |value| RawAny::from_word(type_index::DATA_TYPE, value.to_word());
    Device: |value| RawAny::from_word(type_index::DEVICE, device_word(value));
}

/// A device as the payload word that holds it.
fn device_word(device: Device) -> i64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&device.device_type.to_ne_bytes());
    bytes[4..].copy_from_slice(&device.device_id.to_ne_bytes());
    i64::from_ne_bytes(bytes)
}

impl From<ObjectRef> for Any {
    #[inline]
    fn from(object: ObjectRef) -> Any {
        let type_index = object.type_index();
        Any { raw: RawAny::from_ptr(type_index, object.into_raw().as_ptr().cast()) }
    }
}

impl<T: Object> From<Ref<T>> for Any {
    #[inline]
    fn from(value: Ref<T>) -> Any {
        value.into_object().into()
    }
}

impl<T: Object> From<&Ref<T>> for Any {
    fn from(value: &Ref<T>) -> Any {
        value.clone().into()
    }
}

impl From<&ObjectRef> for Any {
    fn from(value: &ObjectRef) -> Any {
        value.clone().into()
    }
}

impl From<AnyView<'_>> for Any {
    fn from(value: AnyView<'_>) -> Any {
        value.to_owned()
    }
}

impl From<&str> for Any {
    fn from(text: &str) -> Any {
        Str::new(text).into()
    }
}

impl From<String> for Any {
    fn from(text: String) -> Any {
        Str::new(&text).into()
    }
}

impl From<&String> for Any {
    fn from(text: &String) -> Any {
        Str::new(text).into()
    }
}

impl<T: Into<Any>> From<Option<T>> for Any {
    fn from(value: Option<T>) -> Any {
        value.map_or(Any::none(), Into::into)
    }
}

impl<T: Into<Any>> From<Vec<T>> for Any {
    fn from(values: Vec<T>) -> Any {
        crate::Array::from_iter(values.into_iter().map(Into::into)).into()
    }
}

impl<'a> From<&'a Any> for AnyView<'a> {
    #[inline]
    fn from(value: &'a Any) -> Self {
        value.as_view()
    }
}

impl AnyView<'_> {
    /// Runs `with` on a view of bytes that are borrowed and not copied. Who keeps the value copies them.
    pub fn with_bytes<T>(bytes: &[u8], with: impl FnOnce(AnyView<'_>) -> T) -> T {
        let borrowed = ByteArray::new(bytes);
        let raw = RawAny::from_ptr(type_index::BYTE_ARRAY_PTR, (&raw const borrowed).cast_mut().cast());
        with(AnyView { raw, borrows: PhantomData })
    }
}

/// Handles to objects are passed as views of the object.
impl<'a, H: Handle> From<&'a H> for AnyView<'a> {
    #[inline]
    fn from(value: &'a H) -> Self {
        let object = value.as_object();
        AnyView { raw: RawAny::from_ptr(object.type_index(), object.as_ptr().cast()), borrows: PhantomData }
    }
}
