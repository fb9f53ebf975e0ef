//! One launch at a time: its tasks, claimed one after another by whichever thread is free.
//!
//! Each thread has a share of the tasks, neighbours of each other, and claims those from the first on; then it takes the last ones of
//! the others' shares. So the same thread executes the same part of loop after loop, and finds what it has written in its own caches.
//!
//! A round is a number that rises with each launch. It sits beside the range of unclaimed tasks in one word for each share, so that
//! a claim is one compare-and-swap that fails if the round has changed meanwhile. The record of the job beside it is
//! written only between rounds, when nothing can be claimed, and read as atomics: whoever has claimed a task of a round
//! has read that round's job, because no other job is written before this task has finished.
//!
//! The launching thread claims like every other. A worker that wakes late, because its core is busy with something
//! else, finds nothing left to do and has delayed nobody.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::{ParallelGroupEnv, ParallelTask};

/// Shares at most. With more threads, some have a share together.
const MOST_SHARES: u32 = 64;

/// What a launch runs: the function, its data and what its tasks are told.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) task: ParallelTask,
    pub(super) data: *mut c_void,
    pub(super) env: *mut ParallelGroupEnv,
    pub(super) num_task: u16,
}

/// The launch in progress, if there is one. Lives as long as the process.
#[derive(Debug)]
pub(super) struct Round {
    /// The number of the last round that has begun.
    number: AtomicU32,
    /// The [`ParallelTask`].
    task: AtomicPtr<()>,
    data: AtomicPtr<c_void>,
    env: AtomicPtr<ParallelGroupEnv>,
    num_task: AtomicU32,
    /// Shares of this round.
    num_share: AtomicU32,
    /// Tasks of this round that have not finished.
    unfinished: AtomicUsize,
    shares: [Share; MOST_SHARES as usize],
}

/// The unclaimed tasks of one share, in a line of the cache of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Share(AtomicU64);

/// What the word of a share says: the number of the round, the first unclaimed task and the one behind the last.
#[derive(Clone, Copy)]
struct Unclaimed {
    round: u32,
    first: u16,
    end: u16,
}

impl Unclaimed {
    fn of(word: u64) -> Self {
        Self { round: (word >> 32) as u32, first: (word >> 16) as u16, end: word as u16 }
    }

    fn word(self) -> u64 {
        u64::from(self.round) << 32 | u64::from(self.first) << 16 | u64::from(self.end)
    }

    /// The first or the last of them, and what is left without it.
    fn take(self, is_own: bool) -> Option<(u16, Self)> {
        match self.first < self.end {
            true if is_own => Some((self.first, Self { first: self.first + 1, ..self })),
            true => Some((self.end - 1, Self { end: self.end - 1, ..self })),
            false => None,
        }
    }
}

impl Round {
    pub(super) const fn new() -> Self {
        Self {
            number: AtomicU32::new(0),
            task: AtomicPtr::new(std::ptr::null_mut()),
            data: AtomicPtr::new(std::ptr::null_mut()),
            env: AtomicPtr::new(std::ptr::null_mut()),
            num_task: AtomicU32::new(0),
            num_share: AtomicU32::new(0),
            unfinished: AtomicUsize::new(0),
            shares: [const { Share(AtomicU64::new(0)) }; MOST_SHARES as usize],
        }
    }

    /// Begins a round for so many threads. Only one thread may do so at a time, and only when the round before is over.
    pub(super) fn begin(&self, job: Job, threads: usize) {
        let num_task = u32::from(job.num_task);
        let num_share = MOST_SHARES.min(threads as u32).clamp(1, num_task.max(1));
        self.task.store(job.task as *mut (), Ordering::Relaxed);
        self.data.store(job.data, Ordering::Relaxed);
        self.env.store(job.env, Ordering::Relaxed);
        self.num_task.store(num_task, Ordering::Relaxed);
        self.num_share.store(num_share, Ordering::Relaxed);
        self.unfinished.store(num_task as usize, Ordering::Relaxed);
        let round = self.number.load(Ordering::Relaxed).wrapping_add(1);
        let border = |share: u32| (num_task * share / num_share) as u16;
        for (share, number) in self.shares.iter().zip(0..num_share) {
            let unclaimed = Unclaimed { round, first: border(number), end: border(number + 1) };
            share.0.store(unclaimed.word(), Ordering::Release);
        }
        self.number.store(round, Ordering::SeqCst);
    }

    /// The number of the last round that has begun. Whoever waits for one with another number misses none.
    pub(super) fn number(&self) -> u32 {
        self.number.load(Ordering::SeqCst)
    }

    /// Claims a task for a thread, those of its own share first: the job and the number of the task. Whoever claims must run it and then
    /// call [`finish`](Self::finish).
    pub(super) fn claim(&self, thread: usize) -> Option<(Job, u16)> {
        let count = self.num_share.load(Ordering::Relaxed) as usize;
        let own = thread.checked_rem(count)?;
        (own..count).chain(0..own).find_map(|share| self.claim_of(share, share == own))
    }

    /// Claims a task of one share.
    fn claim_of(&self, share: usize, is_own: bool) -> Option<(Job, u16)> {
        let share = &self.shares[share].0;
        let mut word = share.load(Ordering::Acquire);
        loop {
            let (number, left) = Unclaimed::of(word).take(is_own)?;
            let task = self.task.load(Ordering::Relaxed);
            let num_task = self.num_task.load(Ordering::Relaxed) as u16;
            let (data, env) = (self.data.load(Ordering::Relaxed), self.env.load(Ordering::Relaxed));
            match share.compare_exchange_weak(word, left.word(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: `begin` has stored a function pointer of this type.
                    let task = unsafe { std::mem::transmute::<*mut (), ParallelTask>(task) };
                    return Some((Job { task, data, env, num_task }, number));
                }
                Err(now) => word = now,
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn nothing(_: std::ffi::c_int, _: *mut ParallelGroupEnv, _: *mut c_void) -> std::ffi::c_int {
        0
    }

    fn job(num_task: u16) -> Job {
        Job { task: nothing, data: std::ptr::null_mut(), env: std::ptr::null_mut(), num_task }
    }

    fn claimed(round: &Round, thread: usize) -> Option<u16> {
        round.claim(thread).map(|(_, number)| number)
    }

    #[test]
    fn a_thread_begins_with_its_share_and_then_takes_from_the_end_of_others() {
        let round = Round::new();
        assert_eq!(claimed(&round, 0), None);
        round.begin(job(7), 2);
        assert_eq!([0, 1, 0].map(|thread| claimed(&round, thread)), [Some(0), Some(3), Some(1)]);
        assert_eq!([0, 0, 0].map(|thread| claimed(&round, thread)), [Some(2), Some(6), Some(5)]);
        assert_eq!([1, 1, 0].map(|thread| claimed(&round, thread)), [Some(4), None, None]);
    }

    #[test]
    fn every_task_is_claimed_once() {
        let round = Round::new();
        for (tasks, threads) in [(1, 1), (1, 8), (3, 2), (8, 3), (400, 100), (u16::MAX, 64), (0, 4)] {
            round.begin(job(tasks), threads);
            let mut all: Vec<u16> = (0..).map_while(|i: usize| claimed(&round, i * 7 % threads.max(1))).collect();
            all.sort_unstable();
            assert_eq!(all, (0..tasks).collect::<Vec<_>>(), "{tasks} tasks for {threads} threads");
        }
    }
}
