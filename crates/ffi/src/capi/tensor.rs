//! Tensors from and to DLPack, for C.

use std::ffi::c_int;

use super::{ObjectHandle, borrow, give, input, place};
use crate::dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLTensor, Requirements};
use crate::{Tensor, error_slot};

fn requirements(alignment: i32, contiguous: i32) -> Requirements {
    Requirements { alignment: usize::try_from(alignment).unwrap_or(0), contiguous: contiguous != 0 }
}

/// Takes over a managed tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITensorFromDLPack(
    from: *mut DLManagedTensor,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        let require = requirements(require_alignment, require_contiguous);
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(give(Tensor::from_dlpack(from, require)?)) };
        Ok(())
    })
}

/// Takes over a managed tensor of DLPack 1.0 and later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITensorFromDLPackVersioned(
    from: *mut DLManagedTensorVersioned,
    require_alignment: i32,
    require_contiguous: i32,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        let require = requirements(require_alignment, require_contiguous);
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(give(Tensor::from_dlpack_versioned(from, require)?)) };
        Ok(())
    })
}

/// Lends a tensor out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITensorToDLPack(from: ObjectHandle, out: *mut *mut DLManagedTensor) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(borrow::<Tensor>(from)?.to_dlpack().as_ptr()) };
        Ok(())
    })
}

/// Lends a tensor out as DLPack 1.0 and later do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITensorToDLPackVersioned(
    from: ObjectHandle,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(borrow::<Tensor>(from)?.to_dlpack_versioned().as_ptr()) };
        Ok(())
    })
}

/// Another description of a tensor's memory. The caller vouches that it stays inside of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITensorCreateUnsafeView(
    source: ObjectHandle,
    prototype: *const DLTensor,
    out: *mut ObjectHandle,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            place(out)?
                .write(give(borrow::<Tensor>(source)?.view_as(input(prototype, "the description of the view")?)?))
        };
        Ok(())
    })
}
