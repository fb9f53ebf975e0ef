//! The barrier at which the tasks of one launch meet.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often a task looks before it lets others run.
const SPINS: u32 = 2000;

/// A barrier for a fixed number of tasks, which may meet at it again and again.
#[derive(Debug)]
pub struct Barrier {
    tasks: usize,
    arrived: AtomicUsize,
    /// How many meetings are over.
    rounds: AtomicUsize,
}

impl Barrier {
    /// A barrier for `tasks` tasks.
    pub fn new(tasks: usize) -> Self {
        Self { tasks, arrived: AtomicUsize::new(0), rounds: AtomicUsize::new(0) }
    }

    /// The barrier as the opaque handle of a [`ParallelGroupEnv`](super::ParallelGroupEnv).
    pub fn as_handle(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// The barrier behind a handle.
    ///
    /// # Safety
    /// The handle came from [`Barrier::as_handle`] of a barrier that lives for `'a`.
    pub unsafe fn from_handle<'a>(handle: *mut c_void) -> &'a Self {
        // SAFETY: the caller vouches for the handle; a barrier has only atomic state.
        unsafe { &*handle.cast::<Self>() }
    }

    /// Waits until all tasks have come here as often as this one. What a task wrote before is seen by all behind.
    pub fn wait(&self) {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.tasks {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.rounds.load(Ordering::Acquire) == round {
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}
