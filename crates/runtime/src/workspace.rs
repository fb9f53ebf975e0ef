//! Scratch memory for kernels.
//!
//! A kernel that needs a buffer too large for the stack asks for it when it begins and gives it back when it ends, in
//! the opposite order. Each thread keeps the blocks of its last kernels, so that the next one finds them without a lock
//! and without the system allocator.

use std::cell::RefCell;
use std::ffi::c_void;

use relaxide_ffi::{Device, Error, ErrorKind};

use crate::device::{DeviceApi, device_api};

/// Sizes are multiples of this.
const PAGE: usize = 4096;

struct WorkspaceBlock {
    device: Device,
    data: *mut c_void,
    bytes: usize,
    api: &'static dyn DeviceApi,
}

impl Drop for WorkspaceBlock {
    fn drop(&mut self) {
        // SAFETY: a block is made in `Workspaces::allocate` from `DeviceApi::allocate`, and dropped when nobody uses it.
        unsafe { self.api.free(self.device, self.data, self.bytes) };
    }
}

#[derive(Default)]
struct Workspaces {
    free: Vec<WorkspaceBlock>,
    used: Vec<WorkspaceBlock>,
}

thread_local! {
    static BLOCKS: RefCell<Workspaces> = RefCell::default();
}

impl Workspaces {
    fn allocate(&mut self, device: Device, bytes: usize) -> Result<*mut c_void, Error> {
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(PAGE) else {
            let message = format!("a workspace of {bytes} bytes is more than any memory");
            return Err(Error::new(ErrorKind::MemoryError, message));
        };
        let of_device = |block: &&WorkspaceBlock| block.device == device;
        let fitting = self.free.iter().filter(of_device).filter(|block| block.bytes >= bytes).map(|block| block.bytes);
        if let Some(size) = fitting.min()
            && let Some(at) = self.free.iter().position(|block| block.device == device && block.bytes == size)
        {
            self.used.push(self.free.swap_remove(at));
        } else {
            // A thread whose kernels want ever larger blocks keeps the new ones and not also the old.
            let largest = self.free.iter().filter(of_device).map(|block| block.bytes).max();
            self.free.retain(|block| block.device != device || Some(block.bytes) != largest);
            let api = device_api(device)?;
            let data = api.allocate(device, bytes)?;
            self.used.push(WorkspaceBlock { device, data, bytes, api });
        }
        Ok(self.used.last().map_or(std::ptr::null_mut(), |block| block.data))
    }

    fn free(&mut self, device: Device, data: *mut c_void) -> Result<(), Error> {
        // Nearly always the last one.
        match self.used.iter().rposition(|block| block.data == data && block.device == device) {
            Some(at) => {
                let block = self.used.remove(at);
                self.free.push(block);
                Ok(())
            }
            None => {
                let message = format!("{data:p} on {device} is not a workspace that this thread has taken");
                Err(Error::new(ErrorKind::ValueError, message))
            }
        }
    }
}

/// Takes scratch memory for the current thread.
pub fn allocate(device: Device, bytes: usize) -> Result<*mut c_void, Error> {
    BLOCKS.with_borrow_mut(|blocks| blocks.allocate(device, bytes))
}

/// Gives scratch memory of the current thread back.
pub fn free(device: Device, data: *mut c_void) -> Result<(), Error> {
    BLOCKS.with_borrow_mut(|blocks| blocks.free(device, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_and_is_found_again() {
        let device = Device::cpu(0);
        let large = allocate(device, 100_000).unwrap();
        let small = allocate(device, 10).unwrap();
        assert_ne!(large, small);
        free(device, small).unwrap();
        free(device, large).unwrap();
        assert_eq!(allocate(device, 20).unwrap(), small, "the smallest block that fits");
        assert_eq!(allocate(device, 90_000).unwrap(), large);
        free(device, large).unwrap();
        free(device, small).unwrap();
        assert!(free(device, small).is_err(), "a second free of the same block");
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(allocate(Device::cpu(0), usize::MAX).is_err());
        assert!(allocate(Device::new(2, 0), 64).is_err());
    }
}
