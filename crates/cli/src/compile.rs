//! `relaxide compile`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use relaxide::relax::transform::{WeightNote, WeightNotes};
use relaxide::runtime::processor::Needed;
use relaxide::tir::schedule::Overrides;
use relaxide::{CompileOptions, ExecMode, Executable, ExportOptions, Pipeline, Signature, WeightsIn};
use serde_json::json;

use crate::answer::{self, Form};
use crate::args::ProgramArgs;
use crate::error::CliError;
use crate::inputs::{parse_dims, parse_shape, sample_dims};
use crate::passes::PassArgs;
use crate::program::{FileKind, Program, check_file};
use crate::progress::{Bar, Show};
use crate::{inspect, outputs, program, style};

/// Arguments of `relaxide compile`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide compile model.onnx                      (makes model.so)\n  \
    relaxide compile model.onnx -o fast.so --precision float16\n  \
    relaxide compile model.onnx --shape x=batch,3,224,224 --dim batch=1..64\n  \
    relaxide compile model.onnx --dim batch=1          (for that length only)\n  \
    relaxide compile model.onnx --weights safetensors  (makes model.so and model.safetensors)\n  \
    relaxide compile model.relay --params model.params (weights beside the program)\n  \
    relaxide compile model.relay --machine relay       (for the Relay VM)\n  \
    relaxide compile model.onnx --explain --json > kernels.json   (what schedule rules decided, and why)\n  \
    relaxide compile model.onnx --schedule kernels.json           (with other decisions, once the file is edited)\n  \
    relaxide compile model.onnx --print-after ApplyScheduleRules  (the loops of every kernel)\n  \
    relaxide compile model.onnx -o libmodel.a          (and libmodel.h, for a program in C)\n  \
    relaxide compile model.onnx --target x86-64-v2,x86-64-v3,x86-64-v4   (kernels for each in one file, chosen where it is loaded)\n  \
    relaxide compile model.onnx --target c -o model.c  (and model.h, for a machine with a C compiler)\n  \
    relaxide compile model.onnx --target wasm          (makes model.wasm, for browsers and Node)")]
pub struct CompileArgs {
    /// The model: .onnx, .pt2, a TVMScript program (.py, .relax), or a program in Relay (.relay, .rly, or .json as TVM saved it).
    pub model: PathBuf,
    /// The file to write [default: the model's name with .so, .c for the target `c`, .wasm for `wasm`]. With the ending .o or .a it
    /// is an object or a static archive to link into a program, with .c a file of C, each with a C header beside it.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Shape of an input, as NAME=D,D,…; a dimension is a number, or a name that stays symbolic.
    #[arg(long = "shape", value_name = "NAME=DIMS", help_heading = "Program")]
    pub shapes: Vec<String>,
    /// What a symbolic dimension of `main` may be: NAME=LENGTH for one length, NAME=MIN..MAX for a range. With a greatest length,
    /// memory is planned before the length is known.
    #[arg(long = "dim", value_name = "NAME=RANGE", help_heading = "Program")]
    pub dims: Vec<String>,
    /// Precision and target.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Passes to run.
    #[arg(long, value_enum, default_value_t = PipelineArg::Default)]
    pub pipeline: PipelineArg,
    /// What the program's own functions become, besides the kernels that they call.
    #[arg(long, value_enum, default_value_t = ExecModeArg::Bytecode)]
    pub exec_mode: ExecModeArg,
    /// What stands in front of the names that a linked model enters into the program [default: the file's name and _].
    #[arg(long, value_name = "NAME")]
    pub prefix: Option<String>,
    /// A folder in which compiled kernels are kept for other compilations [default: RELAXIDE_CACHE, else none].
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// Say which schedule rule served each kernel, what it decided and why, and why others refused; with --precision also which
    /// weights are kept in fewer bits, and why others stay. With --json that is in the answer, under `schedule` and `narrowed`.
    #[arg(long)]
    pub explain: bool,
    /// A file of decisions for kernels in the place of the schedule rules' guesses: what --explain --json prints, with other values.
    /// What it does not name is guessed.
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// Make accesses of kernels outside of their buffers errors. Such kernels are several times slower.
    #[arg(long)]
    pub check_bounds: bool,
    /// Where weights are: in the one file that is written, or in a file of safetensors beside it (`model.safetensors`), which is
    /// mapped into memory where the model is loaded, so that processes that run it share them.
    #[arg(long, value_enum, default_value_t = WeightsArg::Library)]
    pub weights: WeightsArg,
    /// Print the kernels to a file beside the output (`model.so.py`), and let native code say which of its lines each
    /// instruction comes from.
    #[arg(long)]
    pub debug_info: bool,
    /// Print nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
    /// How the passes run.
    #[command(flatten)]
    pub passes: PassArgs,
}

/// What functions become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExecModeArg {
    /// Bytecode for the virtual machine.
    Bytecode,
    /// Native functions.
    Compiled,
}

/// Where weights are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeightsArg {
    /// In the one file.
    Library,
    /// In a file beside it.
    Safetensors,
}

/// The pipelines by name.
#[derive(Clone, Copy, ValueEnum)]
pub enum PipelineArg {
    /// With constant folding and fusion.
    Default,
    /// The passes of TVM's default build: no folding, no fusion.
    DefaultBuild,
}

/// Compiles a model to one file.
pub fn run(args: &CompileArgs, form: Form) -> Result<(), CliError> {
    let (target, also) = args.program.targets()?;
    let ending = relaxide::default_ending(&target)?;
    let output = args.output.clone().unwrap_or_else(|| args.model.with_extension(ending));
    let weights = match args.weights {
        WeightsArg::Library => WeightsIn::Library,
        WeightsArg::Safetensors => WeightsIn::Safetensors,
    };
    // Before the work: what would be lost at its end is said now.
    FileKind::of(&args.model)?;
    check_file(&args.model)?;
    outputs::check_place(&output, &[&args.model])?;
    relaxide::check_output(&output, weights)?;
    if args.debug_info {
        outputs::check_place(&relaxide::debug_text_path(&output), &[&args.model])?;
    }
    let schedule = args.schedule.as_deref().map(read_schedule).transpose()?;
    let shapes = args.shapes.iter().map(|text| parse_shape(text)).collect::<Result<Vec<_>, _>>()?;
    let dims = parse_dims(&args.dims)?;
    let start = Instant::now();
    let mut bar = Bar::new(if args.quiet || form == Form::Json { Show::Nothing } else { Show::Stages });

    bar.begin("import");
    let (precision, weight_notes) = (args.program.precision(), WeightNotes::default());
    let program = program::load_for_machine(&args.model, &shapes, &args.program)?.prepare_noting(
        precision,
        &dims,
        &weight_notes,
    )?;
    if matches!(program, Program::Relay(_)) {
        refuse_for_relay(args)?;
    }
    let timing = args.passes.timing();
    let mut options = CompileOptions {
        context: args.passes.context(target.clone(), form, timing.as_ref())?,
        target,
        also,
        pipeline: match args.pipeline {
            PipelineArg::Default => Pipeline::Default,
            PipelineArg::DefaultBuild => Pipeline::DefaultBuild,
        },
        exec_mode: match args.exec_mode {
            ExecModeArg::Bytecode => ExecMode::Bytecode,
            ExecModeArg::Compiled => ExecMode::Compiled,
        },
        cache: args.cache.as_ref().map(relaxide::codegen::Cache::at),
        check_bounds: args.check_bounds,
        debug_info: args.debug_info.then(|| relaxide::debug_text_path(&output)),
        schedule,
        progress: Some(&mut bar),
        ..CompileOptions::default()
    };
    let executable = program.compile(&mut options)?;
    let named = options.schedule.as_ref().map(|schedule| schedule.targets().join("; ")).filter(|all| !all.is_empty());
    // The passes have made weights anew from those that were read, which would lie in memory beside them while the file is
    // written.
    drop(program);
    bar.begin("export");
    let prefix = args.prefix.as_deref();
    executable.export_with(&output, ExportOptions { prefix, weights, ..ExportOptions::default() })?;
    bar.finish();
    if let Some(timing) = timing {
        eprint!("{}", timing.report());
    }
    let made = CompiledModel::new(args, output, &executable, start.elapsed(), bar)?;
    if let (Some(named), false, Form::Text) = (&named, args.quiet, form) {
        eprintln!(
            "{} decisions of the schedule that name a target count for that one only: {named}",
            style::note("note:")
        );
    }
    match form {
        Form::Json => made.json(args.explain.then(|| executable.schedule()), &weight_notes.take()),
        Form::Text => made.text(args, &executable, &weight_notes.take()),
    }
}

/// The decisions in a file.
fn read_schedule(file: &Path) -> Result<Overrides, CliError> {
    let text = std::fs::read_to_string(file).map_err(CliError::file(file))?;
    Ok(Overrides::from_json(&text).map_err(relaxide::Error::from)?)
}

/// Fails if something is asked for that programs of the Relay VM do not have.
fn refuse_for_relay(args: &CompileArgs) -> Result<(), CliError> {
    let given = [
        ("--exec-mode compiled", args.exec_mode == ExecModeArg::Compiled),
        ("--pipeline default-build", matches!(args.pipeline, PipelineArg::DefaultBuild)),
        ("--weights safetensors", args.weights == WeightsArg::Safetensors),
        ("--prefix", args.prefix.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map_or(Ok(()), |(option, _)| {
        Err(CliError::usage(
            format!("{option} is for Relax's machine, and --machine relay asks for the Relay VM"),
            format!("leave {option} out, or take --machine relax"),
        ))
    })
}

/// What a compilation made.
struct CompiledModel {
    model: PathBuf,
    output: PathBuf,
    bytes: u64,
    /// The file of weights and its size, if there is one.
    weights: Option<(PathBuf, u64)>,
    kernels: usize,
    signature: Signature,
    took: Duration,
    stages: Vec<(String, Duration)>,
}

impl CompiledModel {
    fn new(
        args: &CompileArgs,
        output: PathBuf,
        executable: &Executable,
        took: Duration,
        bar: Bar,
    ) -> Result<CompiledModel, CliError> {
        let size = |path: &Path| std::fs::metadata(path).map(|file| file.len()).map_err(CliError::file(path));
        let bytes = size(&output)?;
        // A model without weights has no such file; one of that name may be left from another compilation.
        let file = Some(relaxide::weights_path(&output)).filter(|_| args.weights == WeightsArg::Safetensors);
        let weights = file.filter(|file| file.exists()).map(|file| Ok::<_, CliError>((file.clone(), size(&file)?)));
        let signature = relaxide::signature_of_file(executable.module())?;
        // Each has its note for each processor.
        let kernels = executable.notes().len() / signature.processors.len().max(1);
        let (model, weights, stages) = (args.model.clone(), weights.transpose()?, bar.stages().to_vec());
        Ok(CompiledModel { model, output, bytes, weights, kernels, signature, took, stages })
    }

    fn json(&self, schedule: Option<serde_json::Value>, weights: &[WeightNote]) -> Result<(), CliError> {
        let stages = self.stages.iter().map(|(name, took)| json!({ "stage": name, "seconds": took.as_secs_f64() }));
        let mut answer = json!({
            "model": self.model, "output": self.output, "bytes": self.bytes, "kernels": self.kernels,
            "weights": self.weights.as_ref().map(|(file, bytes)| json!({ "file": file, "bytes": bytes })),
            "header": relaxide::has_header(&self.output).then(|| relaxide::header_path(&self.output)),
            "functions": inspect::functions_json(&self.signature), "target": self.signature.target,
            "processors": inspect::processors_json(&self.signature),
            "seconds": self.took.as_secs_f64(), "stages": stages.collect::<Vec<_>>(),
        });
        if let (Some(schedule), Some(fields)) = (schedule, answer.as_object_mut()) {
            fields.insert("schedule".into(), schedule);
            fields.insert("narrowed".into(), weights.iter().map(note_json).collect());
        }
        answer::json("compile", answer)
    }

    fn text(&self, args: &CompileArgs, executable: &Executable, weights: &[WeightNote]) -> Result<(), CliError> {
        if let Some(problem) = &executable.cache_use().problem {
            eprintln!("{} compiled kernels were not kept: {problem}", style::note("note:"));
        }
        if args.explain {
            weights.iter().try_for_each(|note| answer::line(&note.to_string()))?;
            executable.notes().iter().try_for_each(|note| answer::line(&note.to_string()))?;
        }
        if args.quiet {
            return Ok(());
        }
        eprintln!(
            "{} {} ({}, {} kernels) from {} in {:.1} s",
            style::done("wrote"),
            self.output.display(),
            size_text(self.bytes),
            self.kernels,
            self.model.display(),
            self.took.as_secs_f64(),
        );
        if let Some((file, bytes)) = &self.weights {
            eprintln!(
                "{} {} ({}, the weights: keep it beside the other)",
                style::done("wrote"),
                file.display(),
                size_text(*bytes)
            );
        }
        for function in &self.signature.functions {
            eprintln!("  {}", inspect::function_text(function));
            function.ranges.iter().for_each(|range| eprintln!("    {range}"));
        }
        eprintln!("{} {}", style::note("next:"), self.next_step());
        if !self.signature.processors.is_empty() {
            let names: Vec<&str> = self.signature.processors.iter().map(|own| own.name.as_str()).collect();
            eprintln!(
                "{} {}, the best of which is chosen where the file is loaded",
                style::note("for:"),
                names.join(", ")
            );
        } else if let Some(needed) = &self.signature.processor {
            eprintln!("{} {}", style::note("for:"), for_text(needed, args.program.target.is_none()));
        }
        Ok(())
    }

    /// A command that can be pasted, or what to do with a file that is linked.
    fn next_step(&self) -> String {
        let output = &self.output;
        if relaxide::has_header(output) {
            return format!("include {} and link {}", relaxide::header_path(output).display(), output.display());
        }
        let main = self.signature.functions.iter().find(|f| f.name == "main").or(self.signature.functions.first());
        let Some(function) = main else { return format!("relaxide inspect {}", shell_word(output)) };
        let name = if function.name == "main" { String::new() } else { format!(" --function {}", function.name) };
        let dims: String =
            sample_dims(function).iter().map(|(name, length)| format!(" --dim {name}={length}")).collect();
        format!("relaxide run {}{name}{dims}", shell_word(output))
    }
}

/// What became of weights.
fn note_json(note: &WeightNote) -> serde_json::Value {
    let [had, has] = note.dtypes.map(|dtype| dtype.to_string());
    let stays = note.stays.as_ref().map(ToString::to_string);
    let dtype = if stays.is_some() { had } else { has };
    json!({ "function": note.function, "value": note.value, "shape": note.shape, "dtype": dtype, "stays": stays })
}

/// Which machines a file is for.
fn for_text(needed: &Needed, is_default: bool) -> String {
    let Needed { architecture, processor, .. } = needed;
    if is_default {
        return format!(
            "this machine's processor ({processor}) and those that have all of its instructions; for other machines say \
             --target x86-64-v3 or the like"
        );
    }
    format!("processors of {architecture} that have all instructions of {processor}")
}

/// A path as one word of a shell's command line.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A size as people read it.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{:.0} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
