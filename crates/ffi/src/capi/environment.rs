//! Streams and signals, for C.

use std::ffi::{c_char, c_int, c_void};

use super::c_name;
use crate::{Device, error_slot, signal, stream};

/// Makes a stream the calling thread's current one for a device; tells which one was, if a place for it is given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvSetStream(
    device_type: i32,
    device_id: i32,
    stream: *mut c_void,
    original: *mut *mut c_void,
) -> c_int {
    error_slot::guard(|| {
        let old = stream::set(Device::new(device_type, device_id), stream);
        if !original.is_null() {
            // SAFETY: the interface's contract.
            unsafe { original.write(old) };
        }
        Ok(())
    })
}

/// The calling thread's current stream for a device.
#[unsafe(no_mangle)]
pub extern "C" fn TVMFFIEnvGetStream(device_type: i32, device_id: i32) -> *mut c_void {
    stream::get(Device::new(device_type, device_id))
}

/// Fails if the user wants to interrupt.
#[unsafe(no_mangle)]
pub extern "C" fn TVMFFIEnvCheckSignals() -> c_int {
    error_slot::guard(signal::check)
}

/// Lends a function of the front end's interpreter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvRegisterCAPI(name: *const c_char, symbol: *mut c_void) -> c_int {
    // SAFETY: the interface's contract.
    error_slot::guard(|| unsafe { signal::register(&c_name(name)?, symbol) })
}
