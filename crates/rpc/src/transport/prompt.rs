//! Reads of a socket that look for a while before they sleep.
//!
//! Most of a short call's time is the system's: it puts the thread that waits for the reply to sleep and wakes it again, on either side. A
//! reader whose last wait was short looks for the next bytes itself for that long, and sleeps if they have not come. One long wait
//! ends the looking until a wait is short again, so that what waits for a user or for work keeps no processor busy.

use std::io;
use std::sync::OnceLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::socket::Stream;
use super::{Source, is_ready};

/// How long a reader looks: a few times what a thread takes to be put to sleep and woken.
const LOOK: Duration = Duration::from_micros(50);
/// How many pauses of the processor lie between two looks, so that a look by the system disturbs who else runs on this core less.
const PAUSES: u32 = 8;

/// The half of a socket that reads.
#[derive(Debug)]
pub struct PromptReader {
    stream: Stream,
    /// The last wait was short: the next may be, too.
    looks: bool,
}

impl PromptReader {
    /// Reads from a socket.
    pub fn new(stream: Stream) -> PromptReader {
        PromptReader { stream, looks: false }
    }

    /// What is there by `LOOK` after a time; nothing if nothing is.
    fn look(&self, place: &mut [u8], begun: Instant) -> Option<io::Result<usize>> {
        loop {
            match recv(&self.stream, &mut *place, RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return Some(other.map(|(count, _)| count).map_err(io::Error::from)),
            }
            if begun.elapsed() >= LOOK {
                return None;
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }
}

/// True if the other end can run while this one looks.
fn has_cores() -> bool {
    static CORES: OnceLock<bool> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

impl Source for PromptReader {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        if self.looks
            && let Some(read) = self.look(place, begun)
        {
            return read;
        }
        let read = self.stream.read_on(place);
        self.looks = begun.elapsed() <= LOOK && has_cores();
        read
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(timeout)
    }

    fn is_ready(&mut self) -> bool {
        is_ready(&self.stream)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (PromptReader, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (PromptReader::new(Stream::Unix(near)), far)
    }

    #[test]
    fn bytes_come_whether_it_looks_or_sleeps() {
        let (mut reader, mut far) = pair();
        let mut place = [0; 4];
        for looks in [false, true] {
            for late in [Duration::ZERO, LOOK / 2, LOOK * 40] {
                reader.looks = looks;
                let mut far = far.try_clone().unwrap();
                let writer = std::thread::spawn(move || {
                    std::thread::sleep(late);
                    far.write_all(b"word").unwrap();
                });
                assert_eq!(reader.read(&mut place).unwrap(), 4, "looks: {looks}, late by {late:?}");
                assert_eq!(&place, b"word");
                writer.join().unwrap();
            }
        }
        far.flush().unwrap();
    }

    #[test]
    fn a_long_wait_ends_the_looking() {
        let (mut reader, mut far) = pair();
        reader.looks = true;
        let writer = std::thread::spawn(move || {
            std::thread::sleep(LOOK * 40);
            far.write_all(b"word").unwrap();
            far
        });
        reader.read(&mut [0; 4]).unwrap();
        assert!(!reader.looks);
        drop(writer.join().unwrap());
    }

    #[test]
    fn the_end_and_the_time_out_are_seen_while_it_looks() {
        let (mut reader, far) = pair();
        reader.set_timeout(Some(Duration::from_millis(5))).unwrap();
        reader.looks = true;
        let error = reader.read(&mut [0; 4]).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        reader.looks = true;
        drop(far);
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
    }
}
