//! Kernels that a server runs: `--on`.
//!
//! Each pair has a session of its own, so that one that crashes or hangs there ends with it. Both libraries are sent, called on the same
//! numbers, and timed in turns by the server's clock.

use std::path::Path;

use relaxide::ffi::{Any, AnyView, Device, Function, Module, Tensor};
use relaxide::rpc::Session;
use relaxide::{Comparison, Measure, MeasureError, Pair};

use super::LONGEST;
use super::arguments::{self, is_close};
use super::rounds::{calls_of_round, in_rounds};
use crate::error::CliError;
use crate::remote::{self, Server};

/// Measures on a server.
pub struct OnServer {
    /// Which, as `--on` names it.
    pub on: String,
    /// Where random arguments begin.
    pub seed: u64,
}

impl Measure for OnServer {
    fn compare(&mut self, pair: Pair<'_>) -> Result<Comparison, MeasureError> {
        let server = Server::connect(&self.on).map_err(|error| MeasureError::Unreachable(error.to_string()))?;
        let session = server.session();
        session.set_timeout(Some(LONGEST));
        self.within(session, pair).map_err(|error| MeasureError::Answer(error.to_string()))
    }
}

impl OnServer {
    fn within(&self, session: &Session, pair: Pair<'_>) -> Result<Comparison, CliError> {
        let kernels = [
            Kernel::send(session, "incumbent.so", pair.incumbent, pair.kernel)?,
            Kernel::send(session, "candidate.so", pair.candidate, pair.kernel)?,
        ];
        let device = session.device(Device::cpu(0))?;
        let made = arguments::make(pair.arguments, self.seed)?;
        let sent = || -> Result<Vec<Any>, CliError> {
            let one = |value: &Any| match value.as_tensor() {
                Some(tensor) => session.tensor(tensor, device).map(Any::from),
                None => Ok(value.clone()),
            };
            Ok(made.iter().map(one).collect::<Result<_, _>>()?)
        };
        let values = [sent()?, sent()?];
        for (kernel, values) in kernels.iter().zip(&values) {
            let views: Vec<AnyView<'_>> = values.iter().map(Any::as_view).collect();
            kernel.function.call(&views)?;
        }
        let agrees = agree(&values)?;
        let seconds = |which: usize, calls: usize| kernels[which].seconds(session, &values[which], calls);
        let calls = calls_of_round(seconds(0, 1)?);
        in_rounds(agrees, |which| seconds(which, calls))
    }
}

/// A kernel on the server.
struct Kernel<'a> {
    module: Module,
    function: Function,
    name: &'a str,
}

impl<'a> Kernel<'a> {
    fn send(session: &Session, file: &str, library: &Path, name: &'a str) -> Result<Kernel<'a>, CliError> {
        session.upload(file, &std::fs::read(library).map_err(CliError::file(library))?)?;
        let module = session.load_module(file)?;
        let missing = || CliError::usage(format!("the library on the server has no kernel {name}"), "report this");
        let function = module.get_function(name, true).ok_or_else(missing)?;
        Ok(Kernel { module, function, name })
    }

    /// The seconds of a call, of so many, by the server's clock.
    fn seconds(&self, session: &Session, values: &[Any], calls: usize) -> Result<f64, CliError> {
        let views: Vec<AnyView<'_>> = values.iter().map(Any::as_view).collect();
        let seconds = remote::times(session, &self.module, self.name, [calls, 1], &views)?;
        Ok(seconds.first().copied().unwrap_or(f64::NAN))
    }
}

/// Whether both kernels left the same in their arguments.
fn agree(values: &[Vec<Any>; 2]) -> Result<bool, CliError> {
    let here = |value: &Any| -> Result<Any, CliError> {
        match value.to::<Tensor>() {
            Ok(tensor) => Ok(relaxide::runtime::device::on_host(&tensor)?.into()),
            Err(_) => Ok(value.clone()),
        }
    };
    for (one, other) in values[0].iter().zip(&values[1]) {
        if !is_close(&here(one)?, &here(other)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
