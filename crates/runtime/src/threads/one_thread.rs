//! What takes the place of the pool in a runtime without the feature `threads`: a loop is one task of the thread that launches it.

use std::ffi::c_void;

use relaxide_ffi::Error;

use super::{ParallelTask, run_alone};
use crate::fork::Side;

/// The barrier of a launch, whose one task waits for nobody.
#[derive(Debug)]
pub struct Barrier(());

impl Barrier {
    /// The barrier of a loop that runs as one task.
    pub(super) fn new(_tasks: usize, _threads: usize) -> Self {
        Self(())
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
        // SAFETY: the caller vouches for the handle.
        unsafe { &*handle.cast::<Self>() }
    }

    /// All tasks of the launch are here.
    pub fn wait(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// How many threads a parallel loop may use: the calling one.
pub fn num_threads() -> usize {
    1
}

/// Does nothing: loops have one thread.
pub fn set_num_threads(_count: usize) {}

/// A forked child needs nothing.
pub(crate) fn prepare_fork() -> Box<dyn FnOnce(Side)> {
    Box::new(|_| ())
}

/// Runs a loop as one task.
///
/// # Safety
/// As [`parallel_launch`](super::parallel_launch).
pub(super) unsafe fn launch(
    task: ParallelTask,
    data: *mut c_void,
    _threads: usize,
    _tasks: impl Fn(usize) -> usize,
) -> Result<(), Error> {
    // SAFETY: passed on to the caller of this function.
    unsafe { run_alone(task, data) }
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void};

    use crate::threads::{Barrier, ParallelGroupEnv, num_threads, parallel_for, parallel_launch, set_num_threads};

    extern "C" fn note(id: c_int, env: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
        // SAFETY: the test passes a list; the launch passes an environment with its barrier.
        let (seen, env) = unsafe { (&mut *data.cast::<Vec<(c_int, i32)>>(), &*env) };
        // SAFETY: as above.
        unsafe { Barrier::from_handle(env.sync_handle) }.wait().unwrap();
        seen.push((id, env.num_task));
        0
    }

    #[test]
    fn loops_are_one_task_of_the_calling_thread() {
        set_num_threads(8);
        assert_eq!(num_threads(), 1);
        let mut seen: Vec<(c_int, i32)> = Vec::new();
        // SAFETY: `note` wants a list.
        unsafe { parallel_launch(note, (&raw mut seen).cast(), 4) }.unwrap();
        // SAFETY: as above.
        unsafe { parallel_for(note, (&raw mut seen).cast(), 1000) }.unwrap();
        assert_eq!(seen, [(0, 1), (0, 1)]);
    }
}
