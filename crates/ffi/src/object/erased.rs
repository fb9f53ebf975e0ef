//! [`ObjectRef`]: a strong reference to an object of any type.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::{Handle, Object, ObjectHeader, Ref};
use crate::{Any, type_info};

/// A strong reference to an object whose type is found out at run time. `==` and `Hash` go by identity.
#[repr(transparent)]
pub struct ObjectRef {
    header: NonNull<ObjectHeader>,
}

// SAFETY: every object is `Send + Sync`: the trait `Object` asks it of Rust types, and the binary interface lets any
// thread use and release an object of another language.
unsafe impl Send for ObjectRef {}
// SAFETY: as above.
unsafe impl Sync for ObjectRef {}

impl ObjectRef {
    /// Takes over a strong reference.
    ///
    /// # Safety
    /// `header` is a live object and the caller gives up one strong reference to it.
    #[inline]
    pub unsafe fn from_header(header: NonNull<ObjectHeader>) -> ObjectRef {
        ObjectRef { header }
    }

    /// Gives the reference away as a plain address, for C.
    #[inline]
    pub fn into_raw(self) -> NonNull<ObjectHeader> {
        ManuallyDrop::new(self).header
    }

    /// The address of the header, which is the object's handle in C.
    #[inline]
    pub fn as_ptr(&self) -> *mut ObjectHeader {
        self.header.as_ptr()
    }

    /// The header.
    #[inline]
    pub fn header(&self) -> &ObjectHeader {
        // SAFETY: the object is alive while this handle is.
        unsafe { self.header.as_ref() }
    }

    /// The index of the object's type.
    #[inline]
    pub fn type_index(&self) -> i32 {
        self.header().type_index()
    }

    /// The key of the object's type.
    pub fn type_key(&self) -> &'static str {
        type_info::key_of(self.type_index())
    }

    /// True if the object holds a `T`.
    #[inline]
    pub fn is<T: Object>(&self) -> bool {
        self.type_index() == T::type_index()
    }

    /// The object as a `Ref<T>`, or unchanged if it holds something else.
    #[inline]
    pub fn downcast<T: Object>(self) -> Result<Ref<T>, ObjectRef> {
        if !self.is::<T>() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: the type index says that the value is a `T`, and the reference passes on.
        Ok(unsafe { Ref::from_box(this.header.cast()) })
    }

    /// A view as a `Ref<T>`, if the object holds a `T`.
    #[inline]
    pub fn downcast_ref<T: Object>(&self) -> Option<&Ref<T>> {
        // SAFETY: both are one pointer to an object, with the same counting; the type index says that it holds a `T`.
        self.is::<T>().then(|| unsafe { &*std::ptr::from_ref(self).cast::<Ref<T>>() })
    }

    /// The value of a reflected field; `None` if the type has no field of that name.
    pub fn field(&self, name: &str) -> Option<Any> {
        crate::reflect::field_of(self, name)
    }
}

impl Clone for ObjectRef {
    #[inline]
    fn clone(&self) -> Self {
        self.header().inc_ref();
        ObjectRef { header: self.header }
    }
}

impl Drop for ObjectRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle owns one strong reference and ends here.
        unsafe { ObjectHeader::dec_ref(self.header) };
    }
}

impl PartialEq for ObjectRef {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header
    }
}

impl Eq for ObjectRef {}

impl Hash for ObjectRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.header.hash(state);
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:p})", self.type_key(), self.header)
    }
}

impl Handle for ObjectRef {
    fn expected() -> String {
        "ffi.Object".to_string()
    }

    #[inline]
    fn as_object(&self) -> &ObjectRef {
        self
    }

    fn try_from_object(object: ObjectRef) -> Result<Self, ObjectRef> {
        Ok(object)
    }
}
