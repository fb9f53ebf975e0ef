//! `relaxide tune`.

mod arguments;
mod here;
mod rounds;
mod there;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use relaxide::{CompileOptions, Database, Measure, Trial, TuneOptions, Tuned, Tuner, Vm};
use serde_json::{Value, json};

use here::InProcess;
pub use here::measure;
use there::OnServer;

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs, ProgramArgs};
use crate::error::CliError;
use crate::inputs::{Call, Machine, Missing};
use crate::outputs;
use crate::program::{self, FileKind, Program};
use crate::progress::{Bar, Show};
use crate::remote::Server;
use crate::style;

/// Arguments of `relaxide tune`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide tune model.onnx -o model.tuned.json --dim batch=8 --trials 300\n  \
    relaxide tune model.onnx -o model.tuned.json --seconds 600       (goes on where the file ends)\n  \
    relaxide tune model.onnx -o model.tuned.json --on board:9090     (kernels are timed on a server, for its processor)\n  \
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

/// A kernel that takes longer to be timed is no candidate.
const LONGEST: Duration = Duration::from_secs(30);

/// Searches for parameters of schedule rules.
pub fn run(args: &TuneArgs, form: Form) -> Result<(), CliError> {
    outputs::check_place(&args.output, &[&args.model.file])?;
    if FileKind::of(&args.model.file)? == FileKind::Compiled {
        return Err(CliError::usage(
            format!("{} is compiled, and tune compiles its kernels anew", args.model.file.display()),
            "give the model that it was compiled from",
        ));
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
    // What is called with what, and for how long, is learnt here, wherever kernels are to be timed.
    let far = args.inputs.on.as_deref().map(|on| for_server(on, given)).transpose()?;
    let own = if far.is_some() { ProgramArgs { target: None, ..given.clone() } } else { given.clone() };
    let call = Call::prepare(&program::compile_in_memory(&program, &own, &mut bar)?, &args.inputs, Missing::Random)?;
    let not_of_relax = || CliError::usage("tune is for Relax's machine", "leave --machine out");
    let Machine::Here(machine) = &call.machine else { return Err(not_of_relax()) };
    let Vm::Relax(vm) = machine.inner() else { return Err(not_of_relax()) };
    call.invoke()?;
    let (_, report) = vm.profile(&call.signature.name, &call.views())?;
    let target = far.as_ref().unwrap_or(given).target()?;
    let mut options = CompileOptions { target, ..CompileOptions::default() };
    let mut tuner = Tuner::new(relax, &report, &mut options, &mut database, args.inputs.seed)?;
    for stale in std::mem::take(&mut tuner.stale) {
        eprintln!("{} {stale}; left out of {}", style::note("note:"), args.output.display());
    }
    let budget = TuneOptions { trials: args.trials, limit, seed: args.inputs.seed };
    let seed = args.inputs.seed;
    let mut measure: Box<dyn Measure> = match &args.inputs.on {
        Some(on) => Box::new(OnServer { on: on.clone(), seed }),
        None => Box::new(InProcess { threads: relaxide::num_threads(), seed }),
    };
    let mut tell = |trial: &Trial<'_>| {
        relaxide::Progress::stage(&mut bar, "tune", trial.done, args.trials);
        let Some(won) = trial.won else { return Ok(()) };
        if form == Form::Text {
            eprintln!("{} {won}", style::done("faster"));
        }
        trial.database.write(&args.output)
    };
    let found = tuner.run(budget, &mut *measure, &mut database, &mut tell)?;
    database.write(&args.output)?;
    bar.finish();
    tell_all(&found, args, form)
}

/// How to compile for a server: as it says of itself, where nothing is said here.
fn for_server(on: &str, given: &ProgramArgs) -> Result<ProgramArgs, CliError> {
    let target = match &given.target {
        Some(target) => Some(target.clone()),
        None => Server::connect(on)?.target(),
    };
    Ok(ProgramArgs { target, ..given.clone() })
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
