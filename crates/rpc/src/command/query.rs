//! `rpc query`.

use super::args::{Args, Opt, help};
use super::{Failed, say};
use crate::session::connect::CONNECT;
use crate::tracker::client::{TrackerLink, table};

const TABLE: &[Opt] = &[
    Opt { name: "host", value: "HOST", help: "the tracker [default: TVM_TRACKER_HOST, else 127.0.0.1]" },
    Opt { name: "port", value: "PORT", help: "its port [default: TVM_TRACKER_PORT, else 9190]" },
    Opt { name: "json", value: "", help: "answer with JSON" },
    Opt { name: "help", value: "", help: "show this" },
];

/// Shows what a tracker has.
pub fn run(words: &[String]) -> Result<(), Failed> {
    let args = Args::parse("query", TABLE, words)?;
    if args.has("help") {
        print!("{}", help("relaxide rpc query [OPTIONS]", "Show the servers and queues of a tracker.", TABLE));
        return Ok(());
    }
    let said = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let host = args.get("host").map(str::to_owned).or_else(|| said("TVM_TRACKER_HOST")).unwrap_or("127.0.0.1".into());
    let port = match (args.parsed("port", "a port")?, said("TVM_TRACKER_PORT")) {
        (Some(port), _) => port,
        (None, Some(text)) => text.parse().map_err(|_| format!("TVM_TRACKER_PORT={text}: expected a port"))?,
        (None, None) => 9190,
    };
    let summary = TrackerLink::connect(&host, port, CONNECT)?.summary()?;
    match args.has("json") {
        true => say(&summary.to_string()),
        false => say(&format!("Tracker address {host}:{port}\n\n{}", table(&summary))),
    }
    Ok(())
}
