//! One session: what a connected client gets, in a process of its own or in a thread.
//!
//! Beside the session runs a watch. It ends a session that takes too long, with a word to the client between two packets; it ends one
//! whose client has gone while a call still runs; and during a long call it says now and then that this end is there, and looks whether
//! the call was cancelled. One that does not end then within its grace ends with the session.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use relaxide_ffi::{AnyView, Error, ErrorKind, get_global};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::{Value, json};

use super::confine::{Confinement, confine};
use super::environment::Environment;
use super::policy::{Audit, Policy};
use crate::session::host::Host;
use crate::session::machine::Role;
use crate::session::peer::{Peer, TIMEOUT_ERROR};
use crate::transport::Link;
use crate::transport::socket::Stream;
use crate::wire::{Dialect, Failure, Limits};

/// How often the watch looks.
const TICK: Duration = Duration::from_millis(100);
/// How long a session may go on to end by itself once its client has gone.
const GRACE: Duration = Duration::from_millis(1500);
/// How often a long call says that this end is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// What a session is given.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The form of its packets.
    pub dialect: Dialect,
    /// What it may do.
    pub policy: Policy,
    /// Where its files are.
    pub folder: PathBuf,
    /// How long it may last.
    pub timeout: Option<Duration>,
    /// Libraries that are loaded before it begins.
    pub libraries: Vec<PathBuf>,
    /// The most memory of its process, in bytes.
    pub process_memory: Option<u64>,
    /// The most processor time of its process.
    pub cpu_seconds: Option<u64>,
    /// Whether its process is kept to its folder.
    pub confinement: Confinement,
    /// Who it is, for the log.
    pub user: String,
    /// The fingerprint of the key that its client has for it alone, where the session's process speaks TLS itself.
    pub client_key: Option<String>,
    /// The file that the log goes to.
    pub log: Option<PathBuf>,
}

impl Grant {
    /// All that TVM gives, in a folder.
    pub fn open(folder: &Path) -> Grant {
        Grant {
            dialect: Dialect::Tvm,
            policy: Policy::open(),
            folder: folder.to_path_buf(),
            timeout: None,
            libraries: Vec::new(),
            process_memory: None,
            cpu_seconds: None,
            confinement: Confinement::Nowhere,
            user: String::new(),
            client_key: None,
            log: None,
        }
    }

    /// As text, for a child's command line.
    pub fn to_text(&self) -> String {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        json!({
            "dialect": if self.dialect == Dialect::Own { "own" } else { "tvm" },
            "policy": self.policy.to_text(),
            "folder": path(&self.folder),
            "timeout": self.timeout.map(|timeout| timeout.as_secs_f64()),
            "libraries": self.libraries.iter().map(path).collect::<Vec<_>>(),
            "memory": self.process_memory,
            "cpu": self.cpu_seconds,
            "confinement": self.confinement.name(),
            "user": self.user,
            "client": self.client_key,
            "log": self.log.as_ref().map(path),
        })
        .to_string()
    }

    /// Reads what [`to_text`](Self::to_text) writes.
    pub fn from_text(text: &str) -> Result<Grant, Error> {
        let wrong = |what: &str| Error::new(ErrorKind::ValueError, format!("the session's grant is malformed: {what}"));
        let grant: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        let mut policy = Policy::default();
        for word in grant["policy"].as_str().unwrap_or_default().split_whitespace() {
            if !policy.read_word(word).map_err(|error| wrong(&error.to_string()))? {
                return Err(wrong(word));
            }
        }
        let timeout = grant["timeout"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(Grant {
            dialect: if grant["dialect"] == "own" { Dialect::Own } else { Dialect::Tvm },
            policy,
            folder: path(&grant["folder"]).ok_or_else(|| wrong("folder"))?,
            timeout,
            libraries: grant["libraries"].as_array().into_iter().flatten().filter_map(path).collect(),
            process_memory: grant["memory"].as_u64(),
            cpu_seconds: grant["cpu"].as_u64(),
            confinement: grant["confinement"]
                .as_str()
                .and_then(Confinement::parse)
                .ok_or_else(|| wrong("confinement"))?,
            user: grant["user"].as_str().unwrap_or_default().to_owned(),
            client_key: grant["client"].as_str().map(str::to_owned),
            log: path(&grant["log"]),
        })
    }

    /// The log of what the session does, if there is one.
    fn audit(&self) -> Option<Audit> {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(self.log.as_ref()?).ok()?;
        let user = self.user.clone();
        Some(Arc::new(move |what, name| super::log::line(&file, &user, what, name)))
    }
}

/// What ends with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The process that it has for itself.
    Process,
    /// Nothing but itself.
    Itself,
}

/// Limits the process to what the session may use. The process is the session's own.
pub fn limit_process(grant: &Grant) -> Result<(), Error> {
    let limit = |resource, value: u64| {
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        setrlimit(resource, limit)
            .map_err(|error| Error::new(ErrorKind::OSError, format!("cannot limit the session: {error}")))
    };
    limit(Resource::Core, 0)?;
    if let Some(bytes) = grant.process_memory {
        limit(Resource::As, bytes)?;
    }
    if let Some(seconds) = grant.cpu_seconds {
        limit(Resource::Cpu, seconds)?;
    }
    std::env::set_current_dir(&grant.folder)
        .map_err(|error| Error::new(ErrorKind::OSError, format!("cannot enter the session's folder: {error}")))?;
    // The log has to be there before it can be among the files that may be written.
    let audit = grant.audit();
    let is_confined = confine(grant)?;
    if let Some(audit) = audit.filter(|_| !is_confined) {
        audit("not confined", "the system has no Landlock");
    }
    Ok(())
}

/// Serves a client until it is done. An error says what ended the session otherwise; the client was told what it could be told.
pub fn serve(stream: Stream, grant: &Grant, ends: Ends) -> Result<(), Error> {
    let watched = stream.try_clone()?;
    serve_link(stream.into_link()?, watched, grant, ends)
}

/// The same over a link, and the connection below it.
pub fn serve_link(link: Link, watched: Stream, grant: &Grant, ends: Ends) -> Result<(), Error> {
    let mut policy = grant.policy.clone();
    policy.audit = grant.audit();
    let environment = Environment::new(&grant.folder, &policy)?;
    for library in &grant.libraries {
        relaxide_runtime::ensure_symbols_global()?;
        // The functions that a library enters stay when the module is let go of; its code must too.
        std::mem::forget(relaxide_vm::load_module(library)?);
    }
    hook("tvm.rpc.server.start");
    let host = Host::server(environment, policy);
    let peer = Peer::new(link, Role::Server, grant.dialect, Limits::default(), Arc::clone(&host));
    let over = Arc::new(AtomicBool::new(false));
    let watch = Watch {
        stream: watched,
        peer: Arc::downgrade(&peer),
        deadline: grant.timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout))),
        over: Arc::clone(&over),
        ends,
    };
    let watching =
        std::thread::Builder::new().name("rpc-watch".into()).stack_size(128 << 10).spawn(move || watch.run());
    watching.map_err(|error| Error::new(ErrorKind::RuntimeError, format!("cannot watch the session: {error}")))?;
    let outcome = peer.serve();
    over.store(true, Ordering::Relaxed);
    host.finish();
    if outcome.is_ok() {
        hook("tvm.rpc.server.shutdown");
    }
    peer.close();
    outcome
}

/// Calls a function that somebody may have registered.
fn hook(name: &str) {
    if let Some(function) = get_global(name) {
        // What it says of itself is for nobody: the session goes on.
        let _ = function.call(&[] as &[AnyView<'_>]);
    }
}

struct Watch {
    stream: Stream,
    peer: Weak<Peer>,
    deadline: Option<(Instant, Duration)>,
    over: Arc<AtomicBool>,
    ends: Ends,
}

impl Watch {
    fn run(self) {
        let (mut last_sign, mut gone): (Instant, Option<Instant>) = (Instant::now(), None);
        loop {
            let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
            let has_gone = match gone {
                None => {
                    let mut polled = [PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::RDHUP)];
                    let ready = poll(&mut polled, Some(&tick)).unwrap_or(0);
                    ready > 0 && polled[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
                }
                Some(_) => {
                    std::thread::sleep(TICK);
                    true
                }
            };
            let Some(peer) = self.peer.upgrade() else { return };
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            if has_gone && gone.is_none() {
                gone = Some(Instant::now());
            }
            if gone.is_some_and(|since| since.elapsed() > GRACE) {
                self.end(&peer, 3);
                return;
            }
            if let Some((deadline, timeout)) = self.deadline
                && Instant::now() >= deadline
            {
                let message = format!(
                    "{TIMEOUT_ERROR}: Your {:?}s session has expired, try to increase the \"session_timeout\" value.",
                    timeout.as_secs_f64()
                );
                peer.last_words(&Failure::new(TIMEOUT_ERROR, message));
                self.end(&peer, 4);
                return;
            }
            if peer.is_serving() {
                peer.look_ahead();
            }
            if peer.overdue().is_some() {
                peer.say_late();
                self.end(&peer, 5);
                return;
            }
            if peer.is_serving() && last_sign.elapsed() > SIGN_OF_LIFE {
                peer.say_alive();
                last_sign = Instant::now();
            }
        }
    }

    fn end(&self, peer: &Peer, status: i32) {
        self.stream.shutdown();
        match self.ends {
            Ends::Process => std::process::exit(status),
            Ends::Itself => peer.close(),
        }
    }
}
