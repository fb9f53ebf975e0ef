//! `relaxide profile`.

use std::path::PathBuf;

use clap::Args;
use relaxide::{Profile, ProfileLine, Roof};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs};
use crate::error::CliError;
use crate::inputs::{Call, Machine, Missing};
use crate::outputs;
use crate::program;
use crate::progress::{Bar, Show};

/// Arguments of `relaxide profile`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide profile model.so --dim batch=8\n  \
    relaxide profile model.onnx --html profile.html    (a page with timeline, memory and graph)\n  \
    relaxide profile model.so --trace trace.json       (for chrome://tracing or Perfetto)\n\n\
    `of roof` says how near a kernel is to what the machine can do, which is measured first: the time that the slower of\n\
    arithmetic and memory needs, by the time it took. What is not known is `-`.")]
pub struct ProfileArgs {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Its inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Calls that are measured.
    #[arg(long, default_value_t = 10)]
    pub runs: usize,
    /// Calls before those.
    #[arg(long, default_value_t = 3)]
    pub warmup: usize,
    /// Do not measure what the machine can do.
    #[arg(long)]
    pub no_roof: bool,
    /// Show so many functions, those that take most; 0 for all.
    #[arg(long, default_value_t = 25)]
    pub top: usize,
    /// Write the calls of the last run as a trace in Chrome's format.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write a page with the table, the calls over time, memory, and the graph.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Says where the time goes.
pub fn run(args: &ProfileArgs, form: Form) -> Result<(), CliError> {
    if args.runs == 0 {
        return Err(CliError::usage("--runs 0 measures nothing", "give --runs 1 or more"));
    }
    args.trace.iter().chain(&args.html).try_for_each(|output| outputs::check_place(output, &[&args.model.file]))?;
    let show = if form == Form::Json { Show::Nothing } else { Show::Stages };
    if args.inputs.on.is_some() {
        return there(args, show, form);
    }
    let module = program::open(&args.model, &mut Bar::new(show))?;
    let call = Call::prepare(&module, &args.inputs, Missing::Random)?;
    let Machine::Here(machine) = &call.machine else {
        return Err(CliError::usage("the model runs elsewhere", "leave --on out"));
    };
    // Behind `prepare`, which sets the number of threads.
    let roof = if args.no_roof { None } else { Some(Roof::measure()?) };
    (0..args.warmup).try_for_each(|_| call.invoke().map(drop))?;
    let profile = Profile::measure(&module, machine, &call.signature.name, &call.views(), args.runs, roof)?;
    if let Some(path) = &args.trace {
        let last = profile.last.as_ref().ok_or_else(|| {
            CliError::usage(
                "the Relay VM keeps sums of its kernels' times, and no trace of calls",
                "leave --trace out, or compile the program with --machine relax",
            )
        })?;
        outputs::write_text(path, &last.to_chrome_trace())?;
    }
    if let Some(path) = &args.html {
        outputs::write_text(path, &profile.to_html())?;
    }
    match form {
        Form::Json => json_answer(&profile, args),
        Form::Text => text_answer(&profile, &call, args),
    }
}

/// Says where the time goes on a server, by its clock. What its machine can do is not measured.
fn there(args: &ProfileArgs, show: Show, form: Form) -> Result<(), CliError> {
    if args.html.is_some() {
        return Err(CliError::usage("--html is made of what this machine can do", "leave --html out, or take --trace"));
    }
    let call = Call::open(&args.model, &args.inputs, Missing::Random, &mut Bar::new(show))?;
    let Machine::There(far) = &call.machine else {
        return Err(CliError::usage("the model runs here", "give --on KEY@HOST:PORT"));
    };
    (0..args.warmup).try_for_each(|_| far.run().map(drop))?;
    let report = far.profile()?;
    if let Some(path) = &args.trace {
        outputs::write_text(path, &report.form("AsChromeTrace")?)?;
    }
    match form {
        Form::Text => answer::line(&format!("on {}\n{}", far.name(), report.form("AsTable")?.trim_end())),
        Form::Json => {
            let sums: Value = serde_json::from_str(&report.form("AsJSON")?).unwrap_or_default();
            answer::json("profile", json!({ "function": call.signature.name, "on": far.name(), "report": sums }))
        }
    }
}

fn text_answer(profile: &Profile, call: &Call, args: &ProfileArgs) -> Result<(), CliError> {
    answer::line(&profile.summary())?;
    answer::line(&format!("inputs: {}", call.shapes_text()))?;
    let shown = if args.top == 0 { profile.lines.len() } else { args.top.min(profile.lines.len()) };
    let rows: Vec<[String; 7]> = profile.lines.iter().take(shown).map(ProfileLine::cells).collect();
    let head = ProfileLine::HEAD.map(String::from);
    let width =
        |column: usize| std::iter::once(&head).chain(&rows).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in std::iter::once(&head).chain(&rows) {
        let mut text = format!("{:1$}", row[0], widths[0]);
        row.iter().zip(&widths).skip(1).for_each(|(cell, width)| text.push_str(&format!("  {cell:>width$}")));
        answer::line(&text)?;
    }
    if shown < profile.lines.len() {
        answer::line(&format!("and {} more (--top 0 shows all)", profile.lines.len() - shown))?;
    }
    let written = args.trace.iter().chain(&args.html);
    written.into_iter().try_for_each(|path| answer::line(&format!("wrote {}", path.display())))
}

fn json_answer(profile: &Profile, args: &ProfileArgs) -> Result<(), CliError> {
    let line = |line: &ProfileLine| {
        json!({
            "name": line.name, "calls": line.calls, "seconds": line.time.as_secs_f64(), "share": line.share,
            "operations": line.operations, "bytes": line.bytes, "operations_per_second": line.operation_rate(),
            "bytes_per_second": line.byte_rate(), "of_roof": line.of_roof, "nodes": line.nodes,
        })
    };
    let roof =
        profile.roof.map(|roof| json!({ "operations_per_second": roof.operations, "bytes_per_second": roof.bytes }));
    answer::json(
        "profile",
        json!({
            "function": profile.function, "runs": profile.runs, "threads": relaxide::num_threads(),
            "seconds": profile.time.as_secs_f64(), "roof": roof,
            "functions": profile.lines.iter().map(line).collect::<Vec<Value>>(),
            "trace": args.trace, "html": args.html,
        }),
    )
}
