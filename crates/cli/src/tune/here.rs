//! Kernels that this machine runs: each pair in a process of its own, which may crash or hang.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use relaxide::ffi::{Any, AnyView};
use relaxide::{Comparison, KernelArg, Measure, MeasureError, Pair};
use serde_json::{Value, json};

use super::LONGEST;
use super::arguments::{self, is_close};
use super::rounds::{calls_of_round, in_rounds};
use crate::answer;
use crate::error::CliError;

/// Measures in a process of its own, which may crash or hang.
pub struct InProcess {
    /// Threads that kernels use.
    pub threads: usize,
    /// Where random arguments begin.
    pub seed: u64,
}

impl Measure for InProcess {
    fn compare(&mut self, pair: Pair<'_>) -> Result<Comparison, MeasureError> {
        let argument = |argument: &KernelArg| match argument {
            KernelArg::Tensor(dtype, shape) => json!({ "dtype": dtype.to_string(), "shape": shape }),
            KernelArg::Int(value) => json!({ "int": value }),
        };
        let request = json!({
            "incumbent": pair.incumbent, "candidate": pair.candidate, "kernel": pair.kernel, "threads": self.threads,
            "seed": self.seed, "arguments": pair.arguments.iter().map(argument).collect::<Vec<_>>(),
        });
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.args(["measure-kernels", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A process that has ended already says why.
            let _ = input.write_all(request.to_string().as_bytes());
        }
        let said = wait(&mut child)?;
        let answer: Value = serde_json::from_str(&said).map_err(|_| MeasureError::Answer(said.clone()))?;
        let number = |name: &str| answer[name].as_f64().ok_or_else(|| MeasureError::Answer(said.clone()));
        Ok(Comparison {
            incumbent: number("incumbent")?,
            candidate: number("candidate")?,
            wins: number("wins")?,
            agrees: answer["agrees"] == true,
        })
    }
}

/// What a process says before it ends; it is ended where it takes too long.
fn wait(child: &mut Child) -> Result<String, MeasureError> {
    let start = Instant::now();
    loop {
        match child.try_wait()? {
            // What it says is short, and lies in the pipe.
            Some(status) => {
                let mut said = String::new();
                let read = child.stdout.take().map(|mut out| out.read_to_string(&mut said));
                read.transpose()?;
                return if status.success() { Ok(said) } else { Err(MeasureError::Ended { status, said }) };
            }
            None if start.elapsed() > LONGEST => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(MeasureError::TooLong);
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Times two kernels in turns, as the request on standard input says, and answers on standard output.
pub fn measure() -> Result<(), CliError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(CliError::file("standard input".as_ref()))?;
    let refused =
        |what: &str| CliError::usage(format!("the request has no {what}"), "this is called by `relaxide tune`");
    let request: Value = serde_json::from_str(&text).map_err(|_| refused("JSON"))?;
    relaxide::set_num_threads(request["threads"].as_u64().unwrap_or(1) as usize)?;
    let kernel = request["kernel"].as_str().ok_or_else(|| refused("kernel"))?;
    let load = |which: &str| {
        let file = PathBuf::from(request[which].as_str().ok_or_else(|| refused(which))?);
        relaxide::load_module(&file)?.get_function(kernel, false).ok_or_else(|| refused("kernel of that name"))
    };
    let functions = [load("incumbent")?, load("candidate")?];
    let arguments = request["arguments"].as_array().ok_or_else(|| refused("arguments"))?;
    let arguments = arguments.iter().map(|argument| read(argument).ok_or_else(|| refused("argument")));
    let arguments = arguments.collect::<Result<Vec<KernelArg>, _>>()?;
    let seed = request["seed"].as_u64().unwrap_or_default();
    let values = [arguments::make(&arguments, seed)?, arguments::make(&arguments, seed)?];
    let run = |which: usize| -> Result<f64, CliError> {
        let views: Vec<AnyView<'_>> = values[which].iter().map(Any::as_view).collect();
        let start = Instant::now();
        functions[which].call(&views)?;
        Ok(start.elapsed().as_secs_f64())
    };
    run(0)?;
    run(1)?;
    let agrees = values[0].iter().zip(&values[1]).all(|(a, b)| is_close(a, b));
    let calls = calls_of_round(run(0)?);
    let timed = |which: usize| -> Result<f64, CliError> {
        let sum = (0..calls).try_fold(0.0, |sum, _| Ok::<f64, CliError>(sum + run(which)?))?;
        Ok(sum / calls as f64)
    };
    let Comparison { incumbent, candidate, wins, agrees } = in_rounds(agrees, timed)?;
    answer::json(
        "measure-kernels",
        json!({ "incumbent": incumbent, "candidate": candidate, "wins": wins, "agrees": agrees }),
    )
}

/// An argument as a request has it.
fn read(argument: &Value) -> Option<KernelArg> {
    if let Some(value) = argument["int"].as_i64() {
        return Some(KernelArg::Int(value));
    }
    let shape = argument["shape"].as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<_>>>()?;
    Some(KernelArg::Tensor(argument["dtype"].as_str()?.parse().ok()?, shape))
}
