//! A server of remote calls inside of a program, for boards (feature `rpc`).

use std::ffi::{c_char, c_int};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use relaxide_ffi::Error;
use relaxide_rpc::server::accept::{Isolation, Options, Server};
use relaxide_rpc::server::greet::Greeter;
use relaxide_rpc::server::session::Grant;

use crate::border::{at, guard, invalid, put, release, text};

/// A server that runs.
pub struct RelaxideServer(Mutex<Option<Server>>);

/// Serves TVM's protocol at an address, in threads of this program: a port of 0 takes any, and the one that was taken is written to
/// `port`. The protocol has no security, so an address other than loopback must be a trusted network's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_rpc_serve(
    host: *const c_char,
    port: *mut c_int,
    key: *const c_char,
    server: *mut *mut RelaxideServer,
) -> c_int {
    guard(|| {
        // SAFETY: the contract of this interface: what is not null is valid.
        let (host, key, wanted) = unsafe { (text(host, "host")?, text(key, "key")?, *at(port, "port")?) };
        let wanted = u16::try_from(wanted).map_err(|_| invalid(format!("{wanted} is no port")))?;
        if server.is_null() {
            return Err(crate::border::null("server"));
        }
        let started = start(host, wanted, key)?;
        let taken = c_int::from(started.port());
        let handle = Box::new(RelaxideServer(Mutex::new(Some(started))));
        // SAFETY: as above.
        unsafe {
            put(port, taken, "port")?;
            put(server, Box::into_raw(handle), "server")
        }
    })
}

fn start(host: &str, port: u16, key: &str) -> Result<Server, Error> {
    relaxide_rpc::register();
    Server::start(Options {
        host: host.to_owned(),
        port,
        port_end: port.saturating_add(1),
        reuse: true,
        greeter: Greeter::Tvm { key: key.to_owned() },
        isolation: Isolation::Thread,
        sessions: 16,
        timeout: None,
        grant: Grant::open(&PathBuf::new()),
        scratch: None,
        silent: true,
    })
}

/// Ends a server and its sessions, and frees the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_rpc_stop(server: *mut RelaxideServer) {
    if server.is_null() {
        return;
    }
    release(|| {
        // SAFETY: the contract of this interface: the handle is one of `relaxide_rpc_serve`, and is not used again.
        let server = unsafe { Box::from_raw(server) };
        drop(server.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    });
}
