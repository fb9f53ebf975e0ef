//! Text and bytes from C.

use std::ffi::c_int;

use super::{bytes, place, text};
use crate::abi::{ByteArray, RawAny};
use crate::{Any, Bytes, Str, error_slot};

/// Makes a string: inside the value if it is short, else an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIStringFromByteArray(input: *const ByteArray, out: *mut RawAny) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(Any::from(Str::new(text(input)?)).into_raw()) };
        Ok(())
    })
}

/// Makes bytes: inside the value if they are few, else an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIBytesFromByteArray(input: *const ByteArray, out: *mut RawAny) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(Any::from(Bytes::new(bytes(input)?)).into_raw()) };
        Ok(())
    })
}
