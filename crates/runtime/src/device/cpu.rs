//! The host's processor.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;

use relaxide_ffi::{Any, Device, Error, ErrorKind};

use super::{ALIGNMENT, Attribute, DeviceApi, Memory, Stream};

/// The CPU. All device numbers mean the same memory.
pub(super) struct Cpu;

/// The layout of an allocation; no allocation has no bytes.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

impl DeviceApi for Cpu {
    fn exists(&self, device: Device) -> bool {
        device.device_id >= 0
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error> {
        // SAFETY: the layout has a size.
        let data = layout(bytes).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) });
        if data.is_null() {
            let message = format!("cannot allocate {bytes} bytes on {device}: out of memory");
            return Err(Error::new(ErrorKind::MemoryError, message));
        }
        Ok(data.cast())
    }

    unsafe fn free(&self, _device: Device, data: *mut c_void, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: the caller says that `data` came from `allocate` with this size, hence with this layout.
            unsafe { dealloc(data.cast(), layout) };
        }
    }

    unsafe fn copy(&self, from: Memory, to: Memory, bytes: usize, _stream: Stream) -> Result<(), Error> {
        // SAFETY: the caller vouches for both ranges.
        unsafe { std::ptr::copy_nonoverlapping(from.address().cast::<u8>(), to.address().cast::<u8>(), bytes) };
        Ok(())
    }

    unsafe fn copy_from_host(
        &self,
        from: *const c_void,
        to: Memory,
        bytes: usize,
        _stream: Stream,
    ) -> Result<(), Error> {
        // SAFETY: the caller vouches for both ranges.
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.address().cast::<u8>(), bytes) };
        Ok(())
    }

    unsafe fn copy_to_host(&self, from: Memory, to: *mut c_void, bytes: usize, _stream: Stream) -> Result<(), Error> {
        // SAFETY: the caller vouches for both ranges.
        unsafe { std::ptr::copy_nonoverlapping(from.address().cast::<u8>(), to.cast::<u8>(), bytes) };
        Ok(())
    }

    fn attribute(&self, _device: Device, attribute: Attribute) -> Result<Option<Any>, Error> {
        Ok(match attribute {
            Attribute::Exists => Some(true.into()),
            Attribute::TotalGlobalMemory => total_memory().map(Any::from),
            _ => None,
        })
    }

    fn synchronize(&self, _device: Device, _stream: Stream) -> Result<(), Error> {
        Ok(())
    }
}

/// The bytes of the machine's memory, where the system tells.
#[cfg(not(unix))]
fn total_memory() -> Option<i64> {
    None
}

/// The bytes of the machine's memory, where the system tells.
#[cfg(unix)]
fn total_memory() -> Option<i64> {
    // SAFETY: these only ask for numbers.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages > 0 && size > 0).then(|| pages.saturating_mul(size))
}
