//! The allocator that keeps what is given back.
//!
//! Requests are rounded up, small ones to a power of two and others to whole pages, and a returned buffer waits in a
//! list of its exact size. (Whole pages for scalars would make a recursion with a few scalars at each level miss every
//! cache.) A model asks for the same sizes on every call, so from the second call on nearly every request is served from
//! a list. When the device has no memory left, everything that is kept is freed and the request tried once more.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use relaxide_ffi::{Device, Error};

use super::{Allocator, MemoryStats};
use crate::device::{ALIGNMENT, DeviceApi};

/// Sizes from this on are multiples of it.
const PAGE: usize = 4096;

/// The size of the buffer for a request; `None` if there can be none.
fn rounded(bytes: usize) -> Option<usize> {
    if bytes < PAGE {
        return Some(bytes.next_power_of_two().max(ALIGNMENT));
    }
    bytes.checked_next_multiple_of(PAGE)
}

pub(super) struct Pooled {
    device: Device,
    api: &'static dyn DeviceApi,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses by size; a plain number, for they are not followed here.
    free: HashMap<usize, Vec<usize>, BuildHasherDefault<PageHasher>>,
    stats: MemoryStats,
}

/// Hashes a size. Sizes are a model's own, so there is nobody to defend against, and this is on the way of every
/// allocation.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, value: usize) {
        // The golden ratio spreads neighbouring sizes over the high bits; the table uses both ends of the hash.
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl Pooled {
    pub(super) fn new(device: Device, api: &'static dyn DeviceApi) -> Self {
        Self { device, api, state: Mutex::default() }
    }

    fn free_all(&self, state: &mut State) {
        for (bytes, addresses) in state.free.drain() {
            for address in addresses {
                // SAFETY: the address was given back with this size, so it came from `allocate` and is unused.
                unsafe { self.api.free(self.device, address as *mut c_void, bytes) };
            }
        }
        state.stats.cached = 0;
    }
}

impl Allocator for Pooled {
    fn device(&self) -> Device {
        self.device
    }

    fn take(&self, bytes: usize) -> Result<(*mut c_void, usize), Error> {
        // A size that cannot be rounded up is refused by the device.
        let bytes = rounded(bytes).unwrap_or(usize::MAX);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = state.free.get_mut(&bytes).and_then(Vec::pop) {
            state.stats.cached -= bytes;
            state.stats.took(bytes, false);
            return Ok((address as *mut c_void, bytes));
        }
        let data = match self.api.allocate(self.device, bytes) {
            Ok(data) => data,
            Err(_) if state.stats.cached > 0 => {
                self.free_all(&mut state);
                self.api.allocate(self.device, bytes)?
            }
            Err(error) => return Err(error),
        };
        state.stats.took(bytes, true);
        Ok((data, bytes))
    }

    unsafe fn give_back(&self, data: *mut c_void, bytes: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.free.entry(bytes).or_default().push(data as usize);
        state.stats.in_use -= bytes;
        state.stats.cached += bytes;
    }

    fn release_cached(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.free_all(&mut state);
    }

    fn stats(&self) -> MemoryStats {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stats
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::{AllocatorKind, Buffer, allocator};

    #[test]
    fn a_returned_buffer_serves_the_next_request_of_its_size() {
        // A device number of its own keeps other tests out of the counts.
        let pool = allocator(Device::cpu(11), AllocatorKind::Pooled).unwrap();
        let first = Buffer::new(&pool, 5000).unwrap();
        let address = first.data();
        assert_eq!((first.bytes(), address as usize % crate::device::ALIGNMENT), (8192, 0));
        drop(first);
        assert_eq!(pool.stats().cached, 8192);
        let second = Buffer::new(&pool, 8000).unwrap();
        assert_eq!(second.data(), address);
        let other = Buffer::new(&pool, 10).unwrap();
        let stats = pool.stats();
        assert_eq!((stats.in_use, stats.peak, stats.cached), (8256, 8256, 0));
        assert_eq!((stats.requests, stats.device_allocations), (3, 2));
        drop((second, other));
        pool.release_cached();
        assert_eq!(pool.stats().cached, 0);
    }

    #[test]
    fn a_request_beyond_all_memory_is_an_error() {
        for kind in [AllocatorKind::Naive, AllocatorKind::Pooled] {
            let pool: Arc<dyn Allocator> = allocator(Device::cpu(12), kind).unwrap();
            for bytes in [usize::MAX, usize::MAX / 2, isize::MAX as usize - 4096] {
                let error = Buffer::new(&pool, bytes).unwrap_err();
                assert!(error.to_string().contains("out of memory"), "{error}");
            }
        }
    }
}
