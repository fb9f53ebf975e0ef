//! [`FromAny`]: taking a value apart into a Rust type, with an error that names both types.

use crate::abi::type_index;
use crate::object::{Handle, Object, ObjectRef, Ref};
use crate::{Any, AnyView, Array, Bytes, DataType, Device, Error, ErrorKind, List, Str};

/// A type that a value can be turned into.
pub trait FromAny: Sized {
    /// The value as this type; a TypeError if it is something else, a ValueError or OverflowError if it does not fit.
    fn from_any(value: AnyView<'_>) -> Result<Self, Error>;
}

/// A value that must be a handle of the family `H`.
pub fn handle_from_any<H: Handle>(value: AnyView<'_>) -> Result<H, Error> {
    let Some(object) = value.as_object() else {
        if value.type_index() == type_index::OBJECT_RVALUE_REF {
            return handle_from_any(value.to_owned().as_view());
        }
        return Err(Error::type_mismatch(&H::expected(), value.type_key()));
    };
    H::try_from_object(object.clone()).map_err(|object| Error::type_mismatch(&H::expected(), object.type_key()))
}

impl<T: Object> FromAny for Ref<T> {
    #[inline]
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.downcast_ref::<T>() {
            Some(object) => Ok(object.clone()),
            None => handle_from_any(value),
        }
    }
}

impl FromAny for ObjectRef {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        handle_from_any(value)
    }
}

impl FromAny for Any {
    #[inline]
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        Ok(value.to_owned())
    }
}

impl FromAny for () {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        if value.is_none() { Ok(()) } else { Err(Error::type_mismatch("None", value.type_key())) }
    }
}

impl FromAny for i64 {
    #[inline]
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.as_int().ok_or_else(|| Error::type_mismatch("int", value.type_key()))
    }
}

/// Implements the narrower integers: out of range is an error, never a wrap.
macro_rules! narrow {
    ($($int:ty)*) => {$(
        impl FromAny for $int {
            fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
                let wide: i64 = value.to()?;
                wide.try_into().map_err(|_| {
                    Error::new(ErrorKind::OverflowError, format!(concat!("{} does not fit ", stringify!($int)), wide))
                })
            }
        }
    )*};
}

narrow!(i8 i16 i32 u8 u16 u32 u64 usize);

impl FromAny for bool {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.as_int().map(|int| int != 0).ok_or_else(|| Error::type_mismatch("bool", value.type_key()))
    }
}

impl FromAny for f64 {
    #[inline]
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.as_float().ok_or_else(|| Error::type_mismatch("float", value.type_key()))
    }
}

impl FromAny for f32 {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.to::<f64>().map(|wide| wide as f32)
    }
}

impl FromAny for String {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        value.as_str().map(str::to_string).ok_or_else(|| Error::type_mismatch("str", value.type_key()))
    }
}

impl FromAny for Str {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        Str::from_value(value).ok_or_else(|| Error::type_mismatch("str", value.type_key()))
    }
}

impl FromAny for Bytes {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        Bytes::from_value(value).ok_or_else(|| Error::type_mismatch("bytes", value.type_key()))
    }
}

impl FromAny for DataType {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        if value.type_index() == type_index::DATA_TYPE {
            // SAFETY: the type index says that the payload is an element type.
            return Ok(unsafe { value.raw().payload.dtype });
        }
        match value.as_str() {
            Some(text) => text.parse(),
            None => Err(Error::type_mismatch("DataType", value.type_key())),
        }
    }
}

impl FromAny for Device {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        if value.type_index() == type_index::DEVICE {
            // SAFETY: the type index says that the payload is a device.
            return Ok(unsafe { value.raw().payload.device });
        }
        Err(Error::type_mismatch("Device", value.type_key()))
    }
}

impl<T: FromAny> FromAny for Option<T> {
    #[inline]
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        if value.is_none() { Ok(None) } else { T::from_any(value).map(Some) }
    }
}

impl<T: FromAny> FromAny for Vec<T> {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        let items = match value.type_index() {
            type_index::LIST => value.to::<List>()?.to_vec(),
            _ => value.to::<Array>()?.to_vec(),
        };
        let convert = |(position, item): (usize, &Any)| {
            item.to::<T>().map_err(|error| error.context(format_args!("element {position}")))
        };
        items.iter().enumerate().map(convert).collect()
    }
}
