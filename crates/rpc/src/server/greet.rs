//! [`Greeter`]: who may come in, by either protocol.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};

use super::announce::Announced;
use super::children::Running;
use super::session::Grant;
use crate::transport::Sink;
use crate::transport::socket::Stream;
use crate::wire::handshake::{Key, MAGIC, MISMATCH, Side, answer, key_length, refusal};

/// How long a client may take to say who it is.
pub const GREETING: Duration = Duration::from_secs(10);

/// Who greets.
pub enum Greeter {
    /// TVM's protocol: whoever knows the key.
    Tvm {
        /// The key.
        key: String,
    },
    /// Ours: whoever proves who it is.
    #[cfg(feature = "secure")]
    Secure(Box<crate::secure::accept::Gate>),
}

/// Whom a client asked for this server, and so who looks at the key that it names.
#[cfg(feature = "secure")]
#[derive(Clone, Copy)]
pub enum Asked<'a> {
    /// The server itself.
    Server,
    /// A tracker, which gave it a key that is used once.
    Tracker(&'a Announced),
    /// A proxy, which has looked at the key already.
    Proxy,
}

/// A client that was let in.
pub struct Greeted {
    /// The client.
    pub admitted: Admitted,
    /// What it said.
    pub key: Key,
}

/// What a session takes up while it lasts.
#[cfg(feature = "secure")]
pub type Kept = crate::secure::accept::Held;
/// What a session takes up while it lasts: without keys, nothing.
#[cfg(not(feature = "secure"))]
pub type Kept = std::convert::Infallible;

/// A client's connection, behind its greeting.
pub enum Admitted {
    /// As it is, and not told yet that it is in.
    Plain(Stream),
    /// As it is; a proxy has told it.
    Told(Stream),
    /// Within TLS.
    #[cfg(feature = "secure")]
    Secure(Box<crate::secure::accept::Accepted>),
}

/// Reads all of a place within what is left of a time.
pub(crate) fn read_within(stream: &mut Stream, place: &mut [u8], deadline: Instant) -> Result<(), Error> {
    let mut filled = 0;
    while filled < place.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new("TimeoutError", "the client does not say who it is"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read_on(&mut place[filled..]) {
            Ok(0) => {
                return Err(Error::new(
                    ErrorKind::OSError,
                    "the client closed the connection before it said who it is",
                ));
            }
            Ok(count) => filled += count,
            Err(error) => return Err(Error::new(ErrorKind::OSError, format!("the greeting failed: {error}"))),
        }
    }
    Ok(())
}

/// Reads a magic number and a key.
pub(crate) fn read_hello(stream: &mut Stream, deadline: Instant) -> Result<(i32, Vec<u8>), Error> {
    let mut magic = [0; 4];
    read_within(stream, &mut magic, deadline)?;
    let magic = i32::from_le_bytes(magic);
    if magic != MAGIC {
        return Ok((magic, Vec::new()));
    }
    let mut length = [0; 4];
    read_within(stream, &mut length, deadline)?;
    let mut key = vec![0; key_length(length)?];
    read_within(stream, &mut key, deadline)?;
    Ok((magic, key))
}

impl Greeter {
    /// Lets a client in, or says why not.
    pub fn read(&self, stream: Stream, announced: Option<&Announced>) -> Result<Greeted, Error> {
        match self {
            Greeter::Tvm { key } => greet_tvm(stream, key, announced),
            #[cfg(feature = "secure")]
            Greeter::Secure(gate) => {
                let asked = announced.map_or(Asked::Server, Asked::Tracker);
                let (accepted, key) = gate.greet(stream, asked)?;
                Ok(Greeted { admitted: Admitted::Secure(Box::new(accepted)), key })
            }
        }
    }

    /// Lets a client in that a proxy led here: it was asked for its key there.
    pub fn read_behind_proxy(&self, stream: Stream, key: Key) -> Result<Greeted, Error> {
        match self {
            Greeter::Tvm { .. } => Ok(Greeted { admitted: Admitted::Told(stream), key }),
            #[cfg(feature = "secure")]
            Greeter::Secure(gate) => {
                let (accepted, key) = gate.greet(stream, Asked::Proxy)?;
                Ok(Greeted { admitted: Admitted::Secure(Box::new(accepted)), key })
            }
        }
    }

    /// The key without what is random.
    pub fn key(&self) -> &str {
        match self {
            Greeter::Tvm { key } => key,
            #[cfg(feature = "secure")]
            Greeter::Secure(gate) => gate.key(),
        }
    }
}

fn greet_tvm(mut stream: Stream, own: &str, announced: Option<&Announced>) -> Result<Greeted, Error> {
    let deadline = Instant::now() + GREETING;
    stream.set_write_timeout(Some(GREETING))?;
    let (magic, key) = read_hello(&mut stream, deadline)?;
    if magic != MAGIC {
        return Err(Error::new(
            ErrorKind::ValueError,
            format!("the client does not speak TVM's protocol ({magic:#x})"),
        ));
    }
    let key = Key::parse(&key)?;
    let fits = match announced {
        Some(announced) => announced.take(&key.name),
        None => key.name == own,
    };
    if key.side != Side::Client || !fits {
        Sink::write(&mut stream, &refusal(MISMATCH), &[])?;
        return Err(Error::new(ErrorKind::ValueError, format!("the client looks for another key, {:?}", key.text())));
    }
    stream.set_read_timeout(None)?;
    Ok(Greeted { admitted: Admitted::Plain(stream), key })
}

impl Admitted {
    /// The connection, to see whether the client is still there.
    pub fn stream(&self) -> &Stream {
        match self {
            Admitted::Plain(stream) | Admitted::Told(stream) => stream,
            #[cfg(feature = "secure")]
            Admitted::Secure(accepted) => accepted.stream(),
        }
    }

    /// Tells the client that it is in, and starts its session in a process of its own. What is given beside it is kept until that ends.
    pub fn start(
        self,
        greeter: &Greeter,
        command: &[OsString],
        grant: Grant,
    ) -> Result<(Running, Option<Kept>), Error> {
        #[cfg(feature = "secure")]
        if let Admitted::Secure(mut accepted) = self {
            let start = |stream: Stream, grant: &Grant| Running::start(command, stream, grant);
            if let Some(running) = accepted.hand_over(greeter.key(), grant.clone(), start)? {
                return Ok((running, Some(accepted.into_held())));
            }
            let (stream, grant) = accepted.into_session(greeter.key(), grant)?;
            return Ok((Running::start(command, stream, &grant)?, None));
        }
        let (stream, grant) = self.into_session(greeter, grant)?;
        Ok((Running::start(command, stream, &grant)?, None))
    }

    /// Tells the client that it is in. Gives the stream of the session's packets, and what the session gets.
    pub fn into_session(self, greeter: &Greeter, grant: Grant) -> Result<(Stream, Grant), Error> {
        match self {
            Admitted::Plain(mut stream) => {
                let said = answer(MAGIC, &format!("{}{}", Side::Server.prefix(), greeter.key()));
                Sink::write(&mut stream, &said, &[])?;
                stream.set_write_timeout(None)?;
                Ok((stream, grant))
            }
            Admitted::Told(stream) => Ok((stream, grant)),
            #[cfg(feature = "secure")]
            Admitted::Secure(accepted) => accepted.into_session(greeter.key(), grant),
        }
    }

    /// Who the client is, where that is known.
    pub fn user(&self) -> &str {
        match self {
            Admitted::Plain(_) | Admitted::Told(_) => "",
            #[cfg(feature = "secure")]
            Admitted::Secure(accepted) => accepted.user(),
        }
    }

    /// What a session gets of what its server gives to all: its folder, and the time that its client asked for.
    pub fn grant(&self, key: &Key, common: &Grant, folder: &Path) -> Grant {
        let timeout = key.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Grant { folder: folder.to_path_buf(), timeout, ..common.clone() }
    }
}
