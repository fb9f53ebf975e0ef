//! How a thread waits for an event that is usually near: it looks, then lets others run between looks, then sleeps.
//!
//! Looking alone is fastest, and worst where another thread needs the core: it may be the awaited one. So after a
//! burst every look gives the core away to whoever wants it, and after a while the thread sleeps. The burst is short where threads share cores.
//! Where each has one, it lasts longer than the pauses between the loops of a network: whoever gives its core away beside other programs, even those
//! that wait for idle cores, gets it back after their share of milliseconds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use crate::environment;

/// How often a thread looks before it sleeps, where `RELAXIDE_THREAD_POOL_SPIN_COUNT` (or TVM's variable of that name)
/// says nothing else: with the yields between, some hundred microseconds; behind the burst.
const DEFAULT_SPINS: u32 = 2000;

/// Looks in a row without giving the core away: some microseconds.
const BURST: u32 = 200;
/// The same of threads that have a core each: a hundred microseconds or more.
const LONG_BURST: u32 = 6_000;

/// The number of looks that the environment gives.
fn given_spins() -> Option<u32> {
    static SPINS: OnceLock<Option<u32>> = OnceLock::new();
    *SPINS.get_or_init(|| {
        let names = ["RELAXIDE_THREAD_POOL_SPIN_COUNT", "TVM_THREAD_POOL_SPIN_COUNT"];
        environment::number(&names, |_| true)
    })
}

/// Whether a waiting thread has a core to itself, as far as the threads that take part are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Core {
    /// It has, as each of them has.
    Own,
    /// One of them may need the same.
    Shared,
}

/// A place where threads wait for an event.
#[derive(Debug)]
pub(super) struct Waiting {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    event: Condvar,
}

impl Waiting {
    pub(super) const fn new() -> Self {
        Self { sleepers: AtomicUsize::new(0), lock: Mutex::new(()), event: Condvar::new() }
    }

    /// Waits until `done`, which must read with sequential consistency what the waker has written so.
    pub(super) fn until(&self, core: Core, done: impl Fn() -> bool) {
        let burst = match core {
            Core::Own => LONG_BURST,
            Core::Shared => BURST,
        };
        for look in 0..given_spins().unwrap_or(burst + DEFAULT_SPINS) {
            if done() {
                return;
            }
            if look < burst {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !done() {
            guard = self.event.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a thread sleeps. May be out of date as soon as it is said.
    pub(super) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) > 0
    }

    /// Wakes up to `count` sleeping threads, after the event has been written with sequential consistency.
    pub(super) fn wake(&self, count: usize) {
        // Either the sleeper's count is seen here, or the sleeper, which counts itself first, sees the event.
        let sleepers = self.sleepers.load(Ordering::SeqCst);
        if sleepers == 0 || count == 0 {
            return;
        }
        // A thread that has counted itself but does not sleep yet holds the lock.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        if count >= sleepers {
            self.event.notify_all();
        } else {
            (0..count).for_each(|_| self.event.notify_one());
        }
    }
}
