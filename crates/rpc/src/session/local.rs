//! Sessions within the process: the far side is a thread of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};

use super::client::Session;
use super::host::Host;
use super::machine::Role;
use super::peer::Peer;
use crate::server::environment::Environment;
use crate::server::policy::Policy;
use crate::transport::{Link, memory};
use crate::wire::{Dialect, Limits};

/// A session whose far side is this process, with a folder of its own. The other end of its stream may be given another form, as that of
/// TVM is for tests.
pub fn session(dialect: Dialect) -> Result<Session, Error> {
    let (near, far) = memory::pair("the local session");
    let folder = tempfile::tempdir()?;
    let policy = Policy::open();
    let host = Host::server(Environment::new(folder.path(), &policy)?, policy);
    std::thread::Builder::new()
        .name("rpc-local".into())
        .spawn(move || {
            // Whatever ended it is for the other end to say.
            let _ = serve(far, dialect, Limits::default(), host);
            drop(folder);
        })
        .map_err(|error| Error::new(ErrorKind::RuntimeError, format!("cannot start the session's thread: {error}")))?;
    Session::begin(near, dialect, Limits::default(), &[])
}

/// How often it is looked whether a call was cancelled.
const TICK: Duration = Duration::from_millis(50);
/// How long a call may go on to end by itself once its client has gone.
const GRACE: Duration = Duration::from_millis(1500);

/// What ends all that a session computes, where that can be.
pub type End = Box<dyn Fn() + Send>;

/// Looks now and then whether what is being served was cancelled, or its client has gone.
struct Attendant {
    peer: Weak<Peer>,
    over: Arc<AtomicBool>,
    end: Option<End>,
}

impl Attendant {
    fn run(self) {
        let mut gone: Option<Instant> = None;
        while !self.over.load(Ordering::Relaxed) {
            let Some(peer) = self.peer.upgrade() else { return };
            let has_gone = peer.is_serving() && peer.look_ahead();
            gone = if has_gone { gone.or_else(|| Some(Instant::now())) } else { None };
            let is_alone = gone.is_some_and(|since| since.elapsed() > GRACE);
            if is_alone || peer.overdue().is_some() {
                if !is_alone {
                    peer.say_late();
                }
                peer.close();
                if let Some(end) = &self.end {
                    end();
                }
                return;
            }
            drop(peer);
            std::thread::sleep(TICK);
        }
    }
}

/// Serves a link until its other end is done, and lets go of all that the session held. A call that is cancelled and does not end goes on
/// without its session, as a thread cannot be ended.
pub fn serve(link: Link, dialect: Dialect, limits: Limits, host: Arc<Host>) -> Result<(), Error> {
    serve_until(link, dialect, limits, host, None)
}

/// The same, with what ends the process that the session has for itself: where a call does not end, or its client has gone.
pub fn serve_until(
    link: Link,
    dialect: Dialect,
    limits: Limits,
    host: Arc<Host>,
    end: Option<End>,
) -> Result<(), Error> {
    let peer = Peer::new(link, Role::Server, dialect, limits, Arc::clone(&host));
    let over = Arc::new(AtomicBool::new(false));
    if dialect == Dialect::Own {
        let attendant = Attendant { peer: Arc::downgrade(&peer), over: Arc::clone(&over), end };
        let builder = std::thread::Builder::new().name("rpc-attend".into()).stack_size(128 << 10);
        builder
            .spawn(move || attendant.run())
            .map_err(|error| Error::new(ErrorKind::RuntimeError, format!("cannot watch the session: {error}")))?;
    }
    let outcome = peer.serve();
    over.store(true, Ordering::Relaxed);
    host.finish();
    peer.close();
    outcome
}
