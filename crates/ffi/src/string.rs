//! [`Str`] and [`Bytes`]: immutable text and bytes, inside the value when short and on the heap otherwise.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::abi::{ByteArray, Payload, RawAny, type_index};
use crate::object::{NodeKind, Object, Ref, allocate, deleter};
use crate::type_info::TypeSlot;
use crate::{Any, AnyView, StructuralEqual, StructuralHash};

/// What is this short needs no object.
const SMALL: usize = 7;

/// The cell of a string object. The bytes follow it in the same allocation, and a NUL follows them.
#[repr(C)]
pub(crate) struct HeapStr(ByteArray);

/// The cell of a bytes object.
#[repr(C)]
pub(crate) struct HeapBytes(ByteArray);

/// Declares that a cell is the object of a fixed type.
macro_rules! byte_object {
    ($cell:ident, $key:literal, $index:expr) => {
        // SAFETY: the address is that of immutable bytes in the same allocation.
        unsafe impl Send for $cell {}
        // SAFETY: as above.
        unsafe impl Sync for $cell {}

        // SAFETY: the slot belongs to this type alone.
        unsafe impl Object for $cell {
            const TYPE_KEY: &'static str = $key;
            const KIND: NodeKind = NodeKind::Tree;
            const STATIC_INDEX: Option<i32> = Some($index);

            fn slot() -> &'static TypeSlot {
                static SLOT: TypeSlot = TypeSlot::new();
                &SLOT
            }

            fn fields_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                // SAFETY: the cells address the bytes behind them.
                let (a, b) = unsafe { (self.0.as_slice(), other.0.as_slice()) };
                a == b || eq.fail(format_args!("\"{}\" differs from \"{}\"", a.escape_ascii(), b.escape_ascii()))
            }

            fn fields_hash(&self, hash: &mut StructuralHash) {
                // SAFETY: the cell addresses the bytes behind it.
                hash.bytes(unsafe { self.0.as_slice() });
            }
        }
    };
}

byte_object!(HeapStr, "ffi.String", type_index::STR);
byte_object!(HeapBytes, "ffi.Bytes", type_index::BYTES);

/// Makes a value of `bytes`: inside the value if they are few, else behind an object that `C` describes.
fn store<C: Object>(bytes: &[u8], small_index: i32, cell: fn(ByteArray) -> C) -> Any {
    if bytes.len() <= SMALL {
        let mut small = [0; 8];
        small[..bytes.len()].copy_from_slice(bytes);
        let raw = RawAny { type_index: small_index, small_len: bytes.len() as u32, payload: Payload { bytes: small } };
        // SAFETY: a small value owns nothing.
        return unsafe { Any::from_raw(raw) };
    }
    let object = allocate::<C>(C::type_index(), bytes.len() + 1, deleter::<C>);
    // SAFETY: the allocation has room for the cell and, behind it, for the bytes and a NUL; both are written before the
    // handle exists.
    unsafe {
        let value = &raw mut (*object.as_ptr()).value;
        let tail = value.add(1).cast::<u8>();
        tail.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        tail.add(bytes.len()).write(0);
        value.write(cell(ByteArray { data: tail.cast(), size: bytes.len() }));
        Ref::<C>::from_box(object).into()
    }
}

/// The bytes of a value that is known to hold some.
fn view<C: Object>(value: &Any, cell: fn(&C) -> &ByteArray) -> &[u8] {
    match value.downcast_ref::<C>() {
        // SAFETY: the cell addresses the bytes behind it, which live as long as the object and never change.
        Some(object) => unsafe { cell(object).as_slice() },
        None => value.small_payload().unwrap_or(&[]),
    }
}

/// Immutable text. Copies share it.
#[derive(Clone)]
#[repr(transparent)]
pub struct Str(Any);

impl Str {
    /// A copy of `text`.
    pub fn new(text: &str) -> Str {
        Str(store(text.as_bytes(), type_index::SMALL_STR, HeapStr))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // SAFETY: every `Str` is made from a `&str`, or from a value whose text was found to be UTF-8.
        unsafe { std::str::from_utf8_unchecked(view::<HeapStr>(&self.0, |cell| &cell.0)) }
    }

    /// The value as text, if it is a string of valid UTF-8.
    pub(crate) fn from_value(value: AnyView<'_>) -> Option<Str> {
        value.as_str()?;
        Some(Str(value.to_owned()))
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str::new(text)
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str::new(&text)
    }
}

impl From<Str> for Any {
    fn from(value: Str) -> Any {
        value.0
    }
}

impl<'a> From<&'a Str> for AnyView<'a> {
    fn from(value: &'a Str) -> Self {
        value.0.as_view()
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Str {}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Str) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Str) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Immutable bytes. Copies share them.
#[derive(Clone)]
#[repr(transparent)]
pub struct Bytes(Any);

impl Bytes {
    /// A copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Bytes {
        Bytes(store(bytes, type_index::SMALL_BYTES, HeapBytes))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        view::<HeapBytes>(&self.0, |cell| &cell.0)
    }

    /// The value as bytes, if it is some.
    pub(crate) fn from_value(value: AnyView<'_>) -> Option<Bytes> {
        let index = value.type_index();
        matches!(index, type_index::SMALL_BYTES | type_index::BYTES | type_index::BYTE_ARRAY_PTR)
            .then(|| Bytes(value.to_owned()))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes::new(bytes)
    }
}

impl From<Bytes> for Any {
    fn from(value: Bytes) -> Any {
        value.0
    }
}

impl<'a> From<&'a Bytes> for AnyView<'a> {
    fn from(value: &'a Bytes) -> Self {
        value.0.as_view()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Bytes {}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.as_slice().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seven_bytes_fit_the_value_and_eight_do_not() {
        assert_eq!(Any::from("1234567").type_index(), type_index::SMALL_STR);
        assert_eq!(Any::from("12345678").type_index(), type_index::STR);
        assert_eq!(Any::from(Bytes::new(&[0; 7])).type_index(), type_index::SMALL_BYTES);
        assert_eq!(Any::from(Bytes::new(&[0; 8])).type_index(), type_index::BYTES);
    }

    proptest! {
        #[test]
        fn text_survives(text in "\\PC{0,20}") {
            let value = Any::from(text.as_str());
            prop_assert_eq!(value.as_str(), Some(text.as_str()));
            prop_assert_eq!(&*value.to::<Str>().unwrap(), text.as_str());
            prop_assert_eq!(value.to::<String>().unwrap(), text);
        }

        #[test]
        fn bytes_survive(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let value = Any::from(Bytes::new(&bytes));
            prop_assert_eq!(value.to::<Bytes>().unwrap().to_vec(), bytes);
        }
    }
}
