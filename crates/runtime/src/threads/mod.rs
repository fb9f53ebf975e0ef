//! The thread pool that compiled kernels run their parallel loops on.
//!
//! A kernel hands over one function and a number of tasks; the caller runs task 0 and workers run the rest. What
//! matters is the time from launch to the first task, since a small model launches thousands of short loops per second:
//! a worker that has just finished spins for a few microseconds before it parks, and so does a caller that waits. There
//! is no queue: each worker has one slot, and a launch fills the slots that it needs.
//!
//! Only one launch is in flight. One that finds the pool busy (from another thread, or from inside a task) runs its whole
//! loop on the caller's thread as a single task: generated code takes its share from the number of tasks that it is
//! told, so that is always right, and never worse than waiting on a machine whose cores are all busy.
//!
//! The number of threads is what [`set_num_threads`] said, else `RELAXIDE_NUM_THREADS`, else `TVM_NUM_THREADS`, else the
//! number of cores that the process may use.

mod barrier;
mod worker;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};

use relaxide_ffi::{Error, ErrorKind};

pub use barrier::Barrier;
use worker::{Completion, Job, Worker};

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

/// The pool of the process. Workers start when they are first needed.
struct Pool {
    /// How many threads, the caller's among them, a launch may use.
    limit: AtomicUsize,
    /// Held during a launch.
    workers: Mutex<Vec<Worker>>,
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool { limit: AtomicUsize::new(default_threads()), workers: Mutex::default() })
}

fn default_threads() -> usize {
    let from_variable = |name: &str| std::env::var(name).ok()?.trim().parse().ok().filter(|count| *count > 0);
    from_variable("RELAXIDE_NUM_THREADS")
        .or_else(|| from_variable("TVM_NUM_THREADS"))
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// How many threads a parallel loop may use.
pub fn num_threads() -> usize {
    pool().limit.load(Ordering::Relaxed)
}

/// Sets how many threads a parallel loop may use, the caller's among them; 0 means the default. Takes effect at the next
/// launch.
pub fn set_num_threads(count: usize) {
    let count = if count == 0 { default_threads() } else { count };
    pool().limit.store(count, Ordering::Relaxed);
}

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
    let num_task = if num_task == 0 { limit } else { num_task.min(limit) };
    let workers = match pool().workers.try_lock() {
        _ if num_task <= 1 => None,
        Ok(workers) => Some(workers),
        // Nothing between locking and unlocking leaves the workers in a bad state.
        Err(TryLockError::Poisoned(workers)) => Some(workers.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    let Some(mut workers) = workers else {
        // SAFETY: passed on to the caller of this function.
        return unsafe { run_alone(task, data) };
    };
    while workers.len() + 1 < num_task {
        let number = workers.len() + 1;
        let Ok(worker) = Worker::start(number) else { break };
        workers.push(worker);
    }
    // Fewer threads than asked for if the system gives no more.
    let helpers = workers.get(..(num_task - 1).min(workers.len())).unwrap_or_default();
    // SAFETY: passed on to the caller of this function.
    unsafe { run_together(task, data, helpers) }
}

/// Runs the loop as one task.
///
/// # Safety
/// As [`parallel_launch`].
unsafe fn run_alone(task: ParallelTask, data: *mut c_void) -> Result<(), Error> {
    let barrier = Barrier::new(1);
    let mut env = ParallelGroupEnv { sync_handle: barrier.as_handle(), num_task: 1 };
    // SAFETY: the caller vouches for the task; the environment outlives the call.
    let code = unsafe { task(0, &raw mut env, data) };
    if code == 0 { Ok(()) } else { Err(worker::raised_error(0)) }
}

/// # Safety
/// As [`parallel_launch`].
unsafe fn run_together(task: ParallelTask, data: *mut c_void, helpers: &[Worker]) -> Result<(), Error> {
    let num_task = helpers.len() + 1;
    let barrier = Barrier::new(num_task);
    // A count of tasks fits: each has a thread.
    let mut env = ParallelGroupEnv { sync_handle: barrier.as_handle(), num_task: num_task as i32 };
    let completion = Completion::new(helpers.len());
    for (index, helper) in helpers.iter().enumerate() {
        let job = Job { task, data, env: &raw mut env, id: index + 1, completion: &raw const completion };
        // SAFETY: what the job points at lives until `wait` has returned.
        unsafe { helper.give(job) };
    }
    // SAFETY: the caller vouches for the task; the environment lives until all tasks are done.
    let code = unsafe { task(0, &raw mut env, data) };
    let own = if code == 0 { Ok(()) } else { Err(worker::raised_error(0)) };
    let others = completion.wait();
    own.and(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

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
            relaxide_ffi::raised::set(Error::new(ErrorKind::ValueError, "no luck"));
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
            unsafe { Barrier::from_handle(env.sync_handle) }.wait();
            let seen = counters[0].load(Ordering::Relaxed);
            if seen % env.num_task as u64 != 0 {
                counters[1].fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: as above.
            unsafe { Barrier::from_handle(env.sync_handle) }.wait();
        }
        0
    }

    extern "C" fn nested(_: c_int, _: *mut ParallelGroupEnv, data: *mut c_void) -> c_int {
        // SAFETY: passes on what the test passed.
        match unsafe { parallel_launch(sum, data, 0) } {
            Ok(()) => 0,
            Err(error) => {
                relaxide_ffi::raised::set(error);
                -1
            }
        }
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

        set_num_threads(1);
        let data = sums();
        // SAFETY: `sum` wants a `Sum`.
        unsafe { parallel_launch(sum, (&raw const data).cast_mut().cast(), 8) }.unwrap();
        assert_eq!((data.total.into_inner(), data.tasks.into_inner()), (499_500, 1));
        set_num_threads(0);
    }
}
