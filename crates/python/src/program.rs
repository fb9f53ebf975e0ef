//! Programs, the passes over them, and targets.

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use relaxide::ffi::Ref;
use relaxide::ir;

use crate::error::compiler;

/// Functions by name.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct IRModule(pub Ref<ir::IRModule>);

#[pymethods]
impl IRModule {
    /// The program as TVMScript.
    fn script(&self) -> String {
        relaxide::to_script(&self.0)
    }

    /// Print the program as TVMScript.
    fn show(&self) {
        Python::attach(|py| {
            let printed = py.import("builtins").and_then(|m| m.call_method1("print", (self.script(),)));
            printed.map(|_| ())
        })
        .unwrap_or_default();
    }

    /// The names of the functions.
    fn get_global_vars(&self) -> Vec<String> {
        self.0.functions.keys().cloned().collect()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.functions.contains_key(name)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let function = self.0.get(name).ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        crate::object::Object::wrap(py, function.0.clone())
    }

    fn __repr__(&self) -> String {
        self.script()
    }
}

/// What kernels are compiled for.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Target(pub relaxide::Target);

#[pymethods]
impl Target {
    #[new]
    fn new(target: &Bound<'_, PyAny>) -> PyResult<Target> {
        let text = match target.cast::<PyDict>() {
            Ok(dict) => dict_text(dict)?,
            Err(_) => target.extract::<String>()?,
        };
        text.parse().map(Target).map_err(|error: ir::target::TargetError| PyValueError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

/// A dictionary such as `{"kind": "llvm", "mcpu": "skylake"}` as text.
fn dict_text(dict: &Bound<'_, PyDict>) -> PyResult<String> {
    let kind =
        dict.get_item("kind")?.ok_or_else(|| PyValueError::new_err("a target dictionary needs the key 'kind'"))?;
    let mut text = kind.extract::<String>()?;
    for (key, value) in dict.iter() {
        let key: String = key.extract()?;
        if key == "kind" {
            continue;
        }
        let value = match value.extract::<Vec<String>>() {
            Ok(list) => list.join(","),
            Err(_) => value.str()?.to_string(),
        };
        text.push_str(&format!(" -{key}={value}"));
    }
    Ok(text)
}

#[pyfunction]
fn parse_script(text: &str, path: &str, first_line: usize) -> PyResult<IRModule> {
    // Leading empty lines put the line numbers of errors where they are in the user's file.
    let text = format!("{}{text}", "\n".repeat(first_line.saturating_sub(1)));
    relaxide::parse_script(&text, path).map(|module| IRModule(Ref::new(module))).map_err(compiler)
}

#[pyfunction]
fn structural_equal(lhs: &IRModule, rhs: &IRModule, map_free_vars: bool, raise: bool) -> PyResult<bool> {
    match relaxide::ffi::structural_equal(&lhs.0, &rhs.0, map_free_vars) {
        Ok(()) => Ok(true),
        Err(mismatch) if raise => Err(PyValueError::new_err(mismatch.to_string())),
        Err(_) => Ok(false),
    }
}

#[pyfunction]
fn pass_names() -> Vec<&'static str> {
    relaxide::relax::transform::PASSES.iter().map(|pass| pass.name).collect()
}

#[pyfunction]
fn pass_doc(name: &str) -> PyResult<&'static str> {
    let found = relaxide::relax::transform::pass(name);
    found.map(|pass| pass.doc).ok_or_else(|| PyValueError::new_err(format!("there is no pass {name:?}")))
}

#[pyfunction]
fn run_passes(module: &IRModule, names: Vec<String>) -> PyResult<IRModule> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    relaxide::run_passes(&module.0, &names).map(|module| IRModule(Ref::new(module))).map_err(compiler)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(parse_script, m)?)?;
    m.add_function(wrap_pyfunction!(structural_equal, m)?)?;
    m.add_function(wrap_pyfunction!(pass_names, m)?)?;
    m.add_function(wrap_pyfunction!(pass_doc, m)?)?;
    m.add_function(wrap_pyfunction!(run_passes, m)?)
}
