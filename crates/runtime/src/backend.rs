//! The C functions that compiled code calls.
//!
//! Code finds most of them through context slots that the loader fills ([`library`](crate::library)); those for lists of
//! values are imported by name. Failures are raised on the calling thread and reported by the return value, as
//! everywhere in this interface.

use std::ffi::{c_int, c_void};

use relaxide_ffi::abi::RawAny;
use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind};

use crate::device::current_device;
use crate::threads::{Barrier, ParallelGroupEnv, ParallelTask, parallel_for, parallel_launch};
use crate::workspace;

fn report(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            relaxide_ffi::error_slot::set(error);
            -1
        }
    }
}

/// Runs a parallel loop of `num_task` tasks, or of as many as there are threads if that is 0.
///
/// # Safety
/// `task` is safe to call from several threads at once with any id below the number of tasks, and with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelLaunch(task: ParallelTask, data: *mut c_void, num_task: c_int) -> c_int {
    let count = usize::try_from(num_task)
        .map_err(|_| Error::new(ErrorKind::ValueError, format!("a parallel loop cannot have {num_task} tasks")));
    // SAFETY: the caller makes the same promise.
    report(count.and_then(|count| unsafe { parallel_launch(task, data, count) }))
}

/// Runs a parallel loop of `extent` independent iterations. The number of tasks is the pool's choice.
///
/// This runtime's own addition: compiled code prefers it where its slot is filled, and does without elsewhere.
///
/// # Safety
/// As [`TVMBackendParallelLaunch`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RelaxideParallelFor(task: ParallelTask, data: *mut c_void, extent: i64) -> c_int {
    // A loop without iterations has one task, which does nothing.
    let extent = usize::try_from(extent).unwrap_or(0);
    // SAFETY: the caller makes the same promise.
    report(unsafe { parallel_for(task, data, extent) })
}

/// Waits until all tasks of the launch are here.
///
/// # Safety
/// `env` is what the launch gave to the calling task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendParallelBarrier(_task_id: c_int, env: *mut ParallelGroupEnv) -> c_int {
    // SAFETY: the environment of a launch holds a barrier, and both live until the launch ends.
    report(unsafe { Barrier::from_handle((*env).sync_handle) }.wait())
}

/// A device; the one of a kind that the thread works with, where the number is -1.
fn device_of(device_type: c_int, device_id: c_int) -> Device {
    if device_id == -1 { current_device(device_type) } else { Device { device_type, device_id } }
}

/// Takes scratch memory; null with an error raised if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TVMBackendAllocWorkspace(
    device_type: c_int,
    device_id: c_int,
    bytes: u64,
    _dtype_code: c_int,
    _dtype_bits: c_int,
) -> *mut c_void {
    // A size beyond the address space is refused as the largest of all.
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    workspace::allocate(device_of(device_type, device_id), bytes).unwrap_or_else(|error| {
        relaxide_ffi::error_slot::set(error);
        std::ptr::null_mut()
    })
}

/// Gives scratch memory back.
#[unsafe(no_mangle)]
pub extern "C" fn TVMBackendFreeWorkspace(device_type: c_int, device_id: c_int, data: *mut c_void) -> c_int {
    report(workspace::free(device_of(device_type, device_id), data))
}

/// Lends entry `index` of a list of values to entry `offset` of an argument array.
///
/// # Safety
/// Both arrays have these entries, and the list keeps its entry while the arguments are in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendAnyListSetPackedArg(
    list: *mut c_void,
    index: c_int,
    args: *mut RawAny,
    offset: c_int,
) -> c_int {
    // SAFETY: the caller vouches for both entries; the bits of an owned value are those of a view of it.
    unsafe {
        let view: AnyView<'_> = (*list.cast::<Any>().offset(index as isize)).as_view();
        args.offset(offset as isize).write(view.raw());
    }
    0
}

/// Clears entry `index` of a list of values.
///
/// # Safety
/// The list has this entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendAnyListResetItem(list: *mut c_void, index: c_int) -> c_int {
    // SAFETY: the caller vouches for the entry.
    unsafe { *list.cast::<Any>().offset(index as isize) = Any::none() };
    0
}

/// Moves entry `offset` of an argument array, where a callee has left its result, to entry `index` of a list of values.
///
/// # Safety
/// Both arrays have these entries, and the entry of the arguments owns its value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMBackendAnyListMoveFromPackedReturn(
    list: *mut c_void,
    index: c_int,
    args: *mut RawAny,
    offset: c_int,
) -> c_int {
    // SAFETY: the caller vouches for both entries; the value moves, so its old place is cleared without a drop.
    unsafe {
        let value = Any::from_raw(args.offset(offset as isize).replace(RawAny::NONE));
        *list.cast::<Any>().offset(index as isize) = value;
    }
    0
}
