//! [`Proxy`]: servers and clients come to it, and it joins those of one key.
//!
//! Each side says its key as to a server, and is told the other's whole key when both are there. From then on bytes pass unchanged.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::offer::{Offered, Offers};
use super::pairs::{Came, Pairs};
use crate::server::greet::{GREETING, read_hello};
use crate::transport::socket::{Stream, listen, tune};
use crate::transport::{Link, pump};
use crate::wire::handshake::{DUPLICATE, Key, MAGIC, MISMATCH, Side, answer, refusal};

/// How often a waiting side is looked at.
const TICK: Duration = Duration::from_millis(200);
/// How many connections there may be.
const CONNECTIONS: usize = 8192;
const STACK: usize = 512 << 10;

/// How a proxy is set up.
pub struct Options {
    /// The address.
    pub host: String,
    /// The first port that is tried.
    pub port: u16,
    /// The port behind the last.
    pub port_end: u16,
    /// The port for browsers; 0: none.
    pub web_port: u16,
    /// Whether clients may come by WebSocket too, and not only servers.
    pub web_clients: bool,
    /// Origins of pages that may connect, besides those that the proxy itself gives; `*`: all.
    pub web_origins: Vec<String>,
    /// The page that browsers get.
    pub index_page: Option<PathBuf>,
    /// Files that go with it.
    pub resource_files: Vec<PathBuf>,
    /// The tracker that its servers are offered at.
    pub tracker: Option<(String, u16)>,
    /// How long a client waits for a server.
    pub timeout_client: Duration,
    /// How long a server waits for a client.
    pub timeout_server: Duration,
    /// Whether it prints what happens.
    pub silent: bool,
}

/// One side, once the other is there: its link and its key.
struct Other {
    link: Link,
    key: String,
}

pub(super) struct ProxyShared {
    pub(super) options: Options,
    pub(super) stop: AtomicBool,
    connections: AtomicUsize,
    pairs: Pairs<Other>,
    offers: Option<Arc<Offers>>,
}

/// A proxy that runs until it is stopped or dropped.
pub struct Proxy {
    shared: Arc<ProxyShared>,
    port: u16,
    web_port: Option<u16>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl Proxy {
    /// Listens and serves.
    pub fn start(options: Options) -> Result<Proxy, Error> {
        let bind = |port, end| {
            let listener = listen(&options.host, port, end, true);
            listener.map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))
        };
        let listener = bind(options.port, options.port_end)?;
        let web = match options.web_port {
            0 => None,
            port => Some(bind(port, port.saturating_add(1))?),
        };
        #[cfg(not(feature = "websocket"))]
        if web.is_some() {
            let message = "this build serves no browsers: it was made without the feature `websocket`";
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let port = listener.local_addr()?.port();
        let web_port = web.as_ref().map(TcpListener::local_addr).transpose()?.map(|address| address.port());
        let offers = options.tracker.clone().map(|(host, tracker)| Offers::start(host, tracker, port)).transpose()?;
        let shared = Arc::new(ProxyShared {
            options,
            stop: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            pairs: Pairs::default(),
            offers,
        });
        let mut threads = Vec::new();
        let mut listen_on = |listener: TcpListener, serve: fn(&Arc<ProxyShared>, TcpStream)| -> Result<(), Error> {
            listener.set_nonblocking(true)?;
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("rpc-proxy".into());
            threads.push(thread.spawn(move || accept(&shared, &listener, serve))?);
            Ok(())
        };
        listen_on(listener, |shared, stream| {
            let peer = stream.peer_addr().map_or_else(|_| "a client".into(), |address| address.to_string());
            if let Err(error) =
                tune(&stream).map_err(Error::from).and_then(|()| meet_plain(shared, Stream::Tcp(stream)))
            {
                shared.say(&format!("{peer}: {error}"));
            }
        })?;
        #[cfg(feature = "websocket")]
        if let Some(web) = web {
            listen_on(web, super::web::serve)?;
        }
        Ok(Proxy { shared, port, web_port, threads: Mutex::new(threads) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for browsers.
    pub fn web_port(&self) -> Option<u16> {
        self.web_port
    }

    /// Ends it. Those who are joined stay joined until they end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(offers) = &self.shared.offers {
            offers.stop();
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

fn accept(shared: &Arc<ProxyShared>, listener: &TcpListener, serve: fn(&Arc<ProxyShared>, TcpStream)) {
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
    while !shared.stop.load(Ordering::Relaxed) {
        let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        let _ = poll(&mut polled, Some(&tick));
        match listener.accept() {
            Ok((stream, _)) => {
                if shared.connections.load(Ordering::Relaxed) >= CONNECTIONS || stream.set_nonblocking(false).is_err() {
                    continue;
                }
                shared.connections.fetch_add(1, Ordering::Relaxed);
                let serving = Arc::clone(shared);
                let thread = std::thread::Builder::new().name("rpc-proxied".into()).stack_size(STACK);
                let spawned = thread.spawn(move || {
                    serve(&serving, stream);
                    serving.connections.fetch_sub(1, Ordering::Relaxed);
                });
                if spawned.is_err() {
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(TICK),
        }
    }
}

impl ProxyShared {
    pub(super) fn say(&self, text: &str) {
        if !self.options.silent {
            eprintln!("relaxide rpc: proxy: {text}");
        }
    }
}

/// Serves a connection that begins with its key.
fn meet_plain(shared: &Arc<ProxyShared>, mut stream: Stream) -> Result<(), Error> {
    let (magic, key) = read_hello(&mut stream, Instant::now() + GREETING)?;
    if magic != MAGIC {
        return Err(Error::new(ErrorKind::ValueError, format!("it does not speak TVM's protocol ({magic:#x})")));
    }
    stream.set_read_timeout(None)?;
    let watched = stream.try_clone()?;
    meet(shared, stream.into_link()?, Some(watched), &key)
}

/// Has one side wait for the other, or joins them.
pub(super) fn meet(
    shared: &Arc<ProxyShared>,
    mut link: Link,
    watched: Option<Stream>,
    key: &[u8],
) -> Result<(), Error> {
    let text = String::from_utf8_lossy(key).into_owned();
    let key = Key::parse(key)?;
    let offers = shared.offers.as_ref();
    let offered = match (offers, key.side) {
        (Some(offers), Side::Server) => Some(offers.add(&key.name)?),
        _ => None,
    };
    let mut name = match (&offered, offers) {
        (Some(offered), _) => offered.match_key(),
        (None, Some(offers)) if !offers.knows(&key.name) && !shared.pairs.has(Side::Server, &key.name) => {
            link.sink.write(&refusal(MISMATCH), &[])?;
            return Err(Error::new(ErrorKind::ValueError, format!("no server waits for {text:?}")));
        }
        _ => key.name.clone(),
    };
    let patience = match key.side {
        Side::Client => shared.options.timeout_client,
        Side::Server => shared.options.timeout_server,
    };
    let deadline = Instant::now() + patience;
    loop {
        match shared.pairs.come(key.side, &name) {
            Came::Duplicate => {
                link.sink.write(&refusal(DUPLICATE), &[])?;
                return Err(Error::new(ErrorKind::ValueError, format!("{text:?} is there already")));
            }
            Came::Paired(tell) => {
                drop(offered);
                return match tell.send(Other { link, key: text }) {
                    // The one that waits joins both.
                    Ok(()) => Ok(()),
                    Err(_) => Err(Error::new(ErrorKind::RuntimeError, "the other side has gone")),
                };
            }
            Came::Waits(told, number) => loop {
                match told.recv_timeout(TICK) {
                    Ok(other) => {
                        drop(offered);
                        return join(link, &text, other);
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Error::new(ErrorKind::RuntimeError, "the other side has gone"));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let renewed = offered.as_ref().map(Offered::match_key).filter(|fresh| *fresh != name);
                let over = Instant::now() >= deadline || shared.stop.load(Ordering::Relaxed);
                let gone = watched.as_ref().is_some_and(has_moved);
                if (over || gone || renewed.is_some()) && shared.pairs.leave(&name, number) {
                    if let Some(fresh) = renewed.filter(|_| !over && !gone) {
                        name = fresh;
                        break;
                    }
                    if over {
                        link.sink.write(&refusal(MISMATCH), &[])?;
                    }
                    let why = if over { "nobody came for it in time" } else { "it left, or sent data before its time" };
                    return Err(Error::new(ErrorKind::RuntimeError, format!("{text:?}: {why}")));
                }
            },
        }
    }
}

/// True if a waiting side has gone, or says something, which it may not yet.
fn has_moved(stream: &Stream) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN | PollFlags::RDHUP)];
    poll(&mut polled, Some(&now)).unwrap_or(0) > 0
}

fn join(mut link: Link, key: &str, mut other: Other) -> Result<(), Error> {
    let told =
        link.sink.write(&answer(MAGIC, &other.key), &[]).and_then(|()| other.link.sink.write(&answer(MAGIC, key), &[]));
    if let Err(error) = told {
        link.closer.close();
        other.link.closer.close();
        return Err(error.into());
    }
    pump::join(link, other.link).map_err(Error::from)
}
