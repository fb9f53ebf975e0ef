//! The pool of the process: who may use it, and how many threads a launch has.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use relaxide_ffi::Error;

pub use super::barrier::Barrier;
use super::round::Job;
use super::worker::Crew;
use super::{ParallelGroupEnv, ParallelTask, run_alone};
use crate::environment;
use crate::fork::Side;

/// The pool of the process. Workers start when they are first needed.
struct Pool {
    /// How many threads, the caller's among them, a launch may use.
    limit: AtomicUsize,
    crew: Crew,
    /// Held during a launch.
    taken: Mutex<()>,
}

/// The pool; null before it is first asked for.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

fn pool() -> &'static Pool {
    // SAFETY: what is stored here was leaked, and is never freed.
    match unsafe { POOL.load(Ordering::Acquire).as_ref() } {
        Some(pool) => pool,
        None => first_pool(),
    }
}

#[cold]
fn first_pool() -> &'static Pool {
    static ONCE: Mutex<()> = Mutex::new(());
    let _only = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
    if POOL.load(Ordering::Acquire).is_null() {
        POOL.store(new_pool(default_threads()), Ordering::Release);
    }
    pool()
}

/// A pool without workers. It lives as long as the process, like the workers that refer to it.
fn new_pool(limit: usize) -> *mut Pool {
    Box::leak(Box::new(Pool { limit: AtomicUsize::new(limit), crew: Crew::new(), taken: Mutex::new(()) }))
}

/// Gives a forked child a pool of its own: the workers of the one before are not there.
pub(crate) fn prepare_fork() -> Box<dyn FnOnce(Side)> {
    let limit = num_threads();
    Box::new(move |side| {
        if side == Side::Child {
            POOL.store(new_pool(limit), Ordering::Release);
        }
    })
}

impl Pool {
    /// Takes the pool for a launch on `threads` threads. `None` if it is busy.
    fn take(&'static self, threads: usize) -> Option<MutexGuard<'static, ()>> {
        let taken = match self.taken.try_lock() {
            Ok(taken) => taken,
            // Nothing between locking and unlocking leaves the workers in a bad state.
            Err(TryLockError::Poisoned(taken)) => taken.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let present = self.crew.size() + 1;
        let limit = self.limit.load(Ordering::Relaxed);
        if present < threads || present > limit {
            self.crew.resize(threads.max(present).min(limit) - 1);
        }
        Some(taken)
    }
}

fn default_threads() -> usize {
    let count = environment::number(&["RELAXIDE_NUM_THREADS", "TVM_NUM_THREADS"], |count: &usize| *count > 0);
    count.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
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

/// Runs a loop on up to `threads` threads, as the number of tasks that `tasks` gives for the threads that there are.
///
/// # Safety
/// As [`parallel_launch`](super::parallel_launch).
pub(super) unsafe fn launch(
    task: ParallelTask,
    data: *mut c_void,
    threads: usize,
    tasks: impl Fn(usize) -> usize,
) -> Result<(), Error> {
    let taken = if threads > 1 { pool().take(threads) } else { None };
    let present = taken.as_ref().map_or(1, |_| threads.min(pool().crew.size() + 1));
    if present == 1 {
        // SAFETY: passed on to the caller of this function.
        return unsafe { run_alone(task, data) };
    }
    // There are a few tasks for each thread.
    let num_task = u16::try_from(tasks(present)).unwrap_or(u16::MAX);
    let barrier = Barrier::new(usize::from(num_task), present);
    let mut env = ParallelGroupEnv { sync_handle: barrier.as_handle(), num_task: i32::from(num_task) };
    let job = Job { task, data, env: &raw mut env, num_task };
    // SAFETY: the pool is taken; the caller vouches for the task; the environment lives until the launch is over.
    unsafe { pool().crew.launch(job, present - 1) }
}
