//! `rpc serve` and `rpc pipe`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{Args, Opt, help};
use super::{Failed, address, is_loopback, say, wait_while};
use crate::proxy::behind::Behind;
use crate::server::accept::{Isolation, Options, Server};
use crate::server::announce::{Announced, Dial, Offer};
use crate::server::confine::Confinement;
use crate::server::greet::Greeter;
use crate::server::policy::bytes;
use crate::server::scratch::Scratch;
use crate::server::session::Grant;
use crate::session::connect::CONNECT;
use crate::tracker::client::TrackerLink;
use crate::wire::{Dialect, Limits};

const TABLE: &[Opt] = &[
    Opt { name: "host", value: "HOST", help: "the address to listen on, or unix:PATH [default: 127.0.0.1]" },
    Opt { name: "port", value: "PORT", help: "the first port that is tried [default: 9090]" },
    Opt { name: "port-end", value: "PORT", help: "the port behind the last [default: 9199]" },
    Opt { name: "key", value: "KEY", help: "the key that clients ask for [default: none]" },
    Opt {
        name: "protocol",
        value: "tvm|own",
        help: "TVM's, which has no security, or ours [default: ours where --keys or --token is given; TVM's on loopback]",
    },
    Opt { name: "keys", value: "FILE", help: "who may come in and do what, as `rpc keygen` writes it" },
    Opt { name: "identity", value: "FILE", help: "the server's own key, as `rpc keygen` writes it" },
    Opt { name: "token", value: "FILE", help: "a shared secret that lets in whoever has it" },
    Opt { name: "tracker", value: "HOST:PORT", help: "be found through that tracker; needs --key" },
    Opt { name: "tracker-key", value: "FINGERPRINT", help: "the tracker's key, if it speaks our protocol" },
    Opt { name: "custom-addr", value: "HOST", help: "the address that the tracker tells clients" },
    Opt {
        name: "through-proxy",
        value: "WHERE",
        help: "serve behind a proxy, HOST:PORT or ws://HOST:PORT/ws, in place of listening",
    },
    Opt { name: "sessions", value: "N", help: "how many there may be at a time [default: 256; 1 with --tracker]" },
    Opt { name: "session-timeout", value: "SECONDS", help: "how long a session may last at most" },
    Opt { name: "lost-after", value: "SECONDS", help: "when a client that vanished is given up [default: 40]" },
    Opt { name: "memory", value: "BYTES", help: "the memory of a session's process, such as 2G" },
    Opt { name: "cpu-seconds", value: "SECONDS", help: "the processor time of a session's process" },
    Opt { name: "work-dir", value: "FOLDER", help: "where sessions' folders are made" },
    Opt {
        name: "confined",
        value: "",
        help: "keep the process of each session to its folder [default: those of our protocol, where the system can]",
    },
    Opt { name: "load-library", value: "FILES", help: "libraries to load first, with `:` between" },
    Opt { name: "log", value: "FILE", help: "write there who did what" },
    Opt {
        name: "in-process",
        value: "",
        help: "run sessions as threads: where there are no processes; they cannot be ended while they compute",
    },
    Opt { name: "silent", value: "", help: "print nothing but the address" },
    Opt { name: "help", value: "", help: "show this" },
];

/// Serves until it is told to end.
pub fn run(itself: &[OsString], words: &[String]) -> Result<(), Failed> {
    let args = Args::parse("serve", TABLE, words)?;
    if args.has("help") {
        print!("{}", help("relaxide rpc serve [OPTIONS]", "Offer this machine to clients.", TABLE));
        return Ok(());
    }
    if let Some(seconds) = args.parsed("lost-after", "a number of seconds")? {
        crate::transport::socket::set_lost_after(seconds);
    }
    let isolation = match args.has("in-process") {
        true => Isolation::Thread,
        false => Isolation::Process(itself.iter().cloned().chain(["session".into()]).collect()),
    };
    let (host, key) = (args.get("host").unwrap_or("127.0.0.1").to_owned(), args.get("key").unwrap_or("").to_owned());
    let grant = grant(&args)?;
    if args.has("confined") && args.has("in-process") {
        return Err("--confined needs processes: leave --in-process out".to_owned().into());
    }
    if let Some(proxy) = args.get("through-proxy") {
        // A WebSocket address has its port inside.
        let (proxy_host, proxy_port) = match proxy.starts_with("ws://") {
            true => (proxy.to_owned(), 0),
            false => address(proxy, "through-proxy")?,
        };
        say(&format!("server: behind the proxy {proxy}"));
        // Whom the proxy lets in is not known here, so only the word for it lets TVM's protocol be spoken.
        let greeter = greeter(&args, &proxy_host, &key)?;
        let scratch = Scratch::make(args.get("work-dir").map(Path::new))?;
        let (host, port) = (proxy_host, proxy_port);
        return Ok(Behind { host, port, key, greeter, isolation, grant, scratch }.serve(&|| true)?);
    }
    let greeter = greeter(&args, &host, &key)?;
    let port = args.parsed("port", "a port")?.unwrap_or(9090);
    let tracker = args.get("tracker").map(|text| address(text, "tracker")).transpose()?;
    if tracker.is_some() && key.is_empty() {
        return Err("--tracker needs --key: it is what clients ask the tracker for".to_owned().into());
    }
    let sessions = args.parsed("sessions", "a number")?.unwrap_or(if tracker.is_some() { 1 } else { 256 });
    let seconds = |name| -> Result<_, Failed> {
        let seconds: Option<f64> = args.parsed(name, "a number of seconds")?;
        Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
    };
    let server = Server::start(Options {
        host: host.clone(),
        port,
        port_end: args.parsed("port-end", "a port")?.unwrap_or(9199.max(port.saturating_add(1))),
        reuse: true,
        greeter,
        isolation,
        sessions,
        timeout: seconds("session-timeout")?,
        grant,
        scratch: args.get("work-dir").map(PathBuf::from),
        silent: args.has("silent"),
    })?;
    match server.port() {
        0 => say(&format!("server: listening on {host}")),
        port => say(&format!("server: listening on {host}:{port}")),
    }
    if let Some((tracker_host, tracker_port)) = tracker {
        let offer =
            Offer { key, port: server.port(), address: args.get("custom-addr").map(str::to_owned), capacity: sessions };
        server.announce(Announced::start(offer, dial_tracker(&args, tracker_host, tracker_port)?)?);
    }
    wait_while(|| true);
    Ok(())
}

fn dial_tracker(args: &Args, host: String, port: u16) -> Result<Dial, Failed> {
    #[cfg(feature = "secure")]
    if let Some(fingerprint) = args.get("tracker-key") {
        let credentials = crate::secure::dial::Credentials {
            identity: args
                .get("identity")
                .map(|path| crate::secure::identity::Identity::read(Some(path)))
                .transpose()?,
            server: Some(crate::secure::identity::Fingerprint::parse(fingerprint)?),
            token: None,
        };
        return Ok(Box::new(move || crate::secure::dial::tracker(&credentials, &host, port)));
    }
    if args.has("tracker-key") {
        return Err("this build has TVM's protocol only: it was made without the feature `secure`".to_owned().into());
    }
    Ok(Box::new(move || TrackerLink::connect(&host, port, CONNECT)))
}

fn grant(args: &Args) -> Result<Grant, Failed> {
    let limit = |name: &str| args.get(name).map(bytes).transpose().map_err(|error| format!("--{name}: {error}"));
    Ok(Grant {
        // A session's process has its own folder as the working one.
        libraries: (args.all("load-library").flat_map(|files| files.split(':')))
            .map(|file| std::path::absolute(file).map_err(|error| format!("--load-library {file}: {error}")))
            .collect::<Result<_, _>>()?,
        process_memory: limit("memory")?,
        cpu_seconds: args.parsed("cpu-seconds", "a number of seconds")?,
        log: args.get("log").map(std::path::absolute).transpose().map_err(|error| format!("--log: {error}"))?,
        confinement: if args.has("confined") { Confinement::Always } else { Confinement::Nowhere },
        ..Grant::open(&PathBuf::new())
    })
}

fn greeter(args: &Args, host: &str, key: &str) -> Result<Greeter, Failed> {
    let named = args.get("protocol");
    let wants_own = args.get("keys").is_some() || args.get("token").is_some();
    match named {
        Some("tvm") => {
            if !is_loopback(host) {
                eprintln!("warning: TVM's protocol has no security: whoever reaches {host} runs code on this machine");
            }
            return Ok(Greeter::Tvm { key: key.to_owned() });
        }
        Some("own") => {}
        None if wants_own => {}
        None if is_loopback(host) => return Ok(Greeter::Tvm { key: key.to_owned() }),
        None => return Err(super::track::no_security(host).into()),
        Some(other) => return Err(format!("--protocol {other}: expected tvm or own").into()),
    }
    #[cfg(feature = "secure")]
    {
        let mut gate =
            crate::secure::accept::Gate::open(args.get("identity"), args.get("keys"), args.get("token"), key)?;
        if let Some(log) = args.get("log") {
            gate.log_to(Path::new(log))?;
        }
        say(&format!("server: its key is {}", gate.fingerprint()));
        Ok(Greeter::Secure(Box::new(gate)))
    }
    #[cfg(not(feature = "secure"))]
    Err("this build has TVM's protocol only: it was made without the feature `secure`".to_owned().into())
}

const PIPE_TABLE: &[Opt] = &[
    Opt { name: "own", value: "", help: "speak our form of the protocol, in place of TVM's" },
    Opt { name: "work-dir", value: "FOLDER", help: "where the session's folder is made" },
    Opt { name: "help", value: "", help: "show this" },
];

/// Serves one session through standard input and output, or through two descriptors whose numbers are given, as TVM's clients give them.
pub fn pipe(words: &[String]) -> Result<(), Failed> {
    let args = Args::parse("pipe", PIPE_TABLE, words)?;
    if args.has("help") {
        let about = "Serve one session through standard input and output: whoever can start this may do all.";
        print!("{}", help("relaxide rpc pipe [OPTIONS]", about, PIPE_TABLE));
        return Ok(());
    }
    let scratch = Scratch::make(args.get("work-dir").map(Path::new))?;
    let folder = scratch.session()?;
    let policy = crate::server::policy::Policy::open();
    let environment = crate::server::environment::Environment::new(folder.path(), &policy)?;
    let host = crate::session::host::Host::server(environment, policy);
    let number =
        |word: &String| word.parse::<u32>().map_err(|_| format!("pipe {word}: expected a descriptor's number"));
    let link = match args.rest.as_slice() {
        [] => crate::transport::pipe::standard(),
        [reading, writing] => match (number(reading)?, number(writing)?) {
            (0, 1) => crate::transport::pipe::standard(),
            (reading, writing) => crate::transport::pipe::of_numbers(reading, writing),
        },
        _ => return Err("pipe takes the numbers of two descriptors, or none".to_owned().into()),
    };
    let link = link.map_err(relaxide_ffi::Error::from)?;
    let dialect = if args.has("own") { Dialect::Own } else { Dialect::Tvm };
    // That of this process, which the session's is in.
    let path = folder.path().parent().unwrap_or(folder.path()).to_path_buf();
    let end = move || {
        // What is left of it, the next one removes that is started there.
        let _ = std::fs::remove_dir_all(&path);
        std::process::exit(5);
    };
    crate::session::local::serve_until(link, dialect, Limits::default(), host, Some(Box::new(end)))?;
    Ok(())
}
