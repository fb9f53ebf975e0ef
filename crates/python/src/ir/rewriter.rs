//! Sets of rewriting rules to Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use relaxide::ffi::Ref;
use relaxide::relax::builder::BuildError;
use relaxide::relax::dpl::{Matches, Pattern};
use relaxide::relax::transform::Rewriter;
use relaxide::relax::{Expr, Function, symbols};

use super::dpl::{expr, node, out, parts};
use super::module::IRModule;

/// What a rule that is a Python function raised, on its way through the rewriting.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// Rules, in the order in which they are tried.
#[pyclass(frozen, subclass, module = "relaxide.relax.dpl")]
pub struct PatternRewriter {
    rules: Rewriter,
    raised: Vec<Raised>,
}

fn keep<T>(raised: &Raised, result: PyResult<T>) -> Result<T, BuildError> {
    result.map_err(|error| {
        let text = error.to_string();
        *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        BuildError::Program(text)
    })
}

impl PatternRewriter {
    /// The result, or what a rule raised.
    fn finish<T>(&self, result: Result<T, BuildError>) -> PyResult<T> {
        result.map_err(|error| {
            let raised = self.raised.iter().find_map(|one| one.lock().unwrap_or_else(PoisonError::into_inner).take());
            raised.unwrap_or_else(|| PyValueError::new_err(error.to_string()))
        })
    }
}

#[pymethods]
impl PatternRewriter {
    #[staticmethod]
    fn _from_pattern(pattern: &Bound<'_, PyAny>, func: Py<PyAny>) -> PyResult<PatternRewriter> {
        let pattern = Pattern::from_object(node(pattern)?);
        let raised = Raised::default();
        let place = raised.clone();
        let replace = move |found: &Expr, matches: &Matches| {
            Python::attach(|py| {
                let made = out(py, found).and_then(|value| func.bind(py).call1((value, parts(py, matches)?)));
                keep(&place, made.and_then(|made| expr(&made)))
            })
        };
        Ok(PatternRewriter { rules: Rewriter::from_pattern(pattern, replace), raised: vec![raised] })
    }

    #[staticmethod]
    fn _from_module(module: &IRModule) -> PyResult<PatternRewriter> {
        let rules = Rewriter::from_module(&module.get()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PatternRewriter { rules, raised: Vec::new() })
    }

    fn _or(&self, other: &PatternRewriter) -> PatternRewriter {
        let raised = self.raised.iter().chain(&other.raised).cloned().collect();
        PatternRewriter { rules: self.rules.clone().or(other.rules.clone()), raised }
    }

    /// A module or a function, rewritten until nothing matches.
    fn _apply<'py>(&self, py: Python<'py>, obj: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(module) = obj.cast::<IRModule>() {
            let module = relaxide::IRModule::clone(&module.get().get());
            let mut rewritten = self.finish(self.rules.apply_module(module))?;
            let functions: Vec<_> =
                rewritten.functions_of::<Function>().map(|(name, function)| (name.to_string(), function)).collect();
            for (name, function) in functions {
                rewritten.insert(name, symbols::settle(&function));
            }
            return Ok(Bound::new(py, IRModule::of(Ref::new(rewritten)))?.into_any());
        }
        let Ok(function) = node::<Ref<Function>>(obj) else {
            return Err(PyTypeError::new_err("a rewriter takes a module or a function"));
        };
        let rewritten = self.finish(self.rules.apply_function(&function))?;
        out(py, symbols::settle(&rewritten))
    }
}
