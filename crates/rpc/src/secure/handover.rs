//! The second handshake of a connection: from whoever let a client in to the session's process.
//!
//! The server's key stays with the process that greets. A session's process has the connection itself, so that no byte of it goes through
//! two processes, and keys that live as long as the session:
//!
//! ```text
//! client ── TLS, the server's key ──► greeter      says who it is, and the fingerprint of a new key
//! client ◄─────────────────────────── greeter      is let in, and told the fingerprint of the session's new key
//! client ── TLS, both new keys ─────► session      on the same connection, from its next byte on
//! ```
//!
//! Both fingerprints came through the first handshake's connection, and each end takes no other. So who is in between can end the
//! connection, and nothing else; and code that a session loads finds no key in its process but its own.

use std::io::{BufRead, BufReader, Read};
use std::time::Instant;

use relaxide_ffi::{Error, ErrorKind};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;

use super::identity::{Fingerprint, Identity};
use super::records::link;
use super::verify::{Expected, client_config, server_config};
use crate::server::greet::GREETING;
use crate::session::connect::CONNECT;
use crate::transport::Link;
use crate::transport::socket::Stream;

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::RuntimeError, format!("the session's own TLS cannot begin: {error}"))
}

/// A key for one session.
pub fn new_key() -> Result<Identity, Error> {
    Identity::read(None)
}

/// The session's end: waits for the client that has the key of that fingerprint.
pub fn serve(stream: Stream, own: &Identity, client: Fingerprint) -> Result<Link, Error> {
    let config = server_config(own, Expected::This(client)).map_err(|error| failed(&error))?;
    let side = UnbufferedServerConnection::new(config).map_err(|error| failed(&error))?;
    let waiting = stream.try_clone()?;
    waiting.set_write_timeout(Some(GREETING))?;
    let link = link(side, stream, Instant::now() + GREETING)?;
    waiting.set_write_timeout(None)?;
    Ok(link)
}

/// The client's end.
pub fn dial(stream: Stream, own: &Identity, session: Fingerprint) -> Result<Link, Error> {
    let config = client_config(Some(own), Expected::This(session)).map_err(|error| failed(&error))?;
    let name = ServerName::try_from("relaxide-rpc").map_err(|error| failed(&error))?;
    let side = UnbufferedClientConnection::new(config, name).map_err(|error| failed(&error))?;
    link(side, stream, Instant::now() + CONNECT)
}

/// What a session's process says first: the fingerprint of its key.
pub fn read_key(said: impl Read) -> Result<Fingerprint, Error> {
    let mut line = String::new();
    // Longer than any fingerprint; a process that ends says nothing.
    let read = BufReader::new(said.take(256)).read_line(&mut line);
    read.map_err(|error| failed(&error))?;
    match line.trim() {
        "" => Err(failed(&"its process has ended")),
        text => Fingerprint::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::transport::read_exact;

    /// Both ends' outcome, where each has a key and expects one.
    fn meet(keys: [&Identity; 2], expected: [Fingerprint; 2]) -> (Result<Link, Error>, Result<Link, Error>) {
        let (near, far) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let session = scope.spawn(|| serve(Stream::Unix(far), keys[1], expected[0]));
            let client = dial(Stream::Unix(near), keys[0], expected[1]);
            // In TLS 1.3 a client is done before it is refused.
            let client = client.and_then(|mut link| {
                let mut word = [0; 2];
                link.sink.write(b"hi", &[])?;
                read_exact(&mut *link.source, &mut word).map(|()| link).map_err(Error::from)
            });
            (client, session.join().unwrap())
        })
    }

    #[test]
    fn each_end_takes_the_key_that_it_was_told_and_no_other() {
        let [client, session, other] = [0; 3].map(|_| new_key().unwrap());
        let told = [client.fingerprint(), session.fingerprint()];
        let (near, far) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let mut link = serve(Stream::Unix(far), &session, told[0]).unwrap();
                let mut word = [0; 2];
                read_exact(&mut *link.source, &mut word).unwrap();
                link.sink.write(&word, &[]).unwrap();
            });
            let mut link = dial(Stream::Unix(near), &client, told[1]).unwrap();
            link.sink.write(b"hi", &[]).unwrap();
            let mut word = [0; 2];
            read_exact(&mut *link.source, &mut word).unwrap();
            assert_eq!(&word, b"hi");
            serving.join().unwrap();
        });
        let (refused, error) = meet([&other, &session], told);
        assert!(refused.is_err() && error.is_err(), "another client");
        let (error, refused) = meet([&client, &other], told);
        assert!(refused.is_err() && error.is_err(), "another session");
    }

    #[test]
    fn a_process_that_says_something_else_has_no_key() {
        let key = new_key().unwrap().fingerprint();
        assert_eq!(read_key(format!("{key}\nmore").as_bytes()).unwrap(), key);
        assert!(read_key(&b""[..]).unwrap_err().message().contains("its process has ended"));
        assert!(read_key(&[b'a'; 1 << 20][..]).is_err());
    }
}
