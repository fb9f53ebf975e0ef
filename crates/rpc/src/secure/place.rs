//! [`Place`]: where a server is, as it is written on a command line.
//!
//! | text | the server |
//! | --- | --- |
//! | `HOST:PORT`, `KEY@HOST:PORT` | listens there |
//! | `KEY@tracker:HOST:PORT` | is handed out by the tracker there |
//! | `KEY@proxy:HOST:PORT` | waits behind the proxy there |

use std::time::Duration;

use relaxide_ffi::{Error, ErrorKind};

use super::dial::{Credentials, connect, connect_through_proxy, tracker};
use super::identity::Fingerprint;
use crate::session::client::Session;
use crate::session::connect::{CONNECT, Target, connect_tvm};
use crate::tracker::client::TrackerLink;

/// How long a tracker may take until a server is free.
const FREE: Duration = Duration::from_secs(600);

/// Who leads to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Itself,
    Tracker,
    Proxy,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    by: By,
    host: String,
    port: u16,
    key: String,
}

fn wrong(text: &str, why: &str) -> Error {
    let forms = "KEY@HOST:PORT, KEY@tracker:HOST:PORT or KEY@proxy:HOST:PORT";
    Error::new(ErrorKind::ValueError, format!("{text:?} names no server: {why}; expected {forms}"))
}

impl Place {
    /// Reads a place.
    pub fn parse(text: &str) -> Result<Place, Error> {
        let (key, place) = text.rsplit_once('@').unwrap_or(("", text));
        let (host, port) = place.rsplit_once(':').ok_or_else(|| wrong(text, "it has no port"))?;
        let port = port.parse().map_err(|_| wrong(text, &format!("{port:?} is no port")))?;
        let led = [("tracker:", By::Tracker), ("proxy:", By::Proxy)].into_iter();
        let (by, host) =
            led.filter_map(|(word, by)| Some((by, host.strip_prefix(word)?))).next().unwrap_or((By::Itself, host));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(wrong(text, "it has no host"));
        }
        if by != By::Itself && key.is_empty() {
            return Err(wrong(text, "a tracker or a proxy must be told which server"));
        }
        Ok(Place { by, host: host.to_owned(), port, key: key.to_owned() })
    }

    /// A session with the server. Without credentials it is TVM's protocol that is spoken. `tracker_key` is the fingerprint of the
    /// tracker, if that speaks our protocol.
    pub fn connect(&self, credentials: &Credentials, tracker_key: Option<Fingerprint>) -> Result<Session, Error> {
        let Place { host, port, key, .. } = self.clone();
        let target = Target { host, port, key, ..Target::default() };
        let is_plain = credentials.is_empty();
        match self.by {
            // A proxy greets as a server of TVM's protocol does.
            By::Itself | By::Proxy if is_plain => connect_tvm(&target, &[]),
            By::Itself => connect(&target, credentials, &[]),
            By::Proxy => connect_through_proxy(&target, credentials),
            By::Tracker => self.ask_tracker(credentials, tracker_key),
        }
    }

    fn ask_tracker(&self, credentials: &Credentials, tracker_key: Option<Fingerprint>) -> Result<Session, Error> {
        let mut link = match tracker_key {
            Some(server) => {
                let known = Credentials { server: Some(server), ..credentials.clone() };
                tracker(&known, &self.host, self.port)?
            }
            None => TrackerLink::connect(&self.host, self.port, CONNECT)?,
        };
        let given = link.request(&self.key, "", 1, Some(FREE))?;
        let target = Target { host: given.host, port: given.port, key: given.match_key, ..Target::default() };
        if credentials.is_empty() {
            return connect_tvm(&target, &[]);
        }
        // Only a tracker that proved who it is is believed who the server is.
        let told = given.fingerprint.filter(|_| tracker_key.is_some());
        let server = match (credentials.server, told) {
            (Some(server), _) => Some(server),
            (None, Some(text)) => Some(Fingerprint::parse(&text)?),
            (None, None) => None,
        };
        connect(&target, &Credentials { server, ..credentials.clone() }, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let place = |by, host: &str, key: &str| Place { by, host: host.into(), port: 9090, key: key.into() };
        for (text, expected) in [
            ("board:9090", place(By::Itself, "board", "")),
            ("arm@board:9090", place(By::Itself, "board", "arm")),
            ("a@b@board:9090", place(By::Itself, "board", "a@b")),
            ("arm@[::1]:9090", place(By::Itself, "::1", "arm")),
            ("arm@tracker:9090", place(By::Itself, "tracker", "arm")),
            ("arm@tracker:host:9090", place(By::Tracker, "host", "arm")),
            ("arm@proxy:[fe80::1]:9090", place(By::Proxy, "fe80::1", "arm")),
        ] {
            assert_eq!(Place::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_told_why() {
        for (text, why) in [
            ("board", "no port"),
            ("arm@board:http", "\"http\" is no port"),
            ("arm@board:70000", "\"70000\" is no port"),
            ("arm@:9090", "no host"),
            ("tracker:host:9090", "which server"),
        ] {
            let error = Place::parse(text).unwrap_err();
            assert!(error.message().contains(why) && error.message().contains("KEY@HOST:PORT"), "{text}: {error}");
        }
    }
}
