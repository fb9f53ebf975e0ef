//! [`Any`] and [`AnyView`]: one value of any type, owned or borrowed.
//!
//! Both are the 16 bytes of `TVMFFIAny`. An `Any` owns one reference if it holds an object; an `AnyView` borrows, so
//! arguments can be passed without touching a count. Three kinds of value exist only in views, because they point at the
//! caller's memory: C strings, byte arrays and references to a value that may be taken; [`AnyView::to_owned`] copies or
//! takes what they point at.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::abi::{ByteArray, RawAny, type_index};
use crate::object::{Handle, Object, ObjectHeader, ObjectRef, Ref};
use crate::{Bytes, DataType, Device, Error, FromAny, Str, type_info};

/// An owned value of any type.
#[repr(transparent)]
pub struct Any {
    raw: RawAny,
}

/// A borrowed value of any type.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct AnyView<'a> {
    raw: RawAny,
    borrows: PhantomData<&'a ()>,
}

// SAFETY: plain values are copies, addresses are not followed, and objects are `Send + Sync` (see `ObjectRef`).
unsafe impl Send for Any {}
// SAFETY: as above.
unsafe impl Sync for Any {}
// SAFETY: as above; what a view borrows is immutable while it is borrowed.
unsafe impl Send for AnyView<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnyView<'_> {}

impl Any {
    /// No value.
    #[inline]
    pub const fn none() -> Any {
        Any { raw: RawAny::NONE }
    }

    /// Takes over a raw value.
    ///
    /// # Safety
    /// `raw` is an owned value: none of the kinds that only views have, and the caller gives up its reference.
    #[inline]
    pub const unsafe fn from_raw(raw: RawAny) -> Any {
        Any { raw }
    }

    /// Gives the value away as raw bits, for C.
    #[inline]
    pub fn into_raw(self) -> RawAny {
        ManuallyDrop::new(self).raw
    }

    /// An address that means nothing to the interface.
    #[inline]
    pub fn from_ptr(ptr: *mut std::ffi::c_void) -> Any {
        Any { raw: RawAny::from_ptr(type_index::OPAQUE_PTR, ptr) }
    }

    /// A view of the value.
    #[inline]
    pub fn as_view(&self) -> AnyView<'_> {
        AnyView { raw: self.raw, borrows: PhantomData }
    }

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
        T::from_any(self.as_view())
    }

    /// The integer, if it is one.
    #[inline]
    pub fn as_int(&self) -> Option<i64> {
        self.as_view().as_int()
    }

    /// The object, if it is one.
    #[inline]
    pub fn as_object(&self) -> Option<&ObjectRef> {
        // SAFETY: the payload is the address of a live object, which is what an `ObjectRef` is; the borrow keeps it.
        self.raw.is_object().then(|| unsafe { &*(&raw const self.raw.payload.object).cast::<ObjectRef>() })
    }

    /// The object behind the value, if its type is `T`.
    #[inline]
    pub fn downcast_ref<T: Object>(&self) -> Option<&Ref<T>> {
        self.as_object()?.downcast_ref::<T>()
    }

    /// The bytes, if the value is some.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.raw.type_index {
            type_index::SMALL_BYTES => self.small_payload(),
            // SAFETY: the object is bytes, whose cell is a byte array behind the header; `self` keeps it alive.
            type_index::BYTES => unsafe {
                Some((*self.raw.payload.object.byte_add(HEADER).cast::<ByteArray>()).as_slice())
            },
            _ => None,
        }
    }

    /// The bytes of a small string or small bytes, which lie inside the value.
    pub(crate) fn small_payload(&self) -> Option<&[u8]> {
        match self.raw.type_index {
            // SAFETY: the kind says that the payload is bytes.
            type_index::SMALL_STR | type_index::SMALL_BYTES => unsafe {
                self.raw.payload.bytes.get(..self.raw.small_len as usize)
            },
            _ => None,
        }
    }

    /// The text, if the value is a string.
    pub fn as_str(&self) -> Option<&str> {
        // SAFETY: the returned text lies in `self` or in an object that `self` keeps.
        unsafe { str_of(&self.raw) }
    }
}

impl<'a> AnyView<'a> {
    /// No value.
    #[inline]
    pub const fn none() -> AnyView<'a> {
        AnyView { raw: RawAny::NONE, borrows: PhantomData }
    }

    /// Views a raw value.
    ///
    /// # Safety
    /// What `raw` points at stays alive and unchanged for `'a`.
    #[inline]
    pub const unsafe fn from_raw(raw: RawAny) -> AnyView<'a> {
        AnyView { raw, borrows: PhantomData }
    }

    /// The raw bits, without ownership.
    #[inline]
    pub fn raw(&self) -> RawAny {
        self.raw
    }

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
        T::from_any(*self)
    }

    /// The integer, if it is one; a truth value counts as 0 or 1.
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
        // SAFETY: the payload is the address of an object that lives for `'a`, which is what an `ObjectRef` is; the
        // reference is only lent, so the count stays.
        self.raw.is_object().then(|| unsafe { &*(&raw const self.raw.payload.object).cast::<ObjectRef>() })
    }

    /// The object behind the value, if its type is `T`.
    #[inline]
    pub fn downcast_ref<T: Object>(&self) -> Option<&Ref<T>> {
        self.as_object()?.downcast_ref::<T>()
    }

    /// The text, if the value is a string.
    pub fn as_str(&self) -> Option<&str> {
        // SAFETY: the returned text lies in `self`, or is borrowed for `'a`, which outlives the borrow of `self`.
        unsafe { str_of(&self.raw) }
    }

    /// An owned copy: one more reference to an object, a copy of borrowed text or bytes, and what a reference to a
    /// caller's value points at is taken from there.
    #[inline]
    pub fn to_owned(&self) -> Any {
        match self.raw.type_index {
            index if index >= type_index::OBJECT => {
                // SAFETY: the payload addresses an object that lives for `'a`.
                unsafe { (*self.raw.payload.object).inc_ref() };
                Any { raw: self.raw }
            }
            type_index::RAW_STR | type_index::BYTE_ARRAY_PTR | type_index::OBJECT_RVALUE_REF => self.copy_borrowed(),
            _ => Any { raw: self.raw },
        }
    }

    #[cold]
    fn copy_borrowed(&self) -> Any {
        match self.raw.type_index {
            type_index::RAW_STR => {
                // SAFETY: the kind says that the payload addresses a NUL-terminated string that lives for `'a`.
                let text = unsafe { CStr::from_ptr(self.raw.payload.ptr.cast()) };
                Str::new(&text.to_string_lossy()).into()
            }
            type_index::BYTE_ARRAY_PTR => {
                // SAFETY: the kind says that the payload addresses a byte array that lives for `'a`.
                let bytes = unsafe { (*self.raw.payload.ptr.cast::<ByteArray>()).as_slice() };
                Bytes::new(bytes).into()
            }
            _ => {
                // SAFETY: the kind says that the payload addresses the caller's object handle, which may be taken if it
                // is left null.
                let taken = unsafe { self.raw.payload.ptr.cast::<*mut ObjectHeader>().replace(std::ptr::null_mut()) };
                match NonNull::new(taken) {
                    // SAFETY: the caller's reference passes on.
                    Some(header) => unsafe { ObjectRef::from_header(header) }.into(),
                    None => Any::none(),
                }
            }
        }
    }
}

/// The text of a value that is a string.
///
/// # Safety
/// What `raw` points at stays alive for the lifetime that the caller picks, and so does `raw` itself.
unsafe fn str_of(raw: &RawAny) -> Option<&str> {
    let bytes = match raw.type_index {
        // SAFETY: the kind says which member holds, and the length of a small string is at most seven.
        type_index::SMALL_STR => unsafe { raw.payload.bytes.get(..raw.small_len as usize)? },
        // SAFETY: the object is a string and alive.
        type_index::STR => unsafe { (*raw.payload.object.byte_add(HEADER).cast::<ByteArray>()).as_slice() },
        // SAFETY: the address is that of a NUL-terminated string.
        type_index::RAW_STR => unsafe { CStr::from_ptr(raw.payload.ptr.cast()).to_bytes() },
        _ => return None,
    };
    std::str::from_utf8(bytes).ok()
}

const HEADER: usize = size_of::<ObjectHeader>();

impl Clone for Any {
    #[inline]
    fn clone(&self) -> Self {
        if self.raw.is_object() {
            // SAFETY: the payload addresses an object that this value keeps alive.
            unsafe { (*self.raw.payload.object).inc_ref() };
        }
        Any { raw: self.raw }
    }
}

impl Drop for Any {
    #[inline]
    fn drop(&mut self) {
        if self.raw.is_object() {
            // SAFETY: the value owns one strong reference and ends here.
            unsafe { ObjectHeader::dec_ref(NonNull::new_unchecked(self.raw.payload.object)) };
        }
    }
}

impl Default for Any {
    fn default() -> Self {
        Any::none()
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}

impl fmt::Debug for AnyView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.as_str() {
            return write!(f, "{text:?}");
        }
        match self.raw.type_index {
            type_index::NONE => f.write_str("None"),
            type_index::INT => write!(f, "{}", self.raw.word()),
            type_index::BOOL => write!(f, "{}", self.raw.word() != 0),
            // SAFETY: the type index says that the payload is a float.
            type_index::FLOAT => write!(f, "{:?}", unsafe { self.raw.payload.float }),
            // SAFETY: the type index says that the payload is an element type.
            type_index::DATA_TYPE => write!(f, "{}", unsafe { self.raw.payload.dtype }),
            // SAFETY: the type index says that the payload is a device.
            type_index::DEVICE => write!(f, "{}", unsafe { self.raw.payload.device }),
            _ => write!(f, "{}({:#x})", self.type_key(), self.raw.word()),
        }
    }
}

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

/// Handles to objects are passed as views of the object.
impl<'a, H: Handle> From<&'a H> for AnyView<'a> {
    #[inline]
    fn from(value: &'a H) -> Self {
        let object = value.as_object();
        AnyView { raw: RawAny::from_ptr(object.type_index(), object.as_ptr().cast()), borrows: PhantomData }
    }
}
