//! [`Place`]: where a server is, as it is written on a command line.
//!
//! | text | the server |
//! | --- | --- |
//! | `HOST:PORT`, `KEY@HOST:PORT` | listens there |
//! | `KEY@tracker:HOST:PORT` | is handed out by the tracker there |
//! | `KEY@proxy:HOST:PORT` | waits behind the proxy there |
//! | `ssh:HOST`, `ssh:USER@HOST:PORT` | is started there by `ssh`, and ends with the session |

use std::process::Command;
use std::time::Duration;

use relaxide_ffi::{Error, ErrorKind};

use super::dial::{Credentials, connect, connect_through_proxy, tracker};
use super::identity::Fingerprint;
use crate::session::client::Session;
use crate::session::connect::{CONNECT, Target, connect_tvm, spawn_own};
use crate::tracker::client::TrackerLink;

/// How long a tracker may take until a server is free.
const FREE: Duration = Duration::from_secs(600);

/// The variable with the command that stands for `ssh`, with its options.
const SSH: &str = "RELAXIDE_RPC_SSH";
/// The variable with what is run on the far machine, where it is not `relaxide-rpc` on its path.
const FAR: &str = "RELAXIDE_RPC_FAR";

/// Who leads to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Itself,
    Tracker,
    Proxy,
    Ssh,
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
    let forms = "KEY@HOST:PORT, KEY@tracker:HOST:PORT, KEY@proxy:HOST:PORT or ssh:USER@HOST";
    Error::new(ErrorKind::ValueError, format!("{text:?} names no server: {why}; expected {forms}"))
}

impl Place {
    /// Reads a place.
    pub fn parse(text: &str) -> Result<Place, Error> {
        if let Some(machine) = text.strip_prefix("ssh:") {
            return Place::parse_ssh(text, machine);
        }
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

    fn parse_ssh(text: &str, machine: &str) -> Result<Place, Error> {
        let (host, port) = match machine.rsplit_once(':') {
            // An address of IPv6 has colons itself, and stands in brackets where a port follows.
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let wrong_port = || wrong(text, &format!("{port:?} is no port"));
                (host, port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong_port)?)
            }
            _ => (machine, 0),
        };
        let host = host.replace(['[', ']'], "");
        // What begins with a dash would be an option of ssh's.
        if host.is_empty() || host.ends_with('@') || host.starts_with('-') {
            return Err(wrong(text, "ssh must be told a host"));
        }
        Ok(Place { by: By::Ssh, host, port, key: String::new() })
    }

    /// What `ssh` is told: the far end serves one session through its standard input and output, and ends with it.
    fn ssh(&self, ssh: &str, far: &str) -> Command {
        let mut words = ssh.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("ssh"));
        command.args(words).arg("-T");
        if self.port != 0 {
            command.arg("-p").arg(self.port.to_string());
        }
        command.args(["--", &self.host, &format!("{far} pipe --own")]);
        command
    }

    fn connect_by_ssh(&self) -> Result<Session, Error> {
        let said = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        let (ssh, far) =
            (said(SSH).unwrap_or_else(|| "ssh".into()), said(FAR).unwrap_or_else(|| "relaxide-rpc".into()));
        spawn_own(self.ssh(&ssh, &far), &[]).map_err(|error| {
            let message = format!(
                "no session with {} by {ssh}: {}; `{ssh} {} {far} pipe --help` must work ({FAR} names the command there)",
                self.host,
                error.message(),
                self.host
            );
            Error::new(error.kind(), message)
        })
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
            // Who is at either end is ssh's to say.
            By::Ssh => self.connect_by_ssh(),
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
    fn ssh_is_told_the_machine_and_no_options() {
        let told = |text: &str| {
            let command = Place::parse(text).unwrap().ssh("ssh -i key", "/opt/relaxide-rpc");
            command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("ssh:board"), "-i key -T -- board /opt/relaxide-rpc pipe --own");
        assert_eq!(told("ssh:me@board:2222"), "-i key -T -p 2222 -- me@board /opt/relaxide-rpc pipe --own");
        assert_eq!(told("ssh:me@[fe80::1]:22"), "-i key -T -p 22 -- me@fe80::1 /opt/relaxide-rpc pipe --own");
        assert_eq!(told("ssh:fe80::1"), "-i key -T -- fe80::1 /opt/relaxide-rpc pipe --own");
        for text in ["ssh:", "ssh:-oProxyCommand=x", "ssh:me@", "ssh:board:0", "ssh:board:http"] {
            assert!(Place::parse(text).unwrap_err().message().contains("ssh:USER@HOST"), "{text}");
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
