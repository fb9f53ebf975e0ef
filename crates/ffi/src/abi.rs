//! The plain C data of the tvm-ffi 0.1 binary interface: values, views of bytes, call signatures and type indices.
//!
//! Nothing here owns anything; ownership is what [`Any`](crate::Any), [`Ref`](crate::Ref) and the C functions add.
//! The layouts are part of the interface and asserted at compile time.

use std::ffi::{c_char, c_int, c_void};

use crate::object::ObjectHeader;
use crate::{DataType, Device};

/// What the `type_index` of a value or an object can be. Indices below 64 are plain values, 64 to 127 objects that the
/// interface knows, and from 128 on those that a process registers in whatever order it meets them.
pub mod type_index {
    /// Only in reflection: any value at all.
    pub const ANY: i32 = -1;
    /// No value.
    pub const NONE: i32 = 0;
    /// A signed 64-bit integer.
    pub const INT: i32 = 1;
    /// A bool, kept in the integer.
    pub const BOOL: i32 = 2;
    /// A 64-bit float.
    pub const FLOAT: i32 = 3;
    /// An address that means nothing to the interface.
    pub const OPAQUE_PTR: i32 = 4;
    /// An element type.
    pub const DATA_TYPE: i32 = 5;
    /// A device.
    pub const DEVICE: i32 = 6;
    /// A borrowed `DLTensor*`.
    pub const DL_TENSOR_PTR: i32 = 7;
    /// A borrowed NUL-terminated string; only in views.
    pub const RAW_STR: i32 = 8;
    /// A borrowed [`ByteArray`](super::ByteArray); only in views.
    pub const BYTE_ARRAY_PTR: i32 = 9;
    /// The address of a caller's value that the callee may take; only in views.
    pub const OBJECT_RVALUE_REF: i32 = 10;
    /// A string of at most seven bytes, inside the value.
    pub const SMALL_STR: i32 = 11;
    /// At most seven bytes, inside the value.
    pub const SMALL_BYTES: i32 = 12;
    /// Not a value: what a mutation returns that changed nothing.
    pub const UNCHANGED: i32 = 13;
    /// Where objects begin; also the root type.
    pub const OBJECT: i32 = 64;
    /// A string on the heap.
    pub const STR: i32 = 65;
    /// Bytes on the heap.
    pub const BYTES: i32 = 66;
    /// An error.
    pub const ERROR: i32 = 67;
    /// A function.
    pub const FUNCTION: i32 = 68;
    /// A tuple of integers.
    pub const SHAPE: i32 = 69;
    /// A tensor.
    pub const TENSOR: i32 = 70;
    /// An immutable sequence.
    pub const ARRAY: i32 = 71;
    /// An immutable map.
    pub const MAP: i32 = 72;
    /// A module.
    pub const MODULE: i32 = 73;
    /// An object of a foreign language.
    pub const OPAQUE_PY_OBJECT: i32 = 74;
    /// A mutable sequence.
    pub const LIST: i32 = 75;
    /// A mutable map.
    pub const DICT: i32 = 76;
    /// What ends a visit early.
    pub const VISIT_INTERRUPT: i32 = 77;
    /// An integer of any size.
    pub const BIG_INT: i32 = 78;
    /// Where the types begin that a process registers.
    pub const DYNAMIC_BEGIN: i32 = 128;
}

/// The payload of a [`RawAny`]; which member holds is what the type index says.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Payload {
    /// `INT` and `BOOL`; also the word that clears the whole payload.
    pub int: i64,
    /// `FLOAT`.
    pub float: f64,
    /// Every kind of address.
    pub ptr: *mut c_void,
    /// Type indices of 64 and above.
    pub object: *mut ObjectHeader,
    /// `DATA_TYPE`.
    pub dtype: DataType,
    /// `DEVICE`.
    pub device: Device,
    /// `SMALL_STR` and `SMALL_BYTES`.
    pub bytes: [u8; 8],
}

/// `TVMFFIAny`: one value, 16 bytes, without ownership.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RawAny {
    /// Which kind of value this is.
    pub type_index: i32,
    /// The length of a small string or small bytes; zero for everything else, for values are compared word by word.
    pub small_len: u32,
    /// The value.
    pub payload: Payload,
}

impl RawAny {
    /// No value.
    pub const NONE: RawAny = RawAny { type_index: type_index::NONE, small_len: 0, payload: Payload { int: 0 } };

    /// A value whose payload is one integer word.
    #[inline]
    pub const fn from_word(type_index: i32, word: i64) -> RawAny {
        RawAny { type_index, small_len: 0, payload: Payload { int: word } }
    }

    /// A value whose payload is an address.
    #[inline]
    pub const fn from_ptr(type_index: i32, ptr: *mut c_void) -> RawAny {
        let mut raw = RawAny::from_word(type_index, 0);
        raw.payload.ptr = ptr;
        raw
    }

    /// The payload as one word, whatever it holds.
    #[inline]
    pub const fn word(&self) -> i64 {
        // SAFETY: every constructor writes all eight bytes of the payload.
        unsafe { self.payload.int }
    }

    /// True if the payload is the address of an object.
    #[inline]
    pub const fn is_object(&self) -> bool {
        self.type_index >= type_index::OBJECT
    }
}

/// `TVMFFIByteArray`: borrowed bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ByteArray {
    /// The first byte.
    pub data: *const c_char,
    /// How many bytes there are.
    pub size: usize,
}

impl ByteArray {
    /// A view of `bytes`, valid as long as they are.
    pub const fn new(bytes: &[u8]) -> ByteArray {
        ByteArray { data: bytes.as_ptr().cast(), size: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    /// `data` addresses `size` bytes that stay readable and unchanged for `'a`, or `size` is zero.
    pub const unsafe fn as_slice<'a>(&self) -> &'a [u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

/// `TVMFFISafeCallType`: how a function is called across the border. Arguments are borrowed, the result is owned by the
/// caller and holds a plain value (None) on entry; the return value is 0, or non-zero with the error left in the
/// calling thread's slot.
pub type SafeCall =
    unsafe extern "C" fn(handle: *mut c_void, args: *const RawAny, num_args: c_int, result: *mut RawAny) -> c_int;

const _: () = {
    assert!(size_of::<RawAny>() == 16 && align_of::<RawAny>() == 8);
    assert!(size_of::<Payload>() == 8);
    assert!(size_of::<ByteArray>() == 2 * size_of::<usize>());
    assert!(size_of::<ObjectHeader>() == 24);
};
