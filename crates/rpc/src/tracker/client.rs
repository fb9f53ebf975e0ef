//! [`TrackerLink`]: asking a tracker.

use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use serde_json::Value;

use super::protocol::Message;
use super::serve::{read_message, write_message};
use crate::transport::socket::connect;
use crate::transport::{Link, read_exact};
use crate::wire::handshake::TRACKER_MAGIC;

/// How long a tracker may take for what it answers at once.
const ANSWER: Duration = Duration::from_secs(30);

/// A connection to a tracker.
pub struct TrackerLink(Link);

/// What a tracker handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Where the server is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The key to say.
    pub match_key: String,
    /// The fingerprint of the server's key, which a tracker of ours knows.
    pub fingerprint: Option<String>,
}

fn lost(what: &str) -> Error {
    Error::new(ErrorKind::OSError, format!("the tracker {what}"))
}

impl TrackerLink {
    /// Connects to a tracker without security, as TVM's are.
    pub fn connect(host: &str, port: u16, timeout: Duration) -> Result<TrackerLink, Error> {
        let stream = connect(host, port, timeout).map_err(|error| {
            Error::new(ErrorKind::OSError, format!("cannot connect to the tracker {host}:{port}: {error}"))
        })?;
        TrackerLink::over(stream.into_link()?)
    }

    /// Greets a tracker at the end of a link.
    pub fn over(mut link: Link) -> Result<TrackerLink, Error> {
        let magic = TRACKER_MAGIC.to_le_bytes();
        link.sink.write(&magic, &[])?;
        link.source.set_timeout(Some(ANSWER))?;
        let mut said = [0; 4];
        read_exact(&mut *link.source, &mut said).map_err(|error| lost(&format!("does not greet: {error}")))?;
        if said != magic {
            return Err(Error::new(ErrorKind::RuntimeError, format!("{} is not an RPC tracker", link.peer)));
        }
        Ok(TrackerLink(link))
    }

    fn exchange(&mut self, message: &Message, wait: Option<Duration>) -> Result<Value, Error> {
        write_message(&mut *self.0.sink, &message.to_json()).map_err(|error| lost(&format!("is gone: {error}")))?;
        self.0.source.set_timeout(wait)?;
        let reply =
            read_message(&mut *self.0.source).ok_or_else(|| lost("closed the connection, or does not answer"))?;
        serde_json::from_slice(&reply).map_err(|error| lost(&format!("answers with other than JSON: {error}")))
    }

    /// Asks what is answered at once.
    pub fn ask(&mut self, message: &Message) -> Result<Value, Error> {
        self.exchange(message, Some(ANSWER))
    }

    /// Asks for a server of a key, and waits until there is one, or the time is over.
    pub fn request(&mut self, key: &str, user: &str, priority: i64, wait: Option<Duration>) -> Result<Given, Error> {
        let message = Message::Request { key: key.to_owned(), user: user.to_owned(), priority };
        let begin = Instant::now();
        let reply = self.exchange(&message, wait).map_err(|error| {
            if wait.is_some_and(|wait| begin.elapsed() >= wait) {
                return Error::new("TimeoutError", format!("no server {key} became free within {wait:?}"));
            }
            error
        })?;
        let given = || {
            let server = reply.get(1)?;
            Some(Given {
                host: server.get(0)?.as_str()?.to_owned(),
                port: super::protocol::port(server.get(1)?)?,
                match_key: server.get(2)?.as_str()?.to_owned(),
                fingerprint: server.get(3).and_then(Value::as_str).map(str::to_owned),
            })
        };
        let refused = || Error::new(ErrorKind::RuntimeError, format!("the tracker gives no server {key}: {reply}"));
        if reply.get(0).and_then(Value::as_i64) != Some(0) {
            return Err(refused());
        }
        given().ok_or_else(refused)
    }

    /// How the queues stand.
    pub fn summary(&mut self) -> Result<Value, Error> {
        let reply = self.ask(&Message::Summary)?;
        match (reply.get(0).and_then(Value::as_i64), reply.get(1)) {
            (Some(0), Some(summary)) => Ok(summary.clone()),
            _ => Err(lost(&format!("gives no summary: {reply}"))),
        }
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.0.closer.close();
    }
}

impl Drop for TrackerLink {
    fn drop(&mut self) {
        self.close();
    }
}

/// The servers and queues of a summary as a table.
pub fn table(summary: &Value) -> String {
    let empty = serde_json::Map::new();
    let queues = summary["queue_info"].as_object().unwrap_or(&empty);
    let servers = summary["server_info"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name =
        |server: &Value| server["key"].as_str().and_then(|key| key.split_once(':')).map(|(_, name)| name.to_owned());
    let mut lines =
        vec!["Server List".to_owned(), "------------------------------".into(), "server-address           key".into()];
    lines.push("------------------------------".into());
    for server in servers {
        let (host, port) = (server["addr"][0].as_str().unwrap_or("?"), &server["addr"][1]);
        let port = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
        lines.push(format!("{:<24} {}", format!("{host}:{port}"), server["key"].as_str().unwrap_or("?")));
    }
    lines.push("------------------------------\n\nQueue Status".into());
    let widest = queues.keys().map(String::len).max().unwrap_or(0).max("key".len());
    let rule = "-".repeat(widest + 26);
    lines.extend([rule.clone(), format!("{:<widest$}   total  free  pending", "key"), rule.clone()]);
    for (key, counts) in queues {
        let total = servers.iter().filter(|server| name(server).as_deref() == Some(key)).count();
        lines.push(format!("{key:<widest$}   {total:<5}  {:<4}  {}", counts["free"], counts["pending"]));
    }
    lines.push(rule);
    lines.join("\n") + "\n"
}
