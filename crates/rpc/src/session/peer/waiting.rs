//! Waiting for what comes: the reads of a conversation, in turns, and a look at what stands behind a request.

use std::io;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use relaxide_ffi::signal::{self, CANCELLED};
use relaxide_ffi::{Error, ErrorKind};

use super::super::call::{GRACE, LATE};
use super::super::machine::{Event, Role, Violation};
use super::{END_OF_STREAM, Inner, Peer, broken, failure, late};
use crate::wire::Failure;

/// How long a client waits for bytes before it looks whether the user wants to interrupt.
const TURN: Duration = Duration::from_millis(100);

impl Peer {
    /// Reads payload into its place, past the machine where none of it has come.
    pub(super) fn read_payload(&self, inner: &mut MutexGuard<'_, Inner>, place: &mut [u8]) -> Result<(), Error> {
        let mut filled = inner.machine.take_payload(place);
        let timeout = inner.timeout;
        while filled < place.len() {
            match self.wait(inner, timeout, |inner| inner.source.read(&mut place[filled..]))? {
                0 => {
                    let error = broken(&self.name, "it closed the connection within a copy");
                    return Err(self.end(inner, error));
                }
                count => {
                    inner.machine.payload_read(count);
                    filled += count;
                }
            }
        }
        Ok(())
    }

    /// Reads once, within a time from now. What reads is called in turns.
    fn wait(
        &self,
        inner: &mut MutexGuard<'_, Inner>,
        timeout: Option<Duration>,
        mut read: impl FnMut(&mut Inner) -> io::Result<usize>,
    ) -> Result<usize, Error> {
        // Only a client has a user here.
        let in_turns = inner.role == Role::Client && inner.machine.is_waiting();
        let mut turn = timeout;
        let mut begun = None;
        loop {
            if in_turns {
                turn = Some(turn.map_or(TURN, |left| left.min(TURN)));
            }
            let set = match inner.told {
                Some(told) if told == turn => Ok(()),
                _ => inner.source.set_timeout(turn),
            };
            inner.told = Some(turn);
            let began = *begun.get_or_insert_with(Instant::now);
            let error = match set.and_then(|()| read(inner)) {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
            let is_turn = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            if !in_turns || !is_turn || left.is_some_and(|left| left.is_zero()) {
                let error = self.lost(&error);
                return Err(self.end(inner, error));
            }
            turn = left;
            self.look_for_interrupt(inner)?;
        }
    }

    /// Between two turns of waiting: whether the user wants to interrupt, and whether the far side has taken too long to heed it.
    fn look_for_interrupt(&self, inner: &mut Inner) -> Result<(), Error> {
        if let Some((interrupt, by)) = &inner.interrupt {
            if *by > Instant::now() {
                return Ok(());
            }
            let interrupt = interrupt.clone();
            self.end(inner, late(&self.name));
            return Err(interrupt);
        }
        let Err(interrupt) = signal::check() else { return Ok(()) };
        let sent = match inner.machine.last_asked() {
            Some(ticket) => self.can_cancel().and_then(|()| self.send_cancel(ticket, GRACE)),
            None => Ok(()),
        };
        if let Err(error) = sent {
            let message = format!("a call was interrupted, and the session ended with it: {}", error.message());
            self.end(inner, Error::new(CANCELLED, message));
            return Err(interrupt);
        }
        inner.interrupt = Some((interrupt, Instant::now() + GRACE + LATE));
        Ok(())
    }

    /// The next thing that comes.
    pub(super) fn event(&self, inner: &mut MutexGuard<'_, Inner>) -> Result<Event, Error> {
        loop {
            match inner.machine.next_event() {
                Ok(Some(Event::Cancel(cancel))) => self.running.cancel(&cancel),
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {
                    let timeout = if inner.machine.is_waiting() { inner.timeout } else { None };
                    let count = self.wait(inner, timeout, |inner| inner.source.read(inner.machine.space()))?;
                    if count == 0 {
                        let error = match inner.machine.may_end() {
                            true => Error::new(END_OF_STREAM, format!("{} has closed the connection", self.name)),
                            false => broken(&self.name, "it closed the connection within a request (code=kShutdown)"),
                        };
                        return Err(self.end(inner, error));
                    }
                    inner.machine.filled(count);
                }
                Err(violation) => return Err(self.violated(inner, &violation)),
            }
        }
    }

    fn violated(&self, inner: &mut Inner, violation: &Violation) -> Error {
        let message = format!("it does not keep to the protocol: {violation}");
        self.last_words(&failure(&Error::new(ErrorKind::ValueError, &*message)));
        self.end(inner, broken(&self.name, &message))
    }

    /// Looks at what has come behind a request that is being served: it may have been cancelled, or what waits behind it. To be called now
    /// and then by another thread; it waits for nothing. True if the other end has gone.
    pub fn look_ahead(&self) -> bool {
        let Ok(mut inner) = self.inner.try_lock() else { return false };
        while inner.ended.is_none() && inner.machine.has_room_ahead() {
            match inner.machine.look_ahead() {
                Ok(Some(Event::Cancel(cancel))) => {
                    self.running.cancel(&cancel);
                    continue;
                }
                Ok(_) => {}
                Err(violation) => {
                    self.violated(&mut inner, &violation);
                    return false;
                }
            }
            if !inner.machine.has_room_ahead() || !inner.source.is_ready() {
                return false;
            }
            inner.told = None;
            let Inner { machine, source, .. } = &mut *inner;
            // What is there may be less than a read needs, such as half a record of TLS.
            let read = source.set_timeout(Some(Duration::from_millis(1))).and_then(|()| source.read(machine.space()));
            match read {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return false;
                }
                Ok(0) | Err(_) => return true,
                Ok(count) => machine.filled(count),
            }
        }
        false
    }

    /// Tells the client that a call which it cancelled has not ended in time.
    pub fn say_late(&self) {
        let grace = self.overdue().unwrap_or_default().as_secs_f64();
        let message = format!(
            "the call was cancelled and did not end within {grace} s, so the session ended with it: what computes without the virtual \
             machine cannot be stopped"
        );
        self.last_words(&Failure::new(CANCELLED, message));
    }

    /// The grace of a request that was cancelled and should have ended by now.
    pub fn overdue(&self) -> Option<Duration> {
        self.running.overdue()
    }
}
