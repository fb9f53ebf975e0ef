//! What the command line says. The arguments of a command stand with it; here is what is common to several.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use relaxide::Target;
use relaxide::ffi::DataType;
use relaxide::ir::pass::{Pass, PassError};
use relaxide::relax::transform::{WeightNotes, narrow_weights, parse_passes};

use crate::answer::Form;
use crate::error::CliError;
use crate::{bench, check, compile, completions, devices, explain, inspect, opt, profile, rpc, run, serve, tune};

/// Compile a model to one native file, and run it.
///
/// A first walk: `relaxide compile model.onnx` makes `model.so`; `relaxide run model.so` runs it; `relaxide bench model.so`
/// says how fast it is.
#[derive(Parser)]
#[command(
    version,
    arg_required_else_help = true,
    propagate_version = true,
    after_help = "Exit codes:\n  0  success\n  1  the model, its input or a file is at fault\n  2  the command line is\n  3  \
                  Relaxide itself is: please report it\n  4  `check`: the results differ\n\n`relaxide explain CODE` says more \
                  about an error; `relaxide COMMAND --help` has examples."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Answer with one JSON object on standard output, also where something fails.
    #[arg(long, global = true)]
    json: bool,
}

impl Cli {
    /// How the command answers.
    pub fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Compile a model to one file.
    Compile(compile::CompileArgs),
    /// Run a function of a model.
    Run(run::RunArgs),
    /// Time a function of a model.
    Bench(bench::BenchArgs),
    /// Say where the time of a model goes, kernel by kernel.
    Profile(profile::ProfileArgs),
    /// Search for better parameters of schedule rules for a model's kernels.
    Tune(Box<tune::TuneArgs>),
    /// Time two kernels in turns: how `tune` calls this command.
    #[command(hide = true)]
    MeasureKernels,
    /// Compare a model's results with ONNX Runtime's, and find the operator that differs.
    Check(check::CheckArgs),
    /// Show what a model consists of.
    Inspect(inspect::InspectArgs),
    /// Run passes on a program and print what comes out.
    Opt(opt::OptArgs),
    /// List the devices of this machine.
    Devices(devices::DevicesArgs),
    /// Offer this machine to others, and use others.
    Rpc(rpc::RpcArgs),
    /// Serve compiled models over HTTP and gRPC (the Open Inference Protocol).
    Serve(Box<serve::ServeArgs>),
    /// Say what an error code means and what to do about it.
    Explain(explain::ExplainArgs),
    /// Print a script that completes `relaxide` commands in a shell.
    Completions(completions::CompletionsArgs),
}

/// How a model or a program is read, before it is compiled.
#[derive(Args, Clone, Default)]
pub struct ProgramArgs {
    /// What the model computes in: `float32` as it is written; `float16` where that is faster and safe (as the pass
    /// ToMixedPrecision decides). With `int8-weights`, `float16-weights` or `bfloat16-weights` it computes in 32 bits and
    /// keeps its matrices in fewer, which a network that reads them once for each word is bound by; with `int4-weights` products
    /// and `int8` products also quantize what they multiply, to 8 bits, and with `bf16` they round it to bfloat16; `relaxide check`
    /// says what that costs.
    /// The default is float32.
    #[arg(long, value_enum, help_heading = "Program")]
    pub precision: Option<Precision>,
    /// What to compile for: `llvm`, or a processor (`x86-64-v3`, in full `llvm -mcpu=x86-64-v3`), or `c` for a file of C; the
    /// default is this machine's processor, with all that it has: a file for other machines names one. With several,
    /// `x86-64-v2,x86-64-v3`, the file has kernels for each and takes the best where it is loaded.
    #[arg(long, help_heading = "Program")]
    pub target: Option<String>,
    /// Gives results the same bits on every processor (with fused multiply-add: x86-64-v3 and later, AArch64), whatever its
    /// vectors and caches are.
    #[arg(long, help_heading = "Program")]
    pub deterministic: bool,
    /// The machine that runs a program in Relay: `relax` by way of Relax, with the whole of its compiler; `relay` for the
    /// Relay VM, which runs every program in Relay.
    /// The default is relax.
    #[arg(long, value_enum, help_heading = "Program")]
    pub machine: Option<MachineArg>,
    /// Values of parameters of `main` by name, which become constants: `.npz`, `.safetensors`, `.gguf`, or `.params` as
    /// `save_param_dict` writes it.
    #[arg(long, value_name = "FILE", help_heading = "Program")]
    pub params: Option<PathBuf>,
}

/// The machine that runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MachineArg {
    /// Relax's.
    #[default]
    Relax,
    /// Relay's.
    Relay,
}

impl ProgramArgs {
    /// What the model computes in.
    pub fn precision(&self) -> Precision {
        self.precision.unwrap_or_default()
    }

    /// What to compile for, where that is one thing.
    pub fn target(&self) -> Result<Target, CliError> {
        match self.targets()? {
            (target, others) if others.is_empty() => Ok(target),
            _ => Err(CliError::usage(
                "--target names several processors, and this needs one",
                "name one of them; `relaxide compile` makes a file for several",
            )),
        }
    }

    /// What to compile for, and other processors that the file is for as well.
    pub fn targets(&self) -> Result<(Target, Vec<Target>), CliError> {
        let text = self.target.as_deref().unwrap_or("llvm");
        let targets = relaxide::codegen::parse_targets(text).map_err(relaxide::Error::from)?.into_iter();
        let mut targets = targets.map(|target| match self.deterministic {
            true => target.with("deterministic", true),
            false => target,
        });
        let first = targets.next().unwrap_or_default();
        Ok((first, targets.collect()))
    }

    /// Fails if anything is said of how to compile, for a file that is compiled.
    pub fn refuse_for_compiled(&self, file: &Path) -> Result<(), CliError> {
        let given = [
            ("--precision", self.precision.is_some()),
            ("--target", self.target.is_some()),
            ("--deterministic", self.deterministic),
            ("--machine", self.machine.is_some()),
            ("--params", self.params.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map_or(Ok(()), |(option, _)| {
            Err(CliError::usage(
                format!("{option} says how a model is compiled, and {} is compiled already", file.display()),
                format!("leave {option} out, or give the model that it was compiled from"),
            ))
        })
    }
}

/// What a model computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// What the model says.
    #[default]
    Float32,
    /// 16 bits where that is faster and safe.
    Float16,
    /// 32 bits, with the matrices of the model in 16.
    Float16Weights,
    /// 32 bits, with the matrices of the model in 16, which have the range of 32.
    Bfloat16Weights,
    /// Products with the matrices of the model in bfloat16, everything else and sums in 32 bits.
    #[value(alias = "bfloat16")]
    Bf16,
    /// 32 bits, with the matrices of the model in 8 and a scale for each column.
    Int8Weights,
    /// Products with the matrices of the model in 8 bits on both sides, a scale for each 32 of a column or row; everything else and
    /// sums of blocks in 32.
    Int8,
    /// 32 bits, with the matrices of the model in 4, a scale for each 32 of a column, and 8 for what they are multiplied with.
    Int4Weights,
}

impl Precision {
    /// The pass that makes a program compute in it. What narrows weights leaves notes.
    pub fn pass(self, notes: &WeightNotes) -> Result<Option<Pass>, PassError> {
        let narrow = |dtype, products| narrow_weights(dtype, products, notes.clone()).map(Some);
        match self {
            Precision::Float32 => Ok(None),
            Precision::Float16 => Ok(parse_passes("ToMixedPrecision(out_dtype=float16)")?.into_iter().next()),
            Precision::Float16Weights => narrow(DataType::float(16), false),
            Precision::Bfloat16Weights => narrow(DataType::bfloat16(), false),
            Precision::Bf16 => narrow(DataType::bfloat16(), true),
            Precision::Int8Weights => narrow(DataType::int(8), false),
            Precision::Int8 => narrow(DataType::int(8), true),
            Precision::Int4Weights => narrow(DataType::int(4), false),
        }
    }
}

/// How the inputs of a function are given.
#[derive(Args)]
pub struct InputArgs {
    /// An input as NAME=WHAT: a file (.npy, .npz, .png, .jpg, or .txt and .csv with numbers), numbers as `1,2,3`, or
    /// `random:LOW..HIGH`. Without NAME, files are taken in order, and an .npz gives every input that it has.
    #[arg(short, long = "input", value_name = "NAME=WHAT", help_heading = "Inputs")]
    pub inputs: Vec<String>,
    /// Random data of a shape, as NAME=D,D,…
    #[arg(long = "shape", value_name = "NAME=DIMS", help_heading = "Inputs")]
    pub shapes: Vec<String>,
    /// The length of a symbolic dimension for random data, as NAME=LENGTH.
    #[arg(long = "dim", value_name = "NAME=LENGTH", help_heading = "Inputs")]
    pub dims: Vec<String>,
    /// Seed of random data.
    #[arg(long, default_value_t = 0, help_heading = "Inputs")]
    pub seed: u64,
    /// What is taken from an image's channels, which are 0 to 1, before they are divided by --std: one number, or one a channel.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_hyphen_values = true, help_heading = "Inputs")]
    pub mean: Vec<f32>,
    /// What an image's channels are divided by: one number, or one a channel.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', help_heading = "Inputs")]
    pub std: Vec<f32>,
    /// The function to call.
    #[arg(short, long, default_value = "main")]
    pub function: String,
    /// Run on that server, compiled for its processor: KEY@HOST:PORT, or HOST:PORT where the server has no key;
    /// KEY@tracker:HOST:PORT asks a tracker for one, KEY@proxy:HOST:PORT finds one behind a proxy, ssh:USER@HOST starts one there
    /// (RELAXIDE_RPC_SSH and RELAXIDE_RPC_FAR are the commands here and there). How this client shows who it is
    /// stands in RELAXIDE_RPC_IDENTITY, RELAXIDE_RPC_SERVER and RELAXIDE_RPC_TOKEN (and the tracker's fingerprint in
    /// RELAXIDE_RPC_TRACKER); with none of them the protocol is TVM's, which has no security.
    #[arg(long, value_name = "KEY@HOST:PORT", help_heading = "Elsewhere")]
    pub on: Option<String>,
    /// Threads that kernels use [default: RELAXIDE_NUM_THREADS, else all cores].
    #[arg(short, long)]
    pub threads: Option<usize>,
}

/// A model as the commands that run one take it.
#[derive(Args)]
pub struct ModelArgs {
    /// The model: compiled (.so), or .onnx, .pt2, .py, .relax, .relay or .json (of Relay), which are compiled first.
    pub file: PathBuf,
    /// The weights of a compiled model that has them in a file of their own [default: the file beside it].
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// How it is compiled, if it is not.
    #[command(flatten)]
    pub program: ProgramArgs,
}
