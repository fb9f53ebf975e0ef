//! TLS in two halves: one thread reads, another writes.
//!
//! The connection's state is behind a lock that is held only to encrypt or decrypt what is there, never while the socket is waited for.
//! Writers take a second lock first, so that records leave in the order in which they were made.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use rustls::Connection;

use crate::transport::prompt::PromptReader;
use crate::transport::socket::Stream;
use crate::transport::{Closer, Link, Sink, Source};

/// What is encrypted at a time.
pub(super) const CHUNK: usize = 64 << 10;
/// What is read at a time.
const RAW: usize = 64 << 10;

struct StreamShared {
    state: Mutex<Connection>,
    out: Mutex<Stream>,
}

fn poisoned<T>(lock: PoisonError<T>) -> T {
    lock.into_inner()
}

struct Reading {
    shared: Arc<StreamShared>,
    socket: PromptReader,
    raw: Vec<u8>,
    begin: usize,
    end: usize,
}

struct Writing(Arc<StreamShared>);

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Source for Reading {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        if place.is_empty() {
            return Ok(0);
        }
        loop {
            {
                let mut state = self.shared.state.lock().unwrap_or_else(poisoned);
                loop {
                    match state.reader().read(place) {
                        Ok(count) => return Ok(count),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        // The end without a word of it: as good as any other, for packets say themselves where they end.
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                        Err(error) => return Err(error),
                    }
                    if self.begin == self.end {
                        break;
                    }
                    self.begin += state.read_tls(&mut &self.raw[self.begin..self.end])?;
                    state.process_new_packets().map_err(broken)?;
                }
                // An answer to a change of keys; if somebody is writing, it goes out with that.
                if state.wants_write()
                    && let Ok(mut out) = self.shared.out.try_lock()
                {
                    let mut records = Vec::new();
                    while state.wants_write() {
                        state.write_tls(&mut records)?;
                    }
                    drop(state);
                    out.write_all(&records)?;
                }
            }
            let count = self.socket.read(&mut self.raw)?;
            (self.begin, self.end) = (0, count);
            if count == 0 {
                return Ok(0);
            }
        }
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_timeout(timeout)
    }

    fn is_ready(&mut self) -> bool {
        // What was decrypted and not taken cannot be seen without taking it; a read takes all of it first.
        self.begin < self.end || self.socket.is_ready()
    }
}

/// What is encrypted together of a packet: a small one leaves as one record, for which it is `joined`.
pub(super) fn chunks<'a>(head: &'a [u8], payload: &'a [u8], joined: &'a mut Vec<u8>) -> impl Iterator<Item = &'a [u8]> {
    let parts: [&[u8]; 2] = if head.len() + payload.len() <= CHUNK {
        joined.extend_from_slice(head);
        joined.extend_from_slice(payload);
        [joined, &[]]
    } else {
        [head, payload]
    };
    parts.into_iter().flat_map(|part| part.chunks(CHUNK))
}

impl Sink for Writing {
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut out = self.0.out.lock().unwrap_or_else(poisoned);
        let mut records = Vec::with_capacity(CHUNK + 4096);
        for chunk in chunks(head, payload, &mut Vec::new()) {
            records.clear();
            {
                let mut state = self.0.state.lock().unwrap_or_else(poisoned);
                state.writer().write_all(chunk)?;
                while state.wants_write() {
                    state.write_tls(&mut records)?;
                }
            }
            out.write_all(&records)?;
        }
        Ok(())
    }
}

impl Closer for StreamShared {
    fn close(&self) {
        // A word of the end, if nobody is writing; then the end.
        if let Ok(mut out) = self.out.try_lock() {
            let mut records = Vec::new();
            {
                let mut state = self.state.lock().unwrap_or_else(poisoned);
                state.send_close_notify();
                while state.wants_write() && state.write_tls(&mut records).is_ok() {}
            }
            let _ = out.set_write_timeout(Some(Duration::from_secs(1)));
            let _ = out.write_all(&records);
            out.shutdown();
        }
    }
}

struct Hard(Arc<StreamShared>, Stream);

impl Closer for Hard {
    fn close(&self) {
        self.0.close();
        self.1.shutdown();
    }
}

/// Shakes hands within a time.
pub fn shake_hands(state: &mut Connection, stream: &mut Stream, deadline: Instant) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(ErrorKind::OSError, format!("the TLS handshake failed: {error}"));
    while state.is_handshaking() || state.wants_write() {
        while state.wants_write() {
            state.write_tls(stream).map_err(failed)?;
        }
        if !state.is_handshaking() {
            break;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new("TimeoutError", "the TLS handshake took too long"));
        }
        stream.set_read_timeout(Some(left))?;
        if state.read_tls(stream).map_err(failed)? == 0 {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        if let Err(error) = state.process_new_packets() {
            // The other end is told why.
            while state.wants_write() && state.write_tls(stream).is_ok() {}
            return Err(failed(broken(error)));
        }
    }
    stream.set_read_timeout(None)?;
    Ok(())
}

/// A link within TLS, whose hands are shaken.
pub fn link(mut state: Connection, stream: &Stream) -> Result<Link, Error> {
    state.set_buffer_limit(None);
    let shared = Arc::new(StreamShared { state: Mutex::new(state), out: Mutex::new(stream.try_clone()?) });
    Ok(Link {
        source: Box::new(Reading {
            shared: Arc::clone(&shared),
            socket: PromptReader::new(stream.try_clone()?),
            raw: vec![0; RAW],
            begin: 0,
            end: 0,
        }),
        sink: Box::new(Writing(Arc::clone(&shared))),
        closer: Arc::new(Hard(shared, stream.try_clone()?)),
        peer: stream.peer(),
    })
}
