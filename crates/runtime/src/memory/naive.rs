//! The allocator that asks the device every time.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ffi::fork::Held;
use relaxide_ffi::{Device, Error};

use super::{Allocator, MemoryStats};
use crate::device::DeviceApi;
use crate::fork::hold_in;

pub(super) struct Naive {
    device: Device,
    api: &'static dyn DeviceApi,
    stats: Mutex<MemoryStats>,
}

impl Naive {
    pub(super) fn new(device: Device, api: &'static dyn DeviceApi) -> Self {
        Self { device, api, stats: Mutex::default() }
    }
}

impl Allocator for Naive {
    fn device(&self) -> Device {
        self.device
    }

    fn take(&self, bytes: usize) -> Result<(*mut c_void, usize), Error> {
        let data = self.api.allocate(self.device, bytes)?;
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).took(bytes, true);
        Ok((data, bytes))
    }

    unsafe fn give_back(&self, data: *mut c_void, bytes: usize) {
        // SAFETY: what `take` gave came from the device with this size.
        unsafe { self.api.free(self.device, data, bytes) };
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).in_use -= bytes;
    }

    fn hold_for_fork(self: Arc<Self>) -> Option<Held> {
        hold_in(&self, |allocator: &Naive| &allocator.stats)
    }

    fn release_cached(&self) {}

    fn stats(&self) -> MemoryStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
