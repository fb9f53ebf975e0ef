//! What the kernels of a machine take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the calls of one kernel took together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRow {
    /// The kernel.
    pub kernel: String,
    /// How often it was called.
    pub calls: u64,
    /// How long all of it took.
    pub total: Duration,
}

/// The record, kept while it is switched on.
#[derive(Default)]
pub(super) struct Profile {
    on: AtomicBool,
    sums: Mutex<Vec<(u64, Duration)>>,
}

impl Profile {
    #[inline]
    pub fn begin(&self) -> Option<Instant> {
        self.on.load(Ordering::Relaxed).then(Instant::now)
    }

    #[inline]
    pub fn end(&self, kernel: usize, started: Option<Instant>) {
        let Some(started) = started else { return };
        let time = started.elapsed();
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.len() <= kernel {
            sums.resize(kernel + 1, (0, Duration::ZERO));
        }
        sums[kernel].0 += 1;
        sums[kernel].1 += time;
    }

    pub fn start(&self) {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.on.store(true, Ordering::Relaxed);
    }

    pub fn stop(&self, names: &[String]) -> Vec<ProfileRow> {
        self.on.store(false, Ordering::Relaxed);
        let sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = names.iter().zip(sums.iter()).filter(|(_, (calls, _))| *calls > 0);
        let mut rows: Vec<ProfileRow> = rows
            .map(|(name, (calls, total))| ProfileRow { kernel: name.clone(), calls: *calls, total: *total })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        rows
    }
}
