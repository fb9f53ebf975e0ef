//! From a model to something that runs: what it says of itself, its program, and the cache in between.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prost::bytes::Bytes;
use relaxide::ffi::{Any, Ref};
use relaxide::onnx::Model;
use relaxide::onnx::given::Beside;
use relaxide::onnx::proto::TypeProto;
use relaxide::onnx::signature::{Extent, Signature};
use relaxide::vm::ProfileReport;
use relaxide::{CompileOptions, DimSpec, Error, OnnxOptions, VirtualMachine, Vm};

use crate::cache::{self, ModelSource, Place};
use crate::env::Log;
use crate::status::{Code, Result, Status, invalid, not_here};

/// What a model says of itself.
#[derive(Clone, Debug)]
pub struct Head {
    /// Inputs, outputs, files beside it.
    pub signature: Signature,
    /// The types of inputs and outputs by their names, in full.
    pub types: BTreeMap<String, TypeProto>,
    /// Who made it, and what for.
    pub notes: Notes,
}

/// Who made a model, and what for.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// Who made it.
    pub producer: String,
    /// The graph's name.
    pub graph: String,
    /// The model's domain.
    pub domain: String,
    /// What it is for.
    pub description: String,
    /// What the graph is for.
    pub graph_description: String,
    /// Its version; the greatest number where the file says none.
    pub version: i64,
    /// Whatever else it says, by key.
    pub custom: BTreeMap<String, String>,
}

/// How a model is compiled.
#[derive(Clone, Debug, Default)]
pub struct ShapeOptions {
    /// Lengths of named dimensions.
    pub dims: BTreeMap<String, i64>,
    /// Whether dimensions of equal names in several inputs may differ: files exist in which they do.
    pub is_loose: bool,
    /// Lengths of all inputs, in order, where the program is for these alone.
    pub lengths: Option<Vec<Vec<i64>>>,
}

/// A program that runs.
pub struct Program(VirtualMachine);

impl Program {
    /// Runs it.
    pub fn run(&self, args: &[Any]) -> std::result::Result<Any, relaxide::ffi::Error> {
        let views: Vec<_> = args.iter().map(Any::as_view).collect();
        self.0.invoke("main", &views)
    }

    /// Runs it and says what its functions took, which costs time of its own; no report where its machine makes none.
    pub fn profile(
        &self,
        args: &[Any],
    ) -> std::result::Result<(Any, Option<Ref<ProfileReport>>), relaxide::ffi::Error> {
        let views: Vec<_> = args.iter().map(Any::as_view).collect();
        match self.0.inner() {
            Vm::Relax(vm) => vm.profile("main", &views).map(|(result, report)| (result, Some(report))),
            Vm::Relay(_) => self.0.invoke("main", &views).map(|result| (result, None)),
        }
    }
}

/// Reads a model.
pub fn open(source: &ModelSource) -> Result<Model> {
    let mut model = match &source.place {
        Place::File(path) => relaxide::open_onnx(path).map_err(|error| of_reading(&error))?,
        Place::Memory(bytes, folder) => from_memory(bytes, folder.as_deref())?,
    };
    source.given.put(&mut model);
    Ok(model)
}

fn from_memory(bytes: &Bytes, folder: Option<&Path>) -> Result<Model> {
    if bytes.is_empty() {
        return Err(invalid("the model has no bytes"));
    }
    let mut model = Model::from_bytes(bytes.clone()).map_err(|error| of_reading(&error.into()))?;
    // What lies in a folder is found as beside a file there.
    model.beside = folder.map(|folder| Beside::model(&folder.join("model.onnx")));
    Ok(model)
}

/// What a model says of itself.
pub fn head(model: &Model) -> Head {
    let custom = model.frame.metadata_props.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    let notes = Notes {
        producer: model.frame.producer_name.clone(),
        graph: model.graph.name.clone(),
        domain: model.frame.domain.clone(),
        description: model.frame.doc_string.clone(),
        graph_description: model.graph.doc_string.clone(),
        version: model.version().unwrap_or(i64::MAX),
        custom,
    };
    let values = model.graph.input.iter().chain(&model.graph.output);
    let types = values.filter_map(|value| Some((value.name.clone(), value.r#type.clone()?))).collect();
    Head { signature: model.signature(), types, notes }
}

/// The program of a model: from the cache, or compiled and kept there.
pub fn program(
    source: &ModelSource,
    model: &Model,
    head: &Head,
    shape_options: &ShapeOptions,
    log: &Log,
    cancelled: &Arc<AtomicBool>,
) -> Result<Program> {
    let place = cache::entry(source, &described(source, head, shape_options), log);
    if let Some(place) = &place
        && let Some(library) = place.find()
    {
        match load(library) {
            Ok(program) => return Ok(program),
            // It was damaged, or is for another processor.
            Err(_) => place.forget(),
        }
    }
    let executable = relaxide::ffi::signal::stoppable(cancelled, || compile(model, head, shape_options, cancelled))?;
    if let Some(place) = place {
        place.keep(|path| executable.export_library(path), log);
        // What lies there need not be written once more to be loaded.
        if let Some(program) = place.find().and_then(|library| load(library).ok()) {
            return Ok(program);
        }
    }
    Ok(Program(VirtualMachine::of(&executable.jit().map_err(|error| of_compiling(&error))?)?))
}

fn load(library: &Path) -> std::result::Result<Program, relaxide::ffi::Error> {
    Ok(Program(VirtualMachine::of(&relaxide::load_module(library)?)?))
}

fn compile(
    model: &Model,
    head: &Head,
    shape_options: &ShapeOptions,
    cancelled: &Arc<AtomicBool>,
) -> Result<relaxide::Executable> {
    let options = OnnxOptions { shapes: shapes(&head.signature, shape_options), ..OnnxOptions::default() };
    let module = relaxide::import_onnx_model(model, &options).map_err(|error| of_compiling(&error))?;
    check_cancelled(cancelled)?;
    let executable = relaxide::compile(&module, &mut CompileOptions::default()).map_err(|error| of_compiling(&error));
    check_cancelled(cancelled)?;
    executable
}

fn check_cancelled(cancelled: &AtomicBool) -> Result<()> {
    match cancelled.load(Ordering::Relaxed) {
        true => Err(Status::new(Code::LoadCanceled, "making the session was cancelled")),
        false => Ok(()),
    }
}

/// All that a program follows from beside the model's bytes, as text.
fn described(source: &ModelSource, head: &Head, shape_options: &ShapeOptions) -> String {
    let identity = |name: &String| match source.folder() {
        Some(folder) => cache::identity(&folder.join(name)).unwrap_or_else(|_| name.clone()),
        None => name.clone(),
    };
    let beside: Vec<String> = head.signature.external_files.iter().map(identity).collect();
    let exact = shape_options.lengths.as_ref().map(|lengths| format!("{lengths:?}")).unwrap_or_default();
    format!("{:?} {} {beside:?}{exact}", shape_options.dims, shape_options.is_loose)
}

/// Shapes in place of the model's own, of the inputs for which they differ.
fn shapes(signature: &Signature, shape_options: &ShapeOptions) -> Vec<(String, Vec<DimSpec>)> {
    if let Some(lengths) = &shape_options.lengths {
        let known = |lengths: &Vec<i64>| lengths.iter().map(|&length| DimSpec::Int(length)).collect();
        return signature.inputs.iter().zip(lengths).map(|(input, own)| (input.name.clone(), known(own))).collect();
    }
    let mut shapes = Vec::new();
    for input in &signature.inputs {
        let mut differs = false;
        let dim = |(axis, extent): (usize, &Extent)| {
            let own = || DimSpec::Name(format!("{}_{axis}", input.name));
            let fixed = |name: &str| shape_options.dims.get(name).map(|length| DimSpec::Int(*length));
            let (dim, is_new) = match extent {
                Extent::Known(length) => (DimSpec::Int(*length), false),
                Extent::Named(name) => match (fixed(name), shape_options.is_loose) {
                    (Some(length), _) => (length, true),
                    (None, true) => (own(), true),
                    (None, false) => (DimSpec::Name(name.clone()), false),
                },
                Extent::Unknown => (own(), false),
            };
            differs |= is_new;
            dim
        };
        let dims = input.shape.iter().enumerate().map(dim).collect();
        if differs {
            shapes.push((input.name.clone(), dims));
        }
    }
    shapes
}

/// The status of a model that cannot be read.
fn of_reading(error: &Error) -> Status {
    let code = match error.kind() {
        "FileNotFoundError" => Code::NoSuchFile,
        "NotImplementedError" => Code::NotImplemented,
        "OSError" | "PermissionError" | "IsADirectoryError" => Code::Fail,
        _ => Code::InvalidProtobuf,
    };
    Status::new(code, error.diagnostic(|_| None).to_string())
}

/// The status of a model that was not compiled.
fn of_compiling(error: &Error) -> Status {
    let text = error.diagnostic(|_| None).to_string();
    match error.kind() {
        "NotImplementedError" => not_here(text),
        _ => Status::new(Code::InvalidGraph, text),
    }
}
