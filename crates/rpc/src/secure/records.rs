//! TLS in two halves, without the TLS library's buffers: what a session's packets go through.
//!
//! [`stream`](super::stream) lets the library keep what it has decrypted and encrypted, which costs a copy more a record and three times
//! the time to open one. Here records are sealed from the caller's bytes into one buffer and opened within the buffer that the
//! socket was read into. The key of an exporter is not to be had this way, so whoever has to prove a token greets over `stream`.
//!
//! The connection's state is behind a lock that is held only to seal or open what is there, never while the socket is waited for. Writers
//! take a second lock first, so that records leave in the order in which they were made.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use rustls::CommonState;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic};

use super::stream::{CHUNK, chunks};
use crate::transport::prompt::PromptReader;
use crate::transport::socket::Stream;
use crate::transport::{Closer, Link, Sink, Source};

/// What headers, codes and a change of keys add to that.
const ADDED: usize = 4 << 10;
/// What is read at a time, with what was left of a record: more than any message of a handshake, the longest thing that has to be whole.
const RAW: usize = 128 << 10;

/// One of the library's two kinds of connection.
pub trait Side: Deref<Target: Deref<Target = CommonState>> + Send + 'static {
    /// The library's mark of the kind.
    type Data;

    /// The next thing that there is to do, in view of what has come.
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

/// What came of a look at the bytes that are here.
enum RecordStep {
    /// So many bytes for whoever reads; others may have been put aside.
    Read(usize),
    /// There is something to be sent.
    Said,
    /// The other end has said that it ends.
    Closed,
    /// More bytes must come.
    Waits,
}

/// What has come from the socket.
struct Incoming {
    raw: Vec<u8>,
    /// What of it the library has not taken yet.
    begin: usize,
    end: usize,
    /// Opened, but more than whoever read had room for.
    aside: Vec<u8>,
    taken: usize,
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Incoming {
    fn new() -> Incoming {
        Incoming { raw: vec![0; RAW], begin: 0, end: 0, aside: Vec::new(), taken: 0 }
    }

    /// Has the library do one thing.
    fn step<S: Side>(&mut self, side: &mut S, out: &mut Vec<u8>, place: &mut [u8]) -> io::Result<RecordStep> {
        let UnbufferedStatus { mut discard, state, .. } = side.process(&mut self.raw[self.begin..self.end]);
        let step = match state {
            Err(error) => {
                self.begin += discard;
                return Err(broken(error));
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                let mut filled = 0;
                while let Some(record) = traffic.next_record() {
                    let record = record.map_err(broken)?;
                    let (fits, more) = record.payload.split_at(record.payload.len().min(place.len() - filled));
                    place[filled..filled + fits.len()].copy_from_slice(fits);
                    filled += fits.len();
                    self.aside.extend_from_slice(more);
                    discard += record.discard;
                }
                RecordStep::Read(filled)
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                encode(out, |place| data.encode(place))?;
                RecordStep::Said
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                RecordStep::Said
            }
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => RecordStep::Closed,
            Ok(ConnectionState::WriteTraffic(_) | ConnectionState::BlockedHandshake) => RecordStep::Waits,
            Ok(other) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?} was not asked for")));
            }
        };
        self.begin += discard;
        Ok(step)
    }

    /// What the library has not taken yet.
    fn left(&self) -> &[u8] {
        &self.raw[self.begin..self.end]
    }

    /// What was put aside before, as far as there is room.
    fn take_aside(&mut self, place: &mut [u8]) -> usize {
        let left = &self.aside[self.taken..];
        let count = left.len().min(place.len());
        place[..count].copy_from_slice(&left[..count]);
        self.taken += count;
        if self.taken == self.aside.len() {
            self.aside.clear();
            self.taken = 0;
        }
        count
    }

    /// Reads what has come to the socket; 0 at its end.
    fn read(&mut self, socket: &mut dyn Source) -> io::Result<usize> {
        self.raw.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == self.raw.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of TLS is too long"));
        }
        let count = socket.read(&mut self.raw[self.end..])?;
        self.end += count;
        Ok(count)
    }
}

/// Puts behind `out` what `encoder` writes, which says itself how much room it needs.
fn encode(out: &mut Vec<u8>, mut encoder: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) -> io::Result<()> {
    let begin = out.len();
    let mut room = 512;
    loop {
        out.resize(begin + room, 0);
        match encoder(&mut out[begin..]) {
            Ok(count) => {
                out.truncate(begin + count);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(error)) => room = error.required_size,
            Err(error) => return Err(broken(error)),
        }
    }
}

struct RecordsState<S> {
    side: S,
    /// The library's own words, to be sent before anything that is sealed from now on.
    words: Vec<u8>,
    /// What has come of an unfinished record: the library wants to see it whatever it is asked for.
    unfinished: Vec<u8>,
}

struct Out {
    stream: Stream,
    records: Vec<u8>,
}

struct RecordsShared<S> {
    state: Mutex<RecordsState<S>>,
    out: Mutex<Out>,
}

fn poisoned<T>(lock: PoisonError<T>) -> T {
    lock.into_inner()
}

impl<S: Side> RecordsShared<S> {
    fn lock(&self) -> MutexGuard<'_, RecordsState<S>> {
        self.state.lock().unwrap_or_else(poisoned)
    }
}

impl<S: Side> RecordsState<S> {
    /// Has something sealed into records, behind the library's own words. Gives how many bytes of the place that takes.
    fn seal(
        &mut self,
        records: &mut Vec<u8>,
        mut work: impl FnMut(&mut WriteTraffic<'_, S::Data>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> io::Result<usize> {
        loop {
            let RecordsState { side, words, unfinished } = &mut *self;
            match side.process(unfinished).state.map_err(broken)? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let begin = words.len();
                    if records.len() < begin {
                        records.resize(begin + CHUNK + ADDED, 0);
                    }
                    records[..begin].copy_from_slice(words);
                    match work(&mut traffic, &mut records[begin..]) {
                        Ok(count) => {
                            words.clear();
                            return Ok(begin + count);
                        }
                        Err(EncryptError::InsufficientSize(error)) => records.resize(begin + error.required_size, 0),
                        Err(error) => return Err(broken(error)),
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => encode(words, |place| data.encode(place))?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                // Told once; what is on its way is still sent.
                ConnectionState::PeerClosed => {}
                _ => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }
}

struct Reading<S> {
    shared: Arc<RecordsShared<S>>,
    socket: PromptReader,
    incoming: Incoming,
}

impl<S: Side> Reading<S> {
    /// Opens what has come, as far as there is room; nothing at the end of the conversation.
    fn open(&mut self, place: &mut [u8]) -> io::Result<Option<usize>> {
        let mut state = self.shared.lock();
        let RecordsState { side, words, unfinished } = &mut *state;
        let mut filled = 0;
        let end = loop {
            if self.incoming.begin == self.incoming.end || filled == place.len() {
                break None;
            }
            match self.incoming.step(side, words, &mut place[filled..]) {
                Ok(RecordStep::Read(count)) => filled += count,
                Ok(RecordStep::Said) => {}
                other => break Some(other),
            }
        };
        unfinished.clear();
        if end.is_some() {
            unfinished.extend_from_slice(self.incoming.left());
        }
        // If somebody is writing, it goes out with that.
        if !words.is_empty()
            && let Ok(mut out) = self.shared.out.try_lock()
        {
            let words = std::mem::take(words);
            drop(state);
            out.stream.write_all(&words)?;
        }
        match end.transpose()? {
            Some(RecordStep::Closed) if filled == 0 => Ok(None),
            _ => Ok(Some(filled)),
        }
    }
}

impl<S: Side> Source for Reading<S> {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        if place.is_empty() {
            return Ok(0);
        }
        loop {
            let aside = self.incoming.take_aside(place);
            if aside > 0 {
                return Ok(aside);
            }
            match self.open(place)? {
                None => return Ok(0),
                Some(0) => {}
                Some(count) => return Ok(count),
            }
            if self.incoming.read(&mut self.socket)? == 0 {
                return Ok(0);
            }
        }
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_timeout(timeout)
    }

    fn is_ready(&mut self) -> bool {
        // What is here of a record may be less than a read needs.
        !self.incoming.aside.is_empty() || self.incoming.begin < self.incoming.end || self.socket.is_ready()
    }
}

struct Writing<S>(Arc<RecordsShared<S>>);

impl<S: Side> Sink for Writing<S> {
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut out = self.0.out.lock().unwrap_or_else(poisoned);
        let Out { stream, records } = &mut *out;
        for chunk in chunks(head, payload, &mut Vec::new()) {
            let count = self.0.lock().seal(records, |traffic, place| traffic.encrypt(chunk, place))?;
            stream.write_all(&records[..count])?;
        }
        Ok(())
    }
}

struct Ending<S>(Arc<RecordsShared<S>>, Stream);

impl<S: Side> Closer for Ending<S> {
    fn close(&self) {
        // A word of the end, if nobody is writing; then the end.
        if let Ok(mut out) = self.0.out.try_lock() {
            let Out { stream, records } = &mut *out;
            let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
            if let Ok(count) = self.0.lock().seal(records, |traffic, place| traffic.queue_close_notify(place)) {
                let _ = stream.write_all(&records[..count]);
            }
        }
        self.1.shutdown();
    }
}

/// Shakes hands within a time, and makes the link.
pub fn link<S: Side>(mut side: S, mut stream: Stream, deadline: Instant) -> Result<Link, Error> {
    let incoming = shake_hands(&mut side, &mut stream, deadline)?;
    over(side, stream, incoming)
}

/// The link of a connection whose hands are shaken.
fn over<S: Side>(side: S, stream: Stream, incoming: Incoming) -> Result<Link, Error> {
    let peer = stream.peer();
    let socket = PromptReader::new(stream.try_clone()?);
    let closing = stream.try_clone()?;
    let shared = Arc::new(RecordsShared {
        state: Mutex::new(RecordsState { side, words: Vec::new(), unfinished: incoming.left().to_vec() }),
        out: Mutex::new(Out { stream, records: vec![0; CHUNK + ADDED] }),
    });
    Ok(Link {
        source: Box::new(Reading { shared: Arc::clone(&shared), socket, incoming }),
        sink: Box::new(Writing(Arc::clone(&shared))),
        closer: Arc::new(Ending(shared, closing)),
        peer,
    })
}

/// The handshake. Gives what came behind it.
fn shake_hands<S: Side>(side: &mut S, stream: &mut Stream, deadline: Instant) -> Result<Incoming, Error> {
    let failed = |error: io::Error| Error::new(ErrorKind::OSError, format!("the TLS handshake failed: {error}"));
    let (mut incoming, mut out) = (Incoming::new(), Vec::new());
    let mut socket = PromptReader::new(stream.try_clone()?);
    loop {
        let step = incoming.step(side, &mut out, &mut []);
        if step.is_err() {
            // The other end is told why.
            let _ = incoming.step(side, &mut out, &mut []);
        }
        let written = stream.write_all(&out);
        out.clear();
        let step = step.map_err(failed)?;
        written.map_err(failed)?;
        match step {
            RecordStep::Read(_) | RecordStep::Said => {}
            RecordStep::Closed => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            RecordStep::Waits if !side.is_handshaking() => break,
            RecordStep::Waits => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Error::new("TimeoutError", "the TLS handshake took too long"));
                }
                socket.set_timeout(Some(left))?;
                if incoming.read(&mut socket).map_err(failed)? == 0 {
                    return Err(failed(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }
    socket.set_timeout(None)?;
    Ok(incoming)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::secure::handover::new_key;
    use crate::secure::verify::{Expected, client_config, server_config};
    use crate::transport::read_exact;

    /// Both ends of a conversation; where asked, the client changes its keys first.
    fn pair(changes_keys: bool) -> (Link, Link) {
        let (client, server, _) = pair_with_socket(changes_keys);
        (client, server)
    }

    /// The same, and the client's socket.
    fn pair_with_socket(changes_keys: bool) -> (Link, Link, Stream) {
        let (client_key, server_key) = (new_key().unwrap(), new_key().unwrap());
        let (near, far) = UnixStream::pair().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let config = server_config(&server_key, Expected::This(client_key.fingerprint())).unwrap();
                link(UnbufferedServerConnection::new(config).unwrap(), Stream::Unix(far), deadline).unwrap()
            });
            let config = client_config(Some(&client_key), Expected::This(server_key.fingerprint())).unwrap();
            let mut side = UnbufferedClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
            let mut stream = Stream::Unix(near);
            let incoming = shake_hands(&mut side, &mut stream, deadline).unwrap();
            if changes_keys {
                let ConnectionState::WriteTraffic(traffic) = side.process(&mut []).state.unwrap() else {
                    panic!("hands are shaken");
                };
                traffic.refresh_traffic_keys().unwrap();
            }
            let socket = stream.try_clone().unwrap();
            (over(side, stream, incoming).unwrap(), server.join().unwrap(), socket)
        })
    }

    /// Bytes that differ from place to place.
    fn pattern(length: usize, seed: u8) -> Vec<u8> {
        (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
    }

    #[test]
    fn bytes_arrive_whatever_their_number_and_the_room_for_them() {
        for changes_keys in [false, true] {
            let (client, server) = pair(changes_keys);
            let lengths = [1, 2, 100, CHUNK - 1, CHUNK, CHUNK + 1, RAW + 7, 1 << 20];
            std::thread::scope(|scope| {
                // Both directions at once, so that both ends seal and open at once.
                for (seed, mut sink, mut source) in [(1, client.sink, server.source), (2, server.sink, client.source)] {
                    scope.spawn(move || {
                        for length in lengths {
                            let sent = pattern(length, seed);
                            let (head, payload) = sent.split_at(length.min(9));
                            sink.write(head, payload).unwrap();
                        }
                    });
                    scope.spawn(move || {
                        for length in lengths {
                            let mut got = vec![0; length];
                            for part in got.chunks_mut(length / 3 + 1) {
                                read_exact(&mut *source, part).unwrap();
                            }
                            assert!(got == pattern(length, seed), "{length} bytes, change of keys: {changes_keys}");
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn the_end_is_told_behind_what_was_sent() {
        let (mut client, mut server) = pair(false);
        client.sink.write(b"last words", &[]).unwrap();
        client.closer.close();
        let mut got = [0; 10];
        read_exact(&mut *server.source, &mut got).unwrap();
        assert_eq!(&got, b"last words");
        assert_eq!(server.source.read(&mut got).unwrap(), 0);
        assert!(client.sink.write(b"more", &[]).is_err());
    }

    #[test]
    fn damaged_records_are_errors_for_who_reads_and_for_who_writes() {
        let (_client, mut server, mut socket) = pair_with_socket(false);
        socket.write_all(&[&[23, 3, 3, 0, 40][..], &[7; 40]].concat()).unwrap();
        let error = server.source.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        // The alert that says so may go out; nothing else does, and nothing panics.
        assert!((0..3).any(|_| server.sink.write(b"more", &[]).is_err()));
    }
}
