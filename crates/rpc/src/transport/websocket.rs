//! WebSocket: to and from browsers, and through what lets nothing else pass. Binary frames carry the stream, cut anywhere.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::StatusCode;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use super::socket::{Stream, tune};
use super::{Closer, Link, Sink, Source};

/// A handle to the socket whose writes are whole: frames of the two halves do not mix.
struct Shared {
    stream: TcpStream,
    writing: Arc<Mutex<()>>,
}

impl Read for Shared {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        self.stream.read(place)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _whole = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.stream.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

struct Reading {
    socket: WebSocket<Shared>,
    left: Vec<u8>,
    taken: usize,
}

struct Writing(WebSocket<Shared>);

fn failed(error: tungstenite::Error) -> io::Error {
    match error {
        tungstenite::Error::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}

impl Source for Reading {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.left.len() {
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => (self.left, self.taken) = (bytes.to_vec(), 0),
                Ok(Message::Close(_)) => return Ok(0),
                Ok(Message::Text(_)) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "text came, and frames here are binary"));
                }
                Ok(_) => {}
                Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed) => return Ok(0),
                Err(tungstenite::Error::Protocol(_)) => return Ok(0),
                Err(error) => return Err(failed(error)),
            }
        }
        let count = place.len().min(self.left.len() - self.taken);
        place[..count].copy_from_slice(&self.left[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.get_ref().stream.set_read_timeout(timeout)
    }
}

impl Sink for Writing {
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(head.len() + payload.len());
        frame.extend(head);
        frame.extend(payload);
        self.0.send(Message::Binary(frame.into())).map_err(failed)
    }
}

/// A link over a socket that has become a WebSocket.
fn link(stream: &TcpStream, role: Role) -> io::Result<Link> {
    let writing = Arc::new(Mutex::new(()));
    let half = || -> io::Result<WebSocket<Shared>> {
        let shared = Shared { stream: stream.try_clone()?, writing: Arc::clone(&writing) };
        Ok(WebSocket::from_raw_socket(shared, role, None))
    };
    let peer = stream.peer_addr().map_or_else(|_| "a closed socket".into(), |address| address.to_string());
    let closer: Arc<dyn Closer> = Arc::new(Stream::Tcp(stream.try_clone()?));
    Ok(Link {
        source: Box::new(Reading { socket: half()?, left: Vec::new(), taken: 0 }),
        sink: Box::new(Writing(half()?)),
        closer,
        peer,
    })
}

/// Connects to `ws://HOST:PORT/PATH`.
pub fn connect(url: &str, timeout: Duration) -> io::Result<Link> {
    let wrong =
        |what: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{url} is no WebSocket address: {what}"));
    let rest = url.strip_prefix("ws://").ok_or_else(|| wrong("it begins with ws://"))?;
    let place = rest.split('/').next().unwrap_or_default();
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong("the port is a number"))?),
        None => (place, 80),
    };
    let Stream::Tcp(stream) = super::socket::connect(host, port, timeout)? else {
        return Err(wrong("it names a host"));
    };
    stream.set_read_timeout(Some(timeout))?;
    let made = tungstenite::client(url, stream.try_clone()?).map_err(|error| io::Error::other(error.to_string()))?;
    drop(made);
    stream.set_read_timeout(None)?;
    link(&stream, Role::Client)
}

/// Whether a page may be let in: `(origin, host)` as the request says them.
pub type Admits<'a> = &'a dyn Fn(&str, &str) -> bool;

/// Becomes the server's end of a WebSocket, behind the request's head that is still to be read. A browser says which page wants it
/// (`Origin`), and any page may ask: `admits` says which may have it. Others than browsers say nothing and are let in.
#[expect(clippy::result_large_err, reason = "the library asks for its own answer as the error")]
pub fn accept(stream: TcpStream, timeout: Duration, admits: Admits<'_>) -> io::Result<Link> {
    tune(&stream)?;
    stream.set_read_timeout(Some(timeout))?;
    let check = |request: &Request, response: Response| {
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or("no text"));
        match header("origin") {
            Some(origin) if !admits(origin, header("host").unwrap_or_default()) => {
                let mut refused = ErrorResponse::new(Some("pages of this origin are not let in\n".to_owned()));
                *refused.status_mut() = StatusCode::FORBIDDEN;
                Err(refused)
            }
            _ => Ok(response),
        }
    };
    tungstenite::accept_hdr(stream.try_clone()?, check).map_err(|error| io::Error::other(error.to_string()))?;
    stream.set_read_timeout(None)?;
    link(&stream, Role::Server)
}
