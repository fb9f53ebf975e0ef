//! One worker thread: a slot for a job, a short spin, then sleep.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use relaxide_ffi::{Error, ErrorKind};

use super::{ParallelGroupEnv, ParallelTask};

/// How often a thread looks for its event before it sleeps, where `RELAXIDE_THREAD_POOL_SPIN_COUNT` (or TVM's variable of
/// that name) says nothing else: some tens of microseconds. Longer spins hold a core that the awaited thread may need.
const DEFAULT_SPINS: u32 = 4000;

fn spins() -> u32 {
    static SPINS: OnceLock<u32> = OnceLock::new();
    *SPINS.get_or_init(|| {
        let from_variable = |name: &str| std::env::var(name).ok()?.trim().parse().ok();
        from_variable("RELAXIDE_THREAD_POOL_SPIN_COUNT")
            .or_else(|| from_variable("TVM_THREAD_POOL_SPIN_COUNT"))
            .unwrap_or(DEFAULT_SPINS)
    })
}

/// A task for one worker.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) task: ParallelTask,
    pub(super) data: *mut c_void,
    pub(super) env: *mut ParallelGroupEnv,
    pub(super) id: usize,
    pub(super) completion: *const Completion,
}

/// What the launching thread waits on.
pub(super) struct Completion {
    remaining: AtomicUsize,
    launcher: Thread,
    first_error: Mutex<Option<(usize, Error)>>,
}

impl Completion {
    pub(super) fn new(jobs: usize) -> Self {
        Self { remaining: AtomicUsize::new(jobs), launcher: std::thread::current(), first_error: Mutex::new(None) }
    }

    /// Waits for all jobs.
    pub(super) fn wait(&self) -> Result<(), Error> {
        wait_until(None, || self.remaining.load(Ordering::SeqCst) == 0);
        let error = self.first_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Keeps the error of the task with the lowest number, so that the result does not depend on timing.
    fn fail(&self, task: usize, error: Error) {
        let mut first = self.first_error.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(other, _)| task < *other) {
            *first = Some((task, error));
        }
    }
}

/// Spins, then sleeps, until `done`. Whoever makes `done` true wakes the thread if `sleeps` is set, or in any case if
/// there is no such flag.
fn wait_until(sleeps: Option<&AtomicBool>, done: impl Fn() -> bool) {
    for _ in 0..spins() {
        if done() {
            return;
        }
        std::hint::spin_loop();
    }
    if let Some(sleeps) = sleeps {
        sleeps.store(true, Ordering::SeqCst);
    }
    while !done() {
        std::thread::park();
    }
    if let Some(sleeps) = sleeps {
        sleeps.store(false, Ordering::SeqCst);
    }
}

/// The slot of a worker: a sequence number that the launcher raises for each job, and the job.
#[repr(align(128))]
struct Slot {
    given: AtomicU32,
    sleeps: AtomicBool,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: the launcher writes the job only while the worker is idle (it holds the pool's lock and every earlier launch
// has been waited for) and publishes it by raising `given`; the worker reads it only after it has seen that.
unsafe impl Sync for Slot {}
// SAFETY: as above; what the job points at is shared under the contract of `Worker::give`.
unsafe impl Send for Slot {}

/// A worker thread. It lives as long as the process.
pub(super) struct Worker {
    slot: Arc<Slot>,
    thread: Thread,
}

impl Worker {
    /// Starts a thread.
    pub(super) fn start(number: usize) -> std::io::Result<Self> {
        let slot =
            Arc::new(Slot { given: AtomicU32::new(0), sleeps: AtomicBool::new(false), job: UnsafeCell::new(None) });
        let shared = Arc::clone(&slot);
        let handle = std::thread::Builder::new().name(format!("relaxide-{number}")).spawn(move || work(&shared))?;
        Ok(Self { slot, thread: handle.thread().clone() })
    }

    /// Gives the worker a job.
    ///
    /// # Safety
    /// The worker is idle; what the job points at lives until its completion has been waited for; its task is safe to
    /// call.
    pub(super) unsafe fn give(&self, job: Job) {
        // SAFETY: the worker is idle, so it does not look at the job.
        unsafe { *self.slot.job.get() = Some(job) };
        self.slot.given.fetch_add(1, Ordering::SeqCst);
        if self.slot.sleeps.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

fn work(slot: &Slot) {
    let mut seen = 0;
    loop {
        wait_until(Some(&slot.sleeps), || slot.given.load(Ordering::SeqCst) != seen);
        seen = seen.wrapping_add(1);
        // SAFETY: a raised sequence number says that the job is written and stays until it is done.
        if let Some(job) = unsafe { *slot.job.get() } {
            // SAFETY: `give` vouches for the job.
            unsafe { run(job) };
        }
    }
}

/// # Safety
/// The job keeps the promises of [`Worker::give`].
unsafe fn run(job: Job) {
    // A count of tasks fits an `i32`: each has a thread.
    // SAFETY: the giver of the job vouches for the task and its arguments.
    let code = unsafe { (job.task)(job.id as i32, job.env, job.data) };
    // SAFETY: the launcher waits until `remaining` is zero, so the completion lives until we lower it below.
    let completion = unsafe { &*job.completion };
    if code != 0 {
        completion.fail(job.id, raised_error(job.id));
    }
    // The completion may be gone as soon as the count is zero: what is needed to wake the launcher is copied before.
    let launcher = completion.launcher.clone();
    let was_last = completion.remaining.fetch_sub(1, Ordering::SeqCst) == 1;
    if was_last {
        // A wake-up that nobody waits for costs little and does no harm.
        launcher.unpark();
    }
}

/// The error that a failing task has raised on this thread, with the number of the task.
pub(super) fn raised_error(task: usize) -> Error {
    match relaxide_ffi::raised::take() {
        Some(error) => Error::new(ErrorKind::RuntimeError, format!("Task {task} error: {error}")),
        None => Error::new(ErrorKind::RuntimeError, format!("Task {task} error: it returned an error without a text")),
    }
}
