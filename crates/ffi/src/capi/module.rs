//! What compiled libraries ask of the modules around them, and the names that they are given.

use std::ffi::{c_char, c_int, c_void};

use super::{ObjectHandle, borrow, c_name, place};
use crate::object::Handle;
use crate::{Module, env, error_slot};

/// The function that the code of a library means by a name. The library's module keeps it: the handle is borrowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvModLookupFromImports(
    library: ObjectHandle,
    name: *const c_char,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            let out = place(out)?;
            let library = borrow::<Module>(library)?;
            let function = library.lookup_from_imports(&c_name(name)?)?;
            out.write(function.as_object().as_ptr().cast());
        }
        Ok(())
    })
}

/// Enters an address that loaded libraries are given by that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvModRegisterContextSymbol(name: *const c_char, symbol: *mut c_void) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        env::register_context_symbol(&unsafe { c_name(name)? }, symbol);
        Ok(())
    })
}

/// Enters a symbol of a library that is linked into the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvModRegisterSystemLibSymbol(name: *const c_char, symbol: *mut c_void) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        env::register_system_symbol(&unsafe { c_name(name)? }, symbol);
        Ok(())
    })
}
