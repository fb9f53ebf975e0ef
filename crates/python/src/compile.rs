//! Compilation and import.

use std::path::PathBuf;

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use relaxide::ffi::Ref;
use relaxide::{CompileOptions, DimError, DimRange, DimSpec, ExecMode, Executable, ExportOptions, Pipeline};

use crate::error::{compiler, to_py};
use crate::ir::module::IRModule;
use crate::ir::transform::{self, PassHandle};
use crate::module::Module;
use crate::program::Target;
use crate::vectorcall;

/// A compiled program in memory.
#[pyclass(frozen, module = "relaxide")]
pub struct CompiledModule(Executable);

impl CompiledModule {
    /// What a compiler made.
    pub fn of(executable: Executable) -> CompiledModule {
        CompiledModule(executable)
    }
}

#[pymethods]
impl CompiledModule {
    /// Write it as one shared library, or with its weights beside it.
    #[pyo3(signature = (path, weights="library"))]
    fn export_library(&self, py: Python<'_>, path: PathBuf, weights: &str) -> PyResult<()> {
        // The package brings the runtime for WebAssembly along.
        let file: PathBuf = py.import("relaxide._core")?.getattr("__file__")?.extract()?;
        let wasm_runtime = file.parent();
        let export = || {
            let options = ExportOptions { weights: weights.parse()?, wasm_runtime, ..ExportOptions::default() };
            self.0.export_with(&path, options)
        };
        py.detach(export).map_err(compiler)
    }

    /// Write the kernels alone as an object, under their own names.
    fn write_object(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.write_object(&path)).map_err(compiler)
    }

    /// Add a module to call into, or, of a static library, to link with.
    fn import_module(&self, module: &Module) -> PyResult<()> {
        self.0.module().import(module.0.clone()).map_err(to_py)
    }

    /// Whether it has functions of the virtual machine, and not kernels alone.
    fn has_functions(&self) -> bool {
        self.0.has_functions()
    }

    /// Load it into this process.
    fn jit(&self) -> PyResult<Module> {
        self.0.jit().map(Module).map_err(compiler)
    }

    /// The function of a name: those that describe the executable.
    fn get_function<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.0.module().get_function(name, false) {
            Some(function) => vectorcall::wrap(py, function),
            None => Err(PyAttributeError::new_err(format!("Module has no function '{name}'"))),
        }
    }

    /// The native code as text: for LLVM before its passes ("ll"), or as assembly behind them ("asm").
    #[pyo3(signature = (fmt=""))]
    fn inspect_source(&self, py: Python<'_>, fmt: &str) -> PyResult<String> {
        py.detach(|| self.0.inspect_source(fmt)).map_err(compiler)
    }

    /// The modules that the program imports: its kernels, and what backends compiled.
    #[getter]
    fn imports<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.module().imports().into_iter().map(|module| Module::wrap(py, module)).collect()
    }

    /// What schedule rules decided for the kernels, as JSON: the form of the file that the option `relaxide.schedule` of a
    /// `PassContext` names.
    fn schedule(&self) -> String {
        format!("{{\"schedule\": {}}}", self.0.schedule())
    }

    /// Which schedule rule served each kernel, and with which parameters.
    fn notes(&self) -> Vec<String> {
        self.0.notes().iter().map(ToString::to_string).collect()
    }
}

#[pyfunction]
fn compile(py: Python<'_>, module: &IRModule, options: &Bound<'_, PyDict>) -> PyResult<CompiledModule> {
    let option = |name: &str| {
        let missing = || PyValueError::new_err(format!("the option {name} is missing"));
        options.get_item(name).and_then(|value| value.ok_or_else(missing))
    };
    let (target, pipeline, exec_mode) = (option("target")?, option("pipeline")?, option("exec_mode")?);
    // Several processors are a list, the first of which is as good as any other.
    let mut targets: Vec<relaxide::Target> = match target.extract::<Vec<Target>>() {
        Ok(list) => list.into_iter().map(|target| target.0).collect(),
        Err(_) => target.extract::<Option<Target>>()?.map(|target| target.0).into_iter().collect(),
    };
    let (pipeline, exec_mode): (String, String) = (pipeline.extract()?, exec_mode.extract()?);
    let params = option("params")?.cast_into::<PyDict>()?;
    let (passes, context): (Option<PassHandle>, _) = (option("passes")?.extract()?, option("context")?);
    let exec_mode = ExecMode::of_name(&exec_mode).ok_or_else(|| {
        PyValueError::new_err(format!("exec_mode is {exec_mode:?}; expected 'bytecode' or 'compiled'"))
    })?;
    let mut bound = Vec::new();
    for (name, value) in params.iter() {
        let tensor = crate::convert::from_py(&value)?.to::<relaxide::ffi::Tensor>().map_err(to_py)?;
        bound.push((name.extract::<String>()?, tensor));
    }
    let pipeline: Pipeline = pipeline.parse().map_err(|error: relaxide::Error| compiler(error))?;
    let also = targets.split_off(targets.len().min(1));
    let target = targets.pop().unwrap_or_default();
    let program = module.get();
    let (passes, context) = (passes.map(|pass| pass.0), transform::context(&context)?);
    let compiled = py.detach(|| {
        let mut options = CompileOptions {
            target,
            also,
            pipeline,
            exec_mode,
            params: bound,
            passes,
            context,
            ..CompileOptions::default()
        };
        relaxide::compile(&program, &mut options)
    });
    compiled.map(CompiledModule).map_err(|error| match error {
        // An exception of a pass that is written in Python comes out as it is.
        relaxide::Error::Pass(error) if error.cause.is_some() => transform::refused(error),
        error => compiler(error),
    })
}

#[pyfunction]
#[pyo3(signature = (source, shapes, ranges, opset, keep_params_in_input, sanitize_input_names, apart = None))]
#[allow(clippy::too_many_arguments, reason = "options of Python's function, one by one")]
fn from_onnx(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    shapes: &Bound<'_, PyDict>,
    ranges: &Bound<'_, PyDict>,
    opset: Option<i64>,
    keep_params_in_input: bool,
    sanitize_input_names: bool,
    apart: Option<&Bound<'_, PyDict>>,
) -> PyResult<IRModule> {
    let mut given = Vec::new();
    for (name, dims) in shapes.iter() {
        let dims = dims.try_iter()?.map(|dim| dimension(&dim?)).collect::<PyResult<Vec<DimSpec>>>()?;
        given.push((name.extract::<String>()?, dims));
    }
    let dims =
        ranges.iter().map(|(name, lengths)| range(&name.extract::<String>()?, &lengths)).collect::<PyResult<_>>()?;
    let options = relaxide::OnnxOptions { shapes: given, dims, opset, keep_params_in_input, sanitize_input_names };
    let model = crate::onnx::model(py, source, apart)?;
    let imported = py.detach(|| relaxide::import_onnx_model(&model, &options));
    imported.map(|module| IRModule::of(Ref::new(module))).map_err(compiler)
}

fn dimension(dim: &Bound<'_, PyAny>) -> PyResult<DimSpec> {
    if let Ok(value) = dim.extract::<i64>() {
        return Ok(DimSpec::Int(value));
    }
    let text: String = dim.extract().map_err(|_| PyTypeError::new_err("a dimension is an integer or a name"))?;
    text.parse().map_err(|why: DimError| PyValueError::new_err(why.to_string()))
}

/// The lengths of a dimension: one, or the least and the greatest, each of which may be `None`.
fn range(name: &str, lengths: &Bound<'_, PyAny>) -> PyResult<DimRange> {
    let (min, max) = if let Ok(length) = lengths.extract::<i64>() {
        (length, Some(length))
    } else {
        let (min, max): (Option<i64>, Option<i64>) = lengths.extract().map_err(|_| {
            PyTypeError::new_err(format!(
                "dims[{name:?}] is {lengths}; expected a length, or the least and the greatest as (1, 8), (None, 8) or (1, None)"
            ))
        })?;
        (min.unwrap_or(0), max)
    };
    DimRange::new(name, min, max).map_err(|why| PyValueError::new_err(format!("dims[{name:?}]: {why}")))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(compile, m)?)?;
    m.add_function(wrap_pyfunction!(from_onnx, m)?)
}
