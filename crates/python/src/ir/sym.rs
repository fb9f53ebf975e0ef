//! Symbolic arithmetic to Python: what the compiler's own analyzer knows of integers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use relaxide::ir::arith::Analyzer as Arith;
use relaxide::ir::prim::{self, PrimExpr};
use relaxide::ir::{Ref, Var};

use super::args;
use crate::{convert, error};

/// What is known of integer variables, and what follows from it.
#[pyclass(frozen, subclass, module = "relaxide.sym")]
struct SymbolicAnalyzer(Mutex<Arith>);

fn prim_of(value: &Bound<'_, PyAny>) -> PyResult<PrimExpr> {
    let any = convert::from_py(value)?;
    args::prim_expr(any.as_view()).map_err(error::to_py)
}

fn var_of(value: &Bound<'_, PyAny>) -> PyResult<Ref<Var>> {
    match prim_of(value)? {
        PrimExpr::Var(var) => Ok(var),
        other => {
            Err(PyTypeError::new_err(format!("expected a variable, got {}", relaxide::script::print_prim(&other))))
        }
    }
}

impl SymbolicAnalyzer {
    fn lock(&self) -> MutexGuard<'_, Arith> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl SymbolicAnalyzer {
    #[new]
    fn new() -> SymbolicAnalyzer {
        SymbolicAnalyzer(Mutex::new(Arith::counting_vscale()))
    }

    /// An expression of the same value in simpler form.
    fn _simplify<'py>(&self, py: Python<'py>, expr: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let simple = self.lock().simplify_as_tvm(&prim_of(expr)?);
        convert::to_py(py, simple.into())
    }

    /// The canonical form of an expression.
    fn _canonical<'py>(&self, py: Python<'py>, expr: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let form = self.lock().canonical_as_tvm(&prim_of(expr)?);
        convert::to_py(py, form.into())
    }

    /// An expression of the same value by rules that keep more of its shape; the nodes, the rules that were tried and applied, and
    /// the conditions that were assumed.
    fn _rewrite<'py>(&self, py: Python<'py>, expr: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, [u64; 4])> {
        let (form, counts) = self.lock().rewrite_counted(&prim_of(expr)?);
        Ok((convert::to_py(py, form.into())?, [counts.nodes, counts.tried, counts.applied, counts.assumed]))
    }

    fn _can_prove(&self, condition: &Bound<'_, PyAny>) -> PyResult<bool> {
        let condition = prim_of(condition)?;
        Ok(self.lock().can_prove(&condition))
    }

    fn _can_prove_equal(&self, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (a, b) = (prim_of(a)?, prim_of(b)?);
        Ok(self.lock().can_prove_equal(&a, &b))
    }

    /// The constants between which an expression lies; `None` where nothing is known on that side.
    fn _bounds(&self, expr: &Bound<'_, PyAny>) -> PyResult<(Option<i64>, Option<i64>)> {
        let bounds = self.lock().bounds(&prim_of(expr)?);
        Ok((bounds.min, bounds.max))
    }

    fn _bind_range(&self, var: &Bound<'_, PyAny>, min: &Bound<'_, PyAny>, extent: &Bound<'_, PyAny>) -> PyResult<()> {
        let var = var_of(var)?;
        let (min, extent) = (prim::cast(var.dtype(), prim_of(min)?), prim::cast(var.dtype(), prim_of(extent)?));
        self.lock().bind(&var, min, extent);
        Ok(())
    }

    fn _bind_value(&self, var: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (var, value) = (var_of(var)?, prim_of(value)?);
        self.lock().bind_value(&var, &value);
        Ok(())
    }

    /// Takes a condition to hold from here on.
    fn _assume(&self, condition: &Bound<'_, PyAny>) -> PyResult<()> {
        let condition = prim_of(condition)?;
        let _held = self.lock().assume(&condition);
        Ok(())
    }
}

/// Whether a condition is found to follow from others, by cases.
#[pyfunction]
fn _follows(py: Python<'_>, known: Vec<Bound<'_, PyAny>>, goal: &Bound<'_, PyAny>) -> PyResult<bool> {
    let known = known.iter().map(prim_of).collect::<PyResult<Vec<_>>>()?;
    let goal = prim_of(goal)?;
    Ok(py.detach(|| relaxide::ir::arith::solver::follows(&known, &goal)))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_follows, m)?)?;
    m.add_class::<SymbolicAnalyzer>()
}
