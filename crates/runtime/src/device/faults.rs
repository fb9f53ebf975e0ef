//! What the host's halves of kernels call beside the kernels: which device they work with, and what went wrong there.
//!
//! A kernel raises no error. It leaves three words in a buffer: the number of the check that failed, from 1, an index and an extent. The host
//! clears the buffer before and looks at it behind the call.

use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, Function};

use super::launch::address;
use super::{DeviceApi, Memory, device_api, device_kinds, set_current_device};
use crate::register::enter;

/// Words in a buffer of faults.
const WORDS: usize = 3;

type FaultFunction = fn(&[AnyView<'_>]) -> Result<Any, Error>;

const FUNCTIONS: &[(&str, FaultFunction)] = &[
    ("relaxide.enter_device", enter_device),
    ("relaxide.clear_faults", clear_faults),
    ("relaxide.raise_faults", raise_faults),
];

pub(crate) fn register() {
    for (name, body) in FUNCTIONS {
        enter(name, Function::new(*body));
    }
}

/// `(device type, memory)`: the thread works with the device that the memory is on.
fn enter_device(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let kind = args.first().and_then(|kind| i32::try_from(kind.as_int()?).ok());
    let api = kind.and_then(|kind| device_api(Device::new(kind, 0)).ok());
    let memory = args.get(1).and_then(|memory| address(*memory));
    if let (Some(api), Some(memory)) = (api, memory)
        && let Some(device) = api.place_of(memory)
    {
        set_current_device(device);
    }
    Ok(Any::none())
}

/// A buffer of faults, and who moves its bytes.
fn memory(args: &[AnyView<'_>]) -> Result<(Memory, &'static dyn DeviceApi), Error> {
    let found = args.first().and_then(|memory| address(*memory)).and_then(|handle| {
        device_kinds().into_iter().find_map(|kind| {
            let api = device_api(Device::new(kind, 0)).ok()?;
            let handle_of = std::ptr::with_exposed_provenance_mut(handle);
            Some((Memory { device: api.place_of(handle)?, handle: handle_of, offset: 0 }, api))
        })
    });
    found.ok_or_else(|| Error::new(ErrorKind::ValueError, "a buffer of faults is no memory of a device"))
}

/// `(memory)`: no check has failed.
fn clear_faults(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let ((memory, api), words) = (memory(args)?, [0_i64; WORDS]);
    let stream = api.current_stream(memory.device);
    // SAFETY: host functions of this compiler's give a buffer of as many words, and the words outlive the wait.
    unsafe { api.copy_from_host(words.as_ptr().cast(), memory, size_of_val(&words), stream)? };
    api.synchronize(memory.device, stream)?;
    Ok(Any::none())
}

/// `(memory, kernel, kind, text, …)`: an error if a check has failed, with the kind and text of its number. Without a kind the text is what
/// an index is of.
fn raise_faults(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let ((memory, api), mut words) = (memory(args)?, [0_i64; WORDS]);
    let stream = api.current_stream(memory.device);
    // SAFETY: as above.
    unsafe { api.copy_to_host(memory, words.as_mut_ptr().cast(), size_of_val(&words), stream)? };
    api.synchronize(memory.device, stream)?;
    let [number, index, extent] = words;
    if number == 0 {
        return Ok(Any::none());
    }
    let text = |at: usize| args.get(at).and_then(|text| text.to::<String>().ok()).unwrap_or_default();
    let at = usize::try_from(number).unwrap_or(1).saturating_mul(2);
    let (kind, what) = (text(at), text(at + 1));
    if kind.is_empty() {
        let message = format!("{}: index {index} of {what} is outside of the extent {extent}", text(1));
        return Err(Error::new(ErrorKind::IndexError, message));
    }
    Err(Error::new(&*kind, what))
}
