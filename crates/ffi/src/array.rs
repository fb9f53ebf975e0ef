//! [`Array`]: an immutable sequence of values.

use std::fmt;
use std::ptr::NonNull;

use crate::abi::type_index;
use crate::handle::object_handle;
use crate::object::{ObjectBox, ObjectHeader, Ref, allocate, deleter};
use crate::seq::{Change, SeqCell};
use crate::{Any, AnyView, Error, FromAny, List, StructuralEqual, StructuralHash};

/// The object behind an [`Array`].
#[repr(C)]
pub(crate) struct ArrayObj {
    seq: SeqCell,
}

// SAFETY: the values are `Send + Sync` and do not change after construction.
unsafe impl Send for ArrayObj {}
// SAFETY: as above.
unsafe impl Sync for ArrayObj {}

impl ArrayObj {
    fn items(&self) -> &[Any] {
        // SAFETY: an array does not change once others can see it.
        unsafe { self.seq.items() }
    }

    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        eq.sequences(self.items(), other.items())
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        hash.sequence(self.items());
    }
}

/// Changes the values of an array that nobody else can see; it has none while they change.
///
/// # Safety
/// The array is alive, and the caller's reference is the only one.
pub(crate) unsafe fn rewrite_array(array: *mut ObjectHeader, change: Change<'_>) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let seq = unsafe { &raw mut (*array.cast::<ObjectBox<ArrayObj>>()).value.seq };
    // SAFETY: as above; no reference to the cell lives while foreign code runs.
    let mut values = unsafe { (*seq).take() };
    let result = values.iter_mut().try_for_each(change);
    // SAFETY: as above.
    unsafe { (*seq).append(values) };
    result
}

/// An immutable sequence of values. Copies share it.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Array(Ref<ArrayObj>);

object_handle!(Array, ArrayObj, "ffi.Array", type_index::ARRAY, by content);

impl Array {
    /// An array of no values.
    pub fn empty() -> Array {
        Array::from_vec(Vec::new())
    }

    /// An array of those values.
    pub fn from_vec(values: Vec<Any>) -> Array {
        let size = values.len();
        let tail = size.saturating_mul(size_of::<Any>());
        let object = allocate::<ArrayObj>(type_index::ARRAY, tail, deleter::<ArrayObj>);
        // SAFETY: the allocation has room for the cell and the values behind it; the values move there, so the vector
        // is left as if it were empty.
        unsafe {
            let cell = &raw mut (*object.as_ptr()).value;
            let data = cell.add(1).cast::<Any>();
            data.copy_from_nonoverlapping(values.as_ptr(), size);
            let mut values = values;
            values.set_len(0);
            let capacity = size as i64;
            cell.write(ArrayObj { seq: SeqCell { data, size: capacity, capacity, data_deleter: None } });
            Array(Ref::from_box(NonNull::new_unchecked(object.as_ptr())))
        }
    }

    /// The values.
    pub fn as_slice(&self) -> &[Any] {
        self.0.items()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    /// The value at a position.
    pub fn get(&self, position: usize) -> Option<&Any> {
        self.as_slice().get(position)
    }

    /// The values, one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Any> {
        self.as_slice().iter()
    }

    /// Copies of the values.
    pub fn to_vec(&self) -> Vec<Any> {
        self.as_slice().to_vec()
    }
}

impl FromIterator<Any> for Array {
    fn from_iter<I: IntoIterator<Item = Any>>(values: I) -> Array {
        Array::from_vec(values.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Array {
    type Item = &'a Any;
    type IntoIter = std::slice::Iter<'a, Any>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// A list converts too: its values are copied.
impl FromAny for Array {
    fn from_any(value: AnyView<'_>) -> Result<Self, Error> {
        match value.type_index() {
            type_index::LIST => Ok(Array::from_vec(value.to::<List>()?.to_vec())),
            _ => crate::convert::handle_from_any(value),
        }
    }
}
