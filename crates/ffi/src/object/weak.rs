//! [`Weak<T>`]: a reference that keeps the memory of an object but not its value.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::{Object, ObjectBox, ObjectHeader, Ref};

/// A weak reference, for back links. It must be upgraded to reach the value.
pub struct Weak<T: Object> {
    object: NonNull<ObjectBox<T>>,
    refers: PhantomData<T>,
}

// SAFETY: upgrading gives a `Ref<T>`, which may cross threads; see there.
unsafe impl<T: Object> Send for Weak<T> {}
// SAFETY: as above.
unsafe impl<T: Object> Sync for Weak<T> {}

impl<T: Object> Weak<T> {
    pub(super) fn new(strong: &Ref<T>) -> Weak<T> {
        let object = strong.object();
        // SAFETY: the object is alive while `strong` is.
        unsafe { object.cast::<ObjectHeader>().as_ref() }.inc_weak();
        Weak { object, refers: PhantomData }
    }

    /// The object, if some strong reference still keeps it.
    pub fn upgrade(&self) -> Option<Ref<T>> {
        // SAFETY: a weak reference keeps the header.
        let alive = unsafe { self.object.cast::<ObjectHeader>().as_ref() }.try_promote();
        // SAFETY: the promotion made a strong reference, which the handle takes.
        alive.then(|| unsafe { Ref::from_box(self.object) })
    }
}

impl<T: Object> Clone for Weak<T> {
    fn clone(&self) -> Self {
        // SAFETY: a weak reference keeps the header.
        unsafe { self.object.cast::<ObjectHeader>().as_ref() }.inc_weak();
        Weak { object: self.object, refers: PhantomData }
    }
}

impl<T: Object> Drop for Weak<T> {
    fn drop(&mut self) {
        // SAFETY: the handle owns one weak reference and ends here.
        unsafe { ObjectHeader::dec_weak(self.object.cast()) };
    }
}

impl<T: Object> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weak<{}>({:p})", T::TYPE_KEY, self.object)
    }
}
