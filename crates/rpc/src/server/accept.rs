//! [`Server`]: listens, lets clients in, and goes on whatever they do.
//!
//! One thread accepts. Each connection is greeted in a thread of its own, within a time and a number, and then gets its session: a
//! process ([`Isolation::Process`]) or a thread. Nothing that a client sends, and nothing that a session does, reaches the thread that
//! accepts.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::announce::Announced;
use super::children::end_group;
use super::greet::{Greeted, Greeter};
use super::scratch::Scratch;
use super::session::{self, Ends, Grant};
use crate::transport::socket::{Listener, Stream};

/// How many connections may be greeted at a time.
const GREETINGS: usize = 256;
/// How often the accepting thread looks up.
const TICK: Duration = Duration::from_millis(200);

/// Where sessions run.
#[derive(Clone, Debug)]
pub enum Isolation {
    /// In processes, which that command starts when the grant is put behind it.
    Process(Vec<OsString>),
    /// In threads of this process: for boards that have one process, and for tests. A session can then not be ended while it computes.
    Thread,
}

/// How a server is set up.
pub struct Options {
    /// The address.
    pub host: String,
    /// The first port that is tried.
    pub port: u16,
    /// The port behind the last.
    pub port_end: u16,
    /// Whether an address that was just given up can be taken.
    pub reuse: bool,
    /// Who greets, and says what a session gets.
    pub greeter: Greeter,
    /// Where sessions run.
    pub isolation: Isolation,
    /// How many sessions there may be at a time; more wait.
    pub sessions: usize,
    /// How long a session may last, whatever its client asks for.
    pub timeout: Option<Duration>,
    /// What every session gets that its greeting does not say.
    pub grant: Grant,
    /// Where sessions' folders are made; nothing: where the system has temporary files.
    pub scratch: Option<PathBuf>,
    /// Whether it prints what happens.
    pub silent: bool,
}

struct ServerShared {
    options: Options,
    scratch: Scratch,
    stop: AtomicBool,
    greetings: AtomicUsize,
    running: Mutex<HashMap<u64, RunningSession>>,
    room: Condvar,
    next: AtomicU64,
    announced: Mutex<Option<Arc<Announced>>>,
}

struct RunningSession {
    pid: Option<Pid>,
    deadline: Option<Instant>,
    /// Ends a session that is a thread.
    stream: Option<Stream>,
}

/// A server that runs until it is stopped or dropped.
pub struct Server {
    shared: Arc<ServerShared>,
    port: u16,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Listens and accepts.
    pub fn start(options: Options) -> Result<Server, Error> {
        super::register();
        let listener = Listener::bind(&options.host, options.port, options.port_end, options.reuse)
            .map_err(|error| Error::new(ErrorKind::ValueError, error.to_string()))?;
        let port = listener.port()?;
        let scratch = Scratch::make(options.scratch.as_deref())?;
        let shared = Arc::new(ServerShared {
            options,
            scratch,
            stop: AtomicBool::new(false),
            greetings: AtomicUsize::new(0),
            running: Mutex::default(),
            room: Condvar::new(),
            next: AtomicU64::new(1),
            announced: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("rpc-accept".into())
            .spawn(move || accept(&accepting, &listener))
            .map_err(|error| {
                Error::new(ErrorKind::RuntimeError, format!("cannot start the server's thread: {error}"))
            })?;
        Ok(Server { shared, port, thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Has clients found through a tracker: by keys that are used once.
    pub fn announce(&self, announced: Arc<Announced>) {
        *self.shared.announced.lock().unwrap_or_else(PoisonError::into_inner) = Some(announced);
    }

    /// How many sessions run.
    pub fn sessions(&self) -> usize {
        self.shared.running().len()
    }

    /// Takes no more clients and ends all sessions.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.running().values().for_each(RunningSession::end);
        if let Some(announced) = self.shared.announced.lock().unwrap_or_else(PoisonError::into_inner).take() {
            announced.stop();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl RunningSession {
    fn end(&self) {
        if let Some(pid) = self.pid {
            end_group(pid);
        }
        if let Some(stream) = &self.stream {
            stream.shutdown();
        }
    }
}

impl ServerShared {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, RunningSession>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, text: &str) {
        if !self.options.silent {
            eprintln!("relaxide rpc: {text}");
        }
    }

    fn announced(&self) -> Option<Arc<Announced>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn accept(shared: &Arc<ServerShared>, listener: &Listener) {
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
    while !shared.stop.load(Ordering::Relaxed) {
        let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        let _ = poll(&mut polled, Some(&tick));
        let now = Instant::now();
        shared
            .running()
            .values()
            .filter(|entry| entry.deadline.is_some_and(|at| at < now))
            .for_each(RunningSession::end);
        match listener.accept() {
            Ok(stream) => greet(shared, stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Out of descriptors, for one: it passes, and until then there is nothing to be done.
                shared.say(&format!("cannot accept: {error}"));
                std::thread::sleep(TICK);
            }
        }
    }
}

fn greet(shared: &Arc<ServerShared>, stream: Stream) {
    if shared.greetings.fetch_add(1, Ordering::Relaxed) >= GREETINGS {
        shared.greetings.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let greeting = Arc::clone(shared);
    let spawned = std::thread::Builder::new().name("rpc-session".into()).spawn(move || {
        let peer = stream.peer();
        let served = serve(&greeting, stream);
        if let Err(error) = served {
            greeting.say(&format!("{peer}: {error}"));
        }
    });
    if spawned.is_err() {
        shared.greetings.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a greeting off, however it ends.
struct Greeting<'a>(&'a AtomicUsize);

impl Drop for Greeting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(shared: &Arc<ServerShared>, stream: Stream) -> Result<(), Error> {
    let greeting = Greeting(&shared.greetings);
    let options = &shared.options;
    let announced = shared.announced();
    if let Stream::Tcp(tcp) = &stream {
        let _ = crate::transport::socket::tune(tcp);
    }
    let Greeted { admitted, key } = options.greeter.read(stream, announced.as_deref())?;
    // However it ends, the tracker learns that there is room again.
    let _taken = announced.map(Taken);
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    if !wait_for_room(shared, number, admitted.stream()) {
        return Err(Error::new(ErrorKind::RuntimeError, "the client has gone before there was room for it"));
    }
    // From here on the number is among those that run.
    let _left = Leaves { shared, number };
    let folder = shared.scratch.session()?;
    let mut grant = admitted.grant(&key, &options.grant, folder.path());
    grant.timeout = match (grant.timeout, options.timeout) {
        (Some(asked), Some(most)) => Some(asked.min(most)),
        (asked, most) => asked.or(most),
    };
    let begins = |user: &str| {
        shared.say(&format!(
            "session {number} begins{}",
            if user.is_empty() { String::new() } else { format!(" for {user}") }
        ));
    };
    let user = admitted.user().to_owned();
    let outcome = match &options.isolation {
        Isolation::Process(command) => {
            let (running, _kept) = admitted.start(&options.greeter, command, grant)?;
            drop(greeting);
            begins(&user);
            if let Some(entry) = shared.running().get_mut(&number) {
                (entry.pid, entry.deadline) = (running.pid(), running.deadline());
            }
            if shared.stop.load(Ordering::Relaxed)
                && let Some(pid) = running.pid()
            {
                end_group(pid);
            }
            running.wait()
        }
        Isolation::Thread => {
            let (stream, grant) = admitted.into_session(&options.greeter, grant)?;
            drop(greeting);
            begins(&user);
            let handle = stream.try_clone()?;
            if let Some(entry) = shared.running().get_mut(&number) {
                entry.stream = Some(handle);
            }
            match session::serve(stream, &grant, Ends::Itself) {
                Ok(()) => "done".to_owned(),
                Err(error) => error.to_string(),
            }
        }
    };
    shared.say(&format!("session {number} ends: {outcome}"));
    Ok(())
}

/// Has the tracker know that there is room again.
struct Taken(Arc<Announced>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.put_again();
    }
}

/// Takes a session out of those that run.
struct Leaves<'a> {
    shared: &'a ServerShared,
    number: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.shared.running().remove(&self.number);
        self.shared.room.notify_all();
    }
}

/// Waits until there is room for one more; false if its client has gone, or the server stops.
fn wait_for_room(shared: &ServerShared, number: u64, stream: &Stream) -> bool {
    let mut running = shared.running();
    while running.len() >= shared.options.sessions.max(1) {
        running = shared.room.wait_timeout(running, TICK).unwrap_or_else(PoisonError::into_inner).0;
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::RDHUP)];
        let gone = poll(&mut polled, Some(&now)).unwrap_or(0) > 0;
        if gone || shared.stop.load(Ordering::Relaxed) {
            return false;
        }
    }
    running.insert(number, RunningSession { pid: None, deadline: None, stream: None });
    true
}
