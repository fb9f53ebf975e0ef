//! [`Gate`]: the server's side. It lets in who proves to be known.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use relaxide_ffi::{Error, ErrorKind};
use rustls::{Connection, ServerConfig, ServerConnection};
use serde_json::{Value, json};

use super::handover;
use super::hello::{self, Prover, hex, material, unhex};
use super::identity::{Fingerprint, Identity, Token};
use super::keys::{Keys, Rights};
use super::stream::{link, shake_hands};
use super::verify::{Expected, server_config};
use crate::server::children::Running;
use crate::server::confine::Confinement;
use crate::server::greet::{Asked, GREETING};
use crate::server::policy::PERMISSION_ERROR;
use crate::server::session::Grant;
use crate::transport::socket::Stream;
use crate::transport::{Link, pump};
use crate::wire::Dialect;
use crate::wire::handshake::{Key, Side};

/// What a token lets its holders do where its file says nothing.
const TOKEN_RIGHTS: &str = "files load call=*";

type Counts = Arc<Mutex<HashMap<String, usize>>>;

/// Who lets clients in.
pub struct Gate {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
    keys: Keys,
    token: Option<(Token, Rights)>,
    key: String,
    running: Counts,
    log: Option<File>,
}

/// A client that was let in.
pub struct Accepted {
    stream: Stream,
    link: Link,
    rights: Rights,
    /// What shows the client that this end knows the token.
    proof: Option<Vec<u8>>,
    /// The key that the client has for the session alone.
    session_key: Option<Fingerprint>,
    held: Held,
}

/// Counts a session of a key off at its end.
pub struct Held {
    counts: Counts,
    name: String,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.name) {
            *count = count.saturating_sub(1);
        }
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(PERMISSION_ERROR, message)
}

/// Who is at the other end.
struct Guest {
    link: Link,
    rights: Rights,
    by_token: bool,
    fingerprint: Option<Fingerprint>,
    /// What it said.
    said: Value,
    /// What shows it that this end knows the token.
    proof: Option<Vec<u8>>,
}

impl Gate {
    /// A gate of files: the server's own key, who is let in, a token. At least one of the latter two must be there.
    pub fn open(identity: Option<&str>, keys: Option<&str>, token: Option<&str>, key: &str) -> Result<Gate, Error> {
        if keys.is_none() && token.is_none() {
            let message = "nobody could come in: give --keys FILE or --token FILE; `rpc keygen` makes both";
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        if keys.is_some() && identity.is_none() && token.is_none() {
            let message = "clients pin the server's key: give --identity FILE, which `rpc keygen --out FILE` makes";
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let token = match token {
            None => None,
            Some(path) => {
                let (token, words) = Token::read(path)?;
                let words = if words.is_empty() { TOKEN_RIGHTS } else { &words };
                let rights = Rights::parse("token", words.split_whitespace());
                Some((token, rights.map_err(|error| Error::new(ErrorKind::ValueError, format!("{path}: {error}")))?))
            }
        };
        Gate::new(&Identity::read(identity)?, keys.map(Keys::read).transpose()?.unwrap_or_default(), token, key)
    }

    /// A gate of what was read already.
    pub fn new(identity: &Identity, keys: Keys, token: Option<(Token, Rights)>, key: &str) -> Result<Gate, Error> {
        let config = server_config(identity, Expected::Any)
            .map_err(|error| Error::new(ErrorKind::ValueError, format!("the server's key cannot be used: {error}")))?;
        Ok(Gate {
            config,
            fingerprint: identity.fingerprint(),
            keys,
            token,
            key: key.to_owned(),
            running: Counts::default(),
            log: None,
        })
    }

    /// Writes who comes, and who is turned away, into a file.
    pub fn log_to(&mut self, path: &Path) -> Result<(), Error> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        self.log =
            Some(file.map_err(|error| {
                Error::new(ErrorKind::OSError, format!("cannot write {}: {error}", path.display()))
            })?);
        Ok(())
    }

    /// The key that clients ask for.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What clients pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn note(&self, user: &str, what: &str, of: &str) {
        if let Some(log) = &self.log {
            crate::server::log::line(log, user, what, of);
        }
    }

    /// Shakes hands, hears the greeting, and says who it is.
    fn hear(&self, stream: &mut Stream) -> Result<Guest, Error> {
        let deadline = Instant::now() + GREETING;
        stream.set_write_timeout(Some(GREETING))?;
        let made = ServerConnection::new(Arc::clone(&self.config));
        let made = made.map_err(|error| Error::new(ErrorKind::RuntimeError, format!("TLS cannot begin: {error}")))?;
        let mut state = Connection::from(made);
        shake_hands(&mut state, stream, deadline)?;
        let fingerprint = state.peer_certificates().and_then(|chain| chain.first()).map(Fingerprint::of);
        let (theirs, ours) = (material(&state, Prover::Client)?, material(&state, Prover::Server)?);
        let mut link = link(state, stream)?;
        let said = hello::read(&mut *link.source, Some(deadline))?;
        let known = fingerprint.and_then(|fingerprint| self.keys.of(fingerprint));
        let proven = self
            .token
            .as_ref()
            .filter(|(token, _)| token.accepts(&theirs, &unhex(said["proof"].as_str().unwrap_or(""))));
        let proof = proven.map(|(token, _)| token.proof(&ours));
        let (rights, by_token) = match (known, proven) {
            (Some(rights), _) => (rights.clone(), false),
            (None, Some((_, rights))) => (rights.clone(), true),
            (None, None) => {
                let who = fingerprint.map_or_else(|| "without a key".to_owned(), |fingerprint| fingerprint.to_string());
                self.note(&who, "turned away", "unknown key");
                // Who is not known is not told more than that.
                let _ = hello::write(
                    &mut *link.sink,
                    &json!({ "ok": false, "error": "the server does not know this key or token" }),
                );
                return Err(refused(format!("a client that is not known ({who})")));
            }
        };
        if said["version"].as_i64() != Some(hello::VERSION) {
            let message = format!("the server speaks version {} of the protocol", hello::VERSION);
            let _ = hello::write(&mut *link.sink, &json!({ "ok": false, "error": message }));
            return Err(refused("a client of another version"));
        }
        Ok(Guest { link, rights, by_token, fingerprint, said, proof })
    }

    /// Lets a client in, or says why not.
    pub fn greet(&self, mut stream: Stream, asked: Asked<'_>) -> Result<(Accepted, Key), Error> {
        let Guest { mut link, rights, by_token, fingerprint, said, proof } = self.hear(&mut stream)?;
        let name = said["key"].as_str().unwrap_or_default();
        let fits = match asked {
            Asked::Tracker(announced) => announced.take(name),
            Asked::Server => name == self.key,
            Asked::Proxy => true,
        };
        let mut turn_away = |why: String| {
            self.note(&rights.name, "turned away", &why);
            let _ = hello::write(&mut *link.sink, &json!({ "ok": false, "error": why }));
            refused(format!("{}: {why}", rights.name))
        };
        if !fits {
            return Err(turn_away(format!("cannot find server that matches key=client:{name}")));
        }
        let held = self.hold(&rights).map_err(|why| turn_away(why.to_string())).inspect_err(|_| {
            // The key that was used up is as good as given back.
            if let Asked::Tracker(announced) = asked {
                announced.put_again();
            }
        })?;
        let how = if by_token { "token".to_owned() } else { fingerprint.map_or_else(String::new, |f| f.to_string()) };
        self.note(&rights.name, "let in", &how);
        stream.set_write_timeout(None)?;
        link.source.set_timeout(None)?;
        let wished = said["timeout"].as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        let most = rights.time.map(|time| time.as_secs_f64());
        let timeout = match (wished, most) {
            (Some(wished), Some(most)) => Some(wished.min(most)),
            (wished, most) => wished.or(most),
        };
        let key = Key { side: Side::Client, name: name.to_owned(), timeout };
        let session_key = said["session"].as_str().and_then(|text| Fingerprint::parse(text).ok());
        Ok((Accepted { stream, link, rights, proof, session_key, held }, key))
    }

    fn hold(&self, rights: &Rights) -> Result<Held, TooManySessions> {
        let mut counts = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(rights.name.clone()).or_default();
        if let Some(most) = rights.sessions
            && *count >= most
        {
            return Err(TooManySessions { count: *count, most });
        }
        *count += 1;
        Ok(Held { counts: Arc::clone(&self.running), name: rights.name.clone() })
    }

    /// The gate as a tracker's: who is known may use it, under its name.
    pub fn for_tracker(self) -> crate::tracker::serve::Secure {
        Arc::new(move |mut stream: Stream| {
            let mut guest = self.hear(&mut stream)?;
            let reply = json!({ "ok": true, "name": "tracker", "proof": guest.proof.as_deref().map(hex) });
            hello::write(&mut *guest.link.sink, &reply)?;
            guest.link.source.set_timeout(None)?;
            self.note(&guest.rights.name, "let in", "tracker");
            Ok((guest.link, guest.rights.name, guest.fingerprint.map(|fingerprint| fingerprint.to_string())))
        })
    }
}

/// A key that has all the sessions that it may have.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this key has {count} sessions already and may have {most}")]
struct TooManySessions {
    count: usize,
    most: usize,
}

impl Accepted {
    /// The connection, to see whether the client is still there.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The name of the client's key.
    pub fn user(&self) -> &str {
        &self.rights.name
    }

    /// What is to be kept until the session ends.
    pub fn into_held(self) -> Held {
        self.held
    }

    fn welcome(&mut self, key: &str, session: Option<Fingerprint>) -> Result<(), Error> {
        let reply = json!({
            "ok": true,
            "name": format!("server:{key}"),
            "proof": self.proof.as_deref().map(hex),
            "session": session.map(|session| session.to_string()),
        });
        hello::write(&mut *self.link.sink, &reply).map_err(Error::from)
    }

    /// What a session of this client gets.
    fn granted(&self, grant: Grant) -> Grant {
        let rights = &self.rights;
        let confinement = match grant.confinement {
            Confinement::Nowhere if !rights.policy.everything => Confinement::WherePossible,
            other => other,
        };
        Grant {
            dialect: Dialect::Own,
            policy: rights.policy.clone(),
            user: rights.name.clone(),
            confinement,
            client_key: None,
            ..grant
        }
    }

    /// Gives the connection to a process of its own, which `start` starts and which says its key first, and tells the client.
    /// Nothing if the client has no key for that: then it is told nothing yet.
    pub fn hand_over(
        &mut self,
        key: &str,
        grant: Grant,
        start: impl FnOnce(Stream, &Grant) -> Result<Running, Error>,
    ) -> Result<Option<Running>, Error> {
        let Some(client_key) = self.session_key else { return Ok(None) };
        let grant = Grant { client_key: Some(client_key.to_string()), ..self.granted(grant) };
        let mut running = start(self.stream.try_clone()?, &grant)?;
        let session = running.said().and_then(handover::read_key);
        match session.and_then(|session| self.welcome(key, Some(session))) {
            Ok(()) => Ok(Some(running)),
            Err(error) => {
                running.end();
                Err(error)
            }
        }
    }

    /// Tells the client that it is in. Gives the stream of the session's packets, and what the session gets: the bytes are decrypted
    /// here, so no session has the server's key.
    pub fn into_session(mut self, key: &str, grant: Grant) -> Result<(Stream, Grant), Error> {
        self.welcome(key, None)?;
        let grant = self.granted(grant);
        let (held, link) = (self.held, self.link);
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        let far = Stream::Unix(far).into_link()?;
        std::thread::Builder::new().name("rpc-tls".into()).stack_size(256 << 10).spawn(move || {
            let _ = pump::join(link, far);
            drop(held);
        })?;
        Ok((Stream::Unix(near), grant))
    }
}
