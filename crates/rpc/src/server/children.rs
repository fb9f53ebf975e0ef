//! Sessions in processes of their own.
//!
//! A child is started with the client's socket as its standard input. It is the leader of a process group, so that what it starts
//! itself ends with it; its folder is removed when it has ended, however it did.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use relaxide_ffi::{Error, ErrorKind};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::confine::Confinement;
use super::session::{self, Ends, Grant};
use crate::transport::socket::Stream;

/// How much longer than its time a child may take to end itself.
const GRACE: Duration = Duration::from_secs(3);

/// A session in a process.
pub struct Running {
    child: Child,
    pid: Option<Pid>,
    deadline: Option<Instant>,
}

impl Running {
    /// Starts a child with a command, behind which the grant is put.
    pub fn start(command: &[OsString], stream: Stream, grant: &Grant) -> Result<Running, Error> {
        let (program, args) = command
            .split_first()
            .ok_or_else(|| Error::new(ErrorKind::ValueError, "the command for sessions is empty"))?;
        let mut command = Command::new(program);
        // What its libraries put where temporary files are goes with its folder.
        command.env("TMPDIR", &grant.folder);
        if grant.confinement != Confinement::Nowhere {
            // Drivers that keep what they compile could not write elsewhere.
            command.env("XDG_CACHE_HOME", &grant.folder).env("POCL_CACHE_DIR", grant.folder.join(".pocl"));
        }
        let child = command
            .args(args)
            .arg(grant.to_text())
            .stdin(Stdio::from(stream.into_fd()))
            .stdout(if grant.client_key.is_some() { Stdio::piped() } else { Stdio::null() })
            .process_group(0)
            .spawn();
        let child = child.map_err(|error| {
            let message = format!("cannot start {} for the session: {error}", program.to_string_lossy());
            Error::new(ErrorKind::OSError, message)
        })?;
        let deadline = grant.timeout.and_then(|timeout| Instant::now().checked_add(timeout)?.checked_add(GRACE));
        Ok(Running { pid: Pid::from_child(&child).into(), child, deadline })
    }

    /// What the process says first, where it has a key of its own.
    pub fn said(&mut self) -> Result<ChildStdout, Error> {
        self.child
            .stdout
            .take()
            .ok_or_else(|| Error::new(ErrorKind::RuntimeError, "the session's process says nothing"))
    }

    /// Ends the process and all that it started.
    pub fn end(self) {
        if let Some(pid) = self.pid {
            end_group(pid);
        }
        self.wait();
    }

    /// The number of the process.
    pub fn pid(&self) -> Option<Pid> {
        self.pid
    }

    /// When it is to be ended if it has not ended.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Waits until it has ended, and ends what it started.
    pub fn wait(mut self) -> String {
        if let Some(pid) = self.pid {
            // Not reaped yet, so that its number is still its group's.
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            end_group(pid);
        }
        match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

/// Ends a process and all that it started.
pub fn end_group(pid: Pid) {
    // Those that have ended already are as good as ended.
    let _ = kill_process_group(pid, Signal::KILL);
}

/// Serves a client whose connection is within the server's TLS, or the process's own.
fn serve(stream: Stream, grant: &Grant) -> Result<(), Error> {
    let Some(client) = &grant.client_key else { return session::serve(stream, grant, Ends::Process) };
    #[cfg(feature = "secure")]
    {
        use std::io::Write;

        use crate::secure::{handover, identity::Fingerprint};

        let (own, client) = (handover::new_key()?, Fingerprint::parse(client)?);
        writeln!(std::io::stdout(), "{}", own.fingerprint())?;
        // Nobody listens to what else is printed, such as by code that is loaded.
        let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nothing).map_err(std::io::Error::from)?;
        let watched = stream.try_clone()?;
        let link = handover::serve(stream, &own, client)?;
        session::serve_link(link, watched, grant, Ends::Process)
    }
    #[cfg(not(feature = "secure"))]
    Err(Error::new(ErrorKind::ValueError, format!("this build cannot serve the key {client}: it has no TLS")))
}

/// What a child does: serves the socket that is its standard input. Returns the exit code.
pub fn child_main(grant: &str) -> i32 {
    // A server that is killed takes its sessions along.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        eprintln!("relaxide rpc: session: it will not notice the death of its server");
    }
    let served = Grant::from_text(grant).and_then(|grant| {
        session::limit_process(&grant)?;
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(std::io::Error::from)?;
        serve(Stream::Tcp(socket.into()), &grant)
    });
    match served {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("relaxide rpc: session: {error}");
            1
        }
    }
}
