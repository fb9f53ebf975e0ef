//! Sessions within the process: the far side is a thread of it.

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

/// Serves a link until its other end is done, and lets go of all that the session held.
pub fn serve(link: Link, dialect: Dialect, limits: Limits, host: std::sync::Arc<Host>) -> Result<(), Error> {
    let peer = Peer::new(link, Role::Server, dialect, limits, std::sync::Arc::clone(&host));
    let outcome = peer.serve();
    host.finish();
    peer.close();
    outcome
}
