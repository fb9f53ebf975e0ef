//! `rpc proxy`.

use std::time::Duration;

use super::args::{Args, Opt, help};
use super::{Failed, address, is_loopback, say, wait_while};
use crate::proxy::serve::{Options, Proxy};

const TABLE: &[Opt] = &[
    Opt { name: "host", value: "HOST", help: "the address to listen on [default: 127.0.0.1]" },
    Opt { name: "port", value: "PORT", help: "the first port that is tried [default: 9090]" },
    Opt { name: "port-end", value: "PORT", help: "the port behind the last [default: 9199]" },
    Opt { name: "web-port", value: "PORT", help: "the port for servers in browsers; 0 for none [default: 0]" },
    Opt { name: "web-clients", value: "", help: "let clients come by WebSocket too, and not only servers" },
    Opt {
        name: "web-origins",
        value: "ORIGINS",
        help: "pages that may connect besides the proxy's own, with `,` between",
    },
    Opt { name: "index-page", value: "FILE", help: "the page that browsers get" },
    Opt { name: "resource-files", value: "FILES", help: "files for that page, with `:` between" },
    Opt { name: "tracker", value: "HOST:PORT", help: "offer the servers at that tracker" },
    Opt { name: "timeout", value: "SECONDS", help: "how long one side waits for the other [default: 600]" },
    Opt { name: "protocol", value: "tvm", help: "says that TVM's protocol has no security; needed off loopback" },
    Opt { name: "silent", value: "", help: "print nothing but the address" },
    Opt { name: "help", value: "", help: "show this" },
];

/// Keeps a proxy until it is told to end.
pub fn run(words: &[String]) -> Result<(), Failed> {
    let args = Args::parse("proxy", TABLE, words)?;
    if args.has("help") {
        print!("{}", help("relaxide rpc proxy [OPTIONS]", "Lead clients to servers that they cannot reach.", TABLE));
        return Ok(());
    }
    let host = args.get("host").unwrap_or("127.0.0.1").to_owned();
    if !is_loopback(&host) && args.get("protocol") != Some("tvm") {
        return Err(super::track::no_security(&host).into());
    }
    let seconds: f64 = args.parsed("timeout", "a number of seconds")?.unwrap_or(600.0);
    let timeout = Duration::try_from_secs_f64(seconds).map_err(|_| format!("--timeout {seconds}: too long"))?;
    let port = args.parsed("port", "a port")?.unwrap_or(9090);
    let proxy = Proxy::start(Options {
        host: host.clone(),
        port,
        port_end: args.parsed("port-end", "a port")?.unwrap_or(9199.max(port.saturating_add(1))),
        web_port: args.parsed("web-port", "a port")?.unwrap_or(0),
        web_clients: args.has("web-clients"),
        web_origins: args.all("web-origins").flat_map(|origins| origins.split(',')).map(Into::into).collect(),
        index_page: args.get("index-page").map(Into::into),
        resource_files: args.all("resource-files").flat_map(|files| files.split(':')).map(Into::into).collect(),
        tracker: args.get("tracker").map(|text| address(text, "tracker")).transpose()?,
        timeout_client: timeout,
        timeout_server: timeout,
        silent: args.has("silent"),
    })?;
    say(&format!("proxy: listening on {host}:{}", proxy.port()));
    if let Some(port) = proxy.web_port() {
        say(&format!("proxy: browsers on http://{host}:{port}/"));
    }
    wait_while(|| true);
    Ok(())
}
