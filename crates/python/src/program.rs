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
    fn new(target: &Bound<'_, PyAny>) -> PyResult<Target> {
        let text = match target.cast::<PyDict>() {
            Ok(dict) => dict_text(dict)?,
            Err(_) => target.extract::<String>()?,
        };
        text.parse().map(Target).map_err(|error: ir::target::TargetError| compiler(error.into()))
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
fn parse_script(text: &str, path: &str, first_line: usize, check_well_formed: bool) -> PyResult<IRModule> {
    // Leading empty lines put the line numbers of errors where they are in the user's file.
    let text = format!("{}{text}", "\n".repeat(first_line.saturating_sub(1)));
    let options = ParseOptions { check_well_formed, ..ParseOptions::default() };
    let parsed = parse_module_with(&text, path, options);
    parsed.map(|module| IRModule::of(Ref::new(module))).map_err(|diagnostic| compiler(diagnostic.into()))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(parse_script, m)?)
}
