//! What the command line says.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Compile a model to one native file, and run it.
///
/// Exit codes: 0 success, 1 the model or its input is at fault, 2 the command line is, 3 Relaxide itself is.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Compile a model (.onnx) or a TVMScript program (.py, .relax) to one file: a shared library, an object, an archive or C.
    #[command(after_help = "Examples:\n  relaxide compile model.onnx -o model.so\n  \
        relaxide compile model.onnx -o libmodel.a        (and libmodel.h, for a program in C)\n  \
        relaxide compile model.onnx --target c -o model.c        (and model.h, for a machine with a C compiler)\n  \
        relaxide compile model.onnx -o model.so --shape x=batch,3,224,224")]
    Compile(CompileArgs),
    /// Run a function of a compiled model.
    #[command(after_help = "Examples:\n  relaxide run model.so --input x=image.npy --output result\n  \
        relaxide run model.so --shape x=1,3,224,224        (random input of that shape)")]
    Run(RunArgs),
    /// Time a function of a compiled model.
    #[command(after_help = "Example:\n  relaxide bench model.so --shape x=1,3,224,224 --threads 2")]
    Bench(BenchArgs),
    /// Show what a compiled model or a program consists of.
    #[command(after_help = "Examples:\n  relaxide inspect model.so\n  relaxide inspect model.so --show text\n  \
        relaxide inspect model.onnx --show script")]
    Inspect(InspectArgs),
    /// Run passes on a program and print what comes out.
    #[command(after_help = "Examples:\n  relaxide opt program.relax --passes LegalizeOps,FuseOps\n  \
        relaxide opt model.onnx --passes 'ToMixedPrecision(out_dtype=float16), LegalizeOps' --print-after LegalizeOps\n  \
        relaxide opt --list")]
    Opt(OptArgs),
    /// Say what an error code means and what to do about it.
    #[command(after_help = "Examples:\n  relaxide explain E0122\n  relaxide explain        (all codes)")]
    Explain(ExplainArgs),
}

/// Arguments of `relaxide explain`.
#[derive(Args)]
pub struct ExplainArgs {
    /// The code, as in `error[E0122]`; without one, all are listed.
    pub code: Option<String>,
}

/// Arguments of `relaxide compile`.
#[derive(Args)]
pub struct CompileArgs {
    /// The model: .onnx, or a TVMScript program (.py, .relax).
    pub model: PathBuf,
    /// The file to write [default: the model's name with .so, or .c for the target `c`]. With the ending .o or .a it is an
    /// object or a static archive to link into a program, with .c a file of C, each with a C header beside it.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// What stands in front of the names that a linked model enters into the program [default: the file's name and _].
    #[arg(long, value_name = "NAME")]
    pub prefix: Option<String>,
    /// What to compile for: `llvm`, or `llvm -mcpu=NAME`, or `c` for a file of C; the default is this machine's processor.
    #[arg(long, default_value = "llvm")]
    pub target: String,
    /// Shape of an input, as NAME=D,D,…; a dimension is a number, or a name that stays symbolic.
    #[arg(long = "shape", value_name = "NAME=DIMS")]
    pub shapes: Vec<String>,
    /// Passes to run.
    #[arg(long, value_enum, default_value_t = PipelineArg::Default)]
    pub pipeline: PipelineArg,
    /// What the program's own functions become, besides the kernels that they call.
    #[arg(long, value_enum, default_value_t = ExecModeArg::Bytecode)]
    pub exec_mode: ExecModeArg,
    /// A folder in which compiled kernels are kept for other compilations [default: RELAXIDE_CACHE, else none].
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// Say which schedule rule served each kernel and why others refused.
    #[arg(long)]
    pub explain: bool,
    /// Make accesses of kernels outside of their buffers errors. Such kernels are several times slower.
    #[arg(long)]
    pub check_bounds: bool,
    /// Print the kernels to a file beside the output (`model.so.py`), and let native code say which of its lines each
    /// instruction comes from.
    #[arg(long)]
    pub debug_info: bool,
    /// Print nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What functions become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExecModeArg {
    /// Bytecode for the virtual machine.
    Bytecode,
    /// Native functions.
    Compiled,
}

/// The pipelines by name.
#[derive(Clone, Copy, ValueEnum)]
pub enum PipelineArg {
    /// With constant folding and fusion.
    Default,
    /// The passes of TVM's default build: no folding, no fusion.
    DefaultBuild,
}

/// How the inputs of a function are given.
#[derive(Args)]
pub struct InputArgs {
    /// An input from a .npy file, as NAME=FILE; without NAME, inputs are taken in order.
    #[arg(short, long = "input", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Random data of a shape, as NAME=D,D,…
    #[arg(long = "shape", value_name = "NAME=DIMS")]
    pub shapes: Vec<String>,
    /// Seed of random data.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The function to call.
    #[arg(short, long, default_value = "main")]
    pub function: String,
    /// Threads that kernels use [default: RELAXIDE_NUM_THREADS, else all cores].
    #[arg(short, long)]
    pub threads: Option<usize>,
}

/// Arguments of `relaxide run`.
#[derive(Args)]
pub struct RunArgs {
    /// The compiled model.
    pub file: PathBuf,
    /// Its inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Write results to PREFIX.npy (PREFIX.0.npy, PREFIX.1.npy … for a tuple) instead of printing them.
    #[arg(short, long, value_name = "PREFIX")]
    pub output: Option<PathBuf>,
}

/// Arguments of `relaxide bench`.
#[derive(Args)]
pub struct BenchArgs {
    /// The compiled model.
    pub file: PathBuf,
    /// Its inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Calls that are timed.
    #[arg(long, default_value_t = 50)]
    pub runs: usize,
    /// Calls before those.
    #[arg(long, default_value_t = 5)]
    pub warmup: usize,
    /// Print the figures as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `relaxide inspect`.
#[derive(Args)]
pub struct InspectArgs {
    /// A compiled model (.so), a model (.onnx) or a program (.py, .relax).
    pub file: PathBuf,
    /// What to show.
    #[arg(long, value_enum)]
    pub show: Option<View>,
}

/// Arguments of `relaxide opt`.
#[derive(Args)]
pub struct OptArgs {
    /// The program (.py, .relax) or model (.onnx).
    #[arg(required_unless_present = "list")]
    pub file: Option<PathBuf>,
    /// The passes in order, with parameters in brackets.
    #[arg(long, value_name = "PASSES", default_value = "")]
    pub passes: String,
    /// The passes of a pipeline, in front of those of --passes.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// Print the program before these passes (`all`: before each).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub print_before: Vec<String>,
    /// Print the program behind these passes (`all`: behind each).
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub print_after: Vec<String>,
    /// Write the program behind each pass to a file of this folder.
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
    /// Say how long each pass took.
    #[arg(long)]
    pub timing: bool,
    /// Do not check behind each pass that the program is well-formed.
    #[arg(long)]
    pub no_verify: bool,
    /// Passes of higher levels are left out.
    #[arg(long, default_value_t = 2)]
    pub opt_level: u32,
    /// Passes that are left out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub disable: Vec<String>,
    /// An option, as NAME=VALUE.
    #[arg(long, value_name = "NAME=VALUE")]
    pub config: Vec<String>,
    /// What to compile for.
    #[arg(long, default_value = "llvm")]
    pub target: String,
    /// Write the result to a file instead of printing it.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// List the passes with their parameters.
    #[arg(long)]
    pub list: bool,
}

/// What `relaxide inspect` can show.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Functions with their parameters.
    Signature,
    /// The instructions.
    Text,
    /// A Python program that builds the executable.
    Python,
    /// Counts.
    Stats,
    /// The program as TVMScript (of .onnx, .py and .relax files).
    Script,
}
