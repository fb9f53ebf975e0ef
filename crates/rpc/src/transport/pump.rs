//! Bytes from one link to another, unchanged, in both directions.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::socket::Stream;
use super::{Closer, Link, Sink, Source};

/// What is moved at a time.
const CHUNK: usize = 64 << 10;

/// Ends both links once.
struct Both(Arc<dyn Closer>, Arc<dyn Closer>);

impl Closer for Both {
    fn close(&self) {
        self.0.close();
        self.1.close();
    }
}

fn one_way(mut from: Box<dyn Source>, mut to: Box<dyn Sink>, ends: &dyn Closer) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write(&buffer[..count], &[]).is_err() {
            break;
        }
    }
    ends.close();
}

/// Joins two links until either ends, which ends the other.
pub fn join(a: Link, b: Link) -> io::Result<()> {
    let ends: Arc<dyn Closer> = Arc::new(Both(a.closer, b.closer));
    let (there, back) = (Arc::clone(&ends), Arc::clone(&ends));
    let (from, to) = (b.source, a.sink);
    let other = std::thread::Builder::new()
        .name("rpc-pump".into())
        .stack_size(256 << 10)
        .spawn(move || one_way(from, to, &*back));
    let other = other.inspect_err(|_| ends.close())?;
    one_way(a.source, b.sink, &*there);
    let _ = other.join();
    Ok(())
}

/// The link as a socket, for what needs a descriptor: a thread moves the bytes until either ends.
pub fn into_stream(link: Link) -> io::Result<Stream> {
    let (near, far) = UnixStream::pair()?;
    let far = Stream::Unix(far).into_link()?;
    std::thread::Builder::new().name("rpc-pump".into()).stack_size(256 << 10).spawn(move || join(link, far))?;
    Ok(Stream::Unix(near))
}
