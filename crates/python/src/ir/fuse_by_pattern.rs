//! `FuseOpsByPattern` with patterns, checks and attributes that Python says.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use relaxide::ffi::Ref;
use relaxide::relax::Expr;
use relaxide::relax::dpl::Pattern;
use relaxide::relax::dpl::pattern::PatternNode;
use relaxide::relax::transform::{FuseByPattern, FusionPattern, PatternCheck, fuse_ops_by_pattern};

use super::transform::{PassHandle, caused};
use super::{args, dpl};
use crate::{convert, error};

const NAME: &str = "FuseOpsByPattern";

fn annotated<'py>(py: Python<'py>, parts: impl IntoIterator<Item = (String, Expr)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in parts {
        dict.set_item(name, convert::to_py(py, value.into())?)?;
    }
    Ok(dict)
}

/// What a check sees, as keyword arguments of Python's class for it.
fn check_context<'py>(py: Python<'py>, check: &PatternCheck<'_>) -> PyResult<Bound<'py, PyAny>> {
    let users = PyDict::new(py);
    for (var, found) in check.users {
        let found = found.iter().map(|user| convert::to_py(py, user.into())).collect::<PyResult<Vec<_>>>()?;
        users.set_item(convert::to_py(py, var.into())?, PyList::new(py, found)?)?;
    }
    let bound = PyDict::new(py);
    for (var, value) in check.values {
        bound.set_item(convert::to_py(py, value.into())?, convert::to_py(py, var.into())?)?;
    }
    let taken = PyDict::new(py);
    for (var, value) in &check.bindings {
        taken.set_item(convert::to_py(py, var.into())?, convert::to_py(py, value.into())?)?;
    }
    let options = PyDict::new(py);
    options.set_item("matched_expr", convert::to_py(py, (&check.matched).into())?)?;
    options.set_item("annotated_expr", annotated(py, check.annotated.clone())?)?;
    options.set_item("matched_bindings", taken)?;
    options.set_item("var_usages", users)?;
    options.set_item("value_to_bound_var", bound)?;
    py.import("relaxide.relax.transform")?.getattr("PatternCheckContext")?.call((), Some(&options))
}

/// `(name, pattern, parts by name, check, getter of attributes)`.
type PatternRow<'py> = (String, Bound<'py, PyAny>, Bound<'py, PyDict>, Option<Py<PyAny>>, Option<Py<PyAny>>);

fn fusion_pattern(row: PatternRow<'_>) -> PyResult<FusionPattern> {
    let (name, pattern, parts, check, attrs) = row;
    let read = |value: &Bound<'_, PyAny>| dpl::node::<Ref<PatternNode>>(value).map(Pattern::from_object);
    let mut made = FusionPattern::new(name, read(&pattern)?);
    for (name, part) in parts.iter() {
        made.annotations.push((name.extract()?, read(&part)?));
    }
    if let Some(check) = check {
        made.check = Some(Arc::new(move |context| {
            let ask = |py: Python<'_>| check.bind(py).call1((check_context(py, context)?,))?.is_truthy();
            Python::attach(ask).map_err(|raised| caused(NAME, raised))
        }));
    }
    if let Some(getter) = attrs {
        made.attrs = Some(Arc::new(move |parts| {
            let ask = |py: Python<'_>| {
                let given = getter.bind(py).call1((annotated(py, parts.clone())?,))?;
                args::attrs(convert::from_py(&given)?.as_view()).map_err(error::to_py)
            };
            Python::attach(ask).map_err(|raised| caused(NAME, raised))
        }));
    }
    Ok(made)
}

/// The pass over patterns, in the order in which they are tried.
#[pyfunction]
fn fuse_ops_by_pattern_pass(
    patterns: Vec<PatternRow<'_>>,
    bind_constants: bool,
    annotate_codegen: bool,
    entry_functions: Vec<String>,
) -> PyResult<PassHandle> {
    let patterns = patterns.into_iter().map(fusion_pattern).collect::<PyResult<Vec<_>>>()?;
    let options = FuseByPattern { bind_constants, annotate_codegen, entry_functions };
    Ok(PassHandle(fuse_ops_by_pattern(patterns, options)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(fuse_ops_by_pattern_pass, m)?)
}
