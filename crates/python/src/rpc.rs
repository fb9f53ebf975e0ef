//! Servers, trackers and proxies that run in this process, beside the interpreter.
//!
//! Their threads never take the interpreter's lock. Sessions are processes of their own, which begin with a command of Python's.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use relaxide::ffi::Error;
use relaxide::rpc::proxy::serve as proxying;
use relaxide::rpc::server::accept::{Isolation, Options, Server};
use relaxide::rpc::server::announce::{Announced, Offer};
use relaxide::rpc::server::greet::Greeter;
use relaxide::rpc::server::session::Grant;
use relaxide::rpc::session::connect::CONNECT;
use relaxide::rpc::tracker::client::TrackerLink;
use relaxide::rpc::tracker::serve as tracking;

use crate::error::to_py;

/// A server of TVM's protocol.
#[pyclass(frozen, module = "relaxide.rpc")]
struct RpcServer(Mutex<Option<Server>>, u16);

#[pymethods]
impl RpcServer {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a server, given by name")]
    #[pyo3(signature = (command, *, host, port, port_end, key, tracker, custom_addr, libraries, reuse, sessions, silent))]
    fn new(
        command: Vec<String>,
        host: String,
        port: u16,
        port_end: u16,
        key: String,
        tracker: Option<(String, u16)>,
        custom_addr: Option<String>,
        libraries: Vec<PathBuf>,
        reuse: bool,
        sessions: usize,
        silent: bool,
    ) -> PyResult<RpcServer> {
        let start = || -> Result<Server, Error> {
            let server = Server::start(Options {
                host,
                port,
                port_end,
                reuse,
                greeter: Greeter::Tvm { key: key.clone() },
                isolation: Isolation::Process(command.into_iter().map(Into::into).collect()),
                sessions,
                timeout: None,
                grant: Grant { libraries, ..Grant::open(&PathBuf::new()) },
                scratch: None,
                silent,
            })?;
            if let Some((host, port)) = tracker {
                let offer = Offer { key, port: server.port(), address: custom_addr, capacity: sessions };
                let dial = Box::new(move || TrackerLink::connect(&host, port, CONNECT));
                server.announce(Announced::start(offer, dial)?);
            }
            Ok(server)
        };
        let server = start().map_err(to_py)?;
        let port = server.port();
        Ok(RpcServer(Mutex::new(Some(server)), port))
    }

    /// The port that it listens on.
    #[getter]
    fn port(&self) -> u16 {
        self.1
    }

    /// Ends it with all its sessions.
    fn terminate(&self, py: Python<'_>) {
        let server = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(server));
    }
}

/// A tracker.
#[pyclass(frozen, module = "relaxide.rpc")]
struct RpcTracker(Mutex<Option<tracking::Tracker>>, u16, String);

#[pymethods]
impl RpcTracker {
    #[new]
    #[pyo3(signature = (*, host, port, port_end, reuse, silent, state=None))]
    fn new(
        host: String,
        port: u16,
        port_end: u16,
        reuse: bool,
        silent: bool,
        state: Option<PathBuf>,
    ) -> PyResult<RpcTracker> {
        let options = tracking::Options { host, port, port_end, reuse, silent, state, secure: None };
        let tracker = tracking::Tracker::start(options).map_err(to_py)?;
        let (port, key) = (tracker.port(), tracker.stop_key().to_owned());
        Ok(RpcTracker(Mutex::new(Some(tracker)), port, key))
    }

    /// The port that it listens on.
    #[getter]
    fn port(&self) -> u16 {
        self.1
    }

    /// The key that ends it.
    #[getter]
    fn stop_key(&self) -> &str {
        &self.2
    }

    /// How it stands, in OpenMetrics form; empty once it has ended.
    fn metrics(&self) -> String {
        let tracker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tracker.as_ref().map(tracking::Tracker::metrics).unwrap_or_default()
    }

    /// Ends it.
    fn terminate(&self, py: Python<'_>) {
        let tracker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(tracker));
    }
}

/// A proxy.
#[pyclass(frozen, module = "relaxide.rpc")]
struct RpcProxy(Mutex<Option<proxying::Proxy>>, u16);

#[pymethods]
impl RpcProxy {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a proxy, given by name")]
    #[pyo3(signature = (*, host, port, port_end, web_port, web_clients, web_origins, index_page, resource_files, tracker, timeout_client, timeout_server))]
    fn new(
        host: String,
        port: u16,
        port_end: u16,
        web_port: u16,
        web_clients: bool,
        web_origins: Vec<String>,
        index_page: Option<PathBuf>,
        resource_files: Vec<PathBuf>,
        tracker: Option<(String, u16)>,
        timeout_client: f64,
        timeout_server: f64,
    ) -> PyResult<RpcProxy> {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let options = proxying::Options {
            host,
            port,
            port_end,
            web_port,
            web_clients,
            web_origins,
            index_page,
            resource_files,
            tracker,
            timeout_client: seconds(timeout_client),
            timeout_server: seconds(timeout_server),
            silent: true,
        };
        let proxy = proxying::Proxy::start(options).map_err(to_py)?;
        let port = proxy.port();
        Ok(RpcProxy(Mutex::new(Some(proxy)), port))
    }

    /// The port that it listens on.
    #[getter]
    fn port(&self) -> u16 {
        self.1
    }

    /// Ends it.
    fn terminate(&self, py: Python<'_>) {
        let proxy = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(proxy));
    }
}

/// Runs a command of `relaxide rpc`; `itself` starts this program again.
#[pyfunction]
fn rpc_command(py: Python<'_>, itself: Vec<String>, words: Vec<String>) -> i32 {
    let itself: Vec<std::ffi::OsString> = itself.into_iter().map(Into::into).collect();
    py.detach(|| relaxide::rpc::command::run(&itself, &words))
}

/// A session of our own protocol, as a module.
#[pyfunction]
#[pyo3(signature = (host, port, key, *, session_timeout, identity, server, token))]
#[expect(clippy::too_many_arguments, reason = "they are what a connection is made of, given by name")]
fn rpc_connect_secure(
    py: Python<'_>,
    host: String,
    port: u16,
    key: String,
    session_timeout: Option<f64>,
    identity: Option<String>,
    server: Option<String>,
    token: Option<String>,
) -> PyResult<crate::module::Module> {
    use relaxide::rpc::secure::dial::{Credentials, connect};
    use relaxide::rpc::secure::identity::{Fingerprint, Identity, Token};
    let begin = || -> Result<_, Error> {
        let credentials = Credentials {
            identity: identity.map(|path| Identity::read(Some(&path))).transpose()?,
            server: server.map(|text| Fingerprint::parse(&text)).transpose()?,
            token: token.map(|path| Token::read(&path)).transpose()?.map(|(token, _)| token),
        };
        let target = relaxide::rpc::session::connect::Target { host, port, key, session_timeout, patience: None };
        Ok(connect(&target, &credentials, &[])?.module())
    };
    py.detach(begin).map(crate::module::Module).map_err(to_py)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    relaxide::rpc::register();
    m.add_class::<RpcServer>()?;
    m.add_class::<RpcTracker>()?;
    m.add_class::<RpcProxy>()?;
    m.add_function(wrap_pyfunction!(rpc_command, m)?)?;
    m.add_function(wrap_pyfunction!(rpc_connect_secure, m)?)
}
