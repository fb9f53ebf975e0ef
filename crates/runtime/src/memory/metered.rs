//! An allocator that hands out another's memory, up to a budget.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaxide_ffi::fork::Held;
use relaxide_ffi::{Device, Error, ErrorKind};

use super::{Allocator, MemoryStats};

/// How many bytes may be in use at a time, and how many are. Several allocators may share one.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    /// A budget of which nothing is used.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// The bytes that may be in use.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The bytes that are in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Uses `bytes` bytes more, if there are so many left.
    fn take(&self, bytes: usize) -> Result<(), Error> {
        let more = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(used) => Err(self.exceeded(used, bytes)),
        }
    }

    /// The error of a request for which the budget is too small.
    #[cold]
    pub fn exceeded(&self, used: usize, bytes: usize) -> Error {
        let message = format!(
            "the memory limit of {} bytes is reached: {used} bytes are in use, and {bytes} more are asked for",
            self.limit
        );
        Error::new(ErrorKind::MemoryError, message)
    }
}

/// Hands out the memory of another allocator as long as a budget lasts.
pub struct Metered {
    inner: Arc<dyn Allocator>,
    budget: Arc<Budget>,
}

impl Metered {
    /// An allocator over another.
    pub fn new(inner: Arc<dyn Allocator>, budget: Arc<Budget>) -> Self {
        Self { inner, budget }
    }
}

impl Allocator for Metered {
    fn device(&self) -> Device {
        self.inner.device()
    }

    fn take(&self, bytes: usize) -> Result<(*mut c_void, usize), Error> {
        self.budget.take(bytes)?;
        match self.inner.take(bytes) {
            Ok((data, size)) => {
                // What the buffer has beyond the request is in use too; it was rounded up by less than a page.
                self.budget.used.fetch_add(size.saturating_sub(bytes), Ordering::Relaxed);
                Ok((data, size))
            }
            Err(error) => {
                self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    unsafe fn give_back(&self, data: *mut c_void, bytes: usize) {
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: the pair came from `take`, hence from the inner allocator.
        unsafe { self.inner.give_back(data, bytes) };
    }

    /// The inner allocator is in the process's table, and holds its own.
    fn hold_for_fork(self: Arc<Self>) -> Option<Held> {
        None
    }

    fn release_cached(&self) {
        self.inner.release_cached();
    }

    fn stats(&self) -> MemoryStats {
        self.inner.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{AllocatorKind, Buffer, allocator};

    #[test]
    fn a_budget_counts_what_is_in_use_and_is_given_back() {
        let budget = Arc::new(Budget::new(10_000));
        let inner = allocator(Device::cpu(13), AllocatorKind::Pooled).unwrap();
        let metered: Arc<dyn Allocator> = Arc::new(Metered::new(inner, Arc::clone(&budget)));
        let first = Buffer::new(&metered, 5000).unwrap();
        assert_eq!(budget.used(), 8192);
        let error = Buffer::new(&metered, 5000).unwrap_err();
        assert!(error.message().contains("the memory limit of 10000 bytes is reached"), "{error}");
        assert!(Buffer::new(&metered, usize::MAX).is_err());
        drop(first);
        assert_eq!(budget.used(), 0);
        assert!(Buffer::new(&metered, 5000).is_ok());
    }
}
