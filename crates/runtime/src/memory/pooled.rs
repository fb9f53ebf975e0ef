//! The allocator that keeps what is given back.
//!
//! Requests are rounded up, small ones to a power of two and others to whole pages, and a returned buffer waits in a list of
//! its exact size. (Whole pages for scalars would make a recursion with a few scalars at each level miss every cache.) A
//! model asks for the same sizes on every call, so from the second call on nearly every request is served from a list.
//!
//! A service sees inputs of many lengths, and a list for each of them would grow without end. So what is held in all, in use
//! and waiting, is bounded by one and a half times the most that was in use ([`bound`]). A request that no list of its size
//! serves takes a buffer that is a little larger, and any larger one where the bound leaves no room for a new buffer; where
//! there is none, those that have waited longest are freed. When the device has no memory left, everything that waits is
//! freed and the request tried once more.

use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ffi::fork::Held;
use relaxide_ffi::{Device, Error};

use super::{Allocator, MemoryStats};
use crate::device::{ALIGNMENT, DeviceApi};
use crate::fork::hold_in;

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
    state: Mutex<IdleBuffers>,
}

#[derive(Default)]
struct IdleBuffers {
    /// What waits, by size; those that came last are at the end.
    free: HashMap<usize, Vec<IdleBuffer>, BuildHasherDefault<PageHasher>>,
    /// The sizes of buffers of whole pages that wait, in order.
    sizes: BTreeSet<usize>,
    /// Counts what is given back.
    clock: u64,
    stats: MemoryStats,
}

/// A buffer that waits for a request.
struct IdleBuffer {
    /// A plain number, for it is not followed here.
    address: usize,
    since: u64,
}

/// How many bytes may be held where at most that many were in use.
fn bound(peak: usize) -> usize {
    // What is held for scalars and the like is not worth freeing.
    const SMALL: usize = 1 << 20;
    peak.saturating_add(peak / 2).max(SMALL)
}

impl IdleBuffers {
    /// Takes a buffer of exactly that size that waits.
    #[inline]
    fn take(&mut self, bytes: usize) -> Option<usize> {
        let list = self.free.get_mut(&bytes)?;
        let found = list.pop()?;
        if list.is_empty() && bytes >= PAGE {
            self.sizes.remove(&bytes);
        }
        self.stats.cached -= bytes;
        Some(found.address)
    }

    /// Takes a larger buffer: one that is a little larger, or, where there is no room for a new one, the smallest that fits.
    fn take_larger(&mut self, bytes: usize) -> Option<(usize, usize)> {
        if bytes < PAGE {
            return None;
        }
        let found = *self.sizes.range(bytes..).next()?;
        let is_near = found - bytes <= bytes / 8;
        let has_room = self.held().saturating_add(bytes) <= bound(self.stats.peak.max(self.stats.in_use + bytes));
        if !is_near && has_room {
            return None;
        }
        Some((self.take(found)?, found))
    }

    fn held(&self) -> usize {
        self.stats.in_use + self.stats.cached
    }

    /// Takes out what has waited longest, until `bytes` more fit within the bound.
    fn evict(&mut self, bytes: usize) -> Vec<(usize, usize)> {
        let mut evicted = Vec::new();
        let limit = bound(self.stats.peak.max(self.stats.in_use.saturating_add(bytes)));
        while self.stats.cached > 0 && self.held().saturating_add(bytes) > limit {
            let oldest = |size: &usize| self.free.get(size)?.first().map(|waiting| (waiting.since, *size));
            let Some((_, size)) = self.sizes.iter().filter_map(oldest).min() else { break };
            let Some(list) = self.free.get_mut(&size) else { break };
            evicted.push((list.remove(0).address, size));
            if list.is_empty() {
                self.sizes.remove(&size);
            }
            self.stats.cached -= size;
        }
        evicted
    }
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

    fn free_all(&self, state: &mut IdleBuffers) {
        let IdleBuffers { free, sizes, stats, .. } = state;
        free.drain().for_each(|(bytes, list)| list.iter().for_each(|waiting| self.free(waiting.address, bytes)));
        sizes.clear();
        stats.cached = 0;
    }

    /// Frees a buffer that has waited.
    fn free(&self, address: usize, bytes: usize) {
        // SAFETY: the address was given back with this size, so it came from `allocate` and is unused.
        unsafe { self.api.free(self.device, address as *mut c_void, bytes) };
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
        let found = state.take(bytes).map(|address| (address, bytes));
        if let Some((address, size)) = found.or_else(|| state.take_larger(bytes)) {
            state.stats.took(size, false);
            return Ok((address as *mut c_void, size));
        }
        state.evict(bytes).into_iter().for_each(|(address, size)| self.free(address, size));
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
        state.clock += 1;
        let waiting = IdleBuffer { address: data as usize, since: state.clock };
        let list = state.free.entry(bytes).or_default();
        list.push(waiting);
        if list.len() == 1 && bytes >= PAGE {
            state.sizes.insert(bytes);
        }
        state.stats.in_use -= bytes;
        state.stats.cached += bytes;
    }

    fn hold_for_fork(self: Arc<Self>) -> Option<Held> {
        hold_in(&self, |allocator: &Pooled| &allocator.state)
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
    fn many_lengths_hold_no_more_than_one_and_a_half_times_the_largest() {
        const LARGEST: usize = 4 << 20;
        let pool = allocator(Device::cpu(14), AllocatorKind::Pooled).unwrap();
        let mut seed = 1_u64;
        for _ in 0..500 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let length = PAGE + (seed >> 33) as usize % (LARGEST - PAGE);
            let buffers = [length, length / 3, 100].map(|bytes| Buffer::new(&pool, bytes).unwrap());
            assert!(buffers.iter().zip([length, length / 3, 100]).all(|(buffer, bytes)| buffer.bytes() >= bytes));
        }
        let stats = pool.stats();
        assert!(stats.peak <= 2 * LARGEST, "{stats:?}");
        assert!(stats.cached <= 2 * LARGEST, "{stats:?}");
        pool.release_cached();
        assert_eq!(pool.stats().cached, 0);
    }

    #[test]
    fn a_loop_over_rising_sizes_settles() {
        let pool = allocator(Device::cpu(15), AllocatorKind::Pooled).unwrap();
        let run = || (10..20).for_each(|n| drop(Buffer::new(&pool, n << 20).unwrap()));
        run();
        let settled = pool.stats().device_allocations;
        (0..5).for_each(|_| run());
        assert!(pool.stats().device_allocations <= settled + 2, "{:?} after {settled}", pool.stats());
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
