//! One launch at a time: its tasks, claimed one after another by whichever thread is free.
//!
//! A round is a number that rises with each launch, and how many tasks nobody has claimed; both sit in one word, so that
//! a claim is one compare-and-swap that fails if the round has changed meanwhile. The record of the job beside it is
//! written only between rounds, when nothing can be claimed, and read as atomics: whoever has claimed a task of a round
//! has read that round's job, because no other job is written before this task has finished.
//!
//! The launching thread claims like every other. A worker that wakes late, because its core is busy with something
//! else, finds nothing left to do and has delayed nobody.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::{ParallelGroupEnv, ParallelTask};

/// What a launch runs: the function, its data and what its tasks are told.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) task: ParallelTask,
    pub(super) data: *mut c_void,
    pub(super) env: *mut ParallelGroupEnv,
    pub(super) num_task: u32,
}

/// The launch in progress, if there is one. Lives as long as the process.
#[derive(Debug)]
pub(super) struct Round {
    /// The number of the round above, the number of unclaimed tasks below. They are claimed from the first to the last.
    state: AtomicU64,
    /// The [`ParallelTask`].
    task: AtomicPtr<()>,
    data: AtomicPtr<c_void>,
    env: AtomicPtr<ParallelGroupEnv>,
    num_task: AtomicU32,
    /// Tasks of this round that have not finished.
    unfinished: AtomicUsize,
}

const TASK_BITS: u32 = 32;

impl Round {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            task: AtomicPtr::new(std::ptr::null_mut()),
            data: AtomicPtr::new(std::ptr::null_mut()),
            env: AtomicPtr::new(std::ptr::null_mut()),
            num_task: AtomicU32::new(0),
            unfinished: AtomicUsize::new(0),
        }
    }

    /// Begins a round. Only one thread may do so at a time, and only when the round before is over.
    pub(super) fn begin(&self, job: Job) {
        self.task.store(job.task as *mut (), Ordering::Relaxed);
        self.data.store(job.data, Ordering::Relaxed);
        self.env.store(job.env, Ordering::Relaxed);
        self.num_task.store(job.num_task, Ordering::Relaxed);
        self.unfinished.store(job.num_task as usize, Ordering::Relaxed);
        let number = (self.state.load(Ordering::Relaxed) >> TASK_BITS).wrapping_add(1);
        self.state.store(number << TASK_BITS | u64::from(job.num_task), Ordering::SeqCst);
    }

    /// Claims a task: the job and the number of the task. Whoever claims must run it and then call [`finish`](Self::finish).
    pub(super) fn claim(&self) -> Option<(Job, u32)> {
        let mut state = self.state.load(Ordering::SeqCst);
        loop {
            let unclaimed = state as u32;
            if unclaimed == 0 {
                return None;
            }
            let task = self.task.load(Ordering::Relaxed);
            let num_task = self.num_task.load(Ordering::Relaxed);
            let (data, env) = (self.data.load(Ordering::Relaxed), self.env.load(Ordering::Relaxed));
            match self.state.compare_exchange_weak(state, state - 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: `begin` has stored a function pointer of this type.
                    let task = unsafe { std::mem::transmute::<*mut (), ParallelTask>(task) };
                    return Some((Job { task, data, env, num_task }, num_task - unclaimed));
                }
                Err(now) => state = now,
            }
        }
    }

    /// Whether a task waits to be claimed. May be out of date as soon as it is said.
    pub(super) fn has_unclaimed(&self) -> bool {
        self.state.load(Ordering::SeqCst) as u32 > 0
    }

    /// One claimed task is done; true if it was the last of its round.
    pub(super) fn finish(&self) -> bool {
        self.unfinished.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Whether all tasks are done.
    pub(super) fn is_over(&self) -> bool {
        self.unfinished.load(Ordering::SeqCst) == 0
    }
}
