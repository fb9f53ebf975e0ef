//! `relaxide bench`.

use std::time::Instant;

use clap::Args;
use relaxide::ffi::Device;
use relaxide::runtime::memory::{self, AllocatorKind};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs};
use crate::compile::size_text;
use crate::error::CliError;
use crate::inputs::Call;
use crate::program;
use crate::progress::{Bar, Show};

/// Arguments of `relaxide bench`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide bench model.so --dim batch=8 --threads 2\n  \
    relaxide bench model.onnx --runs 200 --json")]
pub struct BenchArgs {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Its inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Calls that are timed.
    #[arg(long, default_value_t = 50)]
    pub runs: usize,
    /// Calls before those.
    #[arg(long, default_value_t = 5)]
    pub warmup: usize,
}

/// Times of calls, in milliseconds and in order of size.
pub struct Times(Vec<f64>);

impl Times {
    /// Of measured times.
    pub fn of(mut times: Vec<f64>) -> Times {
        times.sort_by(f64::total_cmp);
        Times(times)
    }

    /// The time below which a share of the calls stays.
    pub fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        json!({
            "min_ms": self.at(0.0), "median_ms": self.at(0.5), "p90_ms": self.at(0.9), "p99_ms": self.at(0.99),
            "max_ms": self.at(1.0), "calls_per_second": 1e3 / self.at(0.5),
        })
    }

    /// For people.
    pub fn text(&self) -> String {
        format!(
            "median {:.3} ms  (min {:.3}, p90 {:.3}, p99 {:.3}, max {:.3})  {:.1} calls/s",
            self.at(0.5),
            self.at(0.0),
            self.at(0.9),
            self.at(0.99),
            self.at(1.0),
            1e3 / self.at(0.5)
        )
    }
}

/// Times a function and prints the distribution.
pub fn run(args: &BenchArgs, form: Form) -> Result<(), CliError> {
    if args.runs == 0 {
        return Err(CliError::usage("--runs 0 times nothing", "give --runs 1 or more"));
    }
    let show = if form == Form::Json { Show::Nothing } else { Show::Stages };
    let module = program::open(&args.model, &mut Bar::new(show))?;
    let call = Call::prepare(&module, &args.inputs)?;
    for _ in 0..args.warmup {
        call.invoke()?;
    }
    let mut times = Vec::with_capacity(args.runs);
    for _ in 0..args.runs {
        times.push(timed(&call)?);
    }
    let times = Times::of(times);
    let threads = relaxide::num_threads();
    let (tensors, process) = (tensor_memory()?, process_memory());
    if form == Form::Json {
        return answer::json(
            "bench",
            json!({
                "function": call.signature.name, "runs": args.runs, "threads": threads, "relaxide": times.json(),
                "peak_tensor_bytes": tensors, "peak_process_bytes": process,
            }),
        );
    }
    answer::line(&format!("{}({}), {} runs, {threads} threads", call.signature.name, call.shapes_text(), args.runs))?;
    answer::line(&format!("  relaxide     {}", times.text()))?;
    let process = process.map_or(String::new(), |bytes| format!(", of the process {}", size_text(bytes)));
    answer::line(&format!("  peak memory  of tensors {}{process}", size_text(tensors as u64)))
}

/// The milliseconds of one call.
fn timed(call: &Call) -> Result<f64, CliError> {
    let start = Instant::now();
    call.invoke()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// The most that a virtual machine's tensors took at a time.
fn tensor_memory() -> Result<usize, CliError> {
    Ok(memory::allocator(Device::cpu(0), AllocatorKind::Pooled)?.stats().peak)
}

/// The most memory that the process had at a time, where the system says it.
fn process_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
