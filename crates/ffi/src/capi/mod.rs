//! The C functions of the interface, by the names that compiled libraries and front ends link against.
//!
//! They are thin: each reads its raw arguments, calls what the rest of the crate offers in Rust, and writes the result.
//! Those that return `int` follow one protocol: 0, or -1 with the error in the calling thread's slot; no panic leaves
//! them. A name is exported only if the function does all that the interface says.
//!
//! Every function's safety contract is the interface's: addresses are valid or null; handles are live objects; results
//! are written to places that hold nothing to be dropped. Where the interface does not give null a meaning it is an
//! error, or does nothing where the function cannot fail.
#![allow(clippy::missing_safety_doc, reason = "the contract is the interface's, stated once above")]

mod allocator;
mod backtrace;
mod big_int;
mod dtype;
mod environment;
mod error;
mod function;
mod init_once;
mod module;
mod object;
mod string;
mod tensor;
mod types;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

pub use allocator::*;
pub use backtrace::*;
pub use big_int::*;
pub use dtype::*;
pub use environment::*;
pub use error::*;
pub use function::*;
pub use init_once::*;
pub use module::*;
pub use object::*;
pub use string::*;
pub use tensor::*;
pub use types::*;

use crate::abi::{ByteArray, RawAny, type_index};
use crate::object::{Handle, ObjectHeader, ObjectRef};
use crate::{AnyView, Error, ErrorKind, FromAny};

macro_rules! by_name {
    ($($name:ident,)*) => {
        [$((stringify!($name), $name as *mut c_void)),*]
    };
}

/// The functions of this module by name, for loaders that bind the imports of libraries themselves.
pub fn functions() -> [(&'static str, *mut c_void); 50] {
    by_name![
        TVMFFIAnyViewToOwnedAny,
        TVMFFIBacktrace,
        TVMFFIBigIntFromByteArray,
        TVMFFIBigIntGetContentByteArray,
        TVMFFIBytesFromByteArray,
        TVMFFIDataTypeFromString,
        TVMFFIDataTypeToString,
        TVMFFIEnvCheckSignals,
        TVMFFIEnvGetDLPackManagedTensorAllocator,
        TVMFFIEnvGetStream,
        TVMFFIEnvModLookupFromImports,
        TVMFFIEnvModRegisterContextSymbol,
        TVMFFIEnvModRegisterSystemLibSymbol,
        TVMFFIEnvRegisterCAPI,
        TVMFFIEnvSetDLPackManagedTensorAllocator,
        TVMFFIEnvSetStream,
        TVMFFIEnvTensorAlloc,
        TVMFFIErrorCreate,
        TVMFFIErrorCreateWithCauseAndExtraContext,
        TVMFFIErrorMoveFromRaised,
        TVMFFIErrorSetRaised,
        TVMFFIErrorSetRaisedFromCStr,
        TVMFFIErrorSetRaisedFromCStrParts,
        TVMFFIFunctionCall,
        TVMFFIFunctionCreate,
        TVMFFIFunctionGetGlobal,
        TVMFFIFunctionSetGlobal,
        TVMFFIFunctionSetGlobalFromMethodInfo,
        TVMFFIGetCustomAllocator,
        TVMFFIGetTypeAttrColumn,
        TVMFFIGetTypeInfo,
        TVMFFIGetVersion,
        TVMFFIHandleDeinitOnce,
        TVMFFIHandleInitOnce,
        TVMFFIObjectCreateOpaque,
        TVMFFIObjectDecRef,
        TVMFFIObjectIncRef,
        TVMFFISetCustomAllocator,
        TVMFFIStringFromByteArray,
        TVMFFITensorCreateUnsafeView,
        TVMFFITensorFromDLPack,
        TVMFFITensorFromDLPackVersioned,
        TVMFFITensorToDLPack,
        TVMFFITensorToDLPackVersioned,
        TVMFFITypeGetOrAllocIndex,
        TVMFFITypeKeyToIndex,
        TVMFFITypeRegisterAttr,
        TVMFFITypeRegisterField,
        TVMFFITypeRegisterMetadata,
        TVMFFITypeRegisterMethod,
    ]
}

/// A handle of the interface: the address of an object's header.
pub type ObjectHandle = *mut c_void;

/// A place for a result; an error if there is none.
fn place<T>(out: *mut T) -> Result<NonNull<T>, Error> {
    NonNull::new(out).ok_or_else(|| Error::new(ErrorKind::ValueError, "the place for the result is null"))
}

/// What the address of an argument leads to; an error if it is null.
///
/// # Safety
/// `address` is null or leads to a `T` that lives for as long as the caller picks.
unsafe fn input<'a, T>(address: *const T, what: &str) -> Result<&'a T, Error> {
    // SAFETY: the caller's promise.
    let value = unsafe { address.as_ref() };
    value.ok_or_else(|| Error::new(ErrorKind::ValueError, format!("{what} is null")))
}

/// A value that a caller describes; an error if it should lead somewhere and does not.
///
/// # Safety
/// What `raw` leads to lives for as long as the caller picks.
unsafe fn view<'a>(raw: RawAny) -> Result<AnyView<'a>, Error> {
    let is_address = raw.is_object()
        || matches!(raw.type_index, type_index::RAW_STR | type_index::BYTE_ARRAY_PTR | type_index::OBJECT_RVALUE_REF);
    if is_address && raw.word() == 0 {
        let message = format!("the value of type index {} is null", raw.type_index);
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { AnyView::from_raw(raw) })
}

/// The object behind a handle, with a reference of its own.
///
/// # Safety
/// `handle` is null or a live object.
unsafe fn borrow_object(handle: ObjectHandle) -> Result<ObjectRef, Error> {
    let header = NonNull::new(handle.cast::<ObjectHeader>())
        .ok_or_else(|| Error::new(ErrorKind::ValueError, "the object handle is null"))?;
    // SAFETY: the object is live; the borrowed reference is given back by not dropping it.
    let borrowed = std::mem::ManuallyDrop::new(unsafe { ObjectRef::from_header(header) });
    Ok(ObjectRef::clone(&borrowed))
}

/// The object behind a handle as a `T`.
///
/// # Safety
/// `handle` is null or a live object.
pub(crate) unsafe fn borrow<T: FromAny>(handle: ObjectHandle) -> Result<T, Error> {
    // SAFETY: the caller's promise.
    let object = unsafe { borrow_object(handle)? };
    T::from_any((&object).into())
}

/// Gives a handle away.
fn give<H: Handle>(handle: H) -> ObjectHandle {
    let object = handle.as_object().clone();
    drop(handle);
    object.into_raw().as_ptr().cast()
}

/// The text of a byte array.
///
/// # Safety
/// `bytes` is null or a readable byte array that outlives the result.
unsafe fn text<'a>(bytes: *const ByteArray) -> Result<&'a str, Error> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { self::bytes(bytes)? };
    std::str::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::ValueError, "the text is not UTF-8"))
}

/// The bytes of a byte array.
///
/// # Safety
/// As for [`text`].
unsafe fn bytes<'a>(bytes: *const ByteArray) -> Result<&'a [u8], Error> {
    // SAFETY: the caller's promise.
    match unsafe { bytes.as_ref() } {
        Some(bytes) if bytes.data.is_null() && bytes.size != 0 => {
            Err(Error::new(ErrorKind::ValueError, format!("the address of {} bytes is null", bytes.size)))
        }
        // SAFETY: as above.
        Some(bytes) => Ok(unsafe { bytes.as_slice() }),
        None => Err(Error::new(ErrorKind::ValueError, "the byte array is null")),
    }
}

/// The text of a C string that must be there.
///
/// # Safety
/// As for [`c_text`].
unsafe fn c_name(text: *const c_char) -> Result<String, Error> {
    // SAFETY: the caller's promise.
    unsafe { input(text, "the name").map(|_| c_text(text)) }
}

/// The text of a C string, with what is not UTF-8 replaced.
///
/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn c_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
