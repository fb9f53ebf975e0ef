//! [`Tail`]: values that lie behind the object that they belong to, in its allocation.

use std::ops::Deref;
use std::ptr::NonNull;

use super::header::{allocate, deleter};
use super::{Object, Ref};
use crate::field::Field;
use crate::{Any, Array, StructuralEqual, StructuralHash};

/// The values behind an object, whose last field this is: a list's cell is one allocation, however many fields it has.
///
/// ```
/// use relaxide_ffi::{Any, Object, Ref, Tail};
///
/// #[derive(Object)]
/// #[object(key = "example.Cell", tail)]
/// #[repr(C)]
/// struct Cell {
///     tag: i32,
///     fields: Tail,
/// }
///
/// let cell = Ref::with_tail(Cell { tag: 1, fields: Tail::default() }, [Any::from(2), Any::from("two")]);
/// assert_eq!((cell.tag, cell.fields.len()), (1, 2));
/// ```
///
/// An object with a tail is never changed in place: [`Ref::get_mut`] does not lend it.
#[derive(Default)]
#[repr(transparent)]
pub struct Tail {
    /// How many values lie behind; none unless the tail is where [`Ref::with_tail`] put it.
    count: u32,
}

impl Deref for Tail {
    type Target = [Any];

    #[inline]
    fn deref(&self) -> &[Any] {
        if self.count == 0 {
            return &[];
        }
        // SAFETY: only `with_tail` sets the count. It put that many values behind this field, which has not moved since: a
        // tailed object is lent for reading only.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast::<Any>(), self.count as usize) }
    }
}

impl Drop for Tail {
    #[inline]
    fn drop(&mut self) {
        let first = std::ptr::from_mut(self).wrapping_add(1).cast::<Any>();
        // SAFETY: as for reading; the object ends here, and its values with it.
        (0..self.count as usize).for_each(|i| unsafe { first.add(i).drop_in_place() });
    }
}

impl<'t> IntoIterator for &'t Tail {
    type Item = &'t Any;
    type IntoIter = std::slice::Iter<'t, Any>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Object> Ref<T> {
    /// Moves `value`, whose tail is empty, behind a header of its own, and the values behind it.
    #[inline]
    pub fn with_tail<I>(value: T, values: I) -> Ref<T>
    where
        I: IntoIterator<Item = Any>,
        I::IntoIter: ExactSizeIterator,
    {
        const {
            assert!(
                matches!(T::TAIL, Some(offset) if offset + size_of::<Tail>() == size_of::<T>()),
                "the tail is the end"
            );
            assert!(size_of::<T>().is_multiple_of(align_of::<Any>()), "values lie behind the tail without a gap");
        }
        let values = values.into_iter();
        let room = values.len().min(u32::MAX as usize);
        let object = allocate::<T>(T::type_index(), room * size_of::<Any>(), deleter::<T>);
        // SAFETY: the allocation has room for a `T` and as many values behind it. The tail is counted when they are there.
        unsafe {
            let place = &raw mut (*object.as_ptr()).value;
            place.write(value);
            let first = place.add(1).cast::<Any>();
            let mut count = 0;
            for value in values.take(room) {
                first.add(count).write(value);
                count += 1;
            }
            place.add(1).cast::<Tail>().sub(1).write(Tail { count: count as u32 });
            Ref::from_box(NonNull::new_unchecked(object.as_ptr()))
        }
    }
}

impl Field for Tail {
    fn schema() -> String {
        <Vec<Any> as Field>::schema()
    }

    fn to_any(&self) -> Any {
        Array::from_iter(self.iter().cloned()).into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        eq.sequences(self, other)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.sequence(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FreeVars, structural_equal};

    #[derive(relaxide_ffi::Object)]
    #[object(key = "test.Tailed", tail)]
    #[repr(C)]
    struct Tailed {
        tag: i32,
        fields: Tail,
    }

    fn tailed(tag: i32, fields: Vec<Any>) -> Ref<Tailed> {
        Ref::with_tail(Tailed { tag, fields: Tail::default() }, fields)
    }

    #[test]
    fn values_lie_behind_their_object_and_end_with_it() {
        let held = tailed(0, Vec::new());
        for count in 0..5 {
            let made = tailed(count, vec![Any::from(&held); count as usize]);
            assert_eq!((made.tag, made.fields.len()), (count, count as usize));
            assert_eq!(Ref::strong_count(&held), 1 + count as u32);
            assert!(made.fields.iter().all(|field| field.downcast_ref::<Tailed>().is_some()));
        }
        assert_eq!(Ref::strong_count(&held), 1);
        assert!(held.fields.is_empty());
    }

    #[test]
    fn objects_with_tails_are_not_changed_in_place() {
        assert!(Ref::get_mut(&mut tailed(1, vec![Any::from(2)])).is_none());
    }

    #[test]
    fn objects_are_equal_where_their_tails_are() {
        let [a, b, c] = [7, 7, 8].map(|last| tailed(1, vec![Any::from("x"), Any::from(last)]));
        assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
        assert!(structural_equal(&a, &c, FreeVars::Same).is_err());
        assert!(structural_equal(&a, &tailed(1, vec![Any::from("x")]), FreeVars::Same).is_err());
    }
}
