//! Programs from text, the passes over them, and targets.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use relaxide::ffi::Ref;
use relaxide::ir;
use relaxide::script::{ParseOptions, parse_module_with};

use crate::error::compiler;
use crate::ir::module::IRModule;
/// What kernels are compiled for.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Target(pub relaxide::Target);

#[pymethods]
impl Target {
    #[new]
    #[pyo3(signature = (target, host=None))]
    fn new(target: &Bound<'_, PyAny>, host: Option<&Bound<'_, PyAny>>) -> PyResult<Target> {
        let made = parse(target)?;
        let host = host.map(parse).transpose()?.map(Ref::new).or_else(|| made.host.clone());
        Ok(Target(relaxide::Target { host, ..made }))
    }

    /// The name of the kind.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind.name()
    }

    /// What the target is among, as `gpu`.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.0.keys()
    }

    /// The target of the host, if it is said.
    #[getter]
    fn host(&self) -> Option<Target> {
        self.0.host.as_ref().map(|host| Target(relaxide::Target::clone(host)))
    }

    /// The number of the type of device that data lives on.
    fn get_target_device_type(&self) -> i32 {
        self.0.device_type()
    }

    fn __eq__(&self, other: &Target) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

fn parse(target: &Bound<'_, PyAny>) -> PyResult<relaxide::Target> {
    if let Ok(made) = target.cast::<Target>() {
        return Ok(made.get().0.clone());
    }
    let text = match target.cast::<PyDict>() {
        Ok(dict) => dict_text(dict)?,
        Err(_) => target.extract::<String>()?,
    };
    text.parse().map_err(|error: ir::target::TargetError| compiler(error.into()))
}

/// A dictionary such as `{"kind": "llvm", "mcpu": "skylake"}` as text.
fn dict_text(dict: &Bound<'_, PyDict>) -> PyResult<String> {
    let dict = if dict.contains("kind")? { dict.clone() } else { of_tag(dict)? };
    if !dict.contains("kind")? {
        return Err(PyValueError::new_err("a target dictionary needs the key 'kind'"));
    }
    let text = dict.py().import("json")?.call_method1("dumps", (dict,));
    text.map_err(|error| PyValueError::new_err(format!("a target dictionary holds text, numbers and lists: {error}")))?
        .extract()
}

/// What a tag stands for, with the options that stand beside it.
fn of_tag<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let Some(tag) = dict.get_item("tag")? else { return Ok(dict.clone()) };
    let said = dict.py().import("relaxide.target")?.getattr("Target")?.call1((tag,))?.call_method0("export")?;
    let whole = said.cast_into::<PyDict>()?.copy()?;
    whole.update(dict.as_mapping())?;
    Ok(whole)
}

#[pyfunction]
fn parse_script(
    py: Python<'_>,
    text: &str,
    path: &str,
    first_line: usize,
    check_well_formed: bool,
) -> PyResult<IRModule> {
    // Leading empty lines put the line numbers of errors where they are in the user's file.
    let text = format!("{}{text}", "\n".repeat(first_line.saturating_sub(1)));
    let options = ParseOptions { check_well_formed, ..ParseOptions::default() };
    // The parser has a thread of its own, in which a function that Python registered may tell the type of a call.
    let parsed = py.detach(|| parse_module_with(&text, path, options));
    parsed.map(|module| IRModule::of(Ref::new(module))).map_err(|diagnostic| compiler(diagnostic.into()))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(parse_script, m)?)
}
