//! TCP and Unix sockets.
//!
//! Small packets are sent at once (`TCP_NODELAY`): what waits for a delayed acknowledgement waits 40 ms. A lost machine is found by
//! the system's own probes (keep-alive, and the time that sent bytes may go without acknowledgement).

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};

use super::prompt::PromptReader;
use super::{Closer, Link, Sink, write_both};

/// How many probes a lost peer leaves unanswered.
const PROBES: u32 = 3;

/// Seconds until a peer that has vanished is given up: without a word from it, or with bytes that it does not acknowledge.
static LOST_AFTER: AtomicU64 = AtomicU64::new(40);

/// Says how long a peer that has vanished without a word, as behind a cut cable, is waited for; for sockets that are made from now on.
pub fn set_lost_after(seconds: u64) {
    LOST_AFTER.store(seconds.max(4), Ordering::Relaxed);
}

/// A connected socket of either kind.
#[derive(Debug)]
pub enum Stream {
    /// Over a network.
    Tcp(TcpStream),
    /// Within the machine.
    Unix(UnixStream),
}

impl Stream {
    /// Another handle to the same socket.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Ends both directions.
    pub fn shutdown(&self) {
        // Whoever has gone already is as good as told.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// How long a read waits.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        // No time at all is none of the system's.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// How long a write waits.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// The other end, for messages.
    pub fn peer(&self) -> String {
        match self {
            Stream::Tcp(stream) => {
                stream.peer_addr().map_or_else(|_| "a closed socket".into(), |addr| addr.to_string())
            }
            Stream::Unix(_) => "a Unix socket".into(),
        }
    }

    /// The host of the other end, as a tracker writes it.
    pub fn peer_host(&self) -> Option<String> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok().map(|addr| addr.ip().to_canonical().to_string()),
            Stream::Unix(_) => None,
        }
    }

    /// True if the other end is on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().is_ok_and(|addr| addr.ip().to_canonical().is_loopback()),
            Stream::Unix(_) => true,
        }
    }

    /// The descriptor, to be given to a child.
    pub fn into_fd(self) -> OwnedFd {
        match self {
            Stream::Tcp(stream) => stream.into(),
            Stream::Unix(stream) => stream.into(),
        }
    }

    /// Reads what is there, at least a byte, whatever signals come meanwhile, such as a terminal that changes its size.
    pub fn read_on(&mut self, place: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(place) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// The stream as a link.
    pub fn into_link(self) -> io::Result<Link> {
        let peer = self.peer();
        let (source, closer) = (self.try_clone()?, self.try_clone()?);
        Ok(Link { source: Box::new(PromptReader::new(source)), sink: Box::new(self), closer: Arc::new(closer), peer })
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(place),
            Stream::Unix(stream) => stream.read(place),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write_vectored(parts),
            Stream::Unix(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Stream {
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        write_both(self, head, payload)
    }
}

impl Closer for Stream {
    fn close(&self) {
        self.shutdown();
    }
}

/// Sets a TCP socket up: no waiting for acknowledgements, probes for lost peers.
pub fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let lost_after = LOST_AFTER.load(Ordering::Relaxed);
    // The first probe goes out after one part of the time, each other after another.
    let part = Duration::from_secs((lost_after / u64::from(PROBES + 1)).max(1));
    let keepalive = TcpKeepalive::new().with_time(part).with_interval(part).with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(Duration::from_secs(lost_after)))?;
    Ok(())
}

/// Connects to `host:port`, or to `unix:PATH`, within a time.
pub fn connect(host: &str, port: u16, timeout: Duration) -> io::Result<Stream> {
    if let Some(path) = host.strip_prefix("unix:") {
        return UnixStream::connect(path).map(Stream::Unix);
    }
    let deadline = Instant::now() + timeout;
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in (host, port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                tune(&stream)?;
                return Ok(Stream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What a server listens on.
#[derive(Debug)]
pub enum Listener {
    /// A port.
    Tcp(TcpListener),
    /// A path, which is removed at the end.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on the first free port of a range, or on `unix:PATH`.
    pub fn bind(host: &str, port: u16, port_end: u16, reuse: bool) -> io::Result<Listener> {
        let Some(path) = host.strip_prefix("unix:") else {
            let listener = listen(host, port, port_end, reuse)?;
            listener.set_nonblocking(true)?;
            return Ok(Listener::Tcp(listener));
        };
        // A socket that nobody listens on any more is in the way.
        if reuse
            && UnixStream::connect(path).is_err()
            && std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot bind to the socket {path}: {error}")))?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Unix(listener, path.into()))
    }

    /// The port; 0 where there is none.
    pub fn port(&self) -> io::Result<u16> {
        match self {
            Listener::Tcp(listener) => Ok(listener.local_addr()?.port()),
            Listener::Unix(..) => Ok(0),
        }
    }

    /// The next connection; `WouldBlock` if there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // A socket that is gone already is found out when it is greeted.
                let _ = stream.set_nonblocking(false);
                Ok(Stream::Tcp(stream))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                let _ = stream.set_nonblocking(false);
                Ok(Stream::Unix(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Whoever removed it already has done what was to be done.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens on the first free port of a half-open range.
pub fn listen(host: &str, port: u16, port_end: u16, reuse: bool) -> io::Result<TcpListener> {
    let end = port_end.max(port.saturating_add(1));
    for port in port..end {
        let address = (host, port).to_socket_addrs()?.next();
        let address =
            address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")))?;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        if reuse {
            socket.set_reuse_address(true)?;
        }
        if socket.bind(&address.into()).is_ok() && socket.listen(1024).is_ok() {
            return Ok(socket.into());
        }
    }
    let message = format!("cannot bind to any port in [{port}, {port_end}) of {host}");
    Err(io::Error::new(io::ErrorKind::AddrInUse, message))
}
