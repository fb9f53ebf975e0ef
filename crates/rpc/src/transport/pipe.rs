//! Pipes to a child process, and to whatever started this one.
//!
//! A child is told its descriptors as the last two arguments, as TVM's children are, or speaks through its standard input and output,
//! as a command in between such as `ssh` does.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Closer, Link, Sink, Source, is_ready, write_both};

struct Reading {
    file: File,
    timeout: Option<Duration>,
}

struct Writing(File);

impl Source for Reading {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        if let Some(timeout) = self.timeout {
            let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            if poll(&mut polled, Some(&limit))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        loop {
            match self.file.read(place) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.timeout = timeout;
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        is_ready(&self.file)
    }
}

impl Sink for Writing {
    fn write(&mut self, head: &[u8], payload: &[u8]) -> io::Result<()> {
        write_both(&mut self.0, head, payload)?;
        self.0.flush()
    }
}

/// Ends the child, and so its pipes.
struct Kill(Mutex<Child>);

impl Closer for Kill {
    fn close(&self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A child that has ended already cannot be killed, and need not be.
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Kill {
    fn drop(&mut self) {
        self.close();
    }
}

struct Nothing;

impl Closer for Nothing {
    fn close(&self) {}
}

/// Starts a command and speaks with it through its standard input and output: what a far command prints elsewhere is seen as its own.
pub fn spawn(mut command: Command) -> io::Result<Link> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    Ok(Link {
        source: Box::new(Reading { file: OwnedFd::from(output).into(), timeout: None }),
        sink: Box::new(Writing(OwnedFd::from(input).into())),
        closer: Arc::new(Kill(Mutex::new(child))),
        peer: format!("the process {name}"),
    })
}

/// Speaks through two descriptors that this process was given.
pub fn of_descriptors(reading: OwnedFd, writing: OwnedFd) -> Link {
    Link {
        source: Box::new(Reading { file: reading.into(), timeout: None }),
        sink: Box::new(Writing(writing.into())),
        closer: Arc::new(Nothing),
        peer: "the parent process".into(),
    }
}

/// Speaks through the descriptors of these numbers, which this process has inherited. They are opened anew, by their names in `/dev/fd`.
pub fn of_numbers(reading: u32, writing: u32) -> io::Result<Link> {
    let open = |number: u32, how: &OpenOptions| {
        let opened = how.open(format!("/dev/fd/{number}"));
        opened.map_err(|error| io::Error::new(error.kind(), format!("the descriptor {number} cannot be used: {error}")))
    };
    let input = open(reading, OpenOptions::new().read(true))?;
    let output = open(writing, OpenOptions::new().write(true))?;
    Ok(of_descriptors(input.into(), output.into()))
}

/// Speaks through this process's standard input and output. Nothing else may use them.
pub fn standard() -> io::Result<Link> {
    let (input, output) = (rustix::io::dup(rustix::stdio::stdin())?, rustix::io::dup(rustix::stdio::stdout())?);
    Ok(of_descriptors(input, output))
}
