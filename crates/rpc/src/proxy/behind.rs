//! A server behind a proxy: it connects outwards, waits there for a client, and comes again when that has gone.
//!
//! The proxy leads ends to each other in TVM's words. What they say then is theirs: with our protocol, the proxy moves what it cannot read.

use std::time::Duration;

use relaxide_ffi::{Error, ErrorKind};

use crate::server::accept::Isolation;
use crate::server::greet::{Greeted, Greeter};
use crate::server::scratch::Scratch;
use crate::server::session::{self, Ends, Grant};
use crate::session::connect::dial_with;
use crate::transport::socket::Stream;
use crate::transport::{Link, read_exact};
use crate::wire::handshake::{DUPLICATE, Key, MAGIC, MISMATCH, Side, hello, key_length};

/// How long it waits before it tries a proxy again that is lost.
const RETRY: Duration = Duration::from_secs(2);

/// What a proxy answered.
enum Answer {
    /// A client is there, with that key.
    Client(Key),
    /// No client came in time.
    Nobody,
    /// Another server of the key waits already.
    Duplicate,
}

fn say_hello(link: &mut Link, key: &str) -> Result<Answer, Error> {
    link.sink.write(&hello(&format!("{}{key}", Side::Server.prefix())), &[])?;
    let mut word = [0; 4];
    read_exact(&mut *link.source, &mut word)?;
    match i32::from_le_bytes(word) {
        MAGIC => {}
        DUPLICATE => return Ok(Answer::Duplicate),
        MISMATCH => return Ok(Answer::Nobody),
        _ => return Err(Error::new(ErrorKind::RuntimeError, format!("{} is no proxy", link.peer))),
    }
    read_exact(&mut *link.source, &mut word)?;
    let mut key = vec![0; key_length(word)?];
    read_exact(&mut *link.source, &mut key)?;
    Key::parse(&key).map(Answer::Client).map_err(Error::from)
}

/// A server behind a proxy.
pub struct Behind {
    /// The proxy.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The key that clients ask for.
    pub key: String,
    /// Who greets a client once the proxy has led it here: it may speak either protocol through the proxy.
    pub greeter: Greeter,
    /// Where sessions run.
    pub isolation: Isolation,
    /// What every session gets that its greeting does not say.
    pub grant: Grant,
    /// Where sessions' folders are made.
    pub scratch: Scratch,
}

impl Behind {
    /// Serves one client after the other, as long as `going_on` says.
    pub fn serve(&self, going_on: &dyn Fn() -> bool) -> Result<(), Error> {
        crate::server::register();
        let Behind { host, port, key, .. } = self;
        while going_on() {
            match dial_with(host, *port, |link| say_hello(link, key)) {
                Ok((stream, Answer::Client(client))) => {
                    if let Err(error) = self.serve_one(stream, client) {
                        eprintln!("relaxide rpc: session behind {host}:{port}: {error}");
                    }
                }
                Ok((_, Answer::Nobody)) => {}
                Ok((_, Answer::Duplicate)) => {
                    eprintln!("relaxide rpc: another server waits as {key} behind {host}:{port}");
                    std::thread::sleep(RETRY);
                }
                Err(error) => {
                    eprintln!("relaxide rpc: the proxy {host}:{port} is lost: {error}");
                    std::thread::sleep(RETRY);
                }
            }
        }
        Ok(())
    }

    fn serve_one(&self, stream: Stream, client: Key) -> Result<(), Error> {
        let Greeted { admitted, key } = self.greeter.read_behind_proxy(stream, client)?;
        let folder = self.scratch.session()?;
        let grant = admitted.grant(&key, &self.grant, folder.path());
        match &self.isolation {
            Isolation::Process(command) => {
                let (running, _kept) = admitted.start(&self.greeter, command, grant)?;
                running.wait();
                Ok(())
            }
            Isolation::Thread => {
                let (stream, grant) = admitted.into_session(&self.greeter, grant)?;
                session::serve(stream, &grant, Ends::Itself)
            }
        }
    }
}
