//! The threads of the pool: what a worker does, and how a failing task reports.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use relaxide_ffi::Error;

use super::cores::Cores;
use super::raised_error;
use super::round::{Job, Round};
use super::waiting::{Core, Waiting};

/// What the threads of the pool share.
#[derive(Debug)]
pub(super) struct Crew {
    round: Round,
    /// Where workers wait for a round.
    idle: Waiting,
    /// Where the launching thread waits for the end of the round.
    launcher: Waiting,
    first_error: Mutex<Option<(u32, Error)>>,
    /// How many workers there shall be.
    size: AtomicUsize,
    cores: Cores,
}

impl Crew {
    pub(super) const fn new() -> Self {
        let (idle, launcher) = (Waiting::new(), Waiting::new());
        Self {
            round: Round::new(),
            idle,
            launcher,
            first_error: Mutex::new(None),
            size: AtomicUsize::new(0),
            cores: Cores::new(),
        }
    }

    /// How many workers there are.
    pub(super) fn size(&self) -> usize {
        self.size.load(Ordering::SeqCst)
    }

    /// Whether the workers and the launching thread have a core each, as far as this process knows.
    fn core(&self) -> Core {
        static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
        if self.size() < *CORES { Core::Own } else { Core::Shared }
    }

    /// Brings the number of workers to `size`, or as near as the system allows. Surplus workers end, at once or after the
    /// task that they are at. Only one thread may do so at a time.
    pub(super) fn resize(&'static self, size: usize) {
        let present = self.size();
        for number in present..size {
            // Before the thread starts, which would find itself surplus.
            self.size.store(number + 1, Ordering::SeqCst);
            if self.start_worker(number).is_err() {
                self.size.store(number, Ordering::SeqCst);
                return;
            }
        }
        if size < present {
            self.size.store(size, Ordering::SeqCst);
            self.idle.wake(usize::MAX);
        }
    }

    /// Starts the worker with that number, counted from 0. It lives until it is surplus.
    fn start_worker(&'static self, number: usize) -> std::io::Result<()> {
        let is_surplus = move || number >= self.size();
        let work = move || {
            self.cores.join(number + 1);
            while !is_surplus() {
                let seen = self.round.number();
                self.run_tasks(number + 1);
                self.idle.until(self.core(), || self.round.number() != seen || is_surplus());
            }
            self.cores.leave();
        };
        std::thread::Builder::new().name(format!("relaxide-{}", number + 1)).spawn(work).map(drop)
    }

    /// Runs a job with the help of up to `helpers` workers, and waits for its end. The error is that of the failing task
    /// with the lowest number.
    ///
    /// # Safety
    /// No other round is in progress; the job's task is safe to call, from several threads at once, with its data, its
    /// environment and any number below its number of tasks.
    pub(super) unsafe fn launch(&self, job: Job, helpers: usize) -> Result<(), Error> {
        self.round.begin(job, helpers + 1);
        if self.idle.has_sleepers() {
            self.cores.keep_apart();
        }
        self.idle.wake(helpers);
        self.run_tasks(0);
        self.launcher.until(self.core(), || self.round.is_over());
        let error = self.first_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Claims and runs tasks until there are none; as the thread of that number, of which the launching one is the first.
    fn run_tasks(&self, thread: usize) {
        while let Some((job, number)) = self.round.claim(thread) {
            // SAFETY: `launch` has the promise of its caller for every task of the job, and data and environment live
            // until the round is over, which it is not while this task is unfinished. A number of tasks fits an `i32`.
            let code = unsafe { (job.task)(i32::from(number), job.env, job.data) };
            if code != 0 {
                self.fail(u32::from(number));
            }
            if self.round.finish() {
                self.launcher.wake(1);
            }
        }
    }

    /// Keeps the error of the task with the lowest number, so that the result does not depend on timing.
    fn fail(&self, task: u32) {
        let error = raised_error(task);
        let mut first = self.first_error.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(other, _)| task < *other) {
            *first = Some((task, error));
        }
    }
}
