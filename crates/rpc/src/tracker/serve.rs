//! [`Tracker`]: the queues on a socket.
//!
//! Each connection has a thread that reads; whoever changes a queue writes to those who got something. A write waits a short time and
//! then counts as undelivered, so a client that does not read delays nobody for long.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Map, Value, json};

use super::protocol::{MAX_MESSAGE, Message, code};
use super::queue::{Connection, Handed, Queues, Resource};
use super::text::text;
use crate::transport::socket::{Stream, listen, tune};
use crate::transport::{Closer, Link, Sink, Source, read_by, read_exact};
use crate::wire::handshake::TRACKER_MAGIC;

/// How long a connection may take to say that it means a tracker.
const GREETING: Duration = Duration::from_secs(10);
/// How long a write may take.
const WRITE: Duration = Duration::from_secs(5);
/// How often the accepting thread looks up.
const TICK: Duration = Duration::from_millis(200);
/// How many connections there may be.
const CONNECTIONS: usize = 16_384;
/// The stack of a connection's thread.
const STACK: usize = 256 << 10;

/// How a connection becomes a link whose other end is known: by name, and by the fingerprint of its key if it has one.
pub type Secure = Arc<dyn Fn(Stream) -> Result<(Link, String, Option<String>), Error> + Send + Sync>;

/// How a tracker is set up.
pub struct Options {
    /// The address.
    pub host: String,
    /// The first port that is tried.
    pub port: u16,
    /// The port behind the last.
    pub port_end: u16,
    /// Whether an address that was just given up can be taken.
    pub reuse: bool,
    /// Whether it prints what happens.
    pub silent: bool,
    /// Where the state is kept that survives a restart.
    pub state: Option<PathBuf>,
    /// How connections are secured; nothing: not at all, as TVM's.
    pub secure: Option<Secure>,
}

struct Client {
    sink: Mutex<Box<dyn Sink>>,
    closer: Arc<dyn Closer>,
    host: String,
    /// Who it is, where that is proved.
    user: Option<String>,
    /// The fingerprint of its key, where that is proved.
    fingerprint: Option<String>,
    info: Mutex<Option<Map<String, Value>>>,
    since: Instant,
}

#[derive(Default)]
struct TrackerState {
    queues: Queues,
    clients: HashMap<Connection, Arc<Client>>,
    next: Connection,
}

struct TrackerShared {
    options: Options,
    stop_key: String,
    stop: AtomicBool,
    state: Mutex<TrackerState>,
    #[cfg(feature = "sqlite")]
    kept: Option<Mutex<super::state::StateOnDisk>>,
}

/// A tracker that runs until it is stopped or dropped.
pub struct Tracker {
    shared: Arc<TrackerShared>,
    port: u16,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Tracker {
    /// Listens and serves.
    pub fn start(options: Options) -> Result<Tracker, Error> {
        let listener = listen(&options.host, options.port, options.port_end, options.reuse)
            .map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        #[allow(unused_mut, reason = "only a kept state changes it")]
        let mut state = TrackerState::default();
        #[cfg(feature = "sqlite")]
        let kept = match &options.state {
            Some(path) => {
                let kept = super::state::StateOnDisk::open(path)?;
                state.queues.restore(kept.history()?);
                Some(Mutex::new(kept))
            }
            None => None,
        };
        #[cfg(not(feature = "sqlite"))]
        if options.state.is_some() {
            let message = "this build keeps no state: it was made without the feature `sqlite`";
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let shared = Arc::new(TrackerShared {
            options,
            stop_key: crate::random::key("tracker")?,
            stop: AtomicBool::new(false),
            state: Mutex::new(state),
            #[cfg(feature = "sqlite")]
            kept,
        });
        let accepting = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("rpc-tracker".into())
            .spawn(move || accept(&accepting, &listener))
            .map_err(|error| Error::new(ErrorKind::RuntimeError, format!("cannot start the tracker: {error}")))?;
        Ok(Tracker { shared, port, thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The key that ends it.
    pub fn stop_key(&self) -> &str {
        &self.shared.stop_key
    }

    /// How it stands, in OpenMetrics form.
    pub fn metrics(&self) -> String {
        self.shared.metrics()
    }

    /// True while it serves.
    pub fn is_running(&self) -> bool {
        !self.shared.stop.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept(shared: &Arc<TrackerShared>, listener: &TcpListener) {
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
    while !shared.stop.load(Ordering::Relaxed) {
        let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        let _ = poll(&mut polled, Some(&tick));
        match listener.accept() {
            Ok((stream, _)) => {
                let full = shared.state().clients.len() >= CONNECTIONS;
                if full || stream.set_nonblocking(false).is_err() || tune(&stream).is_err() {
                    continue;
                }
                let serving = Arc::clone(shared);
                let thread = std::thread::Builder::new().name("rpc-tracked".into()).stack_size(STACK);
                // Without a thread for it the connection is dropped, and its client tries again.
                let _ = thread.spawn(move || serving.serve(Stream::Tcp(stream)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(TICK),
        }
    }
    let clients: Vec<_> = shared.state().clients.values().cloned().collect();
    clients.iter().for_each(|client| client.closer.close());
}

impl TrackerShared {
    fn state(&self) -> MutexGuard<'_, TrackerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, text: &str) {
        if !self.options.silent {
            eprintln!("relaxide rpc: tracker: {text}");
        }
    }

    /// Serves a connection until it ends.
    fn serve(self: &Arc<Self>, stream: Stream) {
        let (host, peer) = (stream.peer_host().unwrap_or_default(), stream.peer());
        let secured = match &self.options.secure {
            Some(secure) => secure(stream).map(|(link, user, fingerprint)| (link, Some(user), fingerprint)),
            None => {
                let link = stream.set_write_timeout(Some(WRITE)).and_then(|()| stream.into_link());
                link.map_err(Error::from).map(|link| (link, None, None))
            }
        };
        let (mut link, user, fingerprint) = match secured {
            Ok(secured) => secured,
            Err(error) => return self.say(&format!("{peer}: {error}")),
        };
        if !greet(&mut link) {
            return self.say(&format!("{peer} does not speak a tracker's protocol"));
        }
        let client = Arc::new(Client {
            sink: Mutex::new(link.sink),
            closer: link.closer,
            host,
            user,
            fingerprint,
            info: Mutex::default(),
            since: Instant::now(),
        });
        let number = {
            let mut state = self.state();
            state.next += 1;
            let number = state.next;
            state.clients.insert(number, Arc::clone(&client));
            number
        };
        while let Some(message) = read_message(&mut *link.source) {
            let Some(message) = Message::parse(&message) else {
                self.say(&format!("{peer} sends what is no message"));
                break;
            };
            if !self.answer(number, &client, message) {
                break;
            }
        }
        let mut state = self.state();
        state.clients.remove(&number);
        state.queues.disconnect(number);
        drop(state);
        client.closer.close();
    }

    /// Answers a message; false if the connection is over.
    fn answer(self: &Arc<Self>, number: Connection, client: &Client, message: Message) -> bool {
        let now = super::super::server::log::now() as u64;
        let success = json!(code::SUCCESS);
        let handed = {
            let mut state = self.state();
            if message == Message::Unused {
                state.queues.expect(number, now);
            }
            state.queues.hear(number, now)
        };
        self.deliver(handed, now);
        match message {
            Message::Ping => client.send(&success),
            Message::Stop(key) => {
                if key != self.stop_key {
                    return client.send(&json!(code::FAIL));
                }
                client.send(&success);
                self.stop.store(true, Ordering::Relaxed);
                false
            }
            Message::Put { key, port, match_key, address } => {
                let host = address.unwrap_or_else(|| client.host.clone());
                let fingerprint = client.fingerprint.clone();
                let resource = Resource { host, port, match_key, owner: number, fingerprint };
                let handed = self.state().queues.put(&key, resource, now);
                let sent = client.send(&success);
                self.deliver(handed, now);
                sent
            }
            Message::Request { key, user, priority } => {
                // A name that is proved is believed, and no other.
                let user = client.user.clone().unwrap_or(user);
                let handed = self.state().queues.request(&key, number, &user, priority, now);
                self.deliver(handed, now);
                true
            }
            Message::Info(mut info) => {
                if let Some(Value::Array(address)) = info.get_mut("addr")
                    && let Some(first @ Value::Null) = address.first_mut()
                {
                    *first = Value::String(client.host.clone());
                }
                *client.info.lock().unwrap_or_else(PoisonError::into_inner) = Some(info);
                client.send(&success)
            }
            Message::Summary => {
                let summary = self.summary(now);
                client.send(&json!([code::SUCCESS, summary]))
            }
            Message::Unused => {
                let unused = json!(self.state().queues.unused(number));
                client.send(&unused)
            }
        }
    }

    /// Tells those who wait what they got; who does not hear it does not get it.
    fn deliver(self: &Arc<Self>, mut handed: Vec<Handed>, now: u64) {
        if handed.is_empty() {
            return;
        }
        while let Some(next) = handed.pop() {
            let client = self.state().clients.get(&next.to).cloned();
            let Resource { host, port, match_key, fingerprint, .. } = &next.resource;
            let server = match fingerprint {
                Some(fingerprint) => json!([host, port, match_key, fingerprint]),
                None => json!([host, port, match_key]),
            };
            let told = client.is_some_and(|client| client.send(&json!([code::SUCCESS, server])));
            if !told {
                handed.extend(self.state().queues.undelivered(&next, now));
            }
        }
        self.keep();
    }

    #[cfg(feature = "sqlite")]
    fn keep(&self) {
        if let Some(kept) = &self.kept {
            let history = self.state().queues.history();
            if let Err(error) = kept.lock().unwrap_or_else(PoisonError::into_inner).keep(&history) {
                self.say(&format!("the state is not kept: {error}"));
            }
        }
    }

    #[cfg(not(feature = "sqlite"))]
    fn keep(&self) {}

    fn summary(&self, now: u64) -> Value {
        let state = self.state();
        let queues: Map<String, Value> = (state.queues.counts(now).into_iter())
            .map(|(key, counts)| (key.to_owned(), json!({ "free": counts.free, "pending": counts.pending })))
            .collect();
        let info = |client: &Arc<Client>| client.info.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_server = |info: &Map<String, Value>| {
            info.get("key").and_then(Value::as_str).is_some_and(|key| key.starts_with("server"))
        };
        let mut servers: Vec<(&Connection, Map<String, Value>)> = (state.clients.iter())
            .filter_map(|(number, client)| Some((number, info(client)?)))
            .filter(|(_, info)| is_server(info))
            .collect();
        servers.sort_by_key(|(number, _)| **number);
        let servers: Vec<Value> = servers.into_iter().map(|(_, info)| Value::Object(info)).collect();
        json!({ "queue_info": queues, "server_info": servers })
    }

    fn metrics(&self) -> String {
        let state = self.state();
        let oldest = state.clients.values().map(|client| client.since.elapsed().as_secs()).max().unwrap_or(0);
        let now = super::super::server::log::now() as u64;
        super::metrics::text(&state.queues, state.clients.len(), oldest, now)
    }
}

impl Client {
    /// Sends a reply; false if it cannot be.
    fn send(&self, value: &Value) -> bool {
        let sent = write_message(&mut **self.sink.lock().unwrap_or_else(PoisonError::into_inner), value).is_ok();
        if !sent {
            self.closer.close();
        }
        sent
    }
}

/// Reads the magic number and says it back; false if it was none.
fn greet(link: &mut Link) -> bool {
    let mut magic = [0; 4];
    let read = read_by(&mut *link.source, &mut magic, Some(Instant::now() + GREETING));
    read.is_ok()
        && i32::from_le_bytes(magic) == TRACKER_MAGIC
        && link.sink.write(&magic, &[]).is_ok()
        && link.source.set_timeout(None).is_ok()
}

/// Reads a message; nothing at the end of the stream, or where its length is none.
pub(crate) fn read_message(source: &mut dyn Source) -> Option<Vec<u8>> {
    read_message_behind(&[], source)
}

/// Reads a message whose first bytes, at most those of its length, are there already.
pub(crate) fn read_message_behind(first: &[u8], source: &mut dyn Source) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    length[..first.len()].copy_from_slice(first);
    read_exact(source, &mut length[first.len()..]).ok()?;
    let length =
        usize::try_from(i32::from_le_bytes(length)).ok().filter(|length| (1..=MAX_MESSAGE).contains(length))?;
    let mut message = Vec::new();
    while message.len() < length {
        // As it comes, not as it is claimed.
        let from = message.len();
        message.resize(length.min(from + 4096), 0);
        read_exact(source, &mut message[from..]).ok()?;
    }
    Some(message)
}

/// Writes a message.
pub(crate) fn write_message(sink: &mut dyn Sink, value: &Value) -> io::Result<()> {
    let text = text(value);
    let mut message = (text.len() as i32).to_le_bytes().to_vec();
    message.extend(text.as_bytes());
    sink.write(&message, &[])
}
