//! [`Any`] and [`AnyView`]: one value of any type, owned or borrowed.
//!
//! Both are the 16 bytes of `TVMFFIAny`. An `Any` owns one reference if it holds an object; an `AnyView` borrows, so
//! arguments can be passed without touching a count. Three kinds of value exist only in views, because they point at the
//! caller's memory: C strings, byte arrays and references to a value that may be taken; [`AnyView::to_owned`] copies or
//! takes what they point at.

mod conversions;
mod readers;

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::abi::{ByteArray, RawAny, type_index};
use crate::object::{ObjectHeader, ObjectRef};
use crate::{Bytes, Str};

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

impl Default for AnyView<'_> {
    fn default() -> Self {
        AnyView::none()
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
