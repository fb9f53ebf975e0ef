//! `relaxide run`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs};
use crate::error::CliError;
use crate::inputs::{Call, Missing};
use crate::outputs::{self, Content};
use crate::progress::{Bar, Show};

/// Arguments of `relaxide run`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide run model.so --input x=image.npy --output result.npz\n  \
    relaxide run model.so --input photo.jpg --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225\n  \
    relaxide run model.so --dim batch=4                (random inputs)\n  \
    relaxide run model.so --input ids=random:0..30521 --output results/\n  \
    relaxide run model.so --input ids=1,7,9 --function decode\n  \
    relaxide run model.onnx --on board@10.0.0.7:9090   (compiled here, run there)")]
pub struct RunArgs {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Its inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Write results instead of summing them up: to FILE.npz (all in one), to FILE.npy (FILE.0.npy, FILE.1.npy … for a tuple),
    /// or to a folder, given as FOLDER/, as NAME.npy each.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What stands in for inputs that are not given, where others are: random data. Without any input, all are random.
    #[arg(long, value_enum, help_heading = "Inputs")]
    pub fill: Option<Fill>,
}

/// What inputs that are not given are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fill {
    /// Random numbers.
    Random,
}

/// Calls a function once and prints or writes what it returns.
pub fn run(args: &RunArgs, form: Form) -> Result<(), CliError> {
    if let Some(output) = &args.output {
        let mut read: Vec<&Path> = vec![&args.model.file];
        read.extend(
            args.inputs
                .inputs
                .iter()
                .map(|text| Path::new(text.split_once('=').map_or(text.as_str(), |(_, what)| what))),
        );
        outputs::check_results(output, &read)?;
    }
    let is_said = args.fill.is_some() || args.inputs.inputs.is_empty();
    let missing = if is_said { Missing::Random } else { Missing::Refused };
    let call = Call::open(&args.model, &args.inputs, missing, &mut Bar::new(Show::Nothing))?;
    let start = Instant::now();
    let result = call.invoke()?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let outputs = outputs::flatten(&result, &call.signature.outputs, &call.constructors);
    let mut files = match &args.output {
        Some(path) => outputs::write(path, &outputs)?,
        None => Vec::new(),
    }
    .into_iter();
    let mut answers = Vec::new();
    for output in &outputs {
        let file = files.next_if_tensor(&output.value);
        match (form, &file) {
            (Form::Json, file) => answers.push(output.json(file.as_deref())?),
            (Form::Text, Some(file)) => outputs::say_written(output, file)?,
            (Form::Text, None) => answer::line(&output.text()?)?,
        }
    }
    if form == Form::Text {
        return Ok(());
    }
    answer::json("run", json!({ "function": call.signature.name, "milliseconds": took, "outputs": answers }))
}

/// Files are those of the tensors among the outputs, in order.
trait OfTensors {
    fn next_if_tensor(&mut self, content: &Content) -> Option<PathBuf>;
}

impl<I: Iterator<Item = PathBuf>> OfTensors for I {
    fn next_if_tensor(&mut self, content: &Content) -> Option<PathBuf> {
        if matches!(content, Content::Tensor(_)) { self.next() } else { None }
    }
}
