//! `rpc track`.

use std::path::PathBuf;

use super::args::{Args, Opt, help};
use super::{Failed, is_loopback, say, wait_while};
use crate::tracker::serve::{Options, Tracker};

const TABLE: &[Opt] = &[
    Opt { name: "host", value: "HOST", help: "the address to listen on [default: 127.0.0.1]" },
    Opt { name: "port", value: "PORT", help: "the first port that is tried [default: 9190]" },
    Opt { name: "port-end", value: "PORT", help: "the port behind the last [default: 9199]" },
    Opt {
        name: "protocol",
        value: "tvm|own",
        help: "TVM's, which has no security, or ours [default: ours where --keys is given; TVM's on loopback]",
    },
    Opt { name: "keys", value: "FILE", help: "who may use it, as `rpc keygen` writes it" },
    Opt { name: "identity", value: "FILE", help: "the tracker's own key, as `rpc keygen` writes it" },
    Opt { name: "state", value: "FILE", help: "keep turns and counts there, over restarts" },
    Opt { name: "metrics", value: "FILE", help: "write the state there every second, in OpenMetrics form" },
    Opt { name: "silent", value: "", help: "print nothing but the address" },
    Opt { name: "help", value: "", help: "show this" },
];

/// Keeps a tracker until it is told to end.
pub fn run(words: &[String]) -> Result<(), Failed> {
    let args = Args::parse("track", TABLE, words)?;
    if args.has("help") {
        print!("{}", help("relaxide rpc track [OPTIONS]", "Keep a list of servers, and hand them out by key.", TABLE));
        return Ok(());
    }
    let host = args.get("host").unwrap_or("127.0.0.1").to_owned();
    let secure = secure(&args)?;
    if secure.is_none() && !is_loopback(&host) && args.get("protocol") != Some("tvm") {
        return Err(no_security(&host).into());
    }
    let port = args.parsed("port", "a port")?.unwrap_or(9190);
    let tracker = Tracker::start(Options {
        host: host.clone(),
        port,
        port_end: args.parsed("port-end", "a port")?.unwrap_or(9199.max(port.saturating_add(1))),
        reuse: true,
        silent: args.has("silent"),
        state: args.get("state").map(PathBuf::from),
        secure,
    })?;
    say(&format!("tracker: listening on {host}:{}", tracker.port()));
    let metrics = args.get("metrics").map(PathBuf::from);
    let count = std::cell::Cell::new(0_u32);
    wait_while(|| {
        if let Some(path) = &metrics
            && count.replace(count.get() + 1).is_multiple_of(10)
        {
            // Whoever reads it finds the old text or the new.
            let part = path.with_extension("part");
            let _ = std::fs::write(&part, tracker.metrics()).and_then(|()| std::fs::rename(&part, path));
        }
        tracker.is_running()
    });
    Ok(())
}

/// What is said where nobody is kept out and everybody can come.
pub(super) fn no_security(host: &str) -> String {
    format!(
        "{host} is not loopback, and TVM's protocol has no security: whoever reaches the port runs code here. Give --keys and \
         --identity (see `relaxide rpc keygen`), or say --protocol tvm if the network is trusted"
    )
}

#[cfg(feature = "secure")]
fn secure(args: &Args) -> Result<Option<crate::tracker::serve::Secure>, Failed> {
    match (args.get("protocol"), args.get("keys")) {
        (Some("tvm"), _) | (None, None) => Ok(None),
        _ => {
            Ok(Some(crate::secure::accept::Gate::open(args.get("identity"), args.get("keys"), None, "")?.for_tracker()))
        }
    }
}

#[cfg(not(feature = "secure"))]
fn secure(args: &Args) -> Result<Option<crate::tracker::serve::Secure>, Failed> {
    match args.get("keys") {
        None => Ok(None),
        Some(_) => {
            Err("this build has TVM's protocol only: it was made without the feature `secure`".to_owned().into())
        }
    }
}
