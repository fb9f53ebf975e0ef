//! Programs of Relay: text, JSON, types, passes, compilation, interpretation.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use relaxide::ffi::{Any, AnyView, Array, Error, ErrorKind, Map, ObjectRef, Ref, Tensor};
use relaxide::ir::Diagnostic;
use relaxide::relay::text::{PrintOptions, Source, parse_expr, print_expr, print_module};
use relaxide::relay::{
    CompileError, Expr, Function, Interpreter, Module, Type, TypeError, infer, infer_expr, json, prelude, to_relax,
    transform, well_formed,
};
use relaxide::{CompileOptions, FALLBACK_DEVICE, compile_relay, compile_relay_graph};

use super::super::{Args, Row};
use crate::compile::CompiledModule;
use crate::error::{compiler, to_py};
use crate::ir::module::IRModule;
use crate::program::Target;
use crate::{convert, error};

pub(in super::super) const TABLE: &[Row] = &[
    ("relay.ir.ParseModule", |args| {
        let source = Source::new(args.get::<String>(1)?, args.get::<String>(0)?);
        let module = prelude::parse_with_prelude(&source).map_err(shown)?;
        Ok(Ref::new(prelude::without_unused(&module)?).into())
    }),
    ("relay.ir.ParseExpr", |args| {
        let source = Source::new(args.get::<String>(1)?, args.get::<String>(0)?);
        parse_expr(&source, &with_prelude(args, 2)?).map(Any::from).map_err(shown)
    }),
    ("relay.ir.Prelude", |_| Ok(Ref::new(prelude::prelude()?.clone()).into())),
    ("relay.ir.WithPrelude", |args| Ok(Ref::new(with_prelude(args, 0)?).into())),
    ("relay.ir.Text", text),
    ("relay.ir.SaveJson", |args| Ok(Any::from(json::save(&*args.get::<Ref<Module>>(0)?)?.as_str()))),
    ("relay.ir.LoadJson", |args| {
        let module = json::load(&args.get::<String>(0)?);
        let refuse = |e: json::JsonError| Error::new(ErrorKind::ValueError, e.to_string());
        Ok(Ref::new(module.map_err(refuse)?).into())
    }),
    ("relay.ir.InferType", |args| {
        let module = with_prelude(args, 0)?;
        infer(&module).map(|_| Any::none()).map_err(|errors| types_refused(&errors))
    }),
    ("relay.ir.TypeOf", type_of),
    ("relay.ir.WellFormed", |args| {
        let found = well_formed(&*args.get::<Ref<Module>>(0)?);
        Ok(Array::from_iter(found.iter().map(|e| Any::from(e.diagnostic(None).to_string().as_str()))).into())
    }),
    ("relay.ir.PassNames", |_| {
        Ok(Array::from_iter(transform::PASSES.iter().map(|pass| {
            Any::from(Array::from_vec(vec![pass.name.into(), i64::from(pass.level).into(), pass.doc.into()]))
        }))
        .into())
    }),
    ("relay.ir.RunPass", |args| {
        let (name, module): (String, Ref<Module>) = (args.get(0)?, args.get(1)?);
        let refuse = |e: transform::TransformError| match &e {
            transform::TransformError::Types(errors) => types_refused(errors),
            other => Error::new(ErrorKind::ValueError, format!("{name}: {other}")),
        };
        let options = args.attrs(2)?;
        let run = || transform::pass(&name)?.run_with(&module, &options);
        run().map(|module| Ref::new(module).into()).map_err(refuse)
    }),
    ("relay.ir.BindParams", |args| {
        let (function, map): (Ref<Function>, Map) = (args.get(0)?, args.get(1)?);
        let tensors = map.iter().map(|(k, v)| Ok((k.to::<String>()?, v.to::<Tensor>()?)));
        let tensors = tensors.collect::<Result<Vec<_>, Error>>()?;
        transform::bind_params(&function, &tensors)
            .map(Any::from)
            .map_err(|why| Error::new(ErrorKind::ValueError, why.to_string()))
    }),
];

/// The reference interpreter, which keeps the kernels that it made.
#[pyclass(frozen, module = "relaxide")]
struct RelayInterpreter(Mutex<Interpreter>);

#[pymethods]
impl RelayInterpreter {
    #[new]
    fn new(module: &Bound<'_, PyAny>) -> PyResult<RelayInterpreter> {
        Ok(RelayInterpreter(Mutex::new(Interpreter::new(&module_of(module)?))))
    }

    /// Calls a function of the module.
    fn run<'py>(&self, py: Python<'py>, name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let values = args.iter().map(|arg| convert::from_py(&arg)).collect::<PyResult<Vec<Any>>>()?;
        let result = py.detach(|| {
            let views: Vec<AnyView<'_>> = values.iter().map(Any::as_view).collect();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).run(name, &views)
        });
        convert::to_py(py, result.map_err(to_py)?)
    }
}

fn shown(diagnostic: Diagnostic) -> Error {
    Error::new("DiagnosticError", diagnostic.to_string())
}

fn types_refused(errors: &[TypeError]) -> Error {
    let texts: Vec<String> = errors.iter().map(|e| e.diagnostic(None).to_string()).collect();
    Error::new("DiagnosticError", texts.join("\n"))
}

/// The module of an argument and, where it uses them, the prelude's types and functions.
fn with_prelude(args: &Args<'_>, at: usize) -> Result<Module, Error> {
    let module: Option<Ref<Module>> = args.optional(at)?;
    prelude::with_prelude(&module.map_or_else(Module::new, |m| (*m).clone()))
}

/// `(node, whether types are shown)`.
fn text(args: &Args<'_>) -> Result<Any, Error> {
    let object: ObjectRef = args.get(0)?;
    let types = args.get::<bool>(1)?;
    if let Some(module) = object.downcast_ref::<Module>() {
        let inferred = types.then(|| infer(&prelude::with_prelude(module).unwrap_or_else(|_| (**module).clone())).ok());
        let inferred = inferred.flatten();
        let options = PrintOptions { types: inferred.as_ref(), ..PrintOptions::default() };
        return Ok(Any::from(print_module(module, options).as_str()));
    }
    if let Ok(ty) = Type::try_from(object.clone()) {
        return Ok(Any::from(ty.to_string().as_str()));
    }
    match Expr::try_from(object) {
        Ok(expr) => {
            let inferred = if types { infer_expr(&expr, prelude::prelude()?).ok() } else { None };
            let options = PrintOptions { types: inferred.as_ref(), ..PrintOptions::default() };
            Ok(Any::from(print_expr(&expr, options).as_str()))
        }
        Err(_) => Err(Error::new(ErrorKind::TypeError, "modules, expressions and types have a text")),
    }
}

/// `(expression, module)`: its type, in the module.
fn type_of(args: &Args<'_>) -> Result<Any, Error> {
    let expr: Expr = args.get(0)?;
    let module = with_prelude(args, 1)?;
    let types = infer_expr(&expr, &module).map_err(|errors| types_refused(&errors))?;
    let ty = types.of(&expr);
    ty.map(Any::from).ok_or_else(|| Error::new(ErrorKind::ValueError, "the type could not be inferred"))
}

fn module_of(module: &Bound<'_, PyAny>) -> PyResult<Module> {
    let value = convert::from_py(module)?;
    let found = value.downcast_ref::<Module>().cloned();
    let found = found.ok_or_else(|| PyTypeError::new_err(format!("{} is no module of Relay", value.type_key())))?;
    prelude::with_prelude(&found).map_err(to_py)
}

/// Options of a compilation for a target, without passes of some names.
fn options<'a>(target: Option<Target>, disabled: Vec<String>) -> CompileOptions<'a> {
    let target = target.map(|t| t.0).unwrap_or_default();
    CompileOptions { target, disabled_passes: disabled, ..CompileOptions::default() }
}

/// The same, for programs over several devices.
fn options_over_devices<'a>(
    target: Option<Target>,
    disabled: Vec<String>,
    fallback_device: Option<i64>,
) -> PyResult<CompileOptions<'a>> {
    let mut options = options(target, disabled);
    if let Some(kind) = fallback_device {
        let set = options.context.config.set(FALLBACK_DEVICE, kind);
        set.map_err(|e| PyTypeError::new_err(e.to_string()))?;
    }
    Ok(options)
}

/// A compiled program for the Relay VM.
#[pyfunction]
fn relay_compile(
    py: Python<'_>,
    module: &Bound<'_, PyAny>,
    target: Option<Target>,
    disabled: Vec<String>,
    fallback_device: Option<i64>,
) -> PyResult<CompiledModule> {
    let module = module_of(module)?;
    py.detach(|| {
        let mut options = options_over_devices(target, disabled, fallback_device)?;
        compile_relay(&module, &mut options).map(CompiledModule::of).map_err(compiler)
    })
}

/// A program without control flow as graph, weights and kernels: a module that gives executors by a name.
#[pyfunction]
fn relay_build(
    py: Python<'_>,
    module: &Bound<'_, PyAny>,
    name: &str,
    target: Option<Target>,
    disabled: Vec<String>,
) -> PyResult<CompiledModule> {
    let module = module_of(module)?;
    let compiled = py.detach(|| compile_relay_graph(&module, name, &mut options(target, disabled)));
    compiled.map(CompiledModule::of).map_err(compiler)
}

/// A program of Relay as one of Relax.
#[pyfunction]
fn relay_to_relax(py: Python<'_>, module: &Bound<'_, PyAny>) -> PyResult<IRModule> {
    let module = module_of(module)?;
    let made = py.detach(|| to_relax(&module));
    made.map(|module| IRModule::of(Ref::new(module)))
        .map_err(|e: CompileError| compiler(relaxide::Error::Script(Box::new(e.diagnostic(error::program_text)))))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<RelayInterpreter>()?;
    m.add_function(wrap_pyfunction!(relay_compile, m)?)?;
    m.add_function(wrap_pyfunction!(relay_build, m)?)?;
    m.add_function(wrap_pyfunction!(relay_to_relax, m)?)
}
