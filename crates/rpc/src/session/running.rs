//! [`Running`]: the requests of the other end that are being served, and which of them are to stop.
//!
//! A request that is cancelled is told by a flag that its thread looks at where it asks whether the user wants to interrupt
//! ([`signal::check`](relaxide_ffi::signal::check)): between two instructions of the virtual machine, between two calls of a time
//! evaluator. A kernel that computes ends first. One that does not end within its grace takes the session with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::wire::Cancel;

/// The requests that are being served.
#[derive(Default)]
pub struct Running(Mutex<Vec<One>>);

struct One {
    depth: u16,
    stop: Arc<AtomicBool>,
    /// How long it may take to stop, and when that is over.
    grace: Option<(Duration, Option<Instant>)>,
}

impl Running {
    fn all(&self) -> std::sync::MutexGuard<'_, Vec<One>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a request; the flag is set when it is to stop.
    pub fn begin(&self, depth: u16) -> Arc<AtomicBool> {
        let stop = Arc::new(AtomicBool::new(false));
        self.all().push(One { depth, stop: Arc::clone(&stop), grace: None });
        stop
    }

    /// Takes the request out that was entered last at a depth.
    pub fn end(&self, depth: u16) {
        let mut all = self.all();
        if let Some(at) = all.iter().rposition(|one| one.depth == depth) {
            all.remove(at);
        }
    }

    /// Has a request stop. One that is asked again keeps the time that it was given first.
    pub fn cancel(&self, cancel: &Cancel) {
        let grace = Duration::from_millis(cancel.grace_ms);
        if let Some(one) = self.all().iter_mut().find(|one| one.depth == cancel.ticket.depth) {
            one.stop.store(true, Ordering::Relaxed);
            // A time beyond the clock's end never comes.
            one.grace.get_or_insert_with(|| (grace, Instant::now().checked_add(grace)));
        }
    }

    /// True while there are any.
    pub fn any(&self) -> bool {
        !self.all().is_empty()
    }

    /// The grace of a request that should have stopped by now.
    pub fn overdue(&self) -> Option<Duration> {
        let now = Instant::now();
        let all = self.all();
        let late = all.iter().filter_map(|one| one.grace).find(|(_, by)| by.is_some_and(|by| by <= now));
        late.map(|(grace, _)| grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Ticket;

    fn cancel(depth: u16, grace_ms: u64) -> Cancel {
        Cancel { ticket: Ticket { depth, number: 0 }, grace_ms }
    }

    #[test]
    fn what_is_cancelled_is_told_and_is_late_after_its_grace() {
        let running = Running::default();
        let (outer, inner) = (running.begin(0), running.begin(2));
        running.cancel(&cancel(2, 0));
        assert!(!outer.load(Ordering::Relaxed) && inner.load(Ordering::Relaxed));
        assert_eq!(running.overdue(), Some(Duration::ZERO));
        running.end(2);
        assert_eq!(running.overdue(), None);
        running.cancel(&cancel(0, u64::MAX));
        running.cancel(&cancel(0, 0));
        assert!(outer.load(Ordering::Relaxed) && running.overdue().is_none(), "the first time counts");
        running.end(0);
        assert!(!running.any());
        running.cancel(&cancel(0, 0));
        assert_eq!(running.overdue(), None, "there is nothing to cancel");
    }
}
