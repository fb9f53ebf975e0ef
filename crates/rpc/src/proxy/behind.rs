//! A server behind a proxy: it connects outwards, waits there for a client, and comes again when that has gone.

use std::time::Duration;

use relaxide_ffi::{Error, ErrorKind};

use crate::server::accept::Isolation;
use crate::server::children::Running;
use crate::server::session::{self, Ends, Grant};
use crate::session::connect::dial;
use crate::transport::{Link, pump, read_exact};
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

/// Serves one client after the other behind a proxy, as long as `going_on` says.
pub fn serve_behind(
    host: &str,
    port: u16,
    key: &str,
    isolation: &Isolation,
    common: &Grant,
    going_on: &dyn Fn() -> bool,
) -> Result<(), Error> {
    crate::server::register();
    while going_on() {
        let served = dial(host, port).and_then(|mut link| {
            let answer = say_hello(&mut link, key)?;
            Ok((link, answer))
        });
        match served {
            Ok((link, Answer::Client(client))) => {
                if let Err(error) = serve_one(link, &client, isolation, common) {
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

fn serve_one(link: Link, client: &Key, isolation: &Isolation, common: &Grant) -> Result<(), Error> {
    let folder = tempfile::Builder::new().prefix("relaxide-rpc-").tempdir()?;
    let timeout = client.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let grant = Grant { folder: folder.path().to_path_buf(), timeout, ..common.clone() };
    let stream = pump::into_stream(link)?;
    match isolation {
        Isolation::Process(command) => {
            Running::start(command, stream, &grant)?.wait();
            Ok(())
        }
        Isolation::Thread => session::serve(stream, &grant, Ends::Itself),
    }
}
