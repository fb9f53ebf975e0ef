//! The thread pool that compiled kernels run their parallel loops on.
//!
//! A kernel hands over one function and a number of tasks; the caller and the workers claim tasks until none is left, each its
//! own share first ([`round`]). What matters is the time from launch to the first task, since a small model launches thousands of short
//! loops per second: threads look for their event for a while before they sleep ([`waiting`]), and no launch waits for a
//! worker that has not begun.
//!
//! There are two kinds of launch. [`parallel_launch`] keeps the contract of `TVMBackendParallelLaunch`: all tasks are in
//! progress together and may meet at a barrier, so there are at most as many as threads. The tasks of [`parallel_for`]
//! are independent, so there are several per thread: who comes late, or has a slower core, takes fewer.
//!
//! Only one launch is in flight. One that finds the pool busy (from another thread, or from inside a task) runs its whole
//! loop on the caller's thread as a single task: generated code takes its share from the number of tasks that it is
//! told, so that is always right, and never worse than waiting on a machine whose cores are all busy.
//!
//! Workers go where the system puts them, but for the core of the launching thread where they are few, or are bound to one core each if
//! `RELAXIDE_BIND_THREADS` (or TVM's variable of that name) is 1 ([`cores`]). The number of threads is what [`set_num_threads`] said, else `RELAXIDE_NUM_THREADS`, else `TVM_NUM_THREADS`, else the
//! number of cores that the process may use.
//!
//! Without the feature `threads` there is no pool: all loops run on the thread that launches them (`one_thread.rs`).

#[cfg(feature = "threads")]
mod barrier;
#[cfg(feature = "threads")]
mod cores;
#[cfg(feature = "threads")]
mod pool;
#[cfg(not(feature = "threads"))]
#[path = "one_thread.rs"]
mod pool;
#[cfg(feature = "threads")]
mod round;
#[cfg(feature = "threads")]
mod waiting;
#[cfg(feature = "threads")]
mod worker;

use std::ffi::{c_int, c_void};

use relaxide_ffi::{Error, ErrorKind};

use pool::launch;
pub(crate) use pool::prepare_fork;
pub use pool::{Barrier, num_threads, set_num_threads};

/// Tasks per thread of a loop whose iterations are independent.
const TASKS_PER_THREAD: usize = 4;

/// What a parallel task is told: `TVMParallelGroupEnv`.
#[repr(C)]
pub struct ParallelGroupEnv {
    /// The [`Barrier`] of this launch.
    pub sync_handle: *mut c_void,
    /// How many tasks there are.
    pub num_task: i32,
}

/// A parallel task: `FTVMParallelLambda`. Returns zero, or another number with an error raised on its thread.
pub type ParallelTask = unsafe extern "C" fn(task_id: c_int, env: *mut ParallelGroupEnv, data: *mut c_void) -> c_int;

/// Runs `num_task` tasks (0: as many as there are threads) and waits for them. The tasks run at the same time, so they
/// may meet at the barrier. The error is that of the first failing task.
///
/// # Safety
/// `task` is safe to call, from several threads at once, with any id below the number of tasks in its environment and
/// with `data`.
pub unsafe fn parallel_launch(task: ParallelTask, data: *mut c_void, num_task: usize) -> Result<(), Error> {
    let limit = num_threads();
    if num_task > limit && limit > 1 {
        let message = format!("{num_task} parallel tasks are asked for and the pool has {limit} threads");
        return Err(Error::new(ErrorKind::InternalError, message));
    }
    let threads = if num_task == 0 { limit } else { num_task.min(limit) };
    // SAFETY: passed on to the caller of this function.
    unsafe { launch(task, data, threads, |present| present) }
}

/// Runs a loop of `extent` independent iterations in tasks of which each takes its share, and waits for them. The error
/// is that of the first failing task. The tasks must not meet at the barrier: it fails for them.
///
/// # Safety
/// As [`parallel_launch`].
pub unsafe fn parallel_for(task: ParallelTask, data: *mut c_void, extent: usize) -> Result<(), Error> {
    let threads = num_threads().min(extent.max(1));
    // SAFETY: passed on to the caller of this function.
    unsafe { launch(task, data, threads, |present| (present * TASKS_PER_THREAD).min(extent)) }
}

/// Runs the loop as one task.
///
/// # Safety
/// As [`parallel_launch`].
unsafe fn run_alone(task: ParallelTask, data: *mut c_void) -> Result<(), Error> {
    let barrier = Barrier::new(1, 1);
    let mut env = ParallelGroupEnv { sync_handle: barrier.as_handle(), num_task: 1 };
    // SAFETY: the caller vouches for the task; the environment outlives the call.
    let code = unsafe { task(0, &raw mut env, data) };
    if code == 0 { Ok(()) } else { Err(raised_error(0)) }
}

/// The error that a failing task has raised on this thread, with the number of the task.
fn raised_error(task: u32) -> Error {
    match relaxide_ffi::error_slot::take() {
        Some(error) => Error::new(ErrorKind::RuntimeError, format!("Task {task} error: {error}")),
        None => Error::new(ErrorKind::RuntimeError, format!("Task {task} error: it returned an error without a text")),
    }
}

// WASI has no threads.
#[cfg(all(test, feature = "threads", not(target_family = "wasm")))]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Sum {
        values: Vec<u64>,
        total: AtomicU64,
        tasks: AtomicU64,
    }

    extern "C" fn sum(id: c_int, env: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
        // SAFETY: the test passes a `Sum`; the launch passes an environment.
        let (sum, env) = unsafe { (&*data.cast::<Sum>(), &*env) };
        let chunk = sum.values.len().div_ceil(env.num_task as usize);
        let part = sum.values.chunks(chunk).nth(id as usize).unwrap_or_default();
        sum.total.fetch_add(part.iter().sum(), Ordering::Relaxed);
        sum.tasks.fetch_add(1, Ordering::Relaxed);
        0
    }

    extern "C" fn fail_in_one(id: c_int, _: *mut ParallelGroupEnv, _: *mut c_void) -> c_int {
        if id == 1 {
            relaxide_ffi::error_slot::set(Error::new(ErrorKind::ValueError, "no luck"));
            return -1;
        }
        0
    }

    extern "C" fn meet(_id: c_int, env: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
        // SAFETY: the test passes an array of two counters; the launch passes an environment.
        let (counters, env) = unsafe { (&*data.cast::<[AtomicU64; 2]>(), &*env) };
        for _ in 0..200 {
            counters[0].fetch_add(1, Ordering::Relaxed);
            // SAFETY: the handle is the launch's barrier.
            unsafe { Barrier::from_handle(env.sync_handle) }.wait().unwrap();
            let seen = counters[0].load(Ordering::Relaxed);
            if seen % env.num_task as u64 != 0 {
                counters[1].fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: as above.
            unsafe { Barrier::from_handle(env.sync_handle) }.wait().unwrap();
        }
        0
    }

    extern "C" fn nested(_: c_int, _: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
        // SAFETY: passes on what the test passed.
        match unsafe { parallel_launch(sum, data, 0) } {
            Ok(()) => 0,
            Err(error) => {
                relaxide_ffi::error_slot::set(error);
                -1
            }
        }
    }

    extern "C" fn meet_once(_: c_int, env: *mut ParallelGroupEnv, _: *mut c_void) -> c_int {
        // SAFETY: the launch passes an environment with its barrier.
        unsafe { crate::backend::TVMBackendParallelBarrier(0, env) }
    }

    extern "C" fn note_thread(_: c_int, _: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
        // SAFETY: the test passes a set of threads.
        let threads = unsafe { &*data.cast::<Mutex<std::collections::HashSet<std::thread::ThreadId>>>() };
        threads.lock().unwrap().insert(std::thread::current().id());
        std::thread::sleep(std::time::Duration::from_micros(50));
        0
    }

    fn sums() -> Sum {
        Sum { values: (0..1000).collect(), total: AtomicU64::new(0), tasks: AtomicU64::new(0) }
    }

    /// The pool is one per process, so the facts about it are checked in one test.
    #[test]
    fn launches_run_every_task_once() {
        set_num_threads(3);
        for _ in 0..500 {
            let data = sums();
            // SAFETY: `sum` wants a `Sum`.
            unsafe { parallel_launch(sum, (&raw const data).cast_mut().cast(), 0) }.unwrap();
            assert_eq!(data.total.into_inner(), 499_500);
            assert_eq!(data.tasks.into_inner(), 3);
        }
        for extent in [0, 1, 2, 5, 1000] {
            let data = sums();
            // SAFETY: `sum` wants a `Sum`.
            unsafe { parallel_for(sum, (&raw const data).cast_mut().cast(), extent) }.unwrap();
            assert_eq!(data.total.into_inner(), 499_500);
            assert_eq!(data.tasks.into_inner(), extent.clamp(1, 3 * TASKS_PER_THREAD) as u64);
        }
        // SAFETY: `meet_once` wants nothing.
        let error = unsafe { parallel_for(meet_once, std::ptr::null_mut(), 1000) }.unwrap_err();
        assert!(error.to_string().contains("a barrier inside a loop of independent iterations"), "{error}");
        // SAFETY: `fail_in_one` wants nothing.
        let error = unsafe { parallel_launch(fail_in_one, std::ptr::null_mut(), 0) }.unwrap_err();
        assert!(error.to_string().contains("Task 1 error"), "{error}");
        assert!(error.to_string().contains("no luck"), "{error}");

        let counters = [AtomicU64::new(0), AtomicU64::new(0)];
        // SAFETY: `meet` wants two counters.
        unsafe { parallel_launch(meet, (&raw const counters).cast_mut().cast(), 0) }.unwrap();
        assert_eq!(counters[1].load(Ordering::Relaxed), 0, "tasks ran ahead of the barrier");

        let data = sums();
        // SAFETY: `nested` wants a `Sum`.
        unsafe { parallel_launch(nested, (&raw const data).cast_mut().cast(), 0) }.unwrap();
        assert_eq!(data.total.into_inner(), 3 * 499_500);

        // SAFETY: `sum` wants a `Sum`, which it does not get to see.
        let error = unsafe { parallel_launch(sum, std::ptr::null_mut(), 4) }.unwrap_err();
        assert!(error.to_string().contains("4 parallel tasks"), "{error}");

        set_num_threads(2);
        let threads: Mutex<std::collections::HashSet<std::thread::ThreadId>> = Mutex::default();
        for _ in 0..50 {
            // SAFETY: `note_thread` wants a set of threads.
            unsafe { parallel_for(note_thread, (&raw const threads).cast_mut().cast(), 8) }.unwrap();
        }
        assert!(threads.lock().unwrap().len() <= 2, "surplus workers end: {threads:?}");

        set_num_threads(1);
        let data = sums();
        // SAFETY: `sum` wants a `Sum`.
        unsafe { parallel_launch(sum, (&raw const data).cast_mut().cast(), 8) }.unwrap();
        assert_eq!((data.total.into_inner(), data.tasks.into_inner()), (499_500, 1));
        set_num_threads(0);
    }
}
