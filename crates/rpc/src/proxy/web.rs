//! Browsers: pages and files by HTTP, and servers in them by WebSocket.

use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::serve::{ProxyShared, meet};
use crate::transport::{Source, read_exact, websocket};
use crate::wire::handshake::{Key, MAGIC, MISMATCH, Side, key_length, refusal};

/// How long a browser may take for a request.
const REQUEST: Duration = Duration::from_secs(10);
/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;

/// Serves a connection.
pub(super) fn serve(shared: &Arc<ProxyShared>, stream: TcpStream) {
    let peer = stream.peer_addr().map_or_else(|_| "a browser".into(), |address| address.to_string());
    let served = match path(&stream) {
        Ok(path) if path == "/ws" => socket(shared, stream),
        Ok(path) => page(shared, &stream, &path),
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        shared.say(&format!("{peer}: {error}"));
    }
}

/// The path of the request, which stays to be read.
fn path(stream: &TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + REQUEST;
    let mut head = vec![0; MAX_HEAD];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let count = stream.peek(&mut head)?;
        let text = &head[..count];
        if text.windows(4).any(|end| end == b"\r\n\r\n") {
            let line =
                String::from_utf8_lossy(text.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
            let mut words = line.split(' ');
            return match (words.next(), words.next()) {
                (Some("GET"), Some(path)) => Ok(path.split('?').next().unwrap_or_default().to_owned()),
                _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the request is no GET")),
            };
        }
        if count == 0 || count == MAX_HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request has no end"));
        }
        // What is peeked at stays, so there is nothing to wait on but time.
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn page(shared: &ProxyShared, mut stream: &TcpStream, path: &str) -> io::Result<()> {
    let options = &shared.options;
    let found: Option<&Path> = match path {
        "/" => options.index_page.as_deref(),
        _ => {
            let name = path.trim_start_matches('/');
            let named = |file: &&std::path::PathBuf| file.file_name().is_some_and(|own| own.to_str() == Some(name));
            options.resource_files.iter().find(named).map(std::path::PathBuf::as_path)
        }
    };
    let (status, body) = match found.map(std::fs::read) {
        Some(Ok(body)) => ("200 OK", body),
        _ => ("404 Not Found", b"There is no such page here.\n".to_vec()),
    };
    let kind = match found.and_then(|path| path.extension()).and_then(|ending| ending.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    // Read what was only peeked at: a close with unread bytes would take the answer along.
    let mut request = vec![0; MAX_HEAD];
    let _ = io::Read::read(&mut stream, &mut request)?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

fn socket(shared: &Arc<ProxyShared>, stream: TcpStream) -> io::Result<()> {
    let options = &shared.options;
    let mut link = websocket::accept(stream, REQUEST, &|origin, host| admits(&options.web_origins, origin, host))?;
    link.source.set_timeout(Some(REQUEST))?;
    let key = key(&mut *link.source)?;
    link.source.set_timeout(None)?;
    if !options.web_clients && Key::parse(&key).is_ok_and(|key| key.side == Side::Client) {
        link.sink.write(&refusal(MISMATCH), &[])?;
        return Err(io::Error::other("clients come by WebSocket only with --web-clients"));
    }
    meet(shared, link, None, &key).map_err(|error| io::Error::other(error.to_string()))
}

/// Whether a page of an origin may connect: one of the list, or one of this proxy itself. Whoever owns a name may have it mean this machine,
/// so that a page which the proxy gave is known by an address or by `localhost` only.
fn admits(listed: &[String], origin: &str, host: &str) -> bool {
    let is_own = origin.strip_prefix("http://") == Some(host);
    let name = host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
    let name = name.trim_matches(['[', ']']);
    let is_address = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok();
    listed.iter().any(|one| one == origin || one == "*") || (is_own && is_address)
}

fn key(source: &mut dyn Source) -> io::Result<Vec<u8>> {
    let mut word = [0; 4];
    read_exact(source, &mut word)?;
    if i32::from_le_bytes(word) != MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not speak TVM's protocol"));
    }
    read_exact(source, &mut word)?;
    let length = key_length(word).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    let mut key = vec![0; length];
    read_exact(source, &mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::admits;

    #[test]
    fn pages_of_others_are_not_let_in() {
        let listed = vec!["https://example.invalid".to_owned()];
        for (origin, host, is_in) in [
            ("http://127.0.0.1:8888", "127.0.0.1:8888", true),
            ("http://localhost:8888", "localhost:8888", true),
            ("http://[::1]:8888", "[::1]:8888", true),
            ("http://[::1]", "[::1]", true),
            ("https://example.invalid", "board:8888", true),
            ("http://127.0.0.1:80", "127.0.0.1:8888", false),
            ("http://onnx.ai:8888", "127.0.0.1:8888", false),
            // A name that was made to mean this machine.
            ("http://onnx.ai:8888", "onnx.ai:8888", false),
            ("null", "127.0.0.1:8888", false),
            ("", "", false),
        ] {
            assert_eq!(admits(&listed, origin, host), is_in, "{origin} at {host}");
        }
        assert!(admits(&["*".to_owned()], "null", ""));
    }
}
