//! [`Peer`]: one end of a conversation over a transport.
//!
//! A thread that asks holds the conversation until its reply is there; while it serves what the other end asks meanwhile, others may
//! ask too, one deeper. So the stack of [`Machine`] holds with any number of threads.
//!
//! A reply is waited for in short turns. Between them a client asks whether the user wants to interrupt; if so, or if its [`Call`](super::call::Call) was
//! cancelled, the far side is asked to end the request, whose reply is waited for all the same.
//!
//! What is dropped here and kept there ([`Peer::discard`]) is given back without waiting: the request goes out with the next chance,
//! and its reply is read before that of the next request that somebody waits for.

mod serving;
mod waiting;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use relaxide_ffi::signal::CANCELLED;
use relaxide_ffi::{Error, ErrorKind};

use super::call::Calls;
use super::host::Host;
use super::machine::{Event, Machine, Role};
use super::running::Running;
use crate::transport::{Closer, Link, Sink, Source};
use crate::wire::{Cancel, Copy, Dialect, Failure, Limits, Reply, Request, Ticket};

/// Replies that nobody waits for yet, beyond which they are read first: what is not read fills the stream.
const UNREAD: usize = 256;

/// The kind of an error from a far side that says no kind itself.
pub const RPC_ERROR: &str = "RPCError";
/// The kind of an error of a session that took too long.
pub const TIMEOUT_ERROR: &str = "RPCSessionTimeoutError";

/// What becomes of the reply to a request that was sent ahead.
#[derive(Clone, Default)]
pub struct Pending(Arc<OnceLock<Result<(), Error>>>);

impl Pending {
    /// What it came to, if that is known.
    pub fn outcome(&self) -> Option<Result<(), Error>> {
        self.0.get().cloned()
    }
}

struct Inner {
    role: Role,
    machine: Machine,
    source: Box<dyn Source>,
    /// Replies to come before that of the next request: nobody looks at them, or whoever has the [`Pending`].
    ahead: VecDeque<Option<Pending>>,
    /// Why the conversation is over.
    ended: Option<Error>,
    timeout: Option<Duration>,
    /// What the source was told of it last.
    told: Option<Option<Duration>>,
    /// The user's interrupt, and when the far side must have answered.
    interrupt: Option<(Error, Instant)>,
}

/// One end of a conversation.
pub struct Peer {
    inner: Mutex<Inner>,
    sink: Mutex<Box<dyn Sink>>,
    closer: Arc<dyn Closer>,
    /// Requests of the other end that are being served.
    running: Running,
    /// What is asked of the other end and can be cancelled.
    calls: Calls,
    /// Somebody's turn may have come.
    turn_came: Condvar,
    discarded: Mutex<Vec<Request>>,
    /// Whatever is behind the far side may know TVM's form only.
    is_own: AtomicBool,
    host: OnceLock<Arc<Host>>,
    /// The slot of the session among the process's.
    pub(crate) slot: OnceLock<usize>,
    /// The most bytes of a packet that the other end takes, once it has said so.
    packet_limit: OnceLock<u64>,
    /// Why this side ended it while somebody waited for a reply.
    closed: OnceLock<Error>,
    /// The other end, for messages.
    name: String,
}

fn poisoned<T>(lock: PoisonError<T>) -> T {
    lock.into_inner()
}

impl Peer {
    /// An end over a link. `host` serves what the other end asks.
    pub fn new(link: Link, role: Role, dialect: Dialect, limits: Limits, host: Arc<Host>) -> Arc<Peer> {
        let machine = Machine::new(role, dialect, limits);
        let inner = Inner {
            role,
            machine,
            source: link.source,
            ahead: VecDeque::new(),
            ended: None,
            timeout: None,
            told: None,
            interrupt: None,
        };
        let peer = Peer {
            inner: Mutex::new(inner),
            sink: Mutex::new(link.sink),
            closer: link.closer,
            running: Running::default(),
            calls: Calls::default(),
            turn_came: Condvar::new(),
            discarded: Mutex::default(),
            is_own: AtomicBool::new(dialect == Dialect::Own),
            host: OnceLock::from(host),
            slot: OnceLock::new(),
            packet_limit: OnceLock::new(),
            closed: OnceLock::new(),
            name: link.peer,
        };
        Arc::new(peer)
    }

    /// The other end, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The form of the packets.
    pub fn dialect(&self) -> Dialect {
        if self.is_own.load(Ordering::Relaxed) { Dialect::Own } else { Dialect::Tvm }
    }

    /// What serves the other end's requests.
    pub fn host(&self) -> &Arc<Host> {
        self.host.get_or_init(Host::nothing)
    }

    /// The most bytes of a packet that the other end takes, if that is known.
    pub(crate) fn packet_limit(&self) -> Option<u64> {
        match self.dialect() {
            Dialect::Own => Some(u64::MAX),
            Dialect::Tvm => self.packet_limit.get().copied(),
        }
    }

    pub(crate) fn set_packet_limit(&self, bytes: u64) -> u64 {
        *self.packet_limit.get_or_init(|| bytes)
    }

    /// How long a reply may take; nothing: for ever. Bytes of it that come begin the time anew.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.lock().timeout = timeout;
    }

    /// Changes the form of packets, between two requests.
    pub(crate) fn set_dialect(&self, dialect: Dialect) {
        self.lock().machine.set_dialect(dialect);
        self.is_own.store(dialect == Dialect::Own, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(poisoned)
    }

    /// Asks, and waits for the reply.
    pub fn ask(self: &Arc<Self>, request: &Request) -> Result<Vec<crate::wire::Value>, Error> {
        let payload: &[u8] = if let Request::CopyTo(_, payload) = request { payload } else { &[] };
        self.exchange(request, payload, &mut [])
    }

    /// Asks for a copy to the other end, of bytes that lie here.
    pub fn copy_to(self: &Arc<Self>, copy: Copy, bytes: &[u8]) -> Result<(), Error> {
        self.exchange(&Request::CopyTo(copy, Vec::new()), bytes, &mut []).map(drop)
    }

    /// Asks for a copy from the other end, into its place.
    pub fn copy_from(self: &Arc<Self>, copy: Copy, place: &mut [u8]) -> Result<(), Error> {
        self.exchange(&Request::CopyFrom(copy), &[], place).map(drop)
    }

    /// Asks without waiting. The reply is read before that of the next request that somebody waits for, or by [`settle`](Self::settle).
    pub fn ask_ahead(self: &Arc<Self>, request: &Request, payload: &[u8]) -> Result<Pending, Error> {
        let mut inner = self.alive()?;
        if inner.ahead.len() >= UNREAD {
            self.settle_locked(&mut inner)?;
        }
        let pending = Pending::default();
        self.send(&mut inner, request, payload)?;
        inner.ahead.push_back(Some(pending.clone()));
        Ok(pending)
    }

    /// Reads all replies that are still to come.
    pub fn settle(self: &Arc<Self>) -> Result<(), Error> {
        let mut inner = self.alive()?;
        self.flush(&mut inner)?;
        self.settle_locked(&mut inner)
    }

    /// Has a request sent whose reply nobody needs: giving something back.
    pub fn discard(self: &Arc<Self>, request: Request) {
        self.discarded.lock().unwrap_or_else(poisoned).push(request);
        // Whoever has the conversation sends it.
        if let Ok(mut inner) = self.inner.try_lock()
            && inner.ended.is_none()
            && inner.machine.depth() == 0
        {
            // An error is for the next who asks: it ends the conversation.
            let _ = self.flush(&mut inner);
        }
    }

    fn alive(&self) -> Result<MutexGuard<'_, Inner>, Error> {
        let inner = self.lock();
        match &inner.ended {
            Some(error) => Err(error.clone()),
            None => Ok(inner),
        }
    }

    fn exchange(
        self: &Arc<Self>,
        request: &Request,
        payload: &[u8],
        place: &mut [u8],
    ) -> Result<Vec<crate::wire::Value>, Error> {
        let mut call = self.calls.enter(self);
        let mut inner = self.alive()?;
        call.check(&self.name)?;
        self.flush(&mut inner)?;
        self.send(&mut inner, request, payload)?;
        if let Some(ticket) = inner.machine.last_asked() {
            call.asked(self, ticket);
        }
        let replied = self.reply(inner, place);
        drop(call);
        let (mut inner, reply) = replied?;
        let interrupt = inner.interrupt.take();
        drop(inner);
        if let Some((interrupt, _)) = interrupt {
            return Err(interrupt);
        }
        match reply {
            Reply::Return(values) => Ok(values),
            Reply::CopyAck(_) => Ok(Vec::new()),
            Reply::Exception(failure) => Err(self.error(&failure)),
        }
    }

    /// Sends what is to be given back.
    fn flush(self: &Arc<Self>, inner: &mut MutexGuard<'_, Inner>) -> Result<(), Error> {
        let requests = std::mem::take(&mut *self.discarded.lock().unwrap_or_else(poisoned));
        for request in requests {
            if inner.ahead.len() >= UNREAD {
                self.settle_locked(inner)?;
            }
            self.send(inner, &request, &[])?;
            inner.ahead.push_back(None);
        }
        Ok(())
    }

    /// Reads the replies of what was sent ahead. What the other end asks meanwhile is an error: nothing that is sent ahead calls back.
    fn settle_locked(self: &Arc<Self>, inner: &mut MutexGuard<'_, Inner>) -> Result<(), Error> {
        while !inner.ahead.is_empty() {
            let event = self.event(inner)?;
            let Event::Reply(reply) = event else {
                return Err(self.end(inner, unexpected(&event)));
            };
            self.settled(inner, reply);
        }
        Ok(())
    }

    fn settled(&self, inner: &mut Inner, reply: Reply) {
        let Some(Some(pending)) = inner.ahead.pop_front() else { return };
        let outcome = match reply {
            Reply::Exception(failure) => Err(self.error(&failure)),
            _ => Ok(()),
        };
        let _ = pending.0.set(outcome);
    }

    fn send(&self, inner: &mut MutexGuard<'_, Inner>, request: &Request, payload: &[u8]) -> Result<(), Error> {
        let packet = inner.machine.ask(request)?;
        self.write(inner, &packet, payload)
    }

    fn write(&self, inner: &mut MutexGuard<'_, Inner>, packet: &[u8], payload: &[u8]) -> Result<(), Error> {
        let written = self.sink.lock().unwrap_or_else(poisoned).write(packet, payload);
        written.map_err(|error| {
            // Its last words may say why.
            let parting = self.parting(inner);
            let error = parting.unwrap_or_else(|| self.lost(&error));
            self.end(inner, error)
        })
    }

    /// What the other end said before it closed.
    fn parting(&self, inner: &mut Inner) -> Option<Error> {
        inner.told = None;
        inner.source.set_timeout(Some(Duration::from_millis(200))).ok()?;
        loop {
            match inner.machine.next_event().ok()? {
                Some(Event::Parting(failure) | Event::Reply(Reply::Exception(failure))) => {
                    return Some(self.error(&failure));
                }
                Some(_) => return None,
                None => match inner.source.read(inner.machine.space()).ok()? {
                    0 => return None,
                    count => inner.machine.filled(count),
                },
            }
        }
    }

    /// Asks the far side to end a request, within a time. Any thread may, for its reply is waited for as ever.
    pub(super) fn send_cancel(&self, ticket: Ticket, grace: Duration) -> Result<(), Error> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let packet = Cancel { ticket, grace_ms }.packet();
        // Whoever writes much may hang with the far side, and is not waited for longer than that.
        let deadline = Instant::now().checked_add(grace);
        loop {
            if let Ok(mut sink) = self.sink.try_lock() {
                return sink.write(&packet, &[]).map_err(|error| self.lost(&error));
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(broken(&self.name, "what was being sent could not be sent in time"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks the far side to end what was asked of it and has no reply, and what waits here to be asked. All of it fails soon, or has its
    /// result nevertheless; what does not end within the grace takes the session with it.
    pub fn cancel(self: &Arc<Self>, grace: Duration) -> Result<(), Error> {
        self.can_cancel()?;
        self.calls.all().iter().try_for_each(|call| call.cancel(grace))
    }

    /// An error where the protocol cannot cancel a call.
    pub(super) fn can_cancel(&self) -> Result<(), Error> {
        match self.dialect() {
            Dialect::Own => Ok(()),
            Dialect::Tvm => Err(Error::new(
                ErrorKind::NotImplementedError,
                format!(
                    "TVM's protocol, which {} speaks, cannot cancel a call; closing the session ends it with its calls",
                    self.name
                ),
            )),
        }
    }

    /// Waits for the reply, serving meanwhile.
    fn reply<'a>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Inner>,
        place: &mut [u8],
    ) -> Result<(MutexGuard<'a, Inner>, Reply), Error> {
        loop {
            match self.event(&mut inner)? {
                Event::Reply(reply) if !inner.ahead.is_empty() => self.settled(&mut inner, reply),
                Event::Reply(Reply::CopyAck(bytes)) => {
                    if bytes != place.len() as u64 {
                        let message = format!("{} bytes were asked for and {bytes} came", place.len());
                        return Err(self.end(&mut inner, broken(&self.name, &message)));
                    }
                    self.read_payload(&mut inner, place)?;
                    self.turn_came.notify_all();
                    return Ok((inner, Reply::CopyAck(bytes)));
                }
                Event::Reply(reply) => {
                    self.turn_came.notify_all();
                    return Ok((inner, reply));
                }
                Event::Parting(failure) => {
                    let error = self.error(&failure);
                    return Err(self.end(&mut inner, error));
                }
                Event::Shutdown => {
                    let error = broken(&self.name, "it ended the session (code=kShutdown)");
                    return Err(self.end(&mut inner, error));
                }
                event => inner = self.serve_event(inner, event)?,
            }
        }
    }

    /// Ends the conversation, and says why to all who ask from now on.
    fn end(&self, inner: &mut Inner, error: Error) -> Error {
        let error = self.closed.get().cloned().unwrap_or(error);
        if inner.ended.is_none() {
            inner.ended = Some(error.clone());
            for pending in std::mem::take(&mut inner.ahead).into_iter().flatten() {
                let _ = pending.0.set(Err(error.clone()));
            }
            self.closer.close();
            self.turn_came.notify_all();
        }
        error
    }

    /// Ends the conversation from this side, with a word to the other. Calls that run fail, and the far side ends what it was doing for
    /// them.
    pub fn close(&self) {
        if self.calls.any() {
            let message = format!("the session with {} was closed while the call ran", self.name);
            let _ = self.closed.set(Error::new(CANCELLED, message));
        }
        let packet = crate::wire::Writer::packet(crate::wire::Code::Shutdown, 0).finish(0);
        if let Ok(mut sink) = self.sink.try_lock() {
            // Who has gone already needs no word.
            let _ = sink.write(&packet, &[]);
        }
        self.closer.close();
        // Whoever waits for a reply finds the end of the stream; it cannot be waited for here.
        if let Ok(mut inner) = self.inner.try_lock() {
            let message = format!(
                "Expected connection to server {} to be active, but the connection was previously closed",
                self.name
            );
            self.end(&mut inner, Error::new(ErrorKind::InternalError, message));
        }
    }

    /// Gives the session up: a call was cancelled and did not end.
    pub(super) fn give_up(&self) {
        let _ = self.closed.set(late(&self.name));
        self.close();
    }

    /// Sends an error that answers nothing, between two packets, and ends the conversation.
    pub fn last_words(&self, failure: &Failure) {
        let packet = Reply::Exception(failure.clone()).packet(0, self.dialect());
        let mut sink = self.sink.lock().unwrap_or_else(poisoned);
        let _ = sink.write(&packet, &[]);
    }

    /// Says only that this end is there, unless it is writing anyhow.
    pub fn say_alive(&self) {
        if let Ok(mut sink) = self.sink.try_lock() {
            let _ = sink.write(&[0; 8], &[]);
        }
    }

    /// True while a request of the other end is being served.
    pub fn is_serving(&self) -> bool {
        self.running.any()
    }

    fn lost(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let message = format!("{} did not answer in time; its session is given up", self.name);
                Error::new("TimeoutError", message)
            }
            _ => broken(&self.name, &format!("the connection is lost: {error}")),
        }
    }

    /// The error that a failure of the other end is here.
    pub fn error(&self, failure: &Failure) -> Error {
        if failure.message.starts_with(TIMEOUT_ERROR) {
            return Error::new(TIMEOUT_ERROR, failure.message.clone());
        }
        match &failure.kind {
            Some(kind) => {
                let trace = failure.trace.as_deref().unwrap_or_default();
                let trace = format!("{trace}  File \"{}\", line 0, in remote call\n", self.name);
                Error::with_backtrace(kind, failure.message.clone(), &trace, None, None)
            }
            None => Error::new(RPC_ERROR, format!("{RPC_ERROR}: Error caught from RPC call:\n{}", failure.message)),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.close();
    }
}

/// The kind of error of a stream that ended where it may.
const END_OF_STREAM: &str = "EndOfStream";

fn broken(name: &str, what: &str) -> Error {
    Error::new(RPC_ERROR, format!("the session with {name} is over: {what}"))
}

/// A call that was cancelled did not end.
fn late(name: &str) -> Error {
    let message = format!("the call was cancelled, and {name} did not end it in time: the session ended with it");
    Error::new(CANCELLED, message)
}

fn unexpected(event: &Event) -> Error {
    let what = match event {
        Event::Request(request) => format!("a request ({})", request.code().name()),
        Event::CopyTo(_) => "a copy".to_owned(),
        Event::Withdrawn | Event::Cancel(_) => "a request that was cancelled".to_owned(),
        Event::Reply(_) => "a reply that nobody waits for".to_owned(),
        Event::Parting(failure) => return Error::new(RPC_ERROR, failure.message.clone()),
        Event::Shutdown => "the end of the session".to_owned(),
    };
    Error::new(RPC_ERROR, format!("the session is over: {what} came, and has no place there"))
}

/// What an error says to the other end.
pub fn failure(error: &Error) -> Failure {
    let trace = error.backtrace();
    Failure {
        message: error.message().to_owned(),
        kind: Some(error.kind().to_owned()),
        trace: (!trace.is_empty()).then_some(trace),
    }
}
