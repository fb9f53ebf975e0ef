//! Where objects and tensors come from, as front ends set it.

use std::ffi::c_int;

use super::{ObjectHandle, give, input, place};
use crate::dlpack::DLTensor;
use crate::object::{CustomAllocator, allocator, set_allocator};
use crate::tensor_source::{self, TensorAllocator};
use crate::{Error, ErrorKind, error_slot};

/// The allocator of objects in use; never null.
#[unsafe(no_mangle)]
pub extern "C" fn TVMFFIGetCustomAllocator() -> *mut CustomAllocator {
    allocator().cast_mut()
}

/// Makes objects come from another allocator; null brings back the one of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFISetCustomAllocator(allocator: *mut CustomAllocator) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            if allocator.as_ref().is_some_and(|allocator| allocator.allocate.is_none()) {
                return Err(Error::new(ErrorKind::ValueError, "the allocator's function is null"));
            }
            set_allocator(allocator);
        }
        Ok(())
    })
}

/// Sets the allocator of tensors for the calling thread and, if asked for, for threads that have none; tells which one
/// the thread had, if a place for it is given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvSetDLPackManagedTensorAllocator(
    allocator: Option<TensorAllocator>,
    write_to_global_context: c_int,
    original: *mut Option<TensorAllocator>,
) -> c_int {
    error_slot::guard(|| {
        let old = tensor_source::set(allocator, write_to_global_context != 0);
        if !original.is_null() {
            // SAFETY: the interface's contract.
            unsafe { original.write(old) };
        }
        Ok(())
    })
}

/// The allocator of tensors that serves the calling thread; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TVMFFIEnvGetDLPackManagedTensorAllocator() -> Option<TensorAllocator> {
    tensor_source::get()
}

/// A tensor of the calling thread's allocator, with the shape, element type and device of a description.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIEnvTensorAlloc(prototype: *mut DLTensor, out: *mut ObjectHandle) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            let out = place(out)?;
            input(prototype, "the description of the tensor")?;
            out.write(give(tensor_source::allocate(prototype)?));
        }
        Ok(())
    })
}
