//! The barrier at which the tasks of one launch meet.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaxide_ffi::{Error, ErrorKind};

use super::waiting::{Core, Waiting};

/// A barrier for a fixed number of tasks, which may meet at it again and again.
#[derive(Debug)]
pub struct Barrier {
    tasks: usize,
    /// How many of the tasks can be in progress together.
    threads: usize,
    arrived: AtomicUsize,
    /// How many meetings are over.
    rounds: AtomicUsize,
    early: Waiting,
}

impl Barrier {
    /// A barrier for `tasks` tasks, run by `threads` threads.
    pub fn new(tasks: usize, threads: usize) -> Self {
        Self { tasks, threads, arrived: AtomicUsize::new(0), rounds: AtomicUsize::new(0), early: Waiting::new() }
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
    /// An error if there are more tasks than threads, since they would wait for ever.
    pub fn wait(&self) -> Result<(), Error> {
        if self.tasks > self.threads {
            let message = format!(
                "a barrier inside a loop of independent iterations: its {} tasks share {} threads; launch it with \
                 TVMBackendParallelLaunch",
                self.tasks, self.threads
            );
            return Err(Error::new(ErrorKind::InternalError, message));
        }
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.tasks {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::SeqCst);
            // The barrier lives on: its launch is not over before this task is.
            self.early.wake(usize::MAX);
        } else {
            self.early.until(Core::Shared, || self.rounds.load(Ordering::SeqCst) != round);
        }
        Ok(())
    }
}
