//! `relaxide opt`.

use std::path::PathBuf;
use std::time::Instant;

use relaxide::ir::pass::{ParamDefault, Pass, PassInfo, PassParam};
use relaxide::relax::transform;

use clap::Args;
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::error::CliError;
use crate::outputs;
use crate::passes::{PassArgs, print};
use crate::program;

/// Arguments of `relaxide opt`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide opt program.relax --passes LegalizeOps,FuseOps\n  \
    relaxide opt model.onnx --passes 'ToMixedPrecision(out_dtype=float16), LegalizeOps' --print-after LegalizeOps\n  \
    relaxide opt model.onnx --pipeline zero --timing -o lowered.py\n  \
    relaxide opt kernel.py --passes s_tir.transform.LowerInitBlock,LowerOpaqueBlock --print-after all\n  \
    relaxide opt kernel.py --passes ApplyScheduleRules --target 'llvm -mcpu=x86-64-v3'\n  \
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
    /// Do not check behind each pass that the program is well-formed.
    #[arg(long)]
    pub no_verify: bool,
    /// What to compile for.
    #[arg(long, default_value = "llvm")]
    pub target: String,
    /// Write the result to a file instead of printing it.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// List the passes with their parameters.
    #[arg(long)]
    pub list: bool,
    /// How the passes run.
    #[command(flatten)]
    pub watch: PassArgs,
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
    let timing = args.watch.timing();
    let target = args.target.parse().map_err(relaxide::Error::from)?;
    let (passes, mut context) = (passes(args)?, args.watch.context(target, form, timing.as_ref())?);
    if !args.no_verify {
        context.instruments.push(transform::verify());
    }
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
