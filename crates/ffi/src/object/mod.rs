//! Reference-counted objects: a 24-byte header, a Rust value behind it, and the handles that own them.
//!
//! An object is one allocation:
//!
//! ```text
//!  -8            0                24
//!  | free function | ObjectHeader | T ...
//! ```
//!
//! A handle is the address of the header. [`Ref<T>`] knows the type of the value, [`ObjectRef`] knows that there is one
//! and finds out by the header's type index. Both are one pointer wide and share the count, so a handle can be given to
//! C and taken back. The counting rules are those of tvm-ffi 0.1: the low half of the count holds strong references, the
//! high half weak ones, and all strong references together hold one weak.

pub(crate) mod destroy;
mod erased;
mod header;
mod reference;
mod space;
mod tail;
mod weak;

pub use erased::ObjectRef;
pub use header::{CustomAllocator, ObjectHeader, allocator, set_allocator};
pub(crate) use header::{DESTROY, FREE, ObjectBox, allocate, allocate_bytes, deleter, free_bytes};
pub use reference::Ref;
pub use tail::Tail;
pub use weak::Weak;

use crate::reflect::{FieldInfo, FieldReader};
use crate::structural::{StructuralEqual, StructuralHash};
use crate::type_info::TypeSlot;

/// How values of a type take part in structural equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Equal when the fields are.
    Tree,
    /// A free variable: equal to the variable that it was matched with where both were defined, else only to itself.
    Var,
    /// Equal only to itself.
    Unique,
}

/// A Rust type that can live behind an [`ObjectHeader`]. Written by `#[derive(Object)]`:
///
/// ```
/// use relaxide_ffi::{Object, Ref, FreeVars, structural_equal};
///
/// #[derive(Object, Debug)]
/// #[object(key = "example.Point")]
/// struct Point {
///     x: i64,
///     y: i64,
///     #[field(ignore)]
///     note: String,
/// }
///
/// let a = Ref::new(Point { x: 1, y: 2, note: "first".into() });
/// let b = Ref::new(Point { x: 1, y: 2, note: "second".into() });
/// assert!(structural_equal(&a, &b, FreeVars::Same).is_ok());
/// assert_ne!(a, b); // `==` on handles asks whether they are the same object.
/// ```
///
/// # Safety
/// `slot` returns the one slot of this very type: no two types share one. `TAIL` is where the type has a field of type [`Tail`].
pub unsafe trait Object: Sized + Send + Sync + 'static {
    /// The name by which every language knows the type.
    const TYPE_KEY: &'static str;
    /// The key of the type that this one refines.
    const PARENT_KEY: &'static str = "ffi.Object";
    /// How structural equality treats the type.
    const KIND: NodeKind = NodeKind::Unique;
    /// The index, for types whose index the binary interface fixes.
    #[doc(hidden)]
    const STATIC_INDEX: Option<i32> = None;

    /// Where the [`Tail`] is, for types that end with one.
    #[doc(hidden)]
    const TAIL: Option<usize> = None;

    /// Where the type's index is remembered.
    #[doc(hidden)]
    fn slot() -> &'static TypeSlot;

    /// The type's index in this process; registers the type when first asked.
    #[inline]
    fn type_index() -> i32 {
        match Self::STATIC_INDEX {
            Some(index) => index,
            None => Self::slot().index::<Self>(),
        }
    }

    /// The reflected fields, in the order of declaration.
    fn fields() -> &'static [FieldInfo] {
        &[]
    }

    /// Makes a value of its fields, which `read` gives by name; an error if not every field can be made of a value.
    fn from_fields(read: FieldReader<'_>) -> Result<Self, crate::Error> {
        let _ = read;
        Err(crate::reflect::cannot_create(Self::TYPE_KEY))
    }

    /// Compares the fields that count.
    fn fields_equal(&self, _other: &Self, _eq: &mut StructuralEqual) -> bool {
        std::ptr::eq(self, _other)
    }

    /// Hashes the fields that count.
    fn fields_hash(&self, hash: &mut StructuralHash) {
        hash.combine(std::ptr::from_ref(self) as u64);
    }
}

/// A handle to an object whose type is known, or known to be one of a family: [`Ref<T>`], the enums of
/// `#[derive(ObjectEnum)]`, and the named handles such as [`Tensor`](crate::Tensor).
pub trait Handle: Sized + Clone + Send + Sync + 'static {
    /// What error messages call the family.
    fn expected() -> String;

    /// The same object without its type.
    fn as_object(&self) -> &ObjectRef;

    /// The handle, if the object belongs here; else the object back.
    fn try_from_object(object: ObjectRef) -> Result<Self, ObjectRef>;

    /// True if both are the same object.
    #[inline]
    fn ptr_eq(&self, other: &Self) -> bool {
        self.as_object() == other.as_object()
    }

    /// The key of the object's type.
    fn type_key(&self) -> &'static str {
        self.as_object().type_key()
    }
}

/// An object that is nothing but itself, as something that stands for something.
pub(crate) fn bare() -> ObjectRef {
    let object = allocate::<()>(crate::abi::type_index::OBJECT, 0, deleter::<()>);
    // SAFETY: the object has no value to be written, and the reference passes on.
    unsafe { ObjectRef::from_header(object.cast()) }
}
