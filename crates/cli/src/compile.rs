//! `relaxide compile`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use relaxide::{CompileOptions, ExecMode, Pipeline, Progress, Target};

use crate::args::{CompileArgs, ExecModeArg, PipelineArg};
use crate::error::CliError;
use crate::inputs::parse_shape;
use crate::style;

/// Compiles a model to one file.
pub fn run(args: &CompileArgs) -> Result<(), CliError> {
    let target = args.target.parse::<Target>().map_err(relaxide::Error::from)?;
    let ending = if target.kind == "c" { "c" } else { "so" };
    let output = args.output.clone().unwrap_or_else(|| args.model.with_extension(ending));
    let start = Instant::now();
    let mut bar = Bar::new(args.quiet);

    bar.stage("import", 0, 1);
    let module = load_program(&args.model, &args.shapes)?;
    let mut options = CompileOptions {
        target,
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
        progress: Some(&mut bar),
        ..CompileOptions::default()
    };
    let executable = relaxide::compile(&module, &mut options)?;
    // The passes have made weights anew from those that were read, which would lie in memory beside them while the file is
    // written.
    drop(module);
    bar.stage("export", 0, 1);
    executable.export(&output, args.prefix.as_deref())?;
    bar.finish();

    if let Some(problem) = &executable.cache_use().problem {
        eprintln!("{} compiled kernels were not kept: {problem}", style::note("note:"));
    }
    if args.explain {
        executable.notes().iter().for_each(|note| println!("{note}"));
    }
    if !args.quiet {
        summary(args, &output, start.elapsed(), &bar)?;
    }
    Ok(())
}

/// Reads a program of any kind that the command takes.
pub fn load_program(path: &Path, shapes: &[String]) -> Result<relaxide::IRModule, CliError> {
    let shapes = shapes.iter().map(|text| parse_shape(text)).collect::<Result<Vec<_>, _>>()?;
    match path.extension().and_then(|e| e.to_str()) {
        Some("onnx") => Ok(relaxide::from_onnx_file(path, &shapes)?),
        Some("py" | "relax") => {
            let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
            Ok(relaxide::parse_script(&text, &path.display().to_string())?)
        }
        _ => Err(CliError::usage(
            format!("{} is not a kind of file that can be compiled", path.display()),
            "give an ONNX model (.onnx) or a TVMScript program (.py, .relax)",
        )),
    }
}

fn summary(args: &CompileArgs, output: &PathBuf, took: Duration, bar: &Bar) -> Result<(), CliError> {
    let size = std::fs::metadata(output).map_err(CliError::file(output))?.len();
    let stages = bar.stages.iter().map(|(name, took)| format!("{name} {:.2} s", took.as_secs_f64()));
    eprintln!(
        "{} {} ({:.1} MB) from {} in {:.1} s: {}",
        style::done("wrote"),
        output.display(),
        size as f64 / 1e6,
        args.model.display(),
        took.as_secs_f64(),
        stages.collect::<Vec<_>>().join(", ")
    );
    if relaxide::has_header(output) {
        let header = relaxide::header_path(output);
        eprintln!("{} include {} and link {}", style::note("next:"), header.display(), output.display());
    } else {
        eprintln!("{} relaxide inspect {}", style::note("next:"), output.display());
    }
    Ok(())
}

/// The progress bar, and the time that each stage took.
struct Bar {
    bar: ProgressBar,
    stages: Vec<(String, Duration)>,
    current: Option<(String, Instant)>,
}

impl Bar {
    fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(1) };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg:12} [{bar:30}] {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Bar { bar, stages: Vec::new(), current: None }
    }

    fn close_stage(&mut self) {
        if let Some((name, start)) = self.current.take() {
            self.stages.push((name, start.elapsed()));
        }
    }

    fn finish(&mut self) {
        self.close_stage();
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn stage(&mut self, name: &str, done: usize, total: usize) {
        if self.current.as_ref().is_none_or(|(current, _)| current != name) {
            self.close_stage();
            self.current = Some((name.to_string(), Instant::now()));
            self.bar.set_message(name.to_string());
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }
}
