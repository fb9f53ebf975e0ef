//! The calling thread's current stream of each device: where work that takes no stream argument is queued.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;

use crate::Device;

thread_local! {
    static CURRENT: RefCell<HashMap<Device, *mut c_void>> = RefCell::default();
}

/// Makes a stream the device's current one and returns the one that was; null is the device's default stream.
pub fn set(device: Device, stream: *mut c_void) -> *mut c_void {
    CURRENT.with_borrow_mut(|current| current.insert(device, stream)).unwrap_or(std::ptr::null_mut())
}

/// The device's current stream.
pub fn get(device: Device) -> *mut c_void {
    CURRENT.with_borrow(|current| current.get(&device).copied()).unwrap_or(std::ptr::null_mut())
}
