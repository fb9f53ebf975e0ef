//! The worker's end: does what it is told until the server is gone.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::message::{Answer, Order, receive, send};
use crate::{Error, Fault, Machine, Opened, Tensor};

/// Serves the other end of standard input, which is a socket.
pub(crate) fn run() -> Result<(), Error> {
    let lost =
        |error: io::Error| Error::new(Fault::Internal, format!("a worker is started by its server only: {error}"));
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(lost)?);
    let mut machines = HashMap::new();
    // The server's end is closed when the server ends, however it does.
    while let Some(message) = receive(&socket).map_err(lost)? {
        let answer = match Order::decode(message)? {
            Order::Load(id, path, weights) => match load(&path, weights.as_deref()) {
                Ok(machine) => {
                    machines.insert(id, machine);
                    Answer::Ready
                }
                Err(error) => Answer::Failed(error),
            },
            Order::Run(id, inputs) => call(&machines, id, &inputs).map_or_else(Answer::Failed, Answer::Outputs),
            Order::Forget(id) => {
                machines.remove(&id);
                continue;
            }
        };
        send(&socket, &answer.encode()).map_err(lost)?;
    }
    Ok(())
}

fn load(path: &str, weights: Option<&str>) -> Result<Machine, Error> {
    Opened::read(Path::new(path))?.start(weights.map(Path::new))
}

fn call(machines: &HashMap<u64, Machine>, id: u64, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
    let machine = machines.get(&id);
    machine.ok_or_else(|| Error::new(Fault::Internal, "the worker has no such model"))?.run(inputs)
}
