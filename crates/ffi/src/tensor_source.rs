//! The allocator of tensors that a front end lends: a kernel that makes its own results asks it, so that they are the
//! front end's tensors.
//!
//! A thread has an allocator of its own or, if it set none, that of the process.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{PoisonError, RwLock};

use crate::dlpack::{DLManagedTensorVersioned, DLTensor, Requirements};
use crate::fork::{self, Held};
use crate::{Error, ErrorKind, Tensor, error_slot};

/// What an allocator calls when it fails: with its context, a kind of error and a message.
type SetError = unsafe extern "C" fn(context: *mut c_void, kind: *const c_char, message: *const c_char);

/// `DLPackManagedTensorAllocator`: makes a tensor like the description, whose data it ignores.
pub type TensorAllocator = unsafe extern "C" fn(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_context: *mut c_void,
    set_error: SetError,
) -> c_int;

thread_local! {
    static OF_THREAD: Cell<Option<TensorAllocator>> = const { Cell::new(None) };
}

static OF_PROCESS: RwLock<Option<TensorAllocator>> = RwLock::new(None);

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&OF_PROCESS)
}

/// Sets the thread's allocator and, with `everywhere`, the process's; returns which one the thread had of its own.
pub(crate) fn set(allocator: Option<TensorAllocator>, everywhere: bool) -> Option<TensorAllocator> {
    if everywhere {
        *OF_PROCESS.write().unwrap_or_else(PoisonError::into_inner) = allocator;
    }
    OF_THREAD.replace(allocator)
}

/// The allocator that serves the calling thread.
pub(crate) fn get() -> Option<TensorAllocator> {
    OF_THREAD.get().or_else(|| *OF_PROCESS.read().unwrap_or_else(PoisonError::into_inner))
}

unsafe extern "C" fn raise(_context: *mut c_void, kind: *const c_char, message: *const c_char) {
    let text = |text: *const c_char| match text.is_null() {
        true => String::new(),
        // SAFETY: the allocator passes text that ends in NUL.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    error_slot::set(Error::new(text(kind), text(message)));
}

/// A tensor of the thread's allocator.
///
/// # Safety
/// `prototype` is a readable description whose shape has as many elements as it says.
pub(crate) unsafe fn allocate(prototype: *mut DLTensor) -> Result<Tensor, Error> {
    let Some(allocator) = get() else {
        let message = "no allocator of tensors is set: TVMFFIEnvSetDLPackManagedTensorAllocator was not called";
        return Err(Error::new(ErrorKind::RuntimeError, message));
    };
    let mut made = std::ptr::null_mut();
    // SAFETY: the allocator was given as one; the description is the caller's.
    let code = unsafe { allocator(prototype, &raw mut made, std::ptr::null_mut(), raise) };
    if code != 0 {
        return Err(error_slot::take_after(code));
    }
    if made.is_null() {
        return Err(Error::new(ErrorKind::RuntimeError, "the allocator of tensors made none"));
    }
    // SAFETY: the allocator made the tensor for the caller.
    unsafe {
        Tensor::from_dlpack_versioned(made, Requirements::default()).inspect_err(|_| {
            if let Some(release) = (*made).deleter {
                release(made);
            }
        })
    }
}
