//! [`Machine`]: one end of a conversation, without input or output.
//!
//! Bytes go in ([`Machine::space`], [`Machine::filled`]), events come out ([`Machine::next_event`]); what is to be sent is made by
//! [`Machine::ask`] and [`Machine::answer`]. Both ends are the same machine.
//!
//! A conversation is a stack. At the bottom the client asks; while the server serves that it may ask back, one deeper, and so on.
//! Whoever asked may ask more behind it without waiting; these are served in order, each after the one before. So a packet belongs
//! to whom its depth says, and no request needs a number:
//!
//! ```text
//! client  ask(0) ──► serve(0) ask(1) ──► serve(1) answer(1) ──► answer(0)  server
//! open    [Asked]    [Serving, Asked]    …
//! ```
//!
//! Anything that does not fit the stack is a [`Violation`], after which the conversation is over.
//!
//! In our own form the client may cancel what it has asked ([`Cancel`]). That changes nothing about the stack: a request that is
//! cancelled is answered like any other, once and in order. One that waits is given out as [`Event::Withdrawn`] when its turn comes; of
//! one that is being served the server hears ([`Event::Cancel`]), if it looks at what stands behind it ([`Machine::look_ahead`]), and
//! ends it as it can; one that has its answer already is left alone. A request is named by its depth and by how many were asked there
//! before it, which both ends count.

use std::collections::VecDeque;
use std::fmt;

use relaxide_ffi::{Error, ErrorKind};

use crate::wire::{
    Cancel, Code, Copy, Dialect, Failure, Framer, Head, Limits, Malformed, Piece, Reply, Request, Ticket,
};

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asks first.
    Client,
    /// It serves first.
    Server,
}

/// What one end has open with the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// It has asked, and so many replies are to come.
    Asked(usize),
    /// It serves a request.
    Serving,
}

/// What has come.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A request, to be answered.
    Request(Request),
    /// A copy here, to be answered; its payload is to be taken first.
    CopyTo(Copy),
    /// A request that was cancelled before its turn came, to be answered: nobody wants what it would do.
    Withdrawn,
    /// A request that is being served is to end soon; it is to be answered nevertheless.
    Cancel(Cancel),
    /// A reply to the oldest request without one.
    Reply(Reply),
    /// An error that answers nothing: the far side's last words.
    Parting(Failure),
    /// The far side ends the conversation.
    Shutdown,
}

/// The other end broke the rules, or this one was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

impl From<Malformed> for Violation {
    fn from(error: Malformed) -> Violation {
        Violation(format!("the packet is malformed: {error}"))
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Error {
        Error::new(ErrorKind::RuntimeError, violation.0)
    }
}

/// One end of a conversation.
pub struct Machine {
    role: Role,
    dialect: Dialect,
    limits: Limits,
    framer: Framer,
    open: Vec<Open>,
    /// Requests behind the one that is being served at that depth.
    waiting: VecDeque<DeferredRequest>,
    /// How many requests this end has sent, by depth.
    asked: Vec<u64>,
    /// How many requests have come, by depth.
    came: Vec<u64>,
}

/// A request whose turn comes later.
struct DeferredRequest {
    depth: u16,
    /// Nothing if it was cancelled.
    request: Option<Request>,
    /// How long its packet was.
    bytes: usize,
}

/// Counts one more at a depth, and says how many there were.
fn count(counts: &mut Vec<u64>, depth: u16) -> u64 {
    let depth = usize::from(depth);
    if counts.len() <= depth {
        counts.resize(depth + 1, 0);
    }
    counts[depth] += 1;
    counts[depth] - 1
}

impl Machine {
    /// An end at the beginning of a conversation.
    pub fn new(role: Role, dialect: Dialect, limits: Limits) -> Machine {
        let framer = Framer::new(dialect, limits);
        Machine {
            role,
            dialect,
            limits,
            framer,
            open: Vec::new(),
            waiting: VecDeque::new(),
            asked: Vec::new(),
            came: Vec::new(),
        }
    }

    /// The form of the packets.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Changes the form of the packets: what is behind the far side may know less than the far side.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.framer.set_dialect(dialect);
    }

    /// How many things are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// True if a reply is to come next for what this end asked.
    pub fn is_waiting(&self) -> bool {
        matches!(self.open.last(), Some(Open::Asked(_)))
    }

    /// True if the stream may end here.
    pub fn may_end(&self) -> bool {
        self.open.is_empty() && self.framer.is_at_boundary()
    }

    /// A place for bytes from the stream.
    pub fn space(&mut self) -> &mut [u8] {
        self.framer.space()
    }

    /// Says how many came.
    pub fn filled(&mut self, count: usize) {
        self.framer.filled(count);
    }

    /// The bytes of payload that are to be taken before the next event.
    pub fn payload_left(&self) -> u64 {
        self.framer.payload_left()
    }

    /// Takes payload that has come.
    pub fn take_payload(&mut self, place: &mut [u8]) -> usize {
        self.framer.take_payload(place)
    }

    /// Says that payload was read past the machine.
    pub fn payload_read(&mut self, count: usize) {
        self.framer.payload_read(count);
    }

    /// The packet of a request; a copy's payload is to follow it. Behind a request that is without its reply, this one waits.
    pub fn ask(&mut self, request: &Request) -> Result<Vec<u8>, Violation> {
        if self.dialect == Dialect::Tvm && (self.role == Role::Server || self.open.len() > 1) {
            return Err(Violation("TVM's protocol has no calls from the server to its client".into()));
        }
        let asked = match self.open.last_mut() {
            Some(Open::Asked(replies)) => {
                *replies += 1;
                true
            }
            _ => false,
        };
        if !asked {
            if self.open.len() >= self.limits.call_depth {
                return Err(Violation(format!("calls stand {} deep in each other", self.limits.call_depth)));
            }
            self.open.push(Open::Asked(1));
        }
        let depth = self.open.len() as u16 - 1;
        count(&mut self.asked, depth);
        Ok(request.packet(depth))
    }

    /// The request that was asked last, by which it can be cancelled while its reply is to come.
    pub fn last_asked(&self) -> Option<Ticket> {
        let depth = self.open.len().checked_sub(1).filter(|_| self.is_waiting())?;
        Some(Ticket { depth: depth as u16, number: self.asked.get(depth)? - 1 })
    }

    /// The packet that cancels a request. Whether that has its answer already need not be known.
    pub fn cancel(&self, cancel: &Cancel) -> Result<Vec<u8>, Violation> {
        match (self.dialect, self.role) {
            (Dialect::Own, Role::Client) => Ok(cancel.packet()),
            (Dialect::Tvm, _) => Err(Violation("TVM's protocol cannot cancel a call".into())),
            (_, Role::Server) => Err(Violation("a server cannot cancel what it asks of its client".into())),
        }
    }

    /// The packet of the reply to the request that is being served; an acknowledged copy's payload is to follow it.
    pub fn answer(&mut self, reply: &Reply) -> Result<Vec<u8>, Violation> {
        if self.open.last() != Some(&Open::Serving) {
            return Err(Violation("there is no request to answer".into()));
        }
        self.open.pop();
        Ok(reply.packet(self.open.len() as u16, self.dialect))
    }

    /// What has come; nothing if more bytes must come first.
    pub fn next_event(&mut self) -> Result<Option<Event>, Violation> {
        // Those further down wait until what stands on them is done.
        let ready = self.waiting.iter().position(|waiting| usize::from(waiting.depth) == self.open.len());
        if let Some(waiting) = ready.and_then(|at| self.waiting.remove(at)) {
            self.open.push(Open::Serving);
            return Ok(Some(waiting.request.map_or(Event::Withdrawn, Event::Request)));
        }
        loop {
            let open = self.open.len();
            let waiting = self.waiting.iter().any(|waiting| usize::from(waiting.depth) == open);
            let Some(piece) = self.framer.next(|depth| usize::from(depth) == open && !waiting)? else {
                return Ok(None);
            };
            let event = match piece {
                Piece::Packet(head, body) => self.packet(head, &body)?,
                Piece::CopyTo(head, copy) => {
                    self.admit(head)?;
                    count(&mut self.came, head.depth);
                    self.open.push(Open::Serving);
                    Some(Event::CopyTo(copy))
                }
                Piece::CopyAck(head, bytes) => {
                    self.replied(head)?;
                    Some(Event::Reply(Reply::CopyAck(bytes)))
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// True if [`look_ahead`](Self::look_ahead) may find something once more bytes are there.
    pub fn has_room_ahead(&self) -> bool {
        self.dialect == Dialect::Own
            && self.role == Role::Server
            && self.open.last() == Some(&Open::Serving)
            && self.framer.payload_left() == 0
            && self.framer.buffered() + self.waiting_bytes() < self.limits.ahead
            && self.waiting.len() < self.limits.waiting
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.bytes).sum()
    }

    /// What stands behind the request that is being served: those that are to wait are put by, and what cancels one is given out or done.
    /// Everything else stays until its turn comes, and so does what would take too much room.
    pub fn look_ahead(&mut self) -> Result<Option<Event>, Violation> {
        while self.has_room_ahead() {
            let Some((head, length)) = self.framer.peek() else { return Ok(None) };
            let fits = length <= (self.limits.ahead - self.waiting_bytes()) as u64;
            if head.code == Code::Shutdown || head.code.is_reply() || !fits {
                return Ok(None);
            }
            let Some(Piece::Packet(head, body)) = self.framer.next(|_| false)? else { return Ok(None) };
            if let Some(event) = self.packet(head, &body)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn packet(&mut self, head: Head, body: &[u8]) -> Result<Option<Event>, Violation> {
        if head.code == Code::Shutdown {
            return Ok(Some(Event::Shutdown));
        }
        if head.code == Code::Cancel {
            return self.cancelled(Cancel::read(head.depth, body, &self.limits)?);
        }
        if head.code.is_reply() {
            let reply = Reply::read(head.code, body, self.dialect, &self.limits)?;
            return match reply {
                Reply::Exception(failure) if !self.is_waiting() && head.depth == 0 && self.role == Role::Client => {
                    Ok(Some(Event::Parting(failure)))
                }
                reply => self.replied(head).map(|()| Some(Event::Reply(reply))),
            };
        }
        let at_once = self.admit(head)?;
        let request = Request::read(head.code, body, self.dialect, &self.limits)?;
        count(&mut self.came, head.depth);
        if at_once {
            self.open.push(Open::Serving);
            return Ok(Some(Event::Request(request)));
        }
        if self.waiting.len() >= self.limits.waiting {
            return Err(Violation(format!("more than {} requests wait behind one", self.limits.waiting)));
        }
        self.waiting.push_back(DeferredRequest { depth: head.depth, request: Some(request), bytes: body.len() });
        Ok(None)
    }

    /// What becomes of a request that is cancelled.
    fn cancelled(&mut self, cancel: Cancel) -> Result<Option<Event>, Violation> {
        let Ticket { depth, number } = cancel.ticket;
        if self.role == Role::Client {
            return Err(Violation("a server cancels what it asked of its client".into()));
        }
        let came = self.came.get(usize::from(depth)).copied().unwrap_or(0);
        if number >= came {
            return Err(Violation(format!("the request {number} at depth {depth} is cancelled and has not come")));
        }
        let mut waiting: Vec<&mut DeferredRequest> =
            self.waiting.iter_mut().filter(|waiting| waiting.depth == depth).collect();
        // Below the count of all that came, so the difference fits.
        let begun = came - waiting.len() as u64;
        if let Some(waiting) = number.checked_sub(begun).and_then(|at| waiting.get_mut(at as usize)) {
            waiting.request = None;
            return Ok(None);
        }
        let is_served = number + 1 == begun && self.open.get(usize::from(depth)) == Some(&Open::Serving);
        Ok(is_served.then_some(Event::Cancel(cancel)))
    }

    /// Whether a request can be served now; if not, it waits. An error if it cannot be there at all.
    fn admit(&self, head: Head) -> Result<bool, Violation> {
        let depth = usize::from(head.depth);
        if self.role == Role::Client && self.dialect == Dialect::Tvm {
            let message = format!("the server sends {}, and in TVM's protocol a server only answers", head.code.name());
            return Err(Violation(message));
        }
        // The client's requests stand at even depths, the server's at odd ones.
        if (depth % 2 == 0) != (self.role == Role::Server) || depth >= self.limits.call_depth {
            return Err(Violation(format!("a request stands at depth {depth}, which is not its sender's")));
        }
        let idle = depth == self.open.len() && (depth == 0 || self.is_waiting());
        if idle {
            return Ok(!self.waiting.iter().any(|waiting| waiting.depth == head.depth));
        }
        let top = self.open.iter().rposition(|open| *open == Open::Serving);
        match top == Some(depth) {
            true => Ok(false),
            false => Err(Violation(format!("a request stands at depth {depth}, and {} are open", self.open.len()))),
        }
    }

    /// Counts a reply off.
    fn replied(&mut self, head: Head) -> Result<(), Violation> {
        let depth = usize::from(head.depth);
        let fits = depth + 1 == self.open.len();
        match self.open.last_mut() {
            Some(Open::Asked(replies)) if fits => {
                *replies -= 1;
                if *replies == 0 {
                    self.open.pop();
                }
                Ok(())
            }
            _ => Err(Violation(format!("a reply ({}) at depth {depth} answers no request", head.code.name()))),
        }
    }
}
