//! What sessions run on, for those who choose: the processor, and nothing else.

use std::ffi::{c_char, c_int, c_void};
use std::sync::LazyLock;

use crate::border::{array, array_mut, check_place, put};
use crate::env::OrtEnv;
use crate::handle::{Handle, HandleKind, at};
use crate::memory::{OrtMemoryInfo, host};
use crate::options::{OrtSessionOptions, SessionOptions, change};
use crate::pairs::{OrtKeyValuePairs, Pairs};
use crate::session::OrtSession;
use crate::status::{OrtStatus, Result, guard, invalid};

/// A device of the machine, for C.
pub type OrtHardwareDevice = Handle<HardwareDevice>;

/// What sessions run on, for C.
pub type OrtEpDevice = Handle<EpDevice>;

/// A device of the machine.
pub struct HardwareDevice {
    metadata: OrtKeyValuePairs,
}

/// What sessions run on.
pub struct EpDevice {
    device: OrtHardwareDevice,
    metadata: OrtKeyValuePairs,
    options: OrtKeyValuePairs,
}

impl HandleKind for HardwareDevice {
    const NAME: &str = "OrtHardwareDevice";
}

impl HandleKind for EpDevice {
    const NAME: &str = "OrtEpDevice";
}

/// The one device, with its address in the list that callers borrow.
struct Listed(OrtEpDevice, [*const OrtEpDevice; 1]);

// SAFETY: nothing of it changes, and its address is lent to be read.
unsafe impl Send for Listed {}
// SAFETY: as above.
unsafe impl Sync for Listed {}

static PROCESSOR: LazyLock<Box<Listed>> = LazyLock::new(|| {
    let none = || Handle::new(Pairs::of([]));
    let device = Handle::new(HardwareDevice { metadata: none() });
    let device = Handle::new(EpDevice { device, metadata: none(), options: none() });
    let mut listed = Box::new(Listed(device, [std::ptr::null()]));
    listed.1 = [&raw const listed.0];
    listed
});

pub unsafe extern "C" fn list(
    env: *const OrtEnv,
    devices: *mut *const *const OrtEpDevice,
    count: *mut usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        at(env, "env")?;
        check_place(devices)?;
        put(count, PROCESSOR.1.len())?;
        put(devices, PROCESSOR.1.as_ptr())
    })
}

pub unsafe extern "C" fn hardware_count(env: *const OrtEnv, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        at(env, "env")?;
        put(out, 1)
    })
}

pub unsafe extern "C" fn hardware(
    env: *const OrtEnv,
    out: *mut *const OrtHardwareDevice,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        at(env, "env")?;
        match array_mut(out, count, "devices")? {
            [first, ..] => {
                *first = &raw const PROCESSOR.0.device;
                Ok(())
            }
            [] => Err(invalid("there is one device, and room for none")),
        }
    })
}

/// What a device is asked that it has no status to answer with.
///
/// # Safety
/// As for [`at`].
unsafe fn ask<T: HandleKind + 'static, R>(
    device: *const Handle<T>,
    answer: impl FnOnce(&'static T) -> R,
    otherwise: R,
) -> R {
    // SAFETY: the caller's promise; devices live for ever.
    unsafe { at(device, "device") }.map_or(otherwise, answer)
}

pub extern "C" fn hardware_type(_device: *const OrtHardwareDevice) -> c_int {
    0
}

pub extern "C" fn hardware_number(_device: *const OrtHardwareDevice) -> u32 {
    0
}

pub unsafe extern "C" fn hardware_vendor(device: *const OrtHardwareDevice) -> *const c_char {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |_| c"".as_ptr(), std::ptr::null()) }
}

pub unsafe extern "C" fn hardware_metadata(device: *const OrtHardwareDevice) -> *const OrtKeyValuePairs {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |device| &raw const device.metadata, std::ptr::null()) }
}

pub unsafe extern "C" fn provider(device: *const OrtEpDevice) -> *const c_char {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |_| c"CPUExecutionProvider".as_ptr(), std::ptr::null()) }
}

pub unsafe extern "C" fn provider_vendor(device: *const OrtEpDevice) -> *const c_char {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |_| c"Relaxide".as_ptr(), std::ptr::null()) }
}

pub unsafe extern "C" fn provider_metadata(device: *const OrtEpDevice) -> *const OrtKeyValuePairs {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |device| &raw const device.metadata, std::ptr::null()) }
}

pub unsafe extern "C" fn provider_options(device: *const OrtEpDevice) -> *const OrtKeyValuePairs {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |device| &raw const device.options, std::ptr::null()) }
}

pub unsafe extern "C" fn hardware_of(device: *const OrtEpDevice) -> *const OrtHardwareDevice {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |device| &raw const device.device, std::ptr::null()) }
}

pub unsafe extern "C" fn memory_info(device: *const OrtEpDevice, _type: c_int) -> *const OrtMemoryInfo {
    // SAFETY: the interface's contract.
    unsafe { ask(device, |_| host(), std::ptr::null()) }
}

/// # Safety
/// As for [`at`] and [`array_mut`].
unsafe fn of_values(session: *const OrtSession, len: usize, out: *mut *const OrtEpDevice, count: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        at(session, "session")?;
        if len != count {
            return Err(invalid(format!("there is room for {count} devices, and {len} are to be given")));
        }
        array_mut(out, count, "devices")?.fill(&raw const PROCESSOR.0);
    }
    Ok(())
}

pub unsafe extern "C" fn of_inputs(
    session: *const OrtSession,
    out: *mut *const OrtEpDevice,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { of_values(session, at(session, "session")?.inputs().len(), out, count) })
}

pub unsafe extern "C" fn of_outputs(
    session: *const OrtSession,
    out: *mut *const OrtEpDevice,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { of_values(session, at(session, "session")?.outputs().len(), out, count) })
}

/// `SessionOptionsAppendExecutionProvider_V2`: the devices are those of [`list`].
pub unsafe extern "C" fn append(
    options: *mut OrtSessionOptions,
    env: *mut OrtEnv,
    devices: *const *const OrtEpDevice,
    count: usize,
    _keys: *const *const c_char,
    _values: *const *const c_char,
    _entries: usize,
) -> *mut OrtStatus {
    let check = |_: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        unsafe {
            at(env, "env")?;
            let devices = array(devices, count, "ep_devices")?;
            if devices.is_empty() {
                return Err(invalid("no device is given"));
            }
            devices.iter().try_for_each(|device| at(*device, "ep_devices").map(drop))
        }
    };
    // SAFETY: as above.
    unsafe { change(options, check) }
}

/// `SessionOptionsSetEpSelectionPolicyDelegate`: there is nothing to choose from.
pub unsafe extern "C" fn set_delegate(
    options: *mut OrtSessionOptions,
    _delegate: *const c_void,
    _state: *mut c_void,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { change(options, |_| Ok(())) }
}
