//! [`Call`]: what is asked of a far side and can be cancelled; [`Started`]: one that runs beside this thread.
//!
//! Every request that somebody waits for belongs to a call: that of its thread ([`Call::run`]), or one of its own. Cancelling a call asks
//! the far side to end the request and has nothing more sent for it. The far side answers all the same, and the session goes on. A far
//! side that does not answer within the grace is given up, with the session.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use relaxide_ffi::signal::{self, CANCELLED};
use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function};

use super::peer::Peer;
use crate::wire::Ticket;

/// How long the far side has to end a call, where nothing else is said: a kernel that computes ends first.
pub const GRACE: Duration = Duration::from_secs(5);
/// How much longer it may take to say so.
pub const LATE: Duration = Duration::from_secs(2);
/// How often a thread that waits looks whether the user wants to interrupt.
const TURN: Duration = Duration::from_millis(100);

thread_local! {
    static CURRENT: RefCell<Vec<Arc<Call>>> = const { RefCell::new(Vec::new()) };
}

fn poisoned<T>(lock: PoisonError<T>) -> T {
    lock.into_inner()
}

/// What is asked of a far side and can be cancelled.
#[derive(Default)]
pub struct Call {
    state: Mutex<CallState>,
    changed: Condvar,
}

#[derive(Default)]
struct CallState {
    /// The grace, if it was cancelled.
    cancelled: Option<Duration>,
    /// Whom it asks, or waits for its turn to ask, innermost last.
    entered: Vec<Weak<Peer>>,
    /// What has no reply yet, innermost last.
    asked: Vec<Asked>,
}

#[derive(Clone)]
struct Asked {
    peer: Weak<Peer>,
    ticket: Ticket,
}

impl Asked {
    fn is(&self, other: &Asked) -> bool {
        self.ticket == other.ticket && Weak::ptr_eq(&self.peer, &other.peer)
    }
}

impl Call {
    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(poisoned)
    }

    /// Does work whose requests belong to this call.
    pub fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(Vec::pop);
            }
        }
        CURRENT.with_borrow_mut(|current| current.push(Arc::clone(self)));
        let _leave = Leave;
        work()
    }

    /// Cancels it: what was asked for it is to end within the grace, and nothing more is asked. An error where the protocol cannot.
    pub fn cancel(self: &Arc<Self>, grace: Duration) -> Result<(), Error> {
        let mut state = self.state();
        // A request is noted once it is sent, and may run on the far side by then: whom it goes to is known before.
        let peers = state.entered.iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
        if let Err(error) = peers.iter().try_for_each(|peer| peer.can_cancel()) {
            drop(state);
            return Err(error);
        }
        if state.cancelled.is_some() {
            drop(state);
            return Ok(());
        }
        state.cancelled = Some(grace);
        let outcome = state.asked.iter().try_for_each(|asked| self.end(asked.clone(), grace));
        drop(state);
        // The last of a peer that is let go of here lets go of calls.
        drop(peers);
        outcome
    }

    /// Has a thread ask for the end of a request, and see to it.
    fn end(self: &Arc<Self>, asked: Asked, grace: Duration) -> Result<(), Error> {
        let call = Arc::clone(self);
        let work = move || {
            let Some(peer) = asked.peer.upgrade() else { return };
            let sent = peer.send_cancel(asked.ticket, grace);
            // A session that is let go of meanwhile is to end.
            drop(peer);
            if sent.is_err() || !call.ends_by(&asked, Instant::now().checked_add(grace.saturating_add(LATE))) {
                asked.peer.upgrade().inspect(|peer| peer.give_up());
            }
        };
        let started = std::thread::Builder::new().name("rpc-cancel".into()).stack_size(256 << 10).spawn(work);
        started.map(drop).map_err(|error| cannot_start(&error))
    }

    /// Waits until a request has its reply; false if that is not so by then.
    fn ends_by(&self, asked: &Asked, deadline: Option<Instant>) -> bool {
        let mut state = self.state();
        while state.asked.iter().any(|other| other.is(asked)) {
            state = match deadline {
                None => self.changed.wait(state).unwrap_or_else(poisoned),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.changed.wait_timeout(state, left).unwrap_or_else(poisoned).0
                }
            };
        }
        true
    }
}

fn cannot_start(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::RuntimeError, format!("cannot start the thread of a call: {error}"))
}

/// The calls of a session that wait for a reply, or for their turn to ask.
#[derive(Default)]
pub struct Calls(Mutex<Vec<Arc<Call>>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Call>>> {
        self.0.lock().unwrap_or_else(poisoned)
    }

    /// Enters the call of this thread, or a new one.
    pub(super) fn enter(&self, peer: &Arc<Peer>) -> Entered<'_> {
        let call = CURRENT.with_borrow(|current| current.last().cloned()).unwrap_or_default();
        call.state().entered.push(Arc::downgrade(peer));
        self.lock().push(Arc::clone(&call));
        Entered { calls: self, call, has_asked: false }
    }

    /// Those that are entered.
    pub(super) fn all(&self) -> Vec<Arc<Call>> {
        self.lock().clone()
    }

    /// True if there are any.
    pub(super) fn any(&self) -> bool {
        !self.lock().is_empty()
    }
}

/// A call while it waits.
pub(super) struct Entered<'a> {
    calls: &'a Calls,
    call: Arc<Call>,
    has_asked: bool,
}

impl Entered<'_> {
    /// An error if it was cancelled: it need not be sent.
    pub(super) fn check(&self, name: &str) -> Result<(), Error> {
        match self.call.state().cancelled {
            Some(_) => Err(Error::new(CANCELLED, format!("the call was cancelled before it was sent to {name}"))),
            None => Ok(()),
        }
    }

    /// Notes that it was sent. It may have been cancelled meanwhile.
    pub(super) fn asked(&mut self, peer: &Arc<Peer>, ticket: Ticket) {
        let mut state = self.call.state();
        let asked = Asked { peer: Arc::downgrade(peer), ticket };
        state.asked.push(asked.clone());
        self.has_asked = true;
        if let Some(grace) = state.cancelled
            && self.call.end(asked, grace).is_err()
        {
            drop(state);
            peer.give_up();
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut state = self.call.state();
        state.entered.pop();
        if self.has_asked {
            state.asked.pop();
            self.call.changed.notify_all();
        }
        drop(state);
        let mut calls = self.calls.lock();
        if let Some(at) = calls.iter().rposition(|call| Arc::ptr_eq(call, &self.call)) {
            calls.remove(at);
        }
    }
}

/// A call that runs in a thread of its own.
pub struct Started {
    call: Arc<Call>,
    outcome: Arc<Outcome>,
}

#[derive(Default)]
struct Outcome {
    value: Mutex<Option<Result<Any, Error>>>,
    known: Condvar,
}

impl Started {
    /// Calls a function beside this thread; what it asks of far sides can be cancelled with it.
    pub fn start(function: Function, args: Vec<Any>) -> Result<Started, Error> {
        let (call, outcome) = (Arc::<Call>::default(), Arc::<Outcome>::default());
        let (running, told) = (Arc::clone(&call), Arc::clone(&outcome));
        let work = move || {
            let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
            let value = running.run(|| function.call(&views));
            *told.value.lock().unwrap_or_else(poisoned) = Some(value);
            told.known.notify_all();
        };
        let thread = std::thread::Builder::new().name("rpc-call".into()).spawn(work);
        thread.map_err(|error| cannot_start(&error))?;
        Ok(Started { call, outcome })
    }

    /// Cancels it, as [`Call::cancel`] does. Its outcome is a `CancelledError`, unless it was done already.
    pub fn cancel(&self, grace: Duration) -> Result<(), Error> {
        self.call.cancel(grace)
    }

    /// True if its outcome is known.
    pub fn is_done(&self) -> bool {
        self.outcome.value.lock().unwrap_or_else(poisoned).is_some()
    }

    /// What became of it; an error while that is not known.
    pub fn value(&self) -> Result<Any, Error> {
        let value = self.outcome.value.lock().unwrap_or_else(poisoned).clone();
        value.unwrap_or_else(|| Err(Error::new("TimeoutError", "the call has not ended yet")))
    }

    /// Waits until its outcome is known; false if it is not in time, and an error if the user interrupts the wait.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut value = self.outcome.value.lock().unwrap_or_else(poisoned);
        loop {
            if value.is_some() {
                return Ok(true);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            let turn = left.map_or(TURN, |left| left.min(TURN));
            value = self.outcome.known.wait_timeout(value, turn).unwrap_or_else(poisoned).0;
            if value.is_none() {
                drop(value);
                signal::check()?;
                value = self.outcome.value.lock().unwrap_or_else(poisoned);
            }
        }
    }
}
