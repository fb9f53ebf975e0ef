//! Making, calling and naming functions from C.

use std::ffi::{c_int, c_void};

use super::{CMethodInfo, ObjectHandle, borrow, give, input, place, text};
use crate::abi::{ByteArray, RawAny, SafeCall};
use crate::{Error, ErrorKind, Function, GlobalFunction, error_slot, get_global, register_global, replace_global};

/// Makes a function of a callback and its resource.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIFunctionCreate(
    resource: *mut c_void,
    safe_call: Option<SafeCall>,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        let safe_call = safe_call.ok_or_else(|| Error::new(ErrorKind::ValueError, "the callback is null"))?;
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(give(Function::from_callback(resource, safe_call, release))) };
        Ok(())
    })
}

/// The function of a name in the global table; null if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIFunctionGetGlobal(name: *const ByteArray, out: *mut ObjectHandle) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(get_global(text(name)?).map_or(std::ptr::null_mut(), give)) };
        Ok(())
    })
}

/// Enters a function in the global table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIFunctionSetGlobal(
    name: *const ByteArray,
    function: ObjectHandle,
    allow_override: c_int,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let (name, function) = unsafe { (text(name)?, borrow::<Function>(function)?) };
        enter(name, function.into(), allow_override)
    })
}

/// Enters a function in the global table with its documentation and metadata.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIFunctionSetGlobalFromMethodInfo(
    info: *const CMethodInfo,
    allow_override: c_int,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let (name, function) = unsafe {
            let CMethodInfo { name, doc, metadata, method, .. } = input(info, "the description of the method")?;
            let (doc, metadata) = (text(doc)?.to_string(), text(metadata)?.to_string());
            let function = super::view(*method)?.to::<Function>()?;
            (text(name)?, GlobalFunction { function, doc, metadata })
        };
        enter(name, function, allow_override)
    })
}

fn enter(name: &str, function: GlobalFunction, allow_override: c_int) -> Result<(), Error> {
    if allow_override == 0 {
        return register_global(name, function);
    }
    replace_global(name, function);
    Ok(())
}

/// Calls a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIFunctionCall(
    function: ObjectHandle,
    args: *const RawAny,
    num_args: c_int,
    result: *mut RawAny,
) -> c_int {
    if function.is_null() || result.is_null() || (args.is_null() && num_args > 0) {
        error_slot::set(Error::new(
            ErrorKind::ValueError,
            "the function, its arguments or the place for the result is null",
        ));
        return -1;
    }
    // SAFETY: the interface's contract: the handle is a function, whose first word is its entry point.
    unsafe {
        let call = *function.byte_add(size_of::<crate::ObjectHeader>()).cast::<SafeCall>();
        call(function, args, num_args, result)
    }
}
