//! Element types from and to text, for C.

use std::ffi::c_int;

use super::{input, place, text};
use crate::abi::{ByteArray, RawAny};
use crate::{Any, DataType, Error, ErrorKind, error_slot};

/// Reads an element type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIDataTypeFromString(text_of_type: *const ByteArray, out: *mut DataType) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(text(text_of_type)?.parse()?) };
        Ok(())
    })
}

/// Prints an element type. The absence of a type is the empty string here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIDataTypeToString(dtype: *const DataType, out: *mut RawAny) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let (dtype, out) = unsafe { (input(dtype, "the element type")?, place(out)?) };
        if !dtype.has_name() {
            let message = format!("type code {} has no name", dtype.code);
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let name = if dtype.is_void() { String::new() } else { dtype.to_string() };
        // SAFETY: the interface's contract.
        unsafe { out.write(Any::from(name).into_raw()) };
        Ok(())
    })
}
