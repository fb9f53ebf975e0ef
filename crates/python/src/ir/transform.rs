//! Passes to Python: those of the compiler by name, those that Python writes, and contexts with instruments.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use relaxide::ffi::Ref;
use relaxide::ir::pass::{
    CONFIG, EntryDefault, ParamDefault, ParamKind, Pass, PassContext, PassError, PassInfo, PassInstrument, Refusal,
};
use relaxide::ir::{Attrs, IRModule as Module};
use relaxide::relax::{BindingBlock, Function, transform};
use relaxide::tir::{PrimFunc, lower};

use super::args;
use super::module::IRModule;
use crate::program::Target;
use crate::{convert, error};

/// A pass.
#[pyclass(frozen, from_py_object, module = "relaxide.ir.transform")]
#[derive(Clone)]
pub struct PassHandle(pub Pass);

/// An exception of a pass or an instrument that is written in Python.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Exception {
    text: String,
    raised: PyErr,
}

/// The error of a pass that Python raised an exception in.
pub fn caused(name: &str, raised: PyErr) -> PassError {
    let text = Python::attach(|py| {
        let kind = raised.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
        format!("{kind}: {}", raised.value(py))
    });
    PassError::caused(name, Exception { text, raised })
}

/// An error of a pass as an exception: the one that Python raised, if it did.
pub fn refused(error: PassError) -> PyErr {
    let raised = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<Exception>());
    if let Some(of_function) = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<relaxide::ffi::Error>()) {
        return error::to_py(of_function.clone());
    }
    match raised {
        Some(exception) => Python::attach(|py| exception.raised.clone_ref(py)),
        None => PyValueError::new_err(error.diagnostic(error::program_text).to_string()),
    }
}

fn to_module(module: &Module) -> IRModule {
    IRModule::of(Ref::new(module.clone()))
}

/// What a Python pass gives back, as a module.
fn from_module(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Module> {
    match value.cast::<IRModule>() {
        Ok(module) => Ok(Module::clone(&module.get().get())),
        Err(_) => {
            let kind = value.get_type().name()?.to_string();
            Err(PyTypeError::new_err(format!("the pass {name} returns a module, not {kind}")))
        }
    }
}

#[pymethods]
impl PassHandle {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The least optimisation level of a context whose sequences run it.
    #[getter]
    fn opt_level(&self) -> u32 {
        self.0.level()
    }

    /// The names of the passes that a sequence runs in front of it.
    #[getter]
    fn required(&self) -> Vec<String> {
        self.0.required().iter().map(|pass| pass.name().to_string()).collect()
    }

    /// The module that the pass makes of a module, in a context.
    fn run(&self, py: Python<'_>, module: &IRModule, context: &Bound<'_, PyAny>) -> PyResult<IRModule> {
        let (context, module) = (self::context(context)?, module.get());
        let result = py.detach(|| self.0.run(Module::clone(&module), &context));
        result.map(|module| IRModule::of(Ref::new(module))).map_err(refused)
    }
}

/// A context of Python as the compiler's.
pub fn context(context: &Bound<'_, PyAny>) -> PyResult<PassContext> {
    let mut made = PassContext {
        opt_level: context.getattr("opt_level")?.extract()?,
        required: full_names(context.getattr("required_pass")?.extract()?),
        disabled: full_names(context.getattr("disabled_pass")?.extract()?),
        ..PassContext::default()
    };
    if let Ok(target) = context.getattr("target")?.extract::<Target>() {
        made.target = target.0;
    }
    for (key, value) in context.getattr("config")?.cast::<PyDict>()?.iter() {
        let value = args::attr_value(convert::from_py(&value)?.as_view()).map_err(error::to_py)?;
        made.config.set(&key.extract::<String>()?, value).map_err(refused)?;
    }
    for instrument in context.getattr("instruments")?.cast::<PyList>()?.iter() {
        made.instruments.push(Arc::new(Instrument(instrument.unbind())));
    }
    Ok(made)
}

/// Names of passes as the tables write them.
fn full_names(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| transform::pass(&name).map_or(name, |pass| pass.name.to_string())).collect()
}

/// An instrument that is written in Python. Methods that it does not have are not called.
struct Instrument(Py<PyAny>);

impl Instrument {
    fn tell(&self, method: &str, pass: &Pass, module: &Module) -> Result<Option<Py<PyAny>>, PassError> {
        Python::attach(|py| {
            let object = self.0.bind(py);
            if !object.hasattr(method)? {
                return Ok(None);
            }
            let info = py.import("relaxide.ir.transform")?.getattr("PassInfo")?;
            let required: Vec<String> = pass.required().iter().map(|pass| pass.name().to_string()).collect();
            let info = info.call1((pass.level(), pass.name(), required))?;
            object.call_method1(method, (to_module(module), info)).map(|answer| Some(answer.unbind()))
        })
        .map_err(|raised: PyErr| caused(pass.name(), raised))
    }
}

impl PassInstrument for Instrument {
    fn should_run(&self, pass: &Pass, module: &Module) -> Result<bool, PassError> {
        let answer = self.tell("should_run", pass, module)?;
        let truth = |answer: Py<PyAny>| Python::attach(|py| answer.bind(py).is_truthy());
        answer.map_or(Ok(true), truth).map_err(|raised| caused(pass.name(), raised))
    }

    fn before(&self, pass: &Pass, module: &Module) -> Result<(), PassError> {
        self.tell("run_before_pass", pass, module).map(drop)
    }

    fn after(&self, pass: &Pass, module: &Module) -> Result<(), PassError> {
        self.tell("run_after_pass", pass, module).map(drop)
    }
}

fn kind_of(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::Bool => "bool",
        ParamKind::Int => "int",
        ParamKind::Str | ParamKind::DType => "str",
        ParamKind::StrOrNone => "str | None",
        ParamKind::Strs => "str | list[str]",
        ParamKind::List => "list",
        ParamKind::Map => "dict",
        ParamKind::Any => "object",
        ParamKind::Function => "Callable",
        ParamKind::Absent => "None",
    }
}

fn default_of(default: ParamDefault) -> Option<String> {
    Some(match default {
        ParamDefault::Required => return None,
        ParamDefault::None => "None".to_string(),
        ParamDefault::Bool(value) => if value { "True" } else { "False" }.to_string(),
        ParamDefault::Int(value) => value.to_string(),
        ParamDefault::Str(value) => format!("{value:?}"),
    })
}

/// A parameter as Python writes it: name, type, default and documentation.
type Param = (&'static str, &'static str, Option<String>, &'static str);

/// What the tables say of a pass: its documentation and its parameters.
#[pyfunction]
fn pass_definition(name: &str) -> Option<(&'static str, Vec<Param>)> {
    let row: &PassInfo = transform::pass(name)?;
    let param = |p: &relaxide::ir::pass::PassParam| (p.name, kind_of(p.kind), default_of(p.default), p.doc);
    Some((row.doc, row.params.iter().map(param).collect()))
}

/// The names of the passes over Relax.
#[pyfunction]
fn pass_names() -> Vec<&'static str> {
    transform::PASSES.iter().map(|pass| pass.name).collect()
}

/// The full names of the passes over kernels.
#[pyfunction]
fn kernel_pass_names() -> Vec<&'static str> {
    lower::PASSES.iter().map(|pass| pass.name).collect()
}

/// The passes that every kernel is lowered by, in order.
#[pyfunction]
fn lowering_pass_names() -> Vec<&'static str> {
    lower::PIPELINE.iter().map(|step| step.pass.name).collect()
}

/// Why a pass of TVM over kernels is not here, if that is known.
#[pyfunction]
fn absent_pass(name: &str) -> Option<&'static str> {
    lower::absent(name)
}

/// A pass of the tables with parameters.
#[pyfunction]
fn make_pass(name: &str, given: &Bound<'_, PyDict>) -> PyResult<PassHandle> {
    let mut attrs = Attrs::new();
    for (key, value) in given.iter() {
        let value = args::attr_value(convert::from_py(&value)?.as_view()).map_err(error::to_py)?;
        attrs = attrs.with(key.extract::<String>()?, value);
    }
    transform::make_pass(name, &attrs).map(PassHandle).map_err(refused)
}

/// Passes in order, as one.
#[pyfunction]
fn sequential_pass(name: &str, passes: Vec<PassHandle>, opt_level: u32) -> PassHandle {
    PassHandle(Pass::sequential(name, passes.into_iter().map(|pass| pass.0).collect()).opt_level(opt_level))
}

/// The passes of a pipeline, as one.
#[pyfunction]
fn pipeline_pass(name: &str) -> PyResult<PassHandle> {
    let Some(pipeline) = transform::pipeline(name) else {
        let known: Vec<&str> = transform::pipelines().iter().map(|pipeline| pipeline.name).collect();
        return Err(PyValueError::new_err(format!("Unknown pipeline {name:?}; there are: {}", known.join(", "))));
    };
    Ok(PassHandle(Pass::sequential(pipeline.name, pipeline.resolve().map_err(refused)?)))
}

/// The name of TVM's pipeline for a target.
#[pyfunction]
fn default_pipeline_name(target: &str) -> PyResult<&'static str> {
    let parsed: relaxide::Target =
        target.parse().map_err(|error: relaxide::ir::TargetError| crate::error::compiler(error.into()))?;
    transform::default_pipeline(&parsed).map(|pipeline| pipeline.name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "there is no pipeline for devices of {target}; name one with get_pipeline, or run passes of your choice"
        ))
    })
}

/// The passes of one stage of a pipeline.
#[pyfunction]
fn pipeline_stage(name: &str, stage: &str) -> PyResult<Vec<PassHandle>> {
    let stage = match stage {
        "library_dispatch" => transform::Stage::Dispatch,
        "legalize" => transform::Stage::Legalize,
        "dataflow_lower" => transform::Stage::Lower,
        "finalize" => transform::Stage::Finalize,
        other => return Err(PyValueError::new_err(format!("pipelines have no stage {other:?}"))),
    };
    let Some(pipeline) = transform::pipeline(name) else {
        return Err(PyValueError::new_err(format!("there is no pipeline {name:?}")));
    };
    let made: Result<Vec<_>, _> = pipeline.stage(stage).map(transform::parse_passes).collect();
    Ok(made.map_err(refused)?.into_iter().flatten().map(PassHandle).collect())
}

/// A pass that is a Python function of a module, of each function of it (`"function"`), of each kernel (`"prim_func"`), or of
/// each dataflow block (`"dataflow_block"`), and of the context.
#[pyfunction]
fn python_pass(kind: &str, run: Py<PyAny>, name: &str, opt_level: u32, required: Vec<String>) -> PyResult<PassHandle> {
    let label = name.to_string();
    let pass = match kind {
        "module" => Pass::new(name, move |module, _| {
            Python::attach(|py| from_module(&label, &run.bind(py).call1((to_module(&module), current(py)?))?))
                .map_err(|raised| caused(&label, raised))
        }),
        "function" => Pass::on_functions(name, move |func: Ref<Function>, module: &Module, _: &PassContext| {
            Python::attach(|py| {
                let func = convert::to_py(py, func.into())?;
                let made = run.bind(py).call1((func, to_module(module), current(py)?))?;
                convert::from_py(&made)?.to::<Ref<Function>>().map_err(error::to_py)
            })
            .map_err(|raised| caused(&label, raised))
        }),
        "prim_func" => Pass::on_functions(name, move |func: Ref<PrimFunc>, module: &Module, _: &PassContext| {
            Python::attach(|py| {
                let func = convert::to_py(py, func.into())?;
                let made = run.bind(py).call1((func, to_module(module), current(py)?))?;
                convert::from_py(&made)?.to::<Ref<PrimFunc>>().map_err(error::to_py)
            })
            .map_err(|raised| caused(&label, raised))
        }),
        "dataflow_block" => transform::dataflow_block_pass(name, move |block: Ref<BindingBlock>, module, _| {
            Python::attach(|py| {
                let block = convert::to_py(py, block.into())?;
                let made = run.bind(py).call1((block, to_module(module), current(py)?))?;
                convert::from_py(&made)?.to::<Ref<BindingBlock>>().map_err(error::to_py)
            })
            .map_err(|raised| caused(&label, raised))
        }),
        other => return Err(PyValueError::new_err(format!("there is no kind of pass {other:?}"))),
    };
    let none = PyDict::new;
    let required = Python::attach(|py| {
        required.iter().map(|name| make_pass(name, &none(py)).map(|pass| pass.0)).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(PassHandle(pass.opt_level(opt_level).requires(required)))
}

/// The context that Python has in force.
fn current(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("relaxide.ir.transform")?.getattr("PassContext")?.call_method0("current")
}

/// The options of contexts: name, type and documentation.
#[pyfunction]
fn pass_options() -> Vec<(String, String, String)> {
    CONFIG
        .iter()
        .map(|option| (option.name.to_string(), option.kind.name().to_string(), option.doc.to_string()))
        .collect()
}

/// The entries of an option of several: name, default and documentation.
#[pyfunction]
fn pass_option_entries<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>, &'static str)>> {
    let option = CONFIG.iter().find(|option| option.name == name);
    let entries = option.map_or(&[][..], |option| option.kind.entries()).iter();
    let default = |default| -> PyResult<Bound<'py, PyAny>> {
        Ok(match default {
            EntryDefault::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
            EntryDefault::Int(value) => value.into_pyobject(py)?.into_any(),
        })
    };
    entries.map(|entry| Ok((entry.name, default(entry.default)?, entry.doc))).collect()
}

/// Refuses a context with options that do not exist or are of another kind.
#[pyfunction]
fn check_pass_context(context: &Bound<'_, PyAny>) -> PyResult<()> {
    self::context(context).map(drop)
}

/// What in a module breaks the rules of the language.
#[pyfunction]
fn well_formed(module: &IRModule) -> Vec<String> {
    let broken = relaxide::relax::wellformed::check_module(&module.get()).into_iter();
    broken.map(|rule| Refusal::from(rule).diagnostic(error::program_text).to_string()).collect()
}

/// What in a function by itself breaks them.
#[pyfunction]
fn well_formed_alone(func: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let func: Ref<Function> = convert::from_py(func)?.to().map_err(error::to_py)?;
    let name = func.attrs.str("global_symbol").unwrap_or("main").to_string();
    let broken = relaxide::relax::wellformed::check_alone(&name, &func).into_iter();
    Ok(broken.map(|rule| Refusal::from(rule).diagnostic(error::program_text).to_string()).collect())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PassHandle>()?;
    m.add_function(wrap_pyfunction!(pass_definition, m)?)?;
    m.add_function(wrap_pyfunction!(pass_names, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_pass_names, m)?)?;
    m.add_function(wrap_pyfunction!(lowering_pass_names, m)?)?;
    m.add_function(wrap_pyfunction!(absent_pass, m)?)?;
    m.add_function(wrap_pyfunction!(make_pass, m)?)?;
    m.add_function(wrap_pyfunction!(sequential_pass, m)?)?;
    m.add_function(wrap_pyfunction!(pipeline_pass, m)?)?;
    m.add_function(wrap_pyfunction!(default_pipeline_name, m)?)?;
    m.add_function(wrap_pyfunction!(pipeline_stage, m)?)?;
    m.add_function(wrap_pyfunction!(python_pass, m)?)?;
    m.add_function(wrap_pyfunction!(pass_options, m)?)?;
    m.add_function(wrap_pyfunction!(pass_option_entries, m)?)?;
    m.add_function(wrap_pyfunction!(check_pass_context, m)?)?;
    m.add_function(wrap_pyfunction!(well_formed_alone, m)?)?;
    m.add_function(wrap_pyfunction!(well_formed, m)?)
}
