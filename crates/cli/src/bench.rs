//! `relaxide bench`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use relaxide::ffi::Device;
use relaxide::runtime::memory::{self, AllocatorKind};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs};
use crate::compile::size_text;
use crate::error::CliError;
use crate::inputs::{Call, Machine, Missing};
use crate::onnxruntime::{Graph, OnnxRuntime};
use crate::program::FileKind;
use crate::progress::{Bar, Show};
use crate::remote::Far;

/// Arguments of `relaxide bench`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide bench model.so --dim batch=8 --threads 2\n  \
    relaxide bench model.onnx --runs 200 --json\n  \
    relaxide bench model.onnx --dim batch=1 --vs onnxruntime        (in turns, on the same inputs)")]
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
    /// Time another runtime too, in turns with ours and on the same inputs. It needs the model as .onnx.
    #[arg(long, value_enum, value_name = "RUNTIME")]
    pub vs: Option<Rival>,
    /// A Python with the package onnxruntime [default: RELAXIDE_PYTHON, else that of the virtual environment, else python3].
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
}

/// What a model is timed beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// ONNX Runtime, in a process of Python.
    Onnxruntime,
}

/// Threads of some runtimes spin for a while when they have nothing more to do; this lets them come to rest.
const REST: Duration = Duration::from_millis(30);

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
    let call = Call::open(&args.model, &args.inputs, Missing::Random, &mut Bar::new(show))?;
    if let Machine::There(far) = &call.machine {
        return there(far, &call, args, form);
    }
    for _ in 0..args.warmup {
        call.invoke()?;
    }
    let mut rival = args.vs.map(|_| open_rival(args, &call)).transpose()?;
    let (mut times, mut rival_times) = (Vec::with_capacity(args.runs), Vec::new());
    for _ in 0..args.runs {
        times.push(timed(&call)?);
        if let Some(rival) = &mut rival {
            std::thread::sleep(REST);
            rival_times.push(rival.run()? * 1e3);
            std::thread::sleep(REST);
        }
    }
    let (times, rival_times) = (Times::of(times), rival.map(|rival| (rival.version.clone(), Times::of(rival_times))));
    let threads = relaxide::num_threads();
    let (tensors, process) = (tensor_memory()?, process_memory());
    let ratio = rival_times.as_ref().map(|(_, rival)| rival.at(0.5) / times.at(0.5));
    if form == Form::Json {
        let rival = rival_times.as_ref().map(|(version, times)| json!({ "version": version, "times": times.json() }));
        return answer::json(
            "bench",
            json!({
                "onnxruntime": rival, "ratio": ratio, "function": call.signature.name, "runs": args.runs, "threads": threads, "relaxide": times.json(),
                "peak_tensor_bytes": tensors, "peak_process_bytes": process,
            }),
        );
    }
    answer::line(&format!("{}({}), {} runs, {threads} threads", call.signature.name, call.shapes_text(), args.runs))?;
    answer::line(&format!("  relaxide     {}", times.text()))?;
    if let (Some((version, rival)), Some(ratio)) = (&rival_times, ratio) {
        answer::line(&format!("  onnxruntime  {}", rival.text()))?;
        answer::line(&format!(
            "  ratio        {ratio:.2} (ONNX Runtime {version} by relaxide, medians; more is faster)"
        ))?;
    }
    let process = process.map_or(String::new(), |bytes| format!(", of the process {}", size_text(bytes)));
    answer::line(&format!("  peak memory  of tensors {}{process}", size_text(tensors as u64)))
}

/// Times a function on a server, by the server's clock.
fn there(far: &Far, call: &Call, args: &BenchArgs, form: Form) -> Result<(), CliError> {
    if args.vs.is_some() {
        return Err(CliError::usage(
            "--vs compares on one machine, and the model runs on another",
            "leave --vs or --on out",
        ));
    }
    let times = Times::of(far.times(args.warmup, args.runs)?.into_iter().map(|seconds| seconds * 1e3).collect());
    if form == Form::Json {
        return answer::json(
            "bench",
            json!({ "function": call.signature.name, "runs": args.runs, "on": far.name(), "relaxide": times.json() }),
        );
    }
    answer::line(&format!("{}({}), {} runs, on {}", call.signature.name, call.shapes_text(), args.runs, far.name()))?;
    answer::line(&format!("  relaxide     {}", times.text()))
}

/// ONNX Runtime with the model and the inputs, warmed up.
fn open_rival(args: &BenchArgs, call: &Call) -> Result<OnnxRuntime, CliError> {
    let model = &args.model.file;
    if FileKind::of(model)? != FileKind::Onnx {
        return Err(CliError::usage(
            format!("--vs runs the ONNX model, which {} is not", model.display()),
            "give the .onnx file: it is compiled first",
        ));
    }
    let mut rival = OnnxRuntime::start(args.python.as_deref())?;
    let opened = rival.open(model, model.parent().unwrap_or(Path::new(".")), Graph::Optimized)?;
    rival.set_inputs(&call.named_inputs(&opened.inputs)?)?;
    (0..args.warmup.max(1)).try_for_each(|_| rival.run().map(drop))?;
    Ok(rival)
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
