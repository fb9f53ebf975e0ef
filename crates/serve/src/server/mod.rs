//! Connections: taken in, served, and ended.
//!
//! One thread does this; it computes nothing. When the server is to end, it takes no more connections, lets each answer what it has
//! taken in, and ends when the last one has.

pub(crate) mod body;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::service::Service;
use crate::{Error, Fault, grpc, http};

/// How long a head may take to come, and how long a connection may be idle.
const HEAD_TIME: Duration = Duration::from_secs(60);

/// Bytes of a head of HTTP/2 at most.
const MAX_HEAD: u32 = 64 << 10;

/// Bytes that a peer of HTTP/2 may send ahead.
const WINDOW: u32 = 1 << 20;

/// Calls of one connection of HTTP/2 at once.
const MAX_STREAMS: u32 = 1024;

/// Which protocol a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

/// How connections are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connections {
    /// At once, of both protocols.
    pub most: usize,
    /// How long the end waits for what was taken in.
    pub grace: Duration,
    /// How often files are looked at.
    pub watch: Option<Duration>,
}

/// Listens.
pub(crate) fn listen(address: &str) -> Result<TcpListener, Error> {
    let failed = |error: std::io::Error| Error::invalid(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Serves until the process is told to end.
pub(crate) fn run(
    service: &Arc<Service>,
    listeners: Vec<(Protocol, TcpListener)>,
    how: Connections,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::new(Fault::Internal, format!("cannot start: {error}")))?;
    let result = runtime.block_on(serve(service, listeners, how));
    // A model that is being loaded is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve(service: &Arc<Service>, listeners: Vec<(Protocol, TcpListener)>, how: Connections) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::new(Fault::Internal, format!("cannot start: {error}"));
    let (end, ended) = watch::channel(false);
    let places = Arc::new(Semaphore::new(how.most));
    let mut tasks = JoinSet::new();
    for (protocol, listener) in listeners {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        tasks.spawn(accept(Arc::clone(service), protocol, listener, ended.clone(), Arc::clone(&places)));
    }
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let mut looks = tokio::time::interval(how.watch.unwrap_or(Duration::from_secs(3600)));
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                let names = service.repository.all().iter().map(|model| model.name.clone()).collect();
                reload(service, names);
            }
            _ = looks.tick(), if how.watch.is_some() => reload(service, service.repository.changed()),
        }
    }
    service.is_ending.store(true, Ordering::Relaxed);
    // Nobody may be listening any more.
    let _ = end.send(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    let message = || format!("requests were still running {} s after the end was asked for", how.grace.as_secs());
    tokio::time::timeout(how.grace, all).await.map_err(|_| Error::new(Fault::Timeout, message()))
}

/// Loads models anew, on a thread of its own.
fn reload(service: &Arc<Service>, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    let service = Arc::clone(service);
    tokio::task::spawn_blocking(move || {
        for name in names {
            match service.load(&name) {
                Ok(()) => eprintln!("loaded {name} anew"),
                Err(error) => eprintln!("error: {error}; the model that was loaded before is still served"),
            }
        }
    });
}

/// Takes connections in until the end, and waits for those that it took.
async fn accept(
    service: Arc<Service>,
    protocol: Protocol,
    listener: tokio::net::TcpListener,
    mut ended: watch::Receiver<bool>,
    places: Arc<Semaphore>,
) {
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            _ = ended.changed() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (place, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let serve = connection(Arc::clone(&service), protocol, stream, ended.clone());
                    connections.spawn(async move {
                        serve.await;
                        drop(place);
                    });
                }
                // Out of descriptors, as a rule: others end meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves a connection until its peer or the server ends it. What goes wrong with it is nobody else's matter.
async fn connection(service: Arc<Service>, protocol: Protocol, stream: TcpStream, mut ended: watch::Receiver<bool>) {
    // Answers are small and wait for nothing.
    let _ = stream.set_nodelay(true);
    let stream = TokioIo::new(stream);
    macro_rules! drive {
        ($connection:expr) => {{
            let mut connection = std::pin::pin!($connection);
            tokio::select! {
                _ = connection.as_mut() => return,
                _ = ended.wait_for(|is_ended| *is_ended) => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        }};
    }
    match protocol {
        Protocol::Http => {
            let serve = service_fn(|request| http::routes::serve(Arc::clone(&service), request));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
            drive!(builder.serve_connection(stream, serve));
        }
        Protocol::Grpc => {
            let serve = service_fn(|request| grpc::methods::serve(Arc::clone(&service), request));
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder.timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS).max_header_list_size(MAX_HEAD);
            builder.initial_stream_window_size(WINDOW).initial_connection_window_size(4 * WINDOW);
            builder.keep_alive_interval(Some(HEAD_TIME));
            drive!(builder.serve_connection(stream, serve));
        }
    }
}

/// The address of a listener.
pub(crate) fn address(listener: &TcpListener) -> Result<SocketAddr, Error> {
    listener.local_addr().map_err(|error| Error::new(Fault::Internal, format!("a listener has no address: {error}")))
}
