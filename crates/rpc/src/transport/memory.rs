//! Two ends in one process.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Closer, Link, Sink, Source};

/// Bytes on their way in one direction; a writer waits while as many are there.
const CAPACITY: usize = 1 << 20;

#[derive(Default)]
struct Pipe {
    state: Mutex<PipeState>,
    changed: Condvar,
}

#[derive(Default)]
struct PipeState {
    bytes: VecDeque<u8>,
    closed: bool,
}

struct Reading {
    pipe: Arc<Pipe>,
    timeout: Option<Duration>,
}

struct Writing(Arc<Pipe>);

struct Both([Arc<Pipe>; 2]);

impl Source for Reading {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.pipe.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if !state.bytes.is_empty() {
                let count = place.len().min(state.bytes.len());
                let (front, back) = state.bytes.as_slices();
                let first = count.min(front.len());
                place[..first].copy_from_slice(&front[..first]);
                place[first..count].copy_from_slice(&back[..count - first]);
                state.bytes.drain(..count);
                self.pipe.changed.notify_all();
                return Ok(count);
            }
            if state.closed {
                return Ok(0);
            }
            state = match deadline {
                None => self.pipe.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.pipe.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.timeout = timeout;
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        let state = self.pipe.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed || !state.bytes.is_empty()
    }
}

impl Sink for Writing {
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        for mut part in [head, payload] {
            while !part.is_empty() {
                let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
                while state.bytes.len() >= CAPACITY && !state.closed {
                    state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                if state.closed {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                let (now, later) = part.split_at(part.len().min(CAPACITY - state.bytes.len()));
                state.bytes.extend(now);
                part = later;
                self.0.changed.notify_all();
            }
        }
        Ok(())
    }
}

impl Closer for Both {
    fn close(&self) {
        for pipe in &self.0 {
            pipe.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
            pipe.changed.notify_all();
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.0.changed.notify_all();
    }
}

/// Both ends of a stream within the process.
pub fn pair(name: &str) -> (Link, Link) {
    let pipes = [Arc::new(Pipe::default()), Arc::new(Pipe::default())];
    let end = |from: usize, to: usize| Link {
        source: Box::new(Reading { pipe: Arc::clone(&pipes[from]), timeout: None }),
        sink: Box::new(Writing(Arc::clone(&pipes[to]))),
        closer: Arc::new(Both(pipes.clone())),
        peer: name.to_owned(),
    };
    (end(0, 1), end(1, 0))
}
