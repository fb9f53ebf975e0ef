//! TVMScript that stands in a Python program: Python answers for the names around it.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PySyntaxError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use relaxide::ffi::{Any, Ref};
use relaxide::script::{DEVICE_INTRINSICS, Host, HostError, Local, Macro, ParseOptions, ScopeIndex, parse_module_with};

use crate::convert;
use crate::ir::module::IRModule;

/// A Python object with the surroundings' answers, and the last exception that it raised.
struct Surroundings {
    object: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl Surroundings {
    /// What a method of the object gives; its exception is kept and becomes a message.
    fn ask<T>(&self, answer: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, HostError> {
        Python::attach(|py| {
            answer(py, self.object.bind(py)).map_err(|error| {
                let kind = error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
                let text = format!("{kind}: {}", error.value(py));
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                HostError(text)
            })
        })
    }

    fn ask_list<T>(&self, answer: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Vec<T>>) -> Vec<T> {
        self.ask(|_, object| answer(object)).unwrap_or_default()
    }
}

impl Host for Surroundings {
    fn knows(&self, place: ScopeIndex, name: &str) -> bool {
        self.ask(|_, object| object.call_method1("knows", (place, name))?.extract::<bool>()).unwrap_or(false)
    }

    fn evaluate(&self, place: ScopeIndex, source: &str, locals: &[Local]) -> Result<Any, HostError> {
        self.ask(|py, object| {
            let values = PyDict::new(py);
            for (name, value) in locals {
                values.set_item(name, convert::to_py(py, value.clone())?)?;
            }
            convert::from_py(&object.call_method1("evaluate", (place, source, values))?)
        })
    }

    fn items(&self, value: &Any) -> Result<Vec<Any>, HostError> {
        self.ask(|py, _| {
            let value = convert::to_py(py, value.clone())?;
            value.try_iter()?.map(|item| convert::from_py(&item?)).collect()
        })
    }

    fn truth(&self, value: &Any) -> Result<bool, HostError> {
        self.ask(|py, _| convert::to_py(py, value.clone())?.is_truthy())
    }

    fn warn(&self, message: &str) -> Result<(), HostError> {
        self.ask(|_, object| object.call_method1("warn", (message,)).map(drop))
    }

    fn macros(&self) -> Vec<Macro> {
        self.ask_list(|object| {
            let found = object.call_method0("macros")?;
            found
                .try_iter()?
                .map(|item| {
                    let (name, text, file, hygienic): (String, String, String, bool) =
                        item?.cast_into::<PyTuple>()?.extract()?;
                    Ok(Macro { name, text, file, hygienic })
                })
                .collect()
        })
    }

    fn namespaces(&self) -> Vec<(String, String)> {
        self.ask_list(|object| object.call_method0("namespaces")?.extract())
    }
}

/// Parses a text that stands in a Python file at a line, in surroundings.
#[pyfunction]
fn parse_script_in(
    py: Python<'_>,
    text: &str,
    path: &str,
    first_line: usize,
    surroundings: Py<PyAny>,
    check_well_formed: bool,
) -> PyResult<IRModule> {
    // Leading empty lines put the line numbers of errors where they are in the user's file.
    let text = format!("{}{text}", "\n".repeat(first_line.saturating_sub(1)));
    let host = Surroundings { object: surroundings, raised: Mutex::new(None) };
    // The parser has a thread of its own, which asks Python while this one waits.
    let parsed = py.detach(|| {
        let options = ParseOptions { host: Some(&host), check_well_formed };
        parse_module_with(&text, path, options)
    });
    parsed.map(|module| IRModule::of(Ref::new(module))).map_err(|diagnostic| {
        let error = PySyntaxError::new_err(diagnostic.to_string());
        let raised = host.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        if diagnostic.code == relaxide::ir::Code::Outside {
            error.set_cause(py, raised);
        }
        error
    })
}

/// The instructions of devices that texts name: name, operator, type, arguments.
#[pyfunction]
fn device_intrinsics() -> Vec<(&'static str, String, &'static str, &'static str)> {
    DEVICE_INTRINSICS.iter().map(|known| (known.path, known.op(), known.result, known.params)).collect()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(device_intrinsics, m)?)?;
    m.add_function(wrap_pyfunction!(parse_script_in, m)?)
}
