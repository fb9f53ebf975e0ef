//! Passes that ask Python: how operators are lowered, whether products are combined, what types parameters get.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use relaxide::ffi::{Any, Array, Error, ErrorKind, Object, Ref};
use relaxide::ir::pass::{Pass, PassError};
use relaxide::ir::{Buffer, PrimExpr, Type, Var};
use relaxide::relax::op::{OpError, TypeRule};
use relaxide::relax::transform::{
    CustomGradient, CustomLowering, GradientOptions, LegalizeOptions, LibraryCode, MatchResult, ParallelMatmul, Symbol,
    bind_symbols, combine_parallel_matmul, gradient_with, legalize_ops, note_lowering, split_call_tir_by_pattern,
    update_param_type,
};
use relaxide::relax::{self, AnyVar, Call, Expr};
use relaxide::tir::PrimFunc;

use super::args;
use super::builder::BlockBuilder;
use super::transform::{PassHandle, caused};
use crate::{convert, error};

/// A function of a block builder and a call as the compiler's.
fn lowering(function: Py<PyAny>) -> Arc<CustomLowering> {
    Arc::new(move |b: &mut relax::BlockBuilder, call: &Ref<Call>| {
        let ask = |py: Python<'_>| {
            let object = py.import("relaxide.relax")?.getattr("BlockBuilder")?.call0()?;
            let builder = object.cast::<BlockBuilder>()?.get();
            builder.swap(b);
            let made = convert::to_py(py, call.into()).and_then(|call| function.bind(py).call1((&object, call)));
            builder.swap(b);
            args::expr(convert::from_py(&made?)?.as_view()).map_err(error::to_py)
        };
        Python::attach(ask).map_err(|raised| caused("LegalizeOps", raised))
    })
}

/// `LegalizeOps` with functions for operators by name.
#[pyfunction]
fn legalize_ops_pass(custom: HashMap<String, Py<PyAny>>, skip: Vec<String>) -> PassHandle {
    let custom = custom.into_iter().map(|(name, function)| (name, lowering(function))).collect();
    PassHandle(legalize_ops(LegalizeOptions { custom, skip, ..LegalizeOptions::default() }))
}

/// Lets `LegalizeOps` ask a function about an operator, wherever it runs; `None` takes that back.
#[pyfunction]
fn note_lowering_of(name: &str, function: Option<Py<PyAny>>) {
    note_lowering(name, function.map(lowering));
}

/// Adds an operator of the program.
#[pyfunction]
fn register_op(name: &str) {
    relax::op::register(name);
}

/// Says whether calls of an operator of the program have no effect.
#[pyfunction]
fn note_purity_of(name: &str, pure: bool) {
    relax::op::note_purity(name, pure);
}

/// Lets a function of a call and a block builder say the type of calls of an operator of the program; `None` takes that back.
#[pyfunction]
fn note_type_rule_of(name: &str, function: Option<Py<PyAny>>) {
    let rule = |function: Py<PyAny>| -> Arc<TypeRule> {
        Arc::new(move |call: &Ref<Call>| {
            let ask = |py: Python<'_>| {
                let builder = py.import("relaxide.relax")?.getattr("BlockBuilder")?.call0()?;
                let made = function.bind(py).call1((convert::to_py(py, call.into())?, builder))?;
                args::ty(convert::from_py(&made)?.as_view()).map_err(error::to_py)
            };
            let name = call.op_name().unwrap_or("?");
            Python::attach(ask).map_err(|raised| OpError::invalid(name, raised.to_string()))
        })
    };
    relax::op::note_type_rule(name, function.map(rule));
}

/// A function of a block builder, the variable of a call's result, the call and the gradient of the result, as the compiler's.
fn derivative(function: Py<PyAny>) -> Arc<CustomGradient> {
    Arc::new(move |b: &mut relax::BlockBuilder, var: &AnyVar, call: &Ref<Call>, grad: &Expr| {
        let ask = |py: Python<'_>| {
            let object = py.import("relaxide.relax")?.getattr("BlockBuilder")?.call0()?;
            let give = |value: Any| convert::to_py(py, value);
            let given = (give(Expr::from(var.clone()).into())?, give(call.into())?, give(grad.into())?);
            let builder = object.cast::<BlockBuilder>()?.get();
            builder.swap(b);
            let made = function.bind(py).call1((given.0, given.1, given.2, &object));
            builder.swap(b);
            let none = |e: &Expr| e.as_op_call().is_some_and(|(_, name)| name == "grad.no_grad");
            let part = |item: PyResult<Bound<'_, PyAny>>| {
                let item = item?;
                if item.is_none() {
                    return Ok(None);
                }
                let part = args::expr(convert::from_py(&item)?.as_view()).map_err(error::to_py)?;
                Ok(Some(part).filter(|part| !none(part)))
            };
            made?.try_iter()?.map(part).collect::<PyResult<Vec<_>>>()
        };
        Python::attach(ask).map_err(|raised| caused("Gradient", raised))
    })
}

/// `Gradient` with functions for the derivatives of operators by name.
#[pyfunction]
fn gradient_pass(
    func_name: String,
    require_grads: Option<Vec<String>>,
    target_index: i64,
    custom: HashMap<String, Py<PyAny>>,
) -> PassHandle {
    let custom = custom.into_iter().map(|(name, function)| (name, derivative(function))).collect();
    PassHandle(gradient_with(GradientOptions { func_name, require_grads, target_index, custom }))
}

/// `BindSymbolicVars` with expressions for variables, which are given themselves or by their names.
#[pyfunction]
fn bind_symbolic_vars_pass(
    values: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    func_name: Option<String>,
) -> PyResult<PassHandle> {
    let pair = |(symbol, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let symbol = match symbol.extract::<String>() {
            Ok(name) => Symbol::Name(name),
            Err(_) => Symbol::Var(convert::from_py(&symbol)?.to::<Ref<Var>>().map_err(error::to_py)?),
        };
        Ok((symbol, args::prim_expr(convert::from_py(&value)?.as_view()).map_err(error::to_py)?))
    };
    let values = values.into_iter().map(pair).collect::<PyResult<Vec<_>>>()?;
    Ok(PassHandle(bind_symbols(values, func_name)))
}

/// `CombineParallelMatmul` with a function that says whether products are combined.
#[pyfunction]
fn combine_parallel_matmul_pass(check: Py<PyAny>) -> PassHandle {
    PassHandle(combine_parallel_matmul(move |found: &ParallelMatmul<'_>| {
        let ask = |py: Python<'_>| {
            let list = |items: &[relax::Expr]| {
                let items: Vec<_> = items.iter().map(|e| convert::to_py(py, e.into())).collect::<PyResult<_>>()?;
                PyList::new(py, items)
            };
            let bindings = PyDict::new(py);
            for (var, value) in found.values {
                bindings.set_item(convert::to_py(py, var.into())?, convert::to_py(py, value.into())?)?;
            }
            let left = convert::to_py(py, found.left.into())?;
            check.bind(py).call1((left, list(&found.right)?, list(&found.bias)?, bindings))?.is_truthy()
        };
        Python::attach(ask).map_err(|raised| caused("CombineParallelMatmul", raised))
    }))
}

/// `[source, stages, arguments]` as a code generator gives them; nothing is asked further of one that takes no stage.
fn library_code(given: &Any) -> Result<LibraryCode, Error> {
    let wrong = |what: &str| Error::new(ErrorKind::TypeError, format!("fcodegen returns {what}"));
    let parts: Vec<Any> =
        given.to::<Array>().map_err(|_| wrong("no list of source, stages and arguments"))?.iter().cloned().collect();
    let [source, stages, args] = parts.as_slice() else {
        return Err(wrong(&format!("{} values; it gives source, stages and arguments", parts.len())));
    };
    let number = stages.to::<i64>().ok().or_else(|| stages.to::<PrimExpr>().ok()?.as_int());
    let stages =
        number.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| wrong("a number of stages that is none"))?;
    let source = source.to::<String>().map_err(|_| wrong("a source that is no text"))?;
    let args = args.to::<Vec<Ref<Buffer>>>().map_err(|_| wrong("arguments that are no buffers"))?;
    Ok(LibraryCode { source, stages, args })
}

/// `SplitCallTIRByPattern` with kernels as patterns and a function from matches to the code of a library function.
#[pyfunction]
fn split_call_tir_by_pattern_pass(patterns: Vec<Bound<'_, PyAny>>, fcodegen: Py<PyAny>) -> PyResult<PassHandle> {
    let kernel = |given: &Bound<'_, PyAny>| convert::from_py(given)?.to::<Ref<PrimFunc>>().map_err(error::to_py);
    let patterns = patterns.iter().map(kernel).collect::<PyResult<Vec<_>>>()?;
    Ok(PassHandle(split_call_tir_by_pattern(patterns, move |matched| {
        let ask = |py: Python<'_>| {
            let matched = matched.iter().map(|m| convert::to_py(py, m.clone().into())).collect::<PyResult<Vec<_>>>()?;
            let made = fcodegen.bind(py).call1((PyList::new(py, matched)?,))?;
            library_code(&convert::from_py(&made)?).map_err(error::to_py)
        };
        Python::attach(ask).map_err(|raised| caused("SplitCallTIRByPattern", raised))
    })))
}

/// `UpdateParamType` with a function from parameters to their new types.
#[pyfunction]
fn update_param_type_pass(ty_func: Py<PyAny>) -> PassHandle {
    let function = Arc::new(ty_func);
    PassHandle(Pass::new("UpdateParamType", move |module, context| {
        let failed: Arc<Mutex<Option<PassError>>> = Arc::default();
        let (function, raised) = (function.clone(), failed.clone());
        let pass = update_param_type(move |var| {
            let ask = |py: Python<'_>| {
                let made = function.bind(py).call1((convert::to_py(py, var.into())?,))?;
                if made.is_none() {
                    return Ok(None);
                }
                convert::from_py(&made)?.to::<Type>().map(Some).map_err(error::to_py)
            };
            Python::attach(ask).unwrap_or_else(|error| {
                if let Ok(mut slot) = raised.lock() {
                    slot.get_or_insert(caused("UpdateParamType", error));
                }
                None
            })
        });
        let result = pass.run(module, context);
        let error = failed.lock().ok().and_then(|mut slot| slot.take());
        error.map_or(result, Err)
    }))
}

/// Makes the type of what code generators are given known by its key.
pub(super) fn enter() {
    MatchResult::type_index();
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(legalize_ops_pass, m)?)?;
    m.add_function(wrap_pyfunction!(note_lowering_of, m)?)?;
    m.add_function(wrap_pyfunction!(register_op, m)?)?;
    m.add_function(wrap_pyfunction!(note_purity_of, m)?)?;
    m.add_function(wrap_pyfunction!(note_type_rule_of, m)?)?;
    m.add_function(wrap_pyfunction!(gradient_pass, m)?)?;
    m.add_function(wrap_pyfunction!(bind_symbolic_vars_pass, m)?)?;
    m.add_function(wrap_pyfunction!(combine_parallel_matmul_pass, m)?)?;
    m.add_function(wrap_pyfunction!(split_call_tir_by_pattern_pass, m)?)?;
    m.add_function(wrap_pyfunction!(update_param_type_pass, m)?)
}
