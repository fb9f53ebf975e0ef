//! What waits, and what of it is run together.
//!
//! Requests wait in groups, in the order in which the first of each group came. A request joins a group of the same load whose tensors
//! have the same further lengths, while the rows of all are no more than the model takes at once; requests to models whose calls are not
//! joined are groups of their own. A group is ready when it is full or its first request has waited for the delay; without a delay each
//! is ready at once, and only what comes while all engines are busy is joined.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::repository::Loaded;
use crate::{Error, Fault, Tensor};

/// A request that waits.
pub(crate) struct Job {
    pub model: Arc<Loaded>,
    /// In the order of the model's inputs.
    pub inputs: Vec<Tensor>,
    pub arrived: Instant,
    /// Nobody waits for the answer any longer then.
    pub deadline: Instant,
    pub answer: oneshot::Sender<Result<Vec<Tensor>, Error>>,
}

impl Job {
    /// The length of the dimension along which calls are joined.
    pub(crate) fn rows(&self) -> usize {
        let rows = self.inputs.first().and_then(|input| input.shape().first());
        rows.and_then(|rows| usize::try_from(*rows).ok()).unwrap_or(0)
    }

    fn is_like(&self, other: &Job) -> bool {
        let alike =
            |(a, b): (&Tensor, &Tensor)| a.datatype() == b.datatype() && a.shape().get(1..) == b.shape().get(1..);
        self.model.id == other.model.id && self.inputs.iter().zip(&other.inputs).all(alike)
    }
}

/// Requests that are run together; at least one.
struct Group {
    jobs: Vec<Job>,
    rows: usize,
    ready: Instant,
}

/// How much waits and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Requests of one model that wait at most.
    pub queue: usize,
    /// How long a request waits for others to be joined with.
    pub delay: Duration,
}

#[derive(Default)]
struct Queues {
    groups: VecDeque<Group>,
    /// Counts changes of the models.
    generation: u64,
    is_ending: bool,
}

/// What an engine does next.
pub(crate) enum Next {
    /// These requests, in one call.
    Batch(Vec<Job>),
    /// The models have changed.
    Changed,
    /// Nothing any more.
    End,
}

/// The requests of all models.
pub(crate) struct Scheduler {
    state: Mutex<Queues>,
    wake: Condvar,
    limits: Limits,
}

impl Scheduler {
    pub(crate) fn new(limits: Limits) -> Scheduler {
        Scheduler { state: Mutex::default(), wake: Condvar::new(), limits }
    }

    fn state(&self) -> MutexGuard<'_, Queues> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request in, or refuses it where too many wait.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Error> {
        let mut state = self.state();
        let queued = &job.model.metrics.queued;
        if queued.load(Ordering::Relaxed) >= self.limits.queue {
            let message =
                format!("{} requests wait for model {:?} already: try again later", self.limits.queue, job.model.name);
            return Err(Error::new(Fault::Overload, message));
        }
        queued.fetch_add(1, Ordering::Relaxed);
        let (rows, most) = (job.rows(), job.model.batch_rows);
        let can_join = rows > 0 && rows < most;
        let has_room = |group: &&mut Group| {
            group.rows > 0 && group.rows + rows <= most && group.jobs.first().is_some_and(|first| job.is_like(first))
        };
        match state.groups.iter_mut().filter(|_| can_join).find(has_room) {
            Some(group) => {
                group.rows += rows;
                if group.rows == most {
                    group.ready = job.arrived;
                }
                group.jobs.push(job);
            }
            None => {
                let delay = if can_join { self.limits.delay } else { Duration::ZERO };
                let ready = job.arrived + delay;
                // No rows: nothing joins.
                state.groups.push_back(Group { jobs: vec![job], rows: if can_join { rows } else { 0 }, ready });
            }
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Waits for something to do. `seen` is the number of the last change that the engine knows.
    pub(crate) fn take(&self, seen: &mut u64) -> Next {
        let mut state = self.state();
        loop {
            if state.generation != *seen {
                *seen = state.generation;
                return Next::Changed;
            }
            let now = Instant::now();
            let is_ending = state.is_ending;
            if let Some(at) = state.groups.iter().position(|group| is_ending || group.ready <= now)
                && let Some(group) = state.groups.remove(at)
            {
                for job in &group.jobs {
                    job.model.metrics.queued.fetch_sub(1, Ordering::Relaxed);
                }
                return Next::Batch(group.jobs);
            }
            if is_ending {
                return Next::End;
            }
            let next = state.groups.iter().map(|group| group.ready).min();
            state = match next {
                Some(ready) => {
                    let waited = self.wake.wait_timeout(state, ready.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Tells engines that models have changed.
    pub(crate) fn announce(&self) {
        self.state().generation += 1;
        self.wake.notify_all();
    }

    /// Lets engines end once nothing waits.
    pub(crate) fn end(&self) {
        self.state().is_ending = true;
        self.wake.notify_all();
    }
}
