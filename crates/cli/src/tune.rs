//! `relaxide tune`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use relaxide::ffi::{Any, AnyView, DataType, Tensor};
use relaxide::{
    Comparison, CompileOptions, Database, KernelArg, Measure, MeasureError, Pair, Trial, TuneOptions, Tuned, Tuner, Vm,
};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs};
use crate::error::CliError;
use crate::inputs::element::{Random, Range, numbers};
use crate::inputs::{Call, Machine, Missing};
use crate::outputs;
use crate::program::{self, FileKind, Program};
use crate::progress::{Bar, Show};
use crate::style;

/// Arguments of `relaxide tune`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide tune model.onnx -o model.tuned.json --dim batch=8 --trials 300\n  \
    relaxide tune model.onnx -o model.tuned.json --seconds 600       (goes on where the file ends)\n  \
    relaxide compile model.onnx --schedule model.tuned.json          (with what was found)\n\n\
    A trial changes one parameter of a schedule rule, and has the kernel timed beside the one it would replace, in turns and in a\n\
    process of its own. `compile --explain` shows all parameters.")]
pub struct TuneArgs {
    /// The model, which is compiled: .onnx, .pt2, .py, .relax.
    #[command(flatten)]
    pub model: ModelArgs,
    /// The inputs, whose lengths are tuned for.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// The file of decisions, which `compile --schedule` reads. What is in it is where the search begins, and what is found is added.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Candidates that are measured at most.
    #[arg(long, default_value_t = 200)]
    pub trials: usize,
    /// Seconds that the search takes at most.
    #[arg(long)]
    pub seconds: Option<f64>,
}

/// Searches for parameters of schedule rules.
pub fn run(args: &TuneArgs, form: Form) -> Result<(), CliError> {
    outputs::check_place(&args.output, &[&args.model.file])?;
    if FileKind::of(&args.model.file)? == FileKind::Compiled {
        return Err(CliError::usage(
            format!("{} is compiled, and tune compiles its kernels anew", args.model.file.display()),
            "give the model that it was compiled from",
        ));
    }
    if args.inputs.on.is_some() {
        return Err(CliError::usage("tune measures on this machine", "leave --on out, or run tune there"));
    }
    let limit = args.seconds.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|_| CliError::usage("--seconds is no length of time", "give a number above 0"))?;
    let mut database = Database::read(&args.output)?;
    let mut bar = Bar::new(if form == Form::Json { Show::Nothing } else { Show::Stages });
    bar.begin("import");
    let given = &args.model.program;
    let program = program::load_for_machine(&args.model.file, &[], given)?.prepare(given.precision(), &[])?;
    let Program::Relax(relax) = &program else {
        return Err(CliError::usage("tune is for Relax's machine", "leave --machine out"));
    };
    let call = Call::prepare(&program::compile_in_memory(&program, given, &mut bar)?, &args.inputs, Missing::Random)?;
    let Machine::Here(machine) = &call.machine else {
        return Err(CliError::usage("the model runs elsewhere", "leave --on out"));
    };
    let Vm::Relax(vm) = machine.inner() else {
        return Err(CliError::usage("tune is for Relax's machine", "leave --machine out"));
    };
    call.invoke()?;
    let (_, report) = vm.profile(&call.signature.name, &call.views())?;
    let mut options = CompileOptions { target: given.target()?, ..CompileOptions::default() };
    let mut tuner = Tuner::new(relax, &report, &mut options, &mut database, args.inputs.seed)?;
    for stale in std::mem::take(&mut tuner.stale) {
        eprintln!("{} {stale}; left out of {}", style::note("note:"), args.output.display());
    }
    let budget = TuneOptions { trials: args.trials, limit, seed: args.inputs.seed };
    let mut measure = InProcess { threads: relaxide::num_threads(), seed: args.inputs.seed };
    let mut tell = |trial: &Trial<'_>| {
        relaxide::Progress::stage(&mut bar, "tune", trial.done, args.trials);
        let Some(won) = trial.won else { return Ok(()) };
        if form == Form::Text {
            eprintln!("{} {won}", style::done("faster"));
        }
        trial.database.write(&args.output)
    };
    let found = tuner.run(budget, &mut measure, &mut database, &mut tell)?;
    database.write(&args.output)?;
    bar.finish();
    tell_all(&found, args, form)
}

fn tell_all(found: &[Tuned], args: &TuneArgs, form: Form) -> Result<(), CliError> {
    let trials: usize = found.iter().map(|kernel| kernel.trials).sum();
    if form == Form::Json {
        let row = |kernel: &Tuned| {
            json!({
                "kernel": kernel.kernel, "speedup": kernel.speedup, "changed": kernel.changed, "trials": kernel.trials,
                "wrong": kernel.wrong,
            })
        };
        let kernels: Vec<Value> = found.iter().map(row).collect();
        return answer::json("tune", json!({ "output": args.output, "trials": trials, "kernels": kernels }));
    }
    let faster = found.iter().filter(|kernel| kernel.speedup > 1.0).count();
    let wrong: usize = found.iter().map(|kernel| kernel.wrong).sum();
    for kernel in found.iter().filter(|kernel| kernel.speedup > 1.0) {
        answer::line(&format!(
            "{}: {:.2} times as fast ({})",
            kernel.kernel,
            kernel.speedup,
            kernel.changed.join(", ")
        ))?;
    }
    let failed = if wrong > 0 { format!(", {wrong} of them failed") } else { String::new() };
    answer::line(&format!("{trials} trials{failed}; {faster} of {} kernels got faster", found.len()))?;
    eprintln!(
        "{} relaxide compile {} --schedule {}",
        style::note("next:"),
        args.model.file.display(),
        args.output.display()
    );
    Ok(())
}

/// Measures in a process of its own, which may crash or hang.
struct InProcess {
    threads: usize,
    seed: u64,
}

/// A process that takes longer than this has a kernel that is no candidate.
const LONGEST: Duration = Duration::from_secs(30);

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
    let make = || -> Result<Vec<Any>, CliError> {
        let mut random = Random::new(request["seed"].as_u64().unwrap_or_default());
        let one = |argument| value_of(argument, &mut random).ok_or_else(|| refused("argument"))?;
        arguments.iter().map(one).collect()
    };
    let values: [Vec<Any>; 2] = [make()?, make()?];
    let run = |which: usize| -> Result<f64, CliError> {
        let views: Vec<AnyView<'_>> = values[which].iter().map(Any::as_view).collect();
        let start = Instant::now();
        functions[which].call(&views)?;
        Ok(start.elapsed().as_secs_f64())
    };
    run(0)?;
    run(1)?;
    let agrees = values[0].iter().zip(&values[1]).all(|(a, b)| is_close(a, b));
    let times = in_turns(run)?;
    answer::json(
        "measure-kernels",
        json!({ "incumbent": times.0, "candidate": times.1, "wins": times.2, "agrees": agrees }),
    )
}

/// The medians of both in so many turns, and in what share of them the second was faster.
fn in_turns(mut run: impl FnMut(usize) -> Result<f64, CliError>) -> Result<(f64, f64, f64), CliError> {
    const TURNS: usize = 15;
    /// A turn of a short kernel is many calls, as clocks are coarse.
    const TURN: f64 = 1e-3;
    let calls = (TURN / run(0)?.max(1e-7)).clamp(1.0, 1000.0) as usize;
    let mut of_turn = |which: usize| -> Result<f64, CliError> {
        let sum = (0..calls).try_fold(0.0, |sum, _| Ok::<f64, CliError>(sum + run(which)?))?;
        Ok(sum / calls as f64)
    };
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        // Who comes first changes, as the caches are the other's.
        let first = turn % 2;
        let early = of_turn(first)?;
        let late = of_turn(1 - first)?;
        times[first].push(early);
        times[1 - first].push(late);
    }
    let wins = times[0].iter().zip(&times[1]).filter(|(old, new)| new < old).count() as f64 / TURNS as f64;
    let [incumbent, candidate] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(TURNS / 2).copied().unwrap_or(f64::NAN)
    });
    Ok((incumbent, candidate, wins))
}

/// An argument: floats from -1 to 1, integers that are zero, as they may be indices.
fn value_of(argument: &Value, random: &mut Random) -> Option<Result<Any, CliError>> {
    if let Some(value) = argument["int"].as_i64() {
        return Some(Ok(value.into()));
    }
    let dtype: DataType = argument["dtype"].as_str()?.parse().ok()?;
    let shape = argument["shape"].as_array()?.iter().map(Value::as_i64).collect::<Option<Vec<_>>>()?;
    let range = if dtype.is_float() { Range { low: -1.0, high: 1.0 } } else { Range { low: 0.0, high: 0.0 } };
    Some(random.tensor(dtype, &shape, range).map(Any::from))
}

/// Whether two kernels left the same in an argument, up to rounding.
fn is_close(one: &Any, other: &Any) -> bool {
    let (Ok(one), Ok(other)) = (one.to::<Tensor>(), other.to::<Tensor>()) else { return true };
    let tolerance = match one.dtype() {
        dtype if !dtype.is_float() => 0.0,
        dtype if dtype.bits < 32 => 2e-2,
        dtype if dtype.bits == 32 => 1e-3,
        _ => 1e-9,
    };
    let (Ok(one), Ok(other)) = (numbers(&one), numbers(&other)) else { return false };
    let close =
        |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * (1.0 + a.abs()) || (a.is_nan() && b.is_nan()) || a == b;
    one.len() == other.len() && one.iter().zip(&other).all(close)
}
