//! `rpc serve|track|proxy|query|keygen`: what `relaxide rpc` and the small `relaxide-rpc` do.
//!
//! One implementation for both, without a parser of command lines that a board's server would have to carry.

mod args;
mod keys;
mod proxy;
mod query;
mod serve;
mod track;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A failure: what is printed, and the exit code.
pub struct Failed {
    /// The message.
    pub message: String,
    /// 1: something is at fault; 2: the command line is.
    pub code: i32,
}

impl From<String> for Failed {
    fn from(message: String) -> Failed {
        Failed { message, code: 2 }
    }
}

impl From<args::ArgError> for Failed {
    fn from(error: args::ArgError) -> Failed {
        Failed::from(error.to_string())
    }
}

impl From<crate::server::policy::RightError> for Failed {
    fn from(error: crate::server::policy::RightError) -> Failed {
        Failed::from(error.to_string())
    }
}

impl From<relaxide_ffi::Error> for Failed {
    fn from(error: relaxide_ffi::Error) -> Failed {
        Failed { message: error.message().to_owned(), code: 1 }
    }
}

const HELP: &str = "Run models on other machines.

Usage: relaxide rpc COMMAND [OPTIONS]

Commands:
  serve    offer this machine to clients
  track    keep a list of servers, and hand them out
  proxy    lead clients to servers that they cannot reach
  query    show what a tracker has
  keygen   make keys, and say who may do what
  pipe     serve through standard input and output, for a command in between such as ssh

`relaxide rpc COMMAND --help` says more about each.

Examples:
  relaxide rpc keygen --out board.key
  relaxide rpc serve --key board --identity board.key --keys clients
  relaxide rpc query --host 10.0.0.2
";

/// Runs a command, and returns its exit code. `itself` starts this program again, up to the word `rpc` if it has one.
pub fn run(itself: &[std::ffi::OsString], words: &[String]) -> i32 {
    crate::register();
    take_descriptors();
    let (command, rest) = match words.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("--help", words),
    };
    let done = match command {
        "serve" => serve::run(itself, rest),
        "pipe" => serve::pipe(rest),
        "track" => track::run(rest),
        "proxy" => proxy::run(rest),
        "query" => query::run(rest),
        "keygen" => keys::run(rest),
        // What `serve` starts for each session.
        "session" => return crate::server::children::child_main(rest.first().map_or("", String::as_str)),
        "--help" | "-h" | "help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failed { message: format!("there is no `rpc {other}`; see `relaxide rpc --help`"), code: 2 }),
    };
    match done {
        Ok(()) => 0,
        Err(failed) => {
            eprintln!("error: {}", failed.message);
            failed.code
        }
    }
}

/// Takes as many descriptors as the system lets: each connection is one.
fn take_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    // With fewer it goes on, and takes fewer connections.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
}

/// Prints a line for whoever started this, at once.
fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout();
    // Where nobody reads it, nobody is told.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Waits until the process is told to end, or until `done` says so.
fn wait_while(running: impl Fn() -> bool) {
    static ENDED: AtomicBool = AtomicBool::new(false);
    while !ENDED.load(Ordering::Relaxed) && running() {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// `HOST:PORT`, split.
fn address(text: &str, option: &str) -> Result<(String, u16), args::ArgError> {
    let wrong = || args::ArgError::Kind { name: option.to_owned(), value: text.to_owned(), wanted: "HOST:PORT".into() };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    Ok((host.trim_matches(['[', ']']).to_owned(), port.parse().map_err(|_| wrong())?))
}

/// True for an address that only this machine reaches.
fn is_loopback(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix("ws://") {
        let place = rest.split('/').next().unwrap_or_default();
        return is_loopback(place.rsplit_once(':').map_or(place, |(host, _)| host).trim_matches(['[', ']']));
    }
    host == "localhost"
        || host.starts_with("unix:")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
