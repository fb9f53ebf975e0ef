//! What the host's halves of kernels call beside the kernels: which device they work with, and what went wrong there.
//!
//! A kernel raises no error. It leaves three words in a buffer: the number of the check that failed, from 1, an index and an extent. The host
//! clears the buffer before and looks at it behind the call.

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function};

use super::devices::{OpenCl, place_of};
use crate::device::{DeviceApi, Memory, Stream, set_current_device};
use crate::register::enter;

/// Words in a buffer of faults.
const WORDS: usize = 3;

type Body = fn(&[AnyView<'_>]) -> Result<Any, Error>;

const FUNCTIONS: &[(&str, Body)] = &[
    ("relaxide.enter_device", enter_device),
    ("relaxide.clear_faults", clear_faults),
    ("relaxide.raise_faults", raise_faults),
];

pub(super) fn register() {
    for (name, body) in FUNCTIONS {
        enter(name, Function::new(*body));
    }
}

/// `(device type, memory)`: the thread works with the device that the memory is on.
fn enter_device(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let place = args.get(1).and_then(|memory| place_of(address(*memory)?));
    if let Some(device) = place {
        set_current_device(device);
    }
    Ok(Any::none())
}

/// The handle of memory that a pointer is.
pub(super) fn address(value: AnyView<'_>) -> Option<usize> {
    (value.type_index() == type_index::OPAQUE_PTR).then(|| value.raw().word() as usize)
}

fn memory(args: &[AnyView<'_>]) -> Result<Memory, Error> {
    let handle = args.first().and_then(|memory| address(*memory));
    let (handle, device) = handle
        .and_then(|handle| Some((handle, place_of(handle)?)))
        .ok_or_else(|| Error::new(ErrorKind::ValueError, "a buffer of faults is no memory of OpenCL"))?;
    Ok(Memory { device, handle: std::ptr::with_exposed_provenance_mut(handle), offset: 0 })
}

/// `(memory)`: no check has failed.
fn clear_faults(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let (memory, words) = (memory(args)?, [0_i64; WORDS]);
    // SAFETY: host functions of this compiler's give a buffer of as many words, and the words outlive the wait.
    unsafe { OpenCl.copy_from_host(words.as_ptr().cast(), memory, size_of_val(&words), Stream::DEFAULT)? };
    OpenCl.synchronize(memory.device, Stream::DEFAULT)?;
    Ok(Any::none())
}

/// `(memory, kernel, kind, text, …)`: an error if a check has failed, with the kind and text of its number. Without a kind the text is what
/// an index is of.
fn raise_faults(args: &[AnyView<'_>]) -> Result<Any, Error> {
    let (memory, mut words) = (memory(args)?, [0_i64; WORDS]);
    // SAFETY: as above.
    unsafe { OpenCl.copy_to_host(memory, words.as_mut_ptr().cast(), size_of_val(&words), Stream::DEFAULT)? };
    OpenCl.synchronize(memory.device, Stream::DEFAULT)?;
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
