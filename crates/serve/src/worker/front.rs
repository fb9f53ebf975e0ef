//! An engine's end: starts a worker, gives it models and batches, and starts another where it ends.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::message::{Answer, Order, receive, send};
use crate::engine::{Failure, Runner};
use crate::repository::{Loaded, Place};
use crate::{Error, Fault, Tensor};

/// How long a model may take to load.
const LOAD_TIME: Duration = Duration::from_secs(600);

/// How a worker is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The program and the words before the option that makes it a worker.
    pub words: Vec<OsString>,
    /// Threads that its kernels use.
    pub threads: usize,
}

/// A worker of an engine, running or to be started.
pub(crate) struct Worker {
    launch: Launch,
    running: Option<Running>,
    restarts: Arc<AtomicU64>,
    has_run: bool,
}

struct Running {
    process: Child,
    socket: UnixStream,
    /// The loads that it has.
    loaded: HashMap<u64, Weak<Loaded>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Worker {
    pub(crate) fn new(launch: Launch, restarts: Arc<AtomicU64>) -> Worker {
        Worker { launch, running: None, restarts, has_run: false }
    }

    fn running(&mut self) -> Result<&mut Running, Failure> {
        if self.running.is_none() {
            if std::mem::replace(&mut self.has_run, true) {
                self.restarts.fetch_add(1, Ordering::Relaxed);
            }
            let started = start(&self.launch);
            let running = started.map_err(|error| Failure::Ended(format!("a worker cannot be started: {error}")))?;
            self.running = Some(running);
        }
        self.running.as_mut().ok_or_else(|| Failure::Ended("no worker is running".into()))
    }

    /// Gives the worker a model, if it does not have it, and forgets those that nobody uses.
    fn load(&mut self, model: &Arc<Loaded>) -> Result<(), Failure> {
        let running = self.running()?;
        let gone = running.loaded.iter().filter(|(_, load)| load.strong_count() == 0);
        let gone: Vec<u64> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            running.loaded.remove(&id);
            running.tell(&Order::Forget(id)).map_err(|error| ended(&error))?;
        }
        if running.loaded.contains_key(&model.id) {
            return Ok(());
        }
        let Place::Files(files) = &model.place else {
            return Err(Error::new(Fault::Internal, "the model is loaded in the server and not by workers").into());
        };
        let (library, weights) = files.paths()?;
        let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        let order = Order::Load(model.id, text(library), weights.map(text));
        match running.ask(&order, Instant::now() + LOAD_TIME)? {
            Answer::Ready => {
                running.loaded.insert(model.id, Arc::downgrade(model));
                Ok(())
            }
            Answer::Failed(error) => Err(error.into()),
            Answer::Outputs(_) => Err(Failure::Ended("the worker answered something else".into())),
        }
    }

    fn try_run(&mut self, model: &Arc<Loaded>, inputs: &[Tensor], deadline: Instant) -> Result<Vec<Tensor>, Failure> {
        self.load(model)?;
        match self.running()?.ask(&Order::Run(model.id, inputs.to_vec()), deadline)? {
            Answer::Outputs(outputs) => Ok(outputs),
            Answer::Failed(error) => Err(error.into()),
            Answer::Ready => Err(Failure::Ended("the worker answered something else".into())),
        }
    }
}

impl Runner for Worker {
    fn prepare(&mut self, models: &[Arc<Loaded>]) {
        for model in models {
            // What fails now fails again for whoever asks for the model, and is told then.
            if let Err(Failure::Ended(_)) = self.load(model) {
                self.running = None;
                return;
            }
        }
    }

    fn run(&mut self, model: &Arc<Loaded>, inputs: &[Tensor], deadline: Instant) -> Result<Vec<Tensor>, Failure> {
        if Instant::now() >= deadline {
            return Err(late());
        }
        let result = self.try_run(model, inputs, deadline);
        match &result {
            // A worker that is late goes on with it; the next batch gets another.
            Err(Failure::Ended(_)) | Err(Failure::Error(Error { fault: Fault::Timeout, .. })) => self.running = None,
            _ => {}
        }
        result
    }
}

impl Running {
    fn tell(&mut self, order: &Order) -> io::Result<()> {
        send(&self.socket, &order.encode())
    }

    fn ask(&mut self, order: &Order, deadline: Instant) -> Result<Answer, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        let of_io = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
            _ => ended(&error),
        };
        self.socket.set_read_timeout(Some(left)).map_err(of_io)?;
        self.socket.set_write_timeout(Some(left)).map_err(of_io)?;
        self.tell(order).map_err(of_io)?;
        let answer = receive(&self.socket).map_err(of_io)?;
        let answer = answer.ok_or_else(|| Failure::Ended("the worker ended".into()))?;
        Answer::decode(answer).map_err(|error| Failure::Ended(error.message))
    }
}

fn late() -> Failure {
    Error::new(Fault::Timeout, "the model took longer than the request may").into()
}

fn ended(error: &io::Error) -> Failure {
    Failure::Ended(format!("the worker ended: {error}"))
}

fn start(launch: &Launch) -> io::Result<Running> {
    let (socket, theirs) = UnixStream::pair()?;
    let (program, words) = launch.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(words).arg("--worker").env("RELAXIDE_NUM_THREADS", launch.threads.to_string());
    // An interrupt from the keyboard is the server's, which ends its workers when all is answered.
    command.process_group(0).stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
    Ok(Running { process: command.spawn()?, socket, loaded: HashMap::new() })
}
