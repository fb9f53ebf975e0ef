//! The client's side: connecting to a server or tracker that is known.

use std::time::{Duration, Instant};

use relaxide_ffi::{AnyView, Error, ErrorKind};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use serde_json::{Value, json};

use super::handover;
use super::hello::{self, Prover, hex, material, unhex};
use super::identity::{Fingerprint, Identity, Token};
use super::stream::{link, shake_hands};
use super::verify::{Expected, client_config};
use crate::server::policy::PERMISSION_ERROR;
use crate::session::client::Session;
use crate::session::connect::{CONNECT, Target, dial_with, greet as greet_proxy};
use crate::tracker::client::TrackerLink;
use crate::transport::socket::Stream;
use crate::transport::{Link, socket};
use crate::wire::handshake::{Key, Side};
use crate::wire::{Dialect, Limits};

/// How long a server may be silent while a call runs. One of ours says every ten seconds that it is there.
const SILENCE: Duration = Duration::from_secs(40);

/// How a client shows who it is, and knows the server.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// The client's key.
    pub identity: Option<Identity>,
    /// The server's fingerprint.
    pub server: Option<Fingerprint>,
    /// A token that both know.
    pub token: Option<Token>,
}

impl Credentials {
    /// What is said where nothing else is: `RELAXIDE_RPC_IDENTITY` and `RELAXIDE_RPC_TOKEN` name files, `RELAXIDE_RPC_SERVER` is the
    /// server's fingerprint.
    pub fn from_environment() -> Result<Credentials, Error> {
        let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Ok(Credentials {
            identity: said("RELAXIDE_RPC_IDENTITY").map(|path| Identity::read(Some(&path))).transpose()?,
            server: said("RELAXIDE_RPC_SERVER").map(|text| Fingerprint::parse(&text)).transpose()?,
            token: said("RELAXIDE_RPC_TOKEN").map(|path| Token::read(&path)).transpose()?.map(|(token, _)| token),
        })
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.identity.is_none() && self.token.is_none()
    }
}

/// Connects, and proves what there is to prove, both ways.
fn greet_at(
    host: &str,
    port: u16,
    credentials: &Credentials,
    say: Value,
    patience: Option<Duration>,
) -> Result<Link, Error> {
    let place = format!("{host}:{port}");
    let failed = |error: std::io::Error| Error::new(ErrorKind::OSError, format!("cannot connect to {place}: {error}"));
    let stream = socket::connect(host, port, CONNECT).map_err(failed)?;
    greet(stream, place, credentials, say, patience)
}

/// Proves what there is to prove, both ways. `say` is what the greeting says beside.
fn greet(
    mut stream: Stream,
    place: String,
    credentials: &Credentials,
    mut say: Value,
    patience: Option<Duration>,
) -> Result<Link, Error> {
    if credentials.server.is_none() && credentials.token.is_none() {
        let message =
            "nothing says who the server is: give its fingerprint, which `rpc keygen` and the server print, or a token";
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let failed =
        |error: &dyn std::fmt::Display| Error::new(ErrorKind::OSError, format!("cannot connect to {place}: {error}"));
    let expected = credentials.server.map_or(Expected::Any, Expected::This);
    let config = client_config(credentials.identity.as_ref(), expected).map_err(|error| failed(&error))?;
    let name = ServerName::try_from("relaxide-rpc").map_err(|error| failed(&error))?;
    let mut state = Connection::from(ClientConnection::new(config, name).map_err(|error| failed(&error))?);
    shake_hands(&mut state, &mut stream, Instant::now() + CONNECT).map_err(|error| {
        let pinned = credentials.server.map_or(String::new(), |server| format!("; its key should be {server}"));
        Error::new(error.kind(), format!("{place}: {}{pinned}", error.message()))
    })?;
    let (ours, theirs) = (material(&state, Prover::Client)?, material(&state, Prover::Server)?);
    let mut link = link(state, &stream)?;
    let own = handover::new_key()?;
    say["session"] = json!(own.fingerprint().to_string());
    say["version"] = json!(hello::VERSION);
    say["proof"] = json!(credentials.token.as_ref().map(|token| hex(&token.proof(&ours))));
    hello::write(&mut *link.sink, &say)?;
    let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
    let reply = hello::read(&mut *link.source, deadline).map_err(|error| error.context(&place))?;
    if reply["ok"] != json!(true) {
        let why = reply["error"].as_str().unwrap_or("it does not say why");
        return Err(Error::new(PERMISSION_ERROR, format!("{place} does not let this client in: {why}")));
    }
    if credentials.server.is_none()
        && let Some(token) = &credentials.token
        && !token.accepts(&theirs, &unhex(reply["proof"].as_str().unwrap_or_default()))
    {
        return Err(Error::new(
            PERMISSION_ERROR,
            format!("{place} does not know the token: it is not the server that it should be"),
        ));
    }
    if let Some(session) = reply["session"].as_str() {
        // From the next byte on the session's process is at the other end, which has the key that the server named.
        drop(link);
        link = handover::dial(stream, &own, Fingerprint::parse(session)?)
            .map_err(|error| error.context(format_args!("{place}: the session")))?;
    }
    link.source.set_timeout(None)?;
    link.peer = place;
    Ok(link)
}

/// A session with a server of our protocol.
pub fn connect(target: &Target, credentials: &Credentials, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
    let say = json!({ "key": target.key, "timeout": target.session_timeout });
    let link = greet_at(&target.host, target.port, credentials, say, target.patience)?;
    begin(link, target, constructor)
}

fn begin(link: Link, target: &Target, constructor: &[AnyView<'_>]) -> Result<Session, Error> {
    let session = Session::begin(link, Dialect::Own, Limits::default(), constructor)?;
    session.set_timeout(Some(target.longest_reply().map_or(SILENCE, |longest| longest.min(SILENCE))));
    Ok(session)
}

/// A session with a server of our protocol that waits behind a proxy. The proxy learns the key and the time that is asked for, and nothing else.
pub fn connect_through_proxy(target: &Target, credentials: &Credentials) -> Result<Session, Error> {
    let Target { host, port, key, session_timeout, patience } = target;
    let wanted = Key { side: Side::Client, name: key.clone(), timeout: *session_timeout };
    let place = format!("{key} behind {host}:{port}");
    let (stream, ()) = dial_with(host, *port, |link| greet_proxy(link, &wanted, *patience, &format!("{host}:{port}")))?;
    let say = json!({ "key": key, "timeout": session_timeout });
    let link = greet(stream, place, credentials, say, *patience)?;
    begin(link, target, &[])
}

/// A connection to a tracker of our protocol.
pub fn tracker(credentials: &Credentials, host: &str, port: u16) -> Result<TrackerLink, Error> {
    TrackerLink::over(greet_at(host, port, credentials, json!({ "key": "tracker" }), Some(CONNECT))?)
}
