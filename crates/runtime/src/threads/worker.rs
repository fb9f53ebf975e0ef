//! The threads of the pool: what a worker does, and how a failing task reports.

use std::sync::{Mutex, PoisonError};

use relaxide_ffi::{Error, ErrorKind};

use super::round::{Job, Round};
use super::waiting::Waiting;

/// What the threads of the pool share.
#[derive(Debug)]
pub(super) struct Crew {
    round: Round,
    /// Where workers wait for a round.
    idle: Waiting,
    /// Where the launching thread waits for the end of the round.
    launcher: Waiting,
    first_error: Mutex<Option<(u32, Error)>>,
}

impl Crew {
    pub(super) const fn new() -> Self {
        let (idle, launcher) = (Waiting::new(), Waiting::new());
        Self { round: Round::new(), idle, launcher, first_error: Mutex::new(None) }
    }

    /// Starts a worker. It lives as long as the process.
    pub(super) fn start_worker(&'static self, number: usize) -> std::io::Result<()> {
        let work = move || {
            loop {
                self.idle.until(|| self.round.has_unclaimed());
                self.run_tasks();
            }
        };
        std::thread::Builder::new().name(format!("relaxide-{number}")).spawn(work).map(drop)
    }

    /// Runs a job with the help of up to `helpers` workers, and waits for its end. The error is that of the failing task
    /// with the lowest number.
    ///
    /// # Safety
    /// No other round is in progress; the job's task is safe to call, from several threads at once, with its data, its
    /// environment and any number below its number of tasks.
    pub(super) unsafe fn launch(&self, job: Job, helpers: usize) -> Result<(), Error> {
        self.round.begin(job);
        self.idle.wake(helpers);
        self.run_tasks();
        self.launcher.until(|| self.round.is_over());
        let error = self.first_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Claims and runs tasks until there are none.
    fn run_tasks(&self) {
        while let Some((job, number)) = self.round.claim() {
            // SAFETY: `launch` has the promise of its caller for every task of the job, and data and environment live
            // until the round is over, which it is not while this task is unfinished. A number of tasks fits an `i32`.
            let code = unsafe { (job.task)(number as i32, job.env, job.data) };
            if code != 0 {
                self.fail(number);
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

/// The error that a failing task has raised on this thread, with the number of the task.
pub(super) fn raised_error(task: u32) -> Error {
    match relaxide_ffi::raised::take() {
        Some(error) => Error::new(ErrorKind::RuntimeError, format!("Task {task} error: {error}")),
        None => Error::new(ErrorKind::RuntimeError, format!("Task {task} error: it returned an error without a text")),
    }
}
