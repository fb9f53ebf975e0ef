//! Serving what the other end asks, while this end may be waiting for a reply of its own.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use relaxide_ffi::Error;
use relaxide_ffi::signal::{self, CANCELLED};

use super::super::host::Host;
use super::super::machine::Event;
use super::{END_OF_STREAM, Inner, Peer, broken, failure, poisoned, unexpected};
use crate::wire::{Copy, Dialect, Failure, Reply, Request};

/// How much of a refused copy is read at a time, to be thrown away.
const SCRAP: usize = 64 << 10;

impl Peer {
    /// Serves until the other end is done. An error says what ended it otherwise.
    pub fn serve(self: &Arc<Self>) -> Result<(), Error> {
        let mut inner = self.alive()?;
        loop {
            match self.event(&mut inner) {
                Ok(Event::Shutdown) => {
                    self.end(&mut inner, broken(&self.name, "it has ended the session"));
                    return Ok(());
                }
                Ok(event @ (Event::Request(_) | Event::CopyTo(_) | Event::Withdrawn)) => {
                    inner = self.serve_event(inner, event)?;
                }
                Ok(event) => return Err(self.end(&mut inner, unexpected(&event))),
                Err(error) if error.kind() == END_OF_STREAM => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn serve_event<'a>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Inner>,
        event: Event,
    ) -> Result<MutexGuard<'a, Inner>, Error> {
        let depth = inner.machine.depth();
        let host = Arc::clone(self.host());
        let mut payload = None;
        let reply = match event {
            Event::CopyTo(copy) => self.serve_copy_to(&mut inner, &host, &copy)?,
            Event::Withdrawn => Reply::Exception(Failure::new(CANCELLED, "the call was cancelled before it began")),
            Event::Request(Request::Call { .. }) if inner.interrupt.is_some() => {
                Reply::Exception(Failure::new(CANCELLED, "the call that this one is a part of was cancelled"))
            }
            Event::Request(Request::CopyFrom(copy)) => {
                drop(inner);
                let read = host.copy_from(self, &copy);
                inner = self.alive()?;
                match read {
                    Ok(bytes) => {
                        let reply = Reply::CopyAck(bytes.len() as u64);
                        payload = Some(bytes);
                        reply
                    }
                    Err(error) => Reply::Exception(failure(&error)),
                }
            }
            Event::Request(request) => {
                // Before anybody else can hear that it is cancelled.
                let at = depth as u16 - 1;
                let stop = self.running.begin(at);
                drop(inner);
                let answered = signal::stoppable(&stop, || host.serve(self, request));
                self.running.end(at);
                inner = self.alive()?;
                match answered {
                    Ok(values) => Reply::Return(values),
                    Err(error) if stop.load(Ordering::Relaxed) => Reply::Exception(stopped(&error)),
                    Err(error) => Reply::Exception(failure(&error)),
                }
            }
            event => return Err(self.end(&mut inner, unexpected(&event))),
        };
        while inner.machine.depth() != depth && inner.ended.is_none() {
            // The conversation is free, so what was asked and stands on this was sent ahead.
            if inner.machine.is_waiting() {
                self.settle_locked(&mut inner)?;
            } else {
                inner = self.turn_came.wait(inner).unwrap_or_else(poisoned);
            }
        }
        // What was given back meanwhile stands on this request until its replies are there.
        if self.dialect() == Dialect::Own && inner.ended.is_none() {
            self.flush(&mut inner)?;
            self.settle_locked(&mut inner)?;
        }
        if let Some(error) = &inner.ended {
            return Err(error.clone());
        }
        let packet = inner.machine.answer(&reply)?;
        let bytes = payload.as_ref().map(|payload| payload.as_slice()).unwrap_or_default();
        self.write(&mut inner, &packet, bytes)?;
        self.turn_came.notify_all();
        if let Some(dialect) = host.take_new_dialect() {
            inner.machine.set_dialect(dialect);
            self.is_own.store(dialect == Dialect::Own, Ordering::Relaxed);
        }
        Ok(inner)
    }

    fn serve_copy_to(
        self: &Arc<Self>,
        inner: &mut MutexGuard<'_, Inner>,
        host: &Host,
        copy: &Copy,
    ) -> Result<Reply, Error> {
        // The conversation's own failures come out of the closure as such.
        let mut fatal = None;
        let stored = host.copy_to(self, copy, &mut |place| {
            self.read_payload(inner, place).inspect_err(|error| {
                fatal = Some(error.clone());
            })
        });
        if let Some(error) = fatal {
            return Err(error);
        }
        let mut scrap = vec![0; SCRAP.min(usize::try_from(inner.machine.payload_left()).unwrap_or(SCRAP))];
        while inner.machine.payload_left() > 0 {
            let count = SCRAP.min(usize::try_from(inner.machine.payload_left()).unwrap_or(SCRAP));
            self.read_payload(inner, &mut scrap[..count])?;
        }
        Ok(match stored {
            Ok(()) => Reply::Return(vec![crate::wire::Value::None]),
            Err(error) => Reply::Exception(failure(&error)),
        })
    }
}

/// What the error of a request that was to stop says to the other end: that, whatever it made of it.
fn stopped(error: &Error) -> Failure {
    match error.kind() == CANCELLED {
        true => failure(error),
        false => Failure { kind: Some(CANCELLED.into()), ..failure(&error.context("the call was cancelled")) },
    }
}
