//! What is counted of a model in the words of Triton's statistics: how often, and how many nanoseconds in all.
//!
//! A request counts as often as it has rows where a model's requests are joined, else once. Its time in the queue ends when its batch
//! begins; the batch takes time to join its inputs, to run, and to part its outputs, which counts for each of its requests. What fails in
//! a batch and is run again alone is counted as the runs that gave its answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often something was, and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub count: u64,
    pub nanos: u64,
}

impl Total {
    fn add(&mut self, count: u64, time: Duration) {
        self.count += count;
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos = self.nanos.saturating_add(nanos.saturating_mul(count));
    }
}

/// How long the parts of a run took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    /// Joining inputs.
    pub input: Duration,
    /// The run.
    pub run: Duration,
    /// Parting outputs.
    pub output: Duration,
}

/// What runs took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Computed {
    pub input: Total,
    pub run: Total,
    pub output: Total,
}

impl Computed {
    fn add(&mut self, count: u64, phases: Phases) {
        self.input.add(count, phases.input);
        self.run.add(count, phases.run);
        self.output.add(count, phases.output);
    }
}

/// All counts of a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// When the last request was answered, in milliseconds since 1970.
    pub last: u64,
    /// Rows that were computed, and runs of the model.
    pub inferences: u64,
    pub executions: u64,
    pub success: Total,
    pub failure: Total,
    pub queue: Total,
    pub computed: Computed,
    /// By the rows of a run.
    pub batches: BTreeMap<usize, Computed>,
}

/// Counts, where they are counted.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Mutex<Counts>);

impl Statistics {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts until now.
    pub(crate) fn now(&self) -> Counts {
        self.counts().clone()
    }

    /// Counts a request that was answered.
    pub(crate) fn request(&self, time: Duration, is_success: bool) {
        let mut counts = self.counts();
        if is_success {
            counts.success.add(1, time);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            counts.last = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        } else {
            counts.failure.add(1, time);
        }
    }

    /// Counts a request whose batch begins.
    pub(crate) fn left_queue(&self, waited: Duration) {
        self.counts().queue.add(1, waited);
    }

    /// Counts a run of so many requests and rows. `most` are the rows that the model takes at once: runs of more are no batch's.
    pub(crate) fn run(&self, requests: usize, rows: usize, most: usize, phases: Phases) {
        let mut counts = self.counts();
        counts.executions += 1;
        counts.inferences += rows as u64;
        counts.computed.add(requests as u64, phases);
        if rows <= most {
            counts.batches.entry(rows).or_default().add(1, phases);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_by_requests_and_by_runs() {
        let statistics = Statistics::default();
        let micros = Duration::from_micros;
        let phases = Phases { input: micros(1), run: micros(10), output: micros(2) };
        statistics.run(2, 3, 8, phases);
        statistics.run(1, 3, 8, phases);
        statistics.run(1, 9, 8, phases);
        statistics.request(micros(20), true);
        statistics.request(micros(5), false);
        statistics.left_queue(micros(4));
        let counts = statistics.now();
        assert_eq!((counts.inferences, counts.executions), (15, 3));
        assert_eq!(counts.computed.run, Total { count: 4, nanos: 40_000 });
        assert_eq!(counts.batches.keys().collect::<Vec<_>>(), [&3]);
        assert_eq!(counts.batches[&3].output, Total { count: 2, nanos: 4_000 });
        assert_eq!((counts.success.count, counts.failure.nanos, counts.queue.count), (1, 5_000, 1));
        assert!(counts.last > 0);
    }
}
