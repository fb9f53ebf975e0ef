//! ONNX Runtime beside us: a Python process of its own that runs a model when it is told to.
//!
//! The process is asked line by line in JSON ([`SCRIPT`]); tensors pass through .npy files in a folder that goes away with it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use relaxide::ffi::Tensor;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::error::CliError;
use crate::inputs::npy;

/// What the process runs.
const SCRIPT: &str = include_str!("serve.py");

/// The variable that names the Python to use.
const PYTHON: &str = "RELAXIDE_PYTHON";

/// Whether ONNX Runtime may rewrite the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graph {
    /// As fast as it can.
    Optimized,
    /// Node by node, as it is written.
    AsWritten,
}

/// A process that runs models with ONNX Runtime.
pub struct OnnxRuntime {
    process: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    folder: TempDir,
    /// The version of ONNX Runtime.
    pub version: String,
}

/// A model that the process has open.
pub struct OpenModel {
    /// The names of its inputs, in order.
    pub inputs: Vec<String>,
    /// The names of its outputs, in order.
    pub outputs: Vec<String>,
}

impl OnnxRuntime {
    /// Starts the process. `python` is the interpreter; none: that of `RELAXIDE_PYTHON`, of the active virtual environment, or the
    /// system's.
    pub fn start(python: Option<&Path>) -> Result<OnnxRuntime, CliError> {
        let python = python.map_or_else(default_python, Path::to_path_buf);
        let help = format!(
            "install it with `{} -m pip install onnxruntime`, or name another Python with --python or {PYTHON}",
            python.display()
        );
        let failed = |message: String| CliError::Tool { message, help: help.clone() };
        let io = |error: std::io::Error| failed(format!("{} cannot be run: {error}", python.display()));
        let folder = tempfile::Builder::new().prefix("relaxide-").tempdir().map_err(io)?;
        let mut process = Command::new(&python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (requests, replies) = pipes.ok_or_else(|| failed("the process of Python has no pipes".into()))?;
        let replies = BufReader::new(replies);
        let mut runtime = OnnxRuntime { process, requests, replies, folder, version: String::new() };
        let hello = runtime.reply()?;
        if let Some(missing) = hello["missing"].as_str() {
            return Err(failed(format!("{} has no package {missing}", python.display())));
        }
        runtime.version = hello["version"].as_str().unwrap_or_default().to_string();
        Ok(runtime)
    }

    /// Opens a model; external data is looked for in `folder`.
    pub fn open(&mut self, model: &Path, folder: &Path, graph: Graph) -> Result<OpenModel, CliError> {
        let answer = self.ask(json!({
            "do": "open", "model": model, "folder": folder, "threads": relaxide::num_threads(),
            "optimize": graph == Graph::Optimized,
        }))?;
        let names = |key: &str| -> Vec<String> {
            answer[key].as_array().into_iter().flatten().filter_map(|n| n.as_str().map(str::to_string)).collect()
        };
        Ok(OpenModel { inputs: names("inputs"), outputs: names("outputs") })
    }

    /// Hands inputs over.
    pub fn set_inputs(&mut self, inputs: &[(String, Tensor)]) -> Result<(), CliError> {
        let mut files = BTreeMap::new();
        for (i, (name, tensor)) in inputs.iter().enumerate() {
            let path = self.folder.path().join(format!("input{i}.npy"));
            npy::write(&path, tensor)?;
            files.insert(name, path);
        }
        self.ask(json!({ "do": "inputs", "files": files })).map(drop)
    }

    /// Runs the model once and says how many seconds it took.
    pub fn run(&mut self) -> Result<f64, CliError> {
        Ok(self.ask(json!({ "do": "run" }))?["seconds"].as_f64().unwrap_or(f64::NAN))
    }

    /// The outputs of the last run, in order; `None` for what is no tensor that we read.
    pub fn outputs(&mut self) -> Result<Vec<Option<Tensor>>, CliError> {
        let answer = self.ask(json!({ "do": "save", "folder": self.folder.path() }))?;
        let files = answer["files"].as_array().into_iter().flatten();
        Ok(files.map(|file| npy::read(&PathBuf::from(file.as_str()?)).ok()).collect())
    }

    fn ask(&mut self, request: Value) -> Result<Value, CliError> {
        writeln!(self.requests, "{request}")
            .and_then(|()| self.requests.flush())
            .map_err(|error| ended(&error.to_string()))?;
        let answer = self.reply()?;
        match answer["error"].as_str() {
            Some(error) => Err(CliError::Tool {
                message: format!("ONNX Runtime refuses: {error}"),
                help: "see whether the model and the inputs are what ONNX Runtime takes".into(),
            }),
            None => Ok(answer),
        }
    }

    fn reply(&mut self) -> Result<Value, CliError> {
        let mut line = String::new();
        let read = self.replies.read_line(&mut line).map_err(|error| ended(&error.to_string()))?;
        if read == 0 {
            return Err(ended("it gave no answer"));
        }
        serde_json::from_str(&line).map_err(|error| ended(&error.to_string()))
    }
}

impl Drop for OnnxRuntime {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ended(why: &str) -> CliError {
    CliError::Tool {
        message: format!("the process of ONNX Runtime ended: {why}"),
        help: "run the model with ONNX Runtime in Python by itself to see why".into(),
    }
}

fn default_python() -> PathBuf {
    if let Some(python) = std::env::var_os(PYTHON) {
        return PathBuf::from(python);
    }
    match std::env::var_os("VIRTUAL_ENV") {
        Some(folder) => Path::new(&folder).join("bin/python"),
        None => "python3".into(),
    }
}
