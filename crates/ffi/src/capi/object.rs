//! Counting references from C, values, the version.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use super::{ObjectHandle, borrow_object, input, place};
use crate::abi::{self, RawAny};
use crate::object::{ObjectBox, ObjectHeader, allocate, deleter};
use crate::{Error, ErrorKind, error_slot};

/// `TVMFFIVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Version {
    /// Changes when the layout of values does.
    pub major: u32,
    /// Changes when functions do.
    pub minor: u32,
    /// Changes otherwise.
    pub patch: u32,
}

/// The version of the interface that is implemented here.
pub const VERSION: Version = Version { major: 0, minor: 1, patch: 15 };

/// Tells which version of the interface this is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIGetVersion(out: *mut Version) {
    if !out.is_null() {
        // SAFETY: the interface's contract.
        unsafe { out.write(VERSION) };
    }
}

/// Adds a strong reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIObjectIncRef(object: ObjectHandle) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let object = unsafe { borrow_object(object)? };
        std::mem::forget(object);
        Ok(())
    })
}

/// Gives up a strong reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIObjectDecRef(object: ObjectHandle) -> c_int {
    error_slot::guard(|| {
        if let Some(header) = NonNull::new(object.cast::<ObjectHeader>()) {
            // SAFETY: the interface's contract: the caller owns a reference.
            unsafe { ObjectHeader::dec_ref(header) };
        }
        Ok(())
    })
}

/// Turns a borrowed value into an owned one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIAnyViewToOwnedAny(view: *const RawAny, out: *mut RawAny) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(super::view(*input(view, "the value")?)?.to_owned().into_raw()) };
        Ok(())
    })
}

/// The cell of an object that wraps another language's.
#[repr(C)]
struct OpaqueObj {
    handle: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for OpaqueObj {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the maker of the object gave it this function for its handle.
            unsafe { release(self.handle) };
        }
    }
}

/// Wraps another language's object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIObjectCreateOpaque(
    handle: *mut c_void,
    type_index: i32,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        // The cell must not be taken for one of another type, which may be laid out in any way.
        if type_index != abi::type_index::OPAQUE_PY_OBJECT {
            let message = format!("type index {type_index} is not that of an opaque object");
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let out = place(out)?;
        let object: NonNull<ObjectBox<OpaqueObj>> = allocate(type_index, 0, deleter::<OpaqueObj>);
        // SAFETY: the allocation has room for the cell; the rest is the interface's contract.
        unsafe {
            (&raw mut (*object.as_ptr()).value).write(OpaqueObj { handle, release });
            out.write(object.as_ptr().cast());
        }
        Ok(())
    })
}
