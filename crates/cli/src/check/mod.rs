//! `relaxide check`: is what we compute what ONNX Runtime computes?
//!
//! First the model runs on both sides as it is, and its outputs are compared. If one differs, [`inside`] looks for the node
//! that differs first.

mod inside;
mod unfold;

use std::path::{Path, PathBuf};

use clap::Args;
use relaxide::ffi::{Any, Array, Module, Tensor};
use serde_json::{Value, json};

use crate::answer::{self, Form};
use crate::args::{InputArgs, ModelArgs, Precision, ProgramArgs};
use crate::error::CliError;
use crate::inputs::{Call, Machine, Missing, element};
use crate::onnxruntime::{Graph, OnnxRuntime};
use crate::program::{self, FileKind, Program};
use crate::progress::{Bar, Show};

/// Arguments of `relaxide check`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide check model.onnx --dim batch=2\n  \
    relaxide check model.onnx --input x=image.npy --rtol 1e-2 --precision float16\n  \
    relaxide check model.onnx --python ~/venv/bin/python --json\n\n\
    Exit code 4 says that the results differ.")]
pub struct CheckArgs {
    /// The ONNX model.
    pub model: PathBuf,
    /// How it is compiled.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Its inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// The difference that is allowed, as a share of ONNX Runtime's value.
    #[arg(long, default_value_t = 1e-3)]
    pub rtol: f64,
    /// The difference that is allowed beside that.
    #[arg(long, default_value_t = 1e-4)]
    pub atol: f64,
    /// A Python with the package onnxruntime [default: RELAXIDE_PYTHON, else that of the virtual environment, else python3].
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
}

/// Compares the model's results with ONNX Runtime's.
pub fn run(args: &CheckArgs, form: Form) -> Result<(), CliError> {
    if FileKind::of(&args.model)? != FileKind::Onnx {
        return Err(CliError::usage(
            format!("{} is no ONNX model, which ONNX Runtime could run too", args.model.display()),
            "give the .onnx file",
        ));
    }
    let bytes = std::fs::read(&args.model).map_err(CliError::file(&args.model))?;
    let mut runtime = OnnxRuntime::start(args.python.as_deref())?;
    let call = open(args, form)?;
    let theirs = Theirs::run(&mut runtime, &args.model, &args.model, Graph::Optimized, &call)?;
    let compared = compare_all(&tensors(&call.invoke()?, theirs.names.len()), &theirs, args)?;
    if compared.iter().all(|one| one.difference.is_none_or(|d| d.wrong == 0)) {
        return report(&compared, None, &runtime.version, args, form);
    }
    if let Machine::There(far) = &call.machine {
        report(&compared, None, &runtime.version, args, form)?;
        return Err(CliError::Differs {
            message: format!("the outputs differ on {}", far.name()),
            help: "see whether they do here too, without --on: then the operator that differs is looked for".into(),
        });
    }
    let found = inside::first_different(bytes, &mut runtime, args, form)?;
    report(&compared, Some(&found), &runtime.version, args, form)?;
    let (message, help) = match &found {
        CheckOutcome::Node(found) => (
            format!("the first operator that differs is {}", found.text()),
            match args.program.precision() {
                Precision::Float32 => "what it was given was the same on both sides; please report it with the model",
                _ => {
                    "what it was given was the same on both sides, and --precision asks for fewer bits: see whether a larger --rtol is right"
                }
            },
        ),
        CheckOutcome::Nothing => (
            "the outputs differ, but no single operator does when every value is kept".to_string(),
            "small differences add up over the model, or come from what is fused when values are not kept: see whether a larger \
             --rtol is right for it",
        ),
    };
    Err(CliError::Differs { message, help: help.into() })
}

/// The model where it is to run.
fn open(args: &CheckArgs, form: Form) -> Result<Call, CliError> {
    if args.inputs.on.is_none() {
        let module = compile(program::load_for_machine(&args.model, &[], &args.program)?, args, form)?;
        return Call::prepare(&module, &args.inputs, Missing::Random);
    }
    let model = ModelArgs { file: args.model.clone(), weights: None, program: args.program.clone() };
    Call::open(&model, &args.inputs, Missing::Random, &mut Bar::new(Show::Nothing))
}

/// Compiles with the precision that is asked for.
fn compile(program: Program, args: &CheckArgs, form: Form) -> Result<Module, CliError> {
    let show = if form == Form::Json { Show::Nothing } else { Show::Stages };
    let program = program.prepare(args.program.precision(), &[])?;
    program::compile_in_memory(&program, &args.program, &mut Bar::new(show))
}

/// Each of `count` outputs, if it is a tensor and not a sequence of some.
fn tensors(result: &Any, count: usize) -> Vec<Option<Tensor>> {
    match result.to::<Array>() {
        Ok(outputs) if count != 1 => outputs.iter().map(|output| output.to::<Tensor>().ok()).collect(),
        _ => vec![result.to::<Tensor>().ok()],
    }
}

/// What ONNX Runtime made of a model.
struct Theirs {
    names: Vec<String>,
    values: Vec<Option<Tensor>>,
}

impl Theirs {
    /// Runs a file; external data is looked for beside `model`.
    fn run(
        runtime: &mut OnnxRuntime,
        file: &Path,
        model: &Path,
        graph: Graph,
        call: &Call,
    ) -> Result<Theirs, CliError> {
        let folder = model.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let opened = runtime.open(file, folder, graph)?;
        runtime.set_inputs(&call.named_inputs(&opened.inputs)?)?;
        runtime.run()?;
        Ok(Theirs { names: opened.outputs, values: runtime.outputs()? })
    }
}

/// How far two tensors are apart.
#[derive(Clone, Copy, Debug)]
struct Difference {
    max_abs: f64,
    max_rel: f64,
    /// Elements that are further apart than is allowed.
    wrong: usize,
    count: usize,
}

impl Difference {
    fn of(ours: &[f64], theirs: &[f64], args: &CheckArgs) -> Difference {
        let mut difference = Difference { max_abs: 0.0, max_rel: 0.0, wrong: 0, count: ours.len() };
        for (a, b) in ours.iter().zip(theirs) {
            if a == b || (a.is_nan() && b.is_nan()) {
                continue;
            }
            let apart = (a - b).abs();
            // A number beside none is as far apart as can be.
            let apart = if apart.is_nan() { f64::INFINITY } else { apart };
            difference.max_abs = difference.max_abs.max(apart);
            difference.max_rel = difference.max_rel.max(if *b == 0.0 { f64::INFINITY } else { apart / b.abs() });
            difference.wrong += usize::from(apart > args.atol + args.rtol * b.abs());
        }
        difference
    }

    fn text(&self) -> String {
        let wrong = match self.wrong {
            0 => String::new(),
            wrong => format!(", {wrong} of {} elements beyond the tolerance", self.count),
        };
        format!("max abs {:.3e}, max rel {:.3e}{wrong}", self.max_abs, self.max_rel)
    }

    fn json(&self) -> Value {
        // JSON has no infinity.
        let number = |n: f64| if n.is_finite() { json!(n) } else { json!(n.to_string()) };
        json!({ "max_abs": number(self.max_abs), "max_rel": number(self.max_rel), "wrong": self.wrong, "count": self.count })
    }
}

/// An output and how far both sides are apart; no difference where it is no tensor on one side.
struct Compared {
    name: String,
    shape: Vec<i64>,
    difference: Option<Difference>,
}

fn compare_all(ours: &[Option<Tensor>], theirs: &Theirs, args: &CheckArgs) -> Result<Vec<Compared>, CliError> {
    let pairs = theirs.names.iter().zip(&theirs.values).zip(ours);
    pairs.map(|((name, theirs), ours)| compare(name, ours.as_ref(), theirs.as_ref(), args)).collect()
}

fn compare(name: &str, ours: Option<&Tensor>, theirs: Option<&Tensor>, args: &CheckArgs) -> Result<Compared, CliError> {
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Ok(Compared { name: name.to_string(), shape: Vec::new(), difference: None });
    };
    let shape = ours.shape().to_vec();
    let difference = if ours.shape() == theirs.shape() {
        Difference::of(&element::numbers(ours)?, &element::numbers(theirs)?, args)
    } else {
        // Other shapes are wrong altogether.
        let count = ours.numel().max(1);
        Difference { max_abs: f64::INFINITY, max_rel: f64::INFINITY, wrong: count, count }
    };
    Ok(Compared { name: name.to_string(), shape, difference: Some(difference) })
}

/// Where both sides part.
enum CheckOutcome {
    Node(FoundNode),
    Nothing,
}

/// A node that differs.
struct FoundNode {
    op: String,
    name: String,
    difference: Difference,
    /// The nodes that it is inside of, from the outermost on, and which part of their run was looked at.
    within: Vec<String>,
    /// Nodes inside of it that were not compared, and why.
    not_compared: Option<String>,
}

impl FoundNode {
    fn text(&self) -> String {
        let within: String = self.within.iter().rev().map(|outer| format!(", inside {outer}")).collect();
        let left = self.not_compared.as_ref().map_or(String::new(), |why| format!("; {why}"));
        format!("{} (node `{}`{within}): {}{left}", self.op, self.name, self.difference.text())
    }
}

fn report(
    compared: &[Compared],
    found: Option<&CheckOutcome>,
    version: &str,
    args: &CheckArgs,
    form: Form,
) -> Result<(), CliError> {
    if form == Form::Text {
        let verdict = if found.is_none() { "agrees with" } else { "differs from" };
        answer::line(&format!("{} {verdict} ONNX Runtime {version}", args.model.display()))?;
        for one in compared {
            let text = one.difference.map_or("not compared: it is no tensor of numbers".into(), |d| d.text());
            answer::line(&format!("  {} {:?}  {text}", one.name, one.shape))?;
        }
        return Ok(());
    }
    // Where they differ, the error that follows is part of the answer.
    let Some(found) = found else {
        let outputs: Vec<Value> = compared.iter().map(output_json).collect();
        return answer::json("check", json!({ "onnxruntime": version, "agrees": true, "outputs": outputs }));
    };
    let first = match found {
        CheckOutcome::Node(found) => json!({
            "op": found.op, "node": found.name, "difference": found.difference.json(), "within": found.within,
            "not_compared": found.not_compared,
        }),
        CheckOutcome::Nothing => Value::Null,
    };
    let outputs: Vec<Value> = compared.iter().map(output_json).collect();
    let answer = json!({ "onnxruntime": version, "agrees": false, "outputs": outputs, "first_different": first });
    answer::json("check", answer)
}

fn output_json(one: &Compared) -> Value {
    json!({ "name": one.name, "shape": one.shape, "difference": one.difference.map(|d| d.json()) })
}
