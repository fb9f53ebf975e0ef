//! [`TrackerLink`]: asking a tracker.

use std::io;
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use serde_json::Value;

use super::protocol::Message;
use super::serve::{read_message, read_message_behind, write_message};
use crate::transport::socket::connect;
use crate::transport::{Link, Source, read_exact};
use crate::wire::handshake::TRACKER_MAGIC;

/// How long a tracker may take for what it answers at once.
const ANSWER: Duration = Duration::from_secs(30);

/// How long a tracker may be silent towards a client that waits before it is asked whether it is there, and then again until it
/// counts as hanging.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a tracker.
pub struct TrackerLink {
    link: Link,
    patience: Duration,
}

/// What a tracker handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOut {
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
        Ok(TrackerLink { link, patience: PATIENCE })
    }

    /// Says how long the tracker may be silent before it is asked whether it is there, and then again until it counts as hanging.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    fn tell(&mut self, message: &Message) -> Result<(), Error> {
        let written = write_message(&mut *self.link.sink, &message.to_json());
        written.map_err(|error| lost(&format!("is gone: {error}")))
    }

    /// Asks what is answered at once.
    pub fn ask(&mut self, message: &Message) -> Result<Value, Error> {
        self.tell(message)?;
        self.link.source.set_timeout(Some(ANSWER))?;
        let reply =
            read_message(&mut *self.link.source).ok_or_else(|| lost("closed the connection, or does not answer"))?;
        parsed(&reply)
    }

    /// Waits for the reply to a request, as long as that may take. Whether the tracker is still there is asked now and then.
    fn wait(&mut self, end: Option<Instant>) -> Result<Option<Value>, Error> {
        let mut is_asked = false;
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let time = left.map_or(self.patience, |left| left.min(self.patience));
            match message_within(&mut *self.link.source, time)? {
                // What is asked with a ping is answered with a number.
                Some(reply) if reply.is_number() => is_asked = false,
                Some(reply) => return Ok(Some(reply)),
                None if time < self.patience => return Ok(None),
                None if is_asked => return Err(lost("hangs: it does not say that it is there")),
                None => {
                    self.tell(&Message::Ping)?;
                    is_asked = true;
                }
            }
        }
    }

    /// Asks for a server of a key, and waits until there is one, or the time is over.
    pub fn request(
        &mut self,
        key: &str,
        user: &str,
        priority: i64,
        wait: Option<Duration>,
    ) -> Result<HandedOut, Error> {
        let message = Message::Request { key: key.to_owned(), user: user.to_owned(), priority };
        self.tell(&message)?;
        let reply = self.wait(wait.and_then(|wait| Instant::now().checked_add(wait)))?;
        let late =
            || Error::new("TimeoutError", format!("no server {key} became free within {:?}", wait.unwrap_or_default()));
        let reply = reply.ok_or_else(late)?;
        let given = || {
            let server = reply.get(1)?;
            Some(HandedOut {
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
        self.link.closer.close();
    }
}

impl Drop for TrackerLink {
    fn drop(&mut self) {
        self.close();
    }
}

fn parsed(reply: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(reply).map_err(|error| lost(&format!("answers with other than JSON: {error}")))
}

/// The next message, if it begins within a time.
fn message_within(source: &mut dyn Source, time: Duration) -> Result<Option<Value>, Error> {
    source.set_timeout(Some(time))?;
    let mut first = [0];
    match source.read(&mut first) {
        Ok(1) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(None),
        Ok(_) => return Err(lost("closed the connection")),
        Err(error) => return Err(lost(&format!("is gone: {error}"))),
    }
    source.set_timeout(Some(ANSWER))?;
    let message = read_message_behind(&first, source).ok_or_else(|| lost("closed the connection within a message"))?;
    parsed(&message).map(Some)
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::tracker::serve::{Options, Tracker};

    const SHORT: Duration = Duration::from_millis(50);

    /// A tracker that greets, hears one request, and then does what is said.
    fn pretends(then: impl FnOnce(std::net::TcpStream) + Send + 'static) -> (TrackerLink, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tracker = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut place = [0; 256];
            stream.read_exact(&mut place[..4]).unwrap();
            stream.write_all(&TRACKER_MAGIC.to_le_bytes()).unwrap();
            assert!(stream.read(&mut place).unwrap() > 4);
            then(stream);
        });
        let mut link = TrackerLink::connect("127.0.0.1", port, ANSWER).unwrap();
        link.set_patience(SHORT);
        (link, tracker)
    }

    #[test]
    fn a_tracker_that_hangs_is_told_from_one_that_has_no_server() {
        let (mut link, hanging) = pretends(|mut stream| {
            // It takes what comes, and says nothing.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = link.request("board", "", 1, None).unwrap_err();
        assert!(error.message().contains("the tracker hangs"), "{error}");
        drop(link);
        hanging.join().unwrap();

        let options = Options {
            host: "127.0.0.1".into(),
            port: 0,
            port_end: 1,
            reuse: true,
            silent: true,
            state: None,
            secure: None,
        };
        let tracker = Tracker::start(options).unwrap();
        let mut link = TrackerLink::connect("127.0.0.1", tracker.port(), ANSWER).unwrap();
        link.set_patience(SHORT);
        let error = link.request("board", "", 1, Some(5 * SHORT)).unwrap_err();
        assert_eq!(error.kind(), "TimeoutError", "{error}");
    }

    #[test]
    fn answers_to_pings_are_no_servers() {
        let (mut link, tracker) = pretends(|mut stream| {
            let mut ping = [0; 7];
            stream.read_exact(&mut ping).unwrap();
            assert_eq!(&ping[4..], b"[1]");
            for text in ["0", r#"[0, ["h", 9, "board:1"]]"#] {
                stream.write_all(&(text.len() as i32).to_le_bytes()).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
            }
        });
        assert_eq!(link.request("board", "", 1, None).unwrap().match_key, "board:1");
        tracker.join().unwrap();
    }
}
