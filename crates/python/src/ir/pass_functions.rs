//! Passes that ask Python: how operators are lowered, whether products are combined, what types parameters get.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use relaxide::ffi::Ref;
use relaxide::ir::Type;
use relaxide::ir::pass::{Pass, PassError};
use relaxide::relax::transform::{
    CustomLowering, LegalizeOptions, ParallelMatmul, combine_parallel_matmul, legalize_ops, update_param_type,
};
use relaxide::relax::{self, Call};

use super::args;
use super::builder::BlockBuilder;
use super::transform::{PassHandle, caused};
use crate::{convert, error};

/// A function of a block builder and a call as the compiler's.
fn lowering(function: Py<PyAny>) -> Arc<CustomLowering> {
    Arc::new(move |b: &mut relax::BlockBuilder, call: &Ref<Call>| {
        let ask = |py: Python<'_>| {
            let object = py.import("relaxide.relax")?.getattr("BlockBuilder")?.call0()?;
            let lent = object.cast::<BlockBuilder>()?.get();
            lent.swap(b);
            let made = convert::to_py(py, call.into()).and_then(|call| function.bind(py).call1((&object, call)));
            lent.swap(b);
            args::expr(convert::from_py(&made?)?.as_view()).map_err(error::to_py)
        };
        Python::attach(ask).map_err(|raised| caused("LegalizeOps", raised))
    })
}

/// `LegalizeOps` with functions for operators by name.
#[pyfunction]
fn legalize_ops_pass(custom: HashMap<String, Py<PyAny>>, skip: Vec<String>) -> PassHandle {
    let custom = custom.into_iter().map(|(name, function)| (name, lowering(function))).collect();
    PassHandle(legalize_ops(LegalizeOptions { custom, skip }))
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(legalize_ops_pass, m)?)?;
    m.add_function(wrap_pyfunction!(combine_parallel_matmul_pass, m)?)?;
    m.add_function(wrap_pyfunction!(update_param_type_pass, m)?)
}
