//! `relaxide opt`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use relaxide::ir::pass::{
    Dump, ParamDefault, Pass, PassContext, PassInfo, PassParam, Print, Printer, Timing, When, parse_value,
};
use relaxide::relax::transform;

use clap::Args;
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::error::CliError;
use crate::outputs;
use crate::program;

/// Arguments of `relaxide opt`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide opt program.relax --passes LegalizeOps,FuseOps\n  \
    relaxide opt model.onnx --passes 'ToMixedPrecision(out_dtype=float16), LegalizeOps' --print-after LegalizeOps\n  \
    relaxide opt model.onnx --pipeline zero --timing -o lowered.py\n  \
    relaxide opt kernel.py --passes s_tir.transform.LowerInitBlock,LowerOpaqueBlock --print-after all\n  \
    relaxide opt --list")]
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

/// Runs passes on a program.
pub fn run(args: &OptArgs, form: Form) -> Result<(), CliError> {
    if args.list {
        return list(form);
    }
    let Some(file) = &args.file else { return Err(CliError::usage("no file is given", "name a program or a model")) };
    if let Some(output) = &args.output {
        outputs::check_place(output, &[file])?;
    }
    let timing = args.timing.then(Timing::new);
    let (passes, context) = (passes(args)?, context(args, form, timing.clone())?);
    let mut module = program::load(file, &[])?;
    let mut times = Vec::new();
    for pass in passes.into_iter().filter(|pass| context.enables(pass)) {
        let start = Instant::now();
        module = pass.run(module, &context).map_err(relaxide::Error::from)?;
        times.push(json!({ "pass": pass.name(), "seconds": start.elapsed().as_secs_f64() }));
    }
    let text = print(&module);
    if let Some(path) = &args.output {
        outputs::write_text(path, &text)?;
    }
    match form {
        Form::Json => {
            let script = args.output.is_none().then_some(text);
            return answer::json("opt", json!({ "script": script, "output": args.output, "passes": times }));
        }
        Form::Text if args.output.is_none() => answer::line(&text)?,
        Form::Text => {}
    }
    if let Some(timing) = timing {
        eprint!("{}", timing.report());
    }
    Ok(())
}

/// The program with its constants, so that the text can be read back.
fn print(module: &relaxide::IRModule) -> String {
    relaxide::script::print_module_with(module, relaxide::script::PrintOptions { show_meta: true })
}

fn passes(args: &OptArgs) -> Result<Vec<Pass>, CliError> {
    let mut passes = Vec::new();
    if let Some(name) = &args.pipeline {
        let known: Vec<&str> = transform::pipelines().iter().map(|p| p.name).collect();
        let pipeline = transform::pipeline(name).ok_or_else(|| {
            CliError::usage(format!("there is no pipeline {name:?}"), format!("there are: {}", known.join(", ")))
        })?;
        passes.extend(pipeline.resolve().map_err(relaxide::Error::from)?);
    }
    passes.extend(transform::parse_passes(&args.passes).map_err(relaxide::Error::from)?);
    Ok(passes)
}

fn context(args: &OptArgs, form: Form, timing: Option<Arc<Timing>>) -> Result<PassContext, CliError> {
    let printer: Printer = Arc::new(print);
    let mut context = PassContext {
        target: args.target.parse().map_err(relaxide::Error::from)?,
        opt_level: args.opt_level,
        disabled: full_names(&args.disable),
        ..PassContext::default()
    };
    for option in &args.config {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| CliError::usage(format!("{option:?} is no option"), "write --config NAME=VALUE"))?;
        let value = parse_value(value).map_err(relaxide::Error::from)?;
        context.config.set(name.trim(), value).map_err(relaxide::Error::from)?;
    }
    for (when, names) in [(When::Before, &args.print_before), (When::After, &args.print_after)] {
        if !names.is_empty() {
            let names = (!names.iter().any(|n| n == "all")).then(|| full_names(names));
            // The one object of JSON has standard output for itself.
            let say = move |text: &str| match form {
                Form::Text => println!("{text}"),
                Form::Json => eprintln!("{text}"),
            };
            context.instruments.push(Print::new(when, names, printer.clone(), say));
        }
    }
    if let Some(folder) = &args.dump {
        context.instruments.push(Dump::new(folder, printer));
    }
    if !args.no_verify {
        context.instruments.push(transform::verify());
    }
    if let Some(timing) = timing {
        context.instruments.push(timing);
    }
    Ok(context)
}

/// Names of passes as the tables write them.
fn full_names(names: &[String]) -> Vec<String> {
    names.iter().map(|name| transform::pass(name).map_or_else(|| name.clone(), |pass| pass.name.into())).collect()
}

/// Lists the passes.
fn list(form: Form) -> Result<(), CliError> {
    if form == Form::Json {
        return answer::json("opt", json!({ "passes": transform::all_passes().map(pass_json).collect::<Vec<_>>() }));
    }
    transform::all_passes().try_for_each(|pass| answer::line(&pass_text(pass)))
}

/// The default of a parameter as it is written; none where it has to be given.
fn default_text(default: &ParamDefault) -> Option<String> {
    match default {
        ParamDefault::Required => None,
        ParamDefault::None => Some("None".into()),
        ParamDefault::Bool(v) => Some(if *v { "True" } else { "False" }.into()),
        ParamDefault::Int(v) => Some(v.to_string()),
        ParamDefault::Str(v) => Some(format!("{v:?}")),
    }
}

fn pass_json(pass: &PassInfo) -> Value {
    let param = |param: &PassParam| {
        json!({
            "name": param.name, "kind": format!("{:?}", param.kind), "default": default_text(&param.default),
            "doc": param.doc,
        })
    };
    json!({ "name": pass.name, "doc": pass.doc, "params": pass.params.iter().map(param).collect::<Vec<_>>() })
}

fn pass_text(pass: &PassInfo) -> String {
    let mut lines = vec![pass.name.to_string(), format!("    {}", pass.doc)];
    for param in pass.params {
        let default = default_text(&param.default).map(|text| format!(" = {text}")).unwrap_or_default();
        lines.push(format!("      {}: {:?}{default}", param.name, param.kind));
        lines.push(format!("          {}", param.doc));
    }
    lines.join("\n")
}
