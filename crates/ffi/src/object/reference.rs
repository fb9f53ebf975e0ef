//! [`Ref<T>`]: a strong reference to an object whose type is known.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use super::{Handle, Object, ObjectBox, ObjectHeader, ObjectRef, Weak, allocate, deleter};

/// A strong reference to a `T` that lives behind an object header.
///
/// `==` and `Hash` go by identity, as maps of variables need; for equality of content there is
/// [`structural_equal`](crate::structural_equal).
#[repr(transparent)]
pub struct Ref<T: Object> {
    object: NonNull<ObjectBox<T>>,
    owns: PhantomData<T>,
}

// SAFETY: a handle gives shared access only, `T` is `Sync`, and the last handle may drop the `T` on any thread because
// it is `Send`; both are supertraits of `Object`.
unsafe impl<T: Object> Send for Ref<T> {}
// SAFETY: as above.
unsafe impl<T: Object> Sync for Ref<T> {}

impl<T: Object> Ref<T> {
    /// Moves `value` behind a header of its own.
    #[inline]
    pub fn new(value: T) -> Ref<T> {
        let object = allocate::<T>(T::type_index(), 0, deleter::<T>);
        // SAFETY: the allocation has room for a `T` there, not yet written.
        unsafe { (&raw mut (*object.as_ptr()).value).write(value) };
        Ref { object, owns: PhantomData }
    }

    /// Takes over a strong reference.
    ///
    /// # Safety
    /// `object` begins with a header of `T`'s type index and the caller gives up one strong reference to it.
    pub(crate) unsafe fn from_box(object: NonNull<ObjectBox<T>>) -> Ref<T> {
        Ref { object, owns: PhantomData }
    }

    /// True if both are the same object.
    #[inline]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.object == other.object
    }

    /// The address of the object's header, which is its handle in C.
    #[inline]
    pub fn as_ptr(this: &Self) -> *mut ObjectHeader {
        this.object.as_ptr().cast()
    }

    /// How many strong references there are at this moment.
    pub fn strong_count(this: &Self) -> u32 {
        this.header().strong_count()
    }

    /// A reference that does not keep the value alive.
    pub fn downgrade(this: &Self) -> Weak<T> {
        Weak::new(this)
    }

    /// The value, if nobody else refers to it. What has a [`Tail`](super::Tail) is not lent: it must stay where its values are.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if T::TAIL.is_some() || !this.header().is_unique() {
            return None;
        }
        // SAFETY: this is the only reference of any kind, and it is borrowed mutably.
        Some(unsafe { &mut (*this.object.as_ptr()).value })
    }

    /// The value to change in place, copied first if others refer to it.
    pub fn make_mut(this: &mut Self) -> &mut T
    where
        T: Clone,
    {
        const { assert!(T::TAIL.is_none(), "what has a tail stays where its values are") };
        if !this.header().is_unique() {
            *this = Ref::new(T::clone(this));
        }
        // SAFETY: the object is unique, either found so or made so just now.
        unsafe { &mut (*this.object.as_ptr()).value }
    }

    /// The same object without its type.
    #[inline]
    pub fn into_object(self) -> ObjectRef {
        let this = ManuallyDrop::new(self);
        // SAFETY: the reference that `this` owned passes on.
        unsafe { ObjectRef::from_header(this.object.cast()) }
    }

    #[inline]
    pub(crate) fn object(&self) -> NonNull<ObjectBox<T>> {
        self.object
    }

    #[inline]
    fn header(&self) -> &ObjectHeader {
        // SAFETY: the object is alive while this handle is.
        unsafe { self.object.cast().as_ref() }
    }
}

impl<T: Object> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Self {
        self.header().inc_ref();
        Ref { object: self.object, owns: PhantomData }
    }
}

impl<T: Object> Drop for Ref<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle owns one strong reference and ends here.
        unsafe { ObjectHeader::dec_ref(self.object.cast()) };
    }
}

impl<T: Object> Deref for Ref<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object is alive while this handle is, and its value is a `T`.
        unsafe { &(*self.object.as_ptr()).value }
    }
}

impl<T: Object> AsRef<T> for Ref<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: Object + fmt::Debug> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: Object + fmt::Display> fmt::Display for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

impl<T: Object> PartialEq for Ref<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Ref::ptr_eq(self, other)
    }
}

impl<T: Object> Eq for Ref<T> {}

impl<T: Object> Hash for Ref<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.object.hash(state);
    }
}

impl<T: Object> From<T> for Ref<T> {
    fn from(value: T) -> Self {
        Ref::new(value)
    }
}

impl<T: Object + Default> Default for Ref<T> {
    fn default() -> Self {
        Ref::new(T::default())
    }
}

impl<T: Object> From<Ref<T>> for ObjectRef {
    #[inline]
    fn from(value: Ref<T>) -> Self {
        value.into_object()
    }
}

impl<T: Object> From<&Ref<T>> for ObjectRef {
    fn from(value: &Ref<T>) -> Self {
        value.clone().into_object()
    }
}

impl<T: Object> TryFrom<ObjectRef> for Ref<T> {
    type Error = crate::Error;

    fn try_from(object: ObjectRef) -> Result<Self, Self::Error> {
        object.downcast().map_err(|object| crate::Error::type_mismatch(T::TYPE_KEY, object.type_key()))
    }
}

impl<T: Object> Handle for Ref<T> {
    fn expected() -> String {
        T::TYPE_KEY.to_string()
    }

    #[inline]
    fn as_object(&self) -> &ObjectRef {
        // SAFETY: both are one pointer to an object that begins with a header, with the same counting.
        unsafe { &*std::ptr::from_ref(self).cast::<ObjectRef>() }
    }

    fn try_from_object(object: ObjectRef) -> Result<Self, ObjectRef> {
        object.downcast()
    }
}
