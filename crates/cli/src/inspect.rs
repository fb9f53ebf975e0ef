//! `relaxide inspect`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use relaxide::ffi::Module;
use relaxide::vm::Executable;
use relaxide::vm::executable::weights::WeightsApart;
use relaxide::{DimSpec, FunctionSignature, Graph, ParamSignature, ProgramStats, Signature};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::compile::size_text;
use crate::error::CliError;
use crate::outputs;
use crate::processor;
use crate::program::{self, FileKind};
use relaxide::runtime::processor::Needed;
use relaxide::runtime::processor::variants::Variants;

/// Arguments of `relaxide inspect`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide inspect model.so\n  relaxide inspect model.so --show text\n  \
    relaxide inspect model.onnx --show script\n  \
    relaxide inspect model.onnx --show graph -o graph.svg\n  relaxide inspect --machine\n  \
    relaxide inspect --machine --target x86-64-v3")]
pub struct InspectArgs {
    /// A compiled model (.so), a model (.onnx) or a program (.py, .relax, .relay, or .json of Relay).
    #[arg(required_unless_present = "machine")]
    pub file: Option<PathBuf>,
    /// What is known of the machine that kernels are made for, in place of a file: vectors, caches, cores.
    #[arg(long, conflicts_with_all = ["file", "show", "function"])]
    pub machine: bool,
    /// The target whose machine is shown: this machine's processor, if nothing is said.
    #[arg(long, requires = "machine", default_value = "llvm")]
    pub target: String,
    /// What to show.
    #[arg(long, value_enum, default_value_t = View::Signature)]
    pub show: View,
    /// The function whose graph is shown.
    #[arg(short, long, default_value = "main")]
    pub function: String,
    /// Write it to a file instead of printing it.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Functions with their parameters and symbolic dimensions.
    Signature,
    /// The program as TVMScript (of what is not compiled).
    Script,
    /// The instructions (of compiled models).
    Text,
    /// A Python program that builds the executable (of compiled models).
    Python,
    /// The calls and what flows between them, as SVG.
    Graph,
    /// Counts: operators and constants of a program, instructions and constants of a compiled model.
    Stats,
}

/// Shows what a file consists of.
pub fn run(args: &InspectArgs, form: Form) -> Result<(), CliError> {
    if let Some(output) = &args.output {
        let read: Vec<&Path> = args.file.iter().map(PathBuf::as_path).collect();
        outputs::check_place(output, &read)?;
    }
    let text = match &args.file {
        None => machines(args, form)?,
        Some(file) => match FileKind::of(file)? {
            FileKind::Compiled => compiled(file, args, form)?,
            FileKind::Onnx | FileKind::Torch | FileKind::Script | FileKind::Relay => of_program(file, args, form)?,
        },
    };
    match &args.output {
        Some(path) => outputs::write_text(path, &(text + "\n")),
        None => answer::line(&text),
    }
}

/// The machine of a target, or of several.
fn machines(args: &InspectArgs, form: Form) -> Result<String, CliError> {
    let targets = relaxide::codegen::parse_targets(&args.target).map_err(relaxide::Error::from)?;
    Ok(match form {
        Form::Json => {
            let machines: Vec<Value> = targets.iter().map(processor::json).collect();
            json!({ "command": "inspect", "version": 1, "machines": machines }).to_string()
        }
        Form::Text => targets.iter().map(processor::text).collect::<Vec<_>>().join("\n\n"),
    })
}

fn of_program(file: &Path, args: &InspectArgs, form: Form) -> Result<String, CliError> {
    if args.show == View::Signature && FileKind::of(file)? == FileKind::Relay {
        // Of every program in Relay, also of those that Relax cannot say.
        program::check_file(file)?;
        return Ok(signature_answer(&relaxide::relay_signature(&relaxide::read_relay(file)?)?, None, form));
    }
    let module = program::load(file, &[])?;
    let signature = relaxide::signature(&module);
    let answer = match args.show {
        View::Signature => return Ok(signature_answer(&signature, None, form)),
        View::Script => Answer::of("script", relaxide::to_script(&module)),
        View::Stats => {
            let stats = ProgramStats::of(&module);
            match form {
                Form::Json => return Ok(stats_json(&stats)),
                Form::Text => Answer::of("stats", stats.to_string()),
            }
        }
        View::Graph => graph_answer(Graph::of_function(&module, &args.function), &signature, args)?,
        View::Text | View::Python => {
            return Err(CliError::usage(
                format!("{} is not compiled yet", file.display()),
                format!("relaxide compile {} first, then inspect the .so", file.display()),
            ));
        }
    };
    Ok(answer.text(form))
}

fn compiled(file: &Path, args: &InspectArgs, form: Form) -> Result<String, CliError> {
    // A file for another machine is looked at as well, so nothing of it is loaded.
    let module = match relaxide::program_in_file(file)? {
        Some(module) => module,
        None => program::load_compiled(file)?,
    };
    let is_relay = relaxide::relay_vm::Executable::of_module(&module).is_some();
    let answer = match args.show {
        View::Signature => {
            let weights = Executable::of_module(&module).map(|e| e.weights_apart()).transpose()?.flatten();
            return Ok(signature_answer(&relaxide::signature_of_file(&module)?, weights.as_ref(), form));
        }
        View::Text if is_relay => Answer::of("text", text_of(file, &module, "get_bytecode")?.trim_end().to_string()),
        View::Stats if is_relay => Answer::of("stats", text_of(file, &module, "get_stats")?.trim_end().to_string()),
        View::Python | View::Graph if is_relay => {
            return Err(CliError::usage(
                format!("{} is a program of the Relay VM, which has no such form", file.display()),
                "show its instructions with --show text, or compile the program with --machine relax",
            ));
        }
        View::Text => Answer::of("text", text_of(file, &module, "as_text")?),
        View::Python => Answer::of("python", text_of(file, &module, "as_python")?),
        View::Stats => Answer::of("stats", text_of(file, &module, "stats")?.trim_end().to_string()),
        View::Graph => {
            let executable = Executable::of_module(&module);
            let graph = executable.and_then(|executable| Graph::of_executable(&executable, &args.function));
            graph_answer(graph, &relaxide::signature_of_file(&module)?, args)?
        }
        View::Script => {
            return Err(CliError::usage(
                "a compiled file does not hold its source program",
                "inspect the .onnx, .py or .relax file, or show the instructions with --show text",
            ));
        }
    };
    Ok(answer.text(form))
}

fn graph_answer(graph: Option<Graph>, signature: &Signature, args: &InspectArgs) -> Result<Answer, CliError> {
    let missing = || {
        let names: Vec<&str> = signature.functions.iter().map(|f| f.name.as_str()).collect();
        CliError::usage(
            format!("there is no graph of a function {:?}", args.function),
            format!("functions with graphs are those in bytecode; the file has: {}", names.join(", ")),
        )
    };
    let svg = graph.ok_or_else(missing)?.to_svg();
    Ok(Answer::of("graph", svg.trim_end().to_string()))
}

/// What an executable says of itself.
fn text_of(file: &Path, module: &Module, function: &str) -> Result<String, CliError> {
    let function = module.get_function(function, false).ok_or_else(|| {
        CliError::usage(
            format!("{} holds no program of the virtual machine", file.display()),
            "inspect a file that `relaxide compile` or TVM's relax exported",
        )
    })?;
    Ok(function.call(&[])?.to::<String>()?)
}

/// A text under the name that it has in JSON.
struct Answer {
    name: &'static str,
    content: String,
}

impl Answer {
    fn of(name: &'static str, content: String) -> Answer {
        Answer { name, content }
    }

    fn text(self, form: Form) -> String {
        match form {
            Form::Text => self.content,
            Form::Json => json!({ "command": "inspect", "version": 1, self.name: self.content }).to_string(),
        }
    }
}

fn stats_json(stats: &ProgramStats) -> String {
    json!({
        "command": "inspect", "version": 1,
        "stats": {
            "functions": stats.functions, "kernels": stats.kernels, "constants": stats.constants,
            "constant_elements": stats.constant_elements, "constant_bytes": stats.constant_bytes, "calls": stats.calls,
        },
    })
    .to_string()
}

fn signature_answer(signature: &Signature, weights: Option<&WeightsApart>, form: Form) -> String {
    if form == Form::Json {
        let functions = functions_json(signature);
        return json!({
            "command": "inspect", "version": 1, "functions": functions, "target": signature.target,
            "compiler": signature.compiler, "processor": signature.processor.as_ref().map(relaxide::processor_json),
            "processors": processors_json(signature), "kernels": signature.kernels.len(),
            "weights": weights.map(|w| {
                json!({ "file": w.file, "bytes": w.bytes, "checksum": format!("{:016x}", w.checksum), "tensors": w.tensors.len() })
            }),
        })
        .to_string();
    }
    let mut lines = Vec::new();
    for function in &signature.functions {
        lines.push(function_text(function));
        if !function.outputs.is_empty() {
            lines.push(format!("    returns {}", function.outputs.join(", ")));
        }
        let dims = symbolic_dims(function);
        let limited = |name: &String| !function.ranges.iter().any(|range| range.name == **name);
        lines.extend(function.ranges.iter().map(|range| format!("    {range}")));
        lines.extend(dims.iter().filter(|name| limited(name)).map(|name| format!("    {name} of any length")));
    }
    if let (Some(compiler), Some(target)) = (&signature.compiler, &signature.target) {
        let kernels = signature.kernels.len();
        lines.push(format!("compiled by Relaxide {compiler} for {target}: {kernels} kernels"));
    }
    if !signature.processors.is_empty() {
        lines.push("kernels for several processors, of which the last that fits is taken:".into());
        let (chosen, why) = chosen_here(signature);
        lines.extend(signature.processors.iter().enumerate().map(|(at, own)| {
            let mark = if chosen == Some(at) { " (taken here)" } else { "" };
            format!("    {}{mark}: {}", own.name, features_text(&own.needed))
        }));
        lines.extend(why.map(|why| format!("    none is taken here: {why}")));
    } else if let Some(needed) = &signature.processor {
        lines.push(processor_text(needed));
    }
    if let Some(weights) = weights {
        let (count, size) = (weights.tensors.len(), size_text(weights.bytes));
        lines.push(format!("weights in {} beside it: {size}, {count} tensors", weights.file));
    }
    lines.join("\n")
}

/// What a processor must have, in a line.
pub fn processor_text(needed: &Needed) -> String {
    format!("runs on processors of {}: {}", needed.architecture, features_text(needed))
}

fn features_text(needed: &Needed) -> String {
    if needed.features.is_empty() { "any".to_string() } else { format!("those with {}", needed.features.join(", ")) }
}

/// Which of its processors' kernels a file would be loaded with here, or why none.
fn chosen_here(signature: &Signature) -> (Option<usize>, Option<String>) {
    let Some(table) = Variants::new(signature.processors.clone()) else { return (None, None) };
    match table.choose() {
        Ok(chosen) => (Some(chosen), None),
        Err(error) => (None, Some(error.message().to_string())),
    }
}

/// The processors that a file has kernels for, for scripts; nothing where it is for one.
pub fn processors_json(signature: &Signature) -> Option<Vec<Value>> {
    let (chosen, _) = chosen_here(signature);
    let own = signature.processors.iter().enumerate().map(|(at, own)| {
        let mut value = relaxide::variant_json(own);
        value["taken_here"] = json!(chosen == Some(at));
        value
    });
    Some(own.collect::<Vec<_>>()).filter(|all| !all.is_empty())
}

/// The names among the dimensions of a function's parameters.
fn symbolic_dims(function: &FunctionSignature) -> Vec<String> {
    crate::inputs::sample_dims(function).into_iter().map(|(name, _)| name).collect()
}

/// A function in a line: `main(x: float32[n, 4]) -> float32[n]`.
pub fn function_text(function: &FunctionSignature) -> String {
    let param = |param: &ParamSignature| format!("{}: {}", param.name, param_text(param));
    let params: Vec<String> = function.params.iter().map(param).collect();
    format!("{}({}) -> {}", function.name, params.join(", "), function.result)
}

fn param_text(param: &ParamSignature) -> String {
    match param.dtype {
        Some(dtype) if !param.dims.is_empty() => {
            let dims: Vec<String> = param.dims.iter().map(ToString::to_string).collect();
            format!("{dtype}[{}]", dims.join(", "))
        }
        _ => param.ty.clone(),
    }
}

/// Functions for scripts.
pub fn functions_json(signature: &Signature) -> Value {
    let dim = |dim: &DimSpec| match dim {
        DimSpec::Int(value) => json!(value),
        DimSpec::Name(name) => json!(name),
    };
    let param = |param: &ParamSignature| {
        let dims: Vec<Value> = param.dims.iter().map(dim).collect();
        json!({ "name": param.name, "type": param.ty, "dtype": param.dtype.map(|d| d.to_string()), "shape": dims })
    };
    let function = |function: &FunctionSignature| {
        let dims: Vec<Value> = symbolic_dims(function)
            .iter()
            .map(|name| {
                let range = function.ranges.iter().find(|range| range.name == *name);
                json!({ "name": name, "min": range.map_or(0, |r| r.min), "max": range.and_then(|r| r.max) })
            })
            .collect();
        json!({
            "name": function.name, "params": function.params.iter().map(param).collect::<Vec<_>>(),
            "result": function.result, "outputs": function.outputs, "dims": dims,
        })
    };
    Value::Array(signature.functions.iter().map(function).collect())
}
