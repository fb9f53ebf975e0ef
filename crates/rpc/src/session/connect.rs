//! Connecting to a server: greeting it, and beginning a session.

use std::process::Command;
use std::time::Duration;

use relaxide_ffi::{AnyView, Error, ErrorKind};

use super::client::Session;
use crate::transport::socket::Stream;
use crate::transport::{Link, pipe, pump, read_exact, socket};
use crate::wire::handshake::{DUPLICATE, Key, MAGIC, MISMATCH, Side, hello, key_length};
use crate::wire::{Dialect, Limits};

/// How long it takes at most until there is a connection.
pub const CONNECT: Duration = Duration::from_secs(30);

/// Which server, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The host: a name, an address, `unix:PATH`, or with the feature `websocket` `ws://HOST:PORT/PATH`.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The key of the server.
    pub key: String,
    /// How many seconds the session may last; nothing: as long as the server lets it.
    pub session_timeout: Option<f64>,
    /// How long the server may take to let the client in; nothing: for ever, as it may serve another first.
    pub patience: Option<Duration>,
}

/// How much longer than a session may last its server may take to say that it is over.
const GRACE: Duration = Duration::from_secs(3);

impl Target {
    /// How long a reply can take: no longer than the session. A server that hangs is found out by that.
    pub fn longest_reply(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.session_timeout?).ok()?.checked_add(GRACE)
    }
}

fn internal(message: String) -> Error {
    Error::new(ErrorKind::InternalError, message)
}

/// Greets a server of TVM's protocol at the end of a link.
pub fn greet(link: &mut Link, key: &Key, patience: Option<Duration>, url: &str) -> Result<(), Error> {
    let text = key.text();
    let failed = |step: &str, error: std::io::Error| {
        internal(format!("URL {url}: the greeting failed where the server was to {step}: {error}"))
    };
    link.sink.write(&hello(&text), &[]).map_err(|error| failed("be told the key", error))?;
    link.source.set_timeout(patience)?;
    let mut word = [0; 4];
    read_exact(&mut *link.source, &mut word).map_err(|error| failed("say whether it knows the key", error))?;
    match i32::from_le_bytes(word) {
        MAGIC => {}
        DUPLICATE => return Err(internal(format!("URL {url} server already have key={text}"))),
        MISMATCH => return Err(internal(format!("URL {url} cannot find server that matches key={text}"))),
        _ => return Err(internal(format!("URL {url} is not TVM RPC server"))),
    }
    read_exact(&mut *link.source, &mut word).map_err(|error| failed("say its own key", error))?;
    let mut own = vec![0; key_length(word)?];
    read_exact(&mut *link.source, &mut own).map_err(|error| failed("say its own key", error))?;
    if !own.starts_with(Side::Server.prefix().as_bytes()) {
        return Err(internal(format!(
            "URL {url} is not TVM RPC server: it calls itself {:?}",
            String::from_utf8_lossy(&own)
        )));
    }
    link.source.set_timeout(None)?;
    link.peer = match &*key.name {
        "" => url.to_owned(),
        name => format!("{url} ({name})"),
    };
    Ok(())
}

/// A connection to a host, whatever kind it is.
pub fn dial(host: &str, port: u16) -> Result<Link, Error> {
    #[cfg(feature = "websocket")]
    if host.starts_with("ws://") {
        return crate::transport::websocket::connect(host, CONNECT).map_err(|error| no_connection(host, port, &error));
    }
    Ok(dial_socket(host, port)?.into_link()?)
}

/// A connection to a host, and what a greeting over it came to. The greeting reads no more than its own bytes.
pub fn dial_with<T>(
    host: &str,
    port: u16,
    greeting: impl FnOnce(&mut Link) -> Result<T, Error>,
) -> Result<(Stream, T), Error> {
    if host.starts_with("ws://") {
        let mut link = dial(host, port)?;
        let said = greeting(&mut link)?;
        return Ok((pump::into_stream(link)?, said));
    }
    let stream = dial_socket(host, port)?;
    let said = greeting(&mut stream.try_clone()?.into_link()?)?;
    Ok((stream, said))
}

fn dial_socket(host: &str, port: u16) -> Result<Stream, Error> {
    socket::connect(host, port, CONNECT).map_err(|error| no_connection(host, port, &error))
}

fn no_connection(host: &str, port: u16, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::OSError, format!("cannot connect to {host}:{port}: {error}; is the server there?"))
}

/// A session with a server of TVM's protocol. `constructor` is nothing, or the name of a far function and its arguments.
pub fn connect_tvm(target: &Target, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
    let mut link = dial(&target.host, target.port)?;
    let key = Key { side: Side::Client, name: target.key.clone(), timeout: target.session_timeout };
    greet(&mut link, &key, target.patience, &format!("{}:{}", target.host, target.port))?;
    let session = Session::begin(link, Dialect::Tvm, Limits::default(), constructor)?;
    session.set_timeout(target.longest_reply());
    Ok(session)
}

/// A session with a child process that serves TVM's protocol, over its standard input and output. It is told their numbers, as TVM's
/// children are.
pub fn spawn_tvm(mut command: Command, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
    command.args(["0", "1"]);
    let name = command.get_program().to_string_lossy().into_owned();
    let link = pipe::spawn(command)
        .map_err(|error| Error::new(ErrorKind::RuntimeError, format!("{name} cannot be started: {error}")))?;
    Session::begin(link, Dialect::Tvm, Limits::default(), constructor)
}

/// A session with the far end of a command, such as `ssh board relaxide-rpc pipe --own`, which serves through its standard input and
/// output. The command is the one that secures it.
pub fn spawn_own(command: Command, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let link = pipe::spawn(command)
        .map_err(|error| Error::new(ErrorKind::RuntimeError, format!("{name} cannot be started: {error}")))?;
    Session::begin(link, Dialect::Own, Limits::default(), constructor)
}
