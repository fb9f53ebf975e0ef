//! `relaxide opt`.

use std::sync::Arc;

use relaxide::ir::pass::{Dump, ParamDefault, Pass, PassContext, PassInfo, Print, Printer, Timing, When, parse_value};
use relaxide::relax::transform;

use crate::args::OptArgs;
use crate::compile::load_program;
use crate::error::CliError;

/// Runs passes on a program.
pub fn run(args: &OptArgs) -> Result<(), CliError> {
    if args.list {
        transform::PASSES.iter().for_each(list);
        return Ok(());
    }
    let Some(file) = &args.file else { return Err(CliError::usage("no file is given", "name a program or a model")) };
    let timing = args.timing.then(Timing::new);
    let (passes, context) = (passes(args)?, context(args, timing.clone())?);
    let module = load_program(file, &[])?;
    let module = passes
        .into_iter()
        .filter(|pass| context.enables(pass))
        .try_fold(module, |module, pass| pass.run(module, &context).map_err(relaxide::Error::from))?;
    let text = print(&module);
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(CliError::file(path))?,
        None => println!("{text}"),
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

fn context(args: &OptArgs, timing: Option<Arc<Timing>>) -> Result<PassContext, CliError> {
    let printer: Printer = Arc::new(print);
    let mut context = PassContext {
        target: args.target.parse().map_err(relaxide::Error::from)?,
        opt_level: args.opt_level,
        disabled: args.disable.clone(),
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
            let names = (!names.iter().any(|n| n == "all")).then(|| names.clone());
            context.instruments.push(Print::new(when, names, printer.clone(), |text| println!("{text}")));
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

fn list(pass: &PassInfo) {
    println!("{}\n    {}", pass.name, pass.doc);
    for param in pass.params {
        let default = match param.default {
            ParamDefault::Required => String::new(),
            ParamDefault::None => " = None".into(),
            ParamDefault::Bool(v) => format!(" = {}", if v { "True" } else { "False" }),
            ParamDefault::Int(v) => format!(" = {v}"),
            ParamDefault::Str(v) => format!(" = {v:?}"),
        };
        println!("      {}: {:?}{default}\n          {}", param.name, param.kind, param.doc);
    }
}
