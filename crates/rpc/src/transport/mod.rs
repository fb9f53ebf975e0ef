//! Streams of bytes between two ends: what a conversation runs over.
//!
//! A [`Link`] is a pair of halves that block, one to read and one to write, and a way to end both from any thread. Each transport is
//! a file that makes links.

pub mod memory;
pub mod pipe;
pub mod prompt;
pub mod pump;
pub mod socket;
#[cfg(feature = "websocket")]
pub mod websocket;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The half that reads.
pub trait Source: Send {
    /// Reads what is there, at least a byte; 0 at the end of the stream.
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize>;

    /// How long a read waits before it fails with `WouldBlock` or `TimedOut`; nothing: for ever.
    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// True if a read would not wait. False where that cannot be told: then nothing is read before its time.
    fn is_ready(&mut self) -> bool {
        false
    }
}

/// The half that writes.
pub trait Sink: Send {
    /// Writes both, as one where that can be.
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()>;
}

/// Ends both halves, from any thread.
pub trait Closer: Send + Sync {
    /// Has reads and writes of both ends fail or end.
    fn close(&self);
}

/// A stream in both directions.
pub struct Link {
    /// Reads.
    pub source: Box<dyn Source>,
    /// Writes.
    pub sink: Box<dyn Sink>,
    /// Ends both.
    pub closer: Arc<dyn Closer>,
    /// The other end, for messages.
    pub peer: String,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.peer)
    }
}

/// True if a read of a descriptor would not wait.
pub(crate) fn is_ready(descriptor: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// Writes all of two slices with as few calls as the system lets.
pub(crate) fn write_both(writer: &mut impl io::Write, head: &[u8], payload: &[u8]) -> io::Result<()> {
    if payload.is_empty() {
        return writer.write_all(head);
    }
    let mut written = 0;
    while written < head.len() {
        let parts = [io::IoSlice::new(&head[written..]), io::IoSlice::new(payload)];
        match writer.write_vectored(&parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    writer.write_all(&payload[written - head.len()..])
}

/// Fills a place, whatever pieces come.
pub(crate) fn read_exact(source: &mut dyn Source, place: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < place.len() {
        match source.read(&mut place[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}

/// Fills a place by a time, however slowly its pieces come.
pub(crate) fn read_by(source: &mut dyn Source, place: &mut [u8], deadline: Option<Instant>) -> io::Result<()> {
    let mut filled = 0;
    while filled < place.len() {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        source.set_timeout(left)?;
        match source.read(&mut place[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}
