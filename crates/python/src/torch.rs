//! The importer of PyTorch's programs to Python, with rules of the user's.

use std::collections::HashSet;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use relaxide::ffi::Ref;
use relaxide::relax::{self, Expr};
use relaxide::torch::{Converters, CustomCall, ImportOptions, NodeError, Weights};

use crate::convert;
use crate::error::{compiler, to_py};
use crate::ir::args;
use crate::ir::builder::BlockBuilder;
use crate::ir::module::IRModule;

/// Rules in Python.
struct Rules {
    /// The nodes that have one, by their places ([`CustomCall::place`]).
    places: HashSet<String>,
    /// What is called with a block builder, a node's place and its values by name, and gives a list of results.
    convert: Py<PyAny>,
}

impl Rules {
    fn ask(&self, builder: &mut relax::BlockBuilder, place: &str, call: &CustomCall<'_>) -> PyResult<Vec<Expr>> {
        Python::attach(|py| {
            let given = PyDict::new(py);
            for (name, value) in call.given() {
                given.set_item(name, convert::to_py(py, value.into())?)?;
            }
            let object = py.import("relaxide.relax")?.getattr("BlockBuilder")?.call0()?;
            let own = object.cast::<BlockBuilder>()?.get();
            own.swap(builder);
            let made = self.convert.bind(py).call1((&object, place, given));
            own.swap(builder);
            let expr =
                |item: PyResult<Bound<'_, PyAny>>| args::expr(convert::from_py(&item?)?.as_view()).map_err(to_py);
            made?.try_iter()?.map(expr).collect()
        })
    }
}

impl Converters for Rules {
    fn convert(
        &mut self,
        builder: &mut relax::BlockBuilder,
        call: &CustomCall<'_>,
    ) -> Option<Result<Vec<Expr>, NodeError>> {
        let place = call.place();
        if !self.places.contains(&place) {
            return None;
        }
        let made = self.ask(builder, &place, call);
        Some(made.map_err(|raised| NodeError::unsupported(format!("its converter raised {raised}"))))
    }
}

/// A program of PyTorch: a path to an archive, or the description with the weights. `rules` are the places of nodes that the user has
/// rules for, and what is called for them.
#[pyfunction]
#[pyo3(signature = (source, weights, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, rules=None))]
fn from_torch(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    weights: &Bound<'_, PyDict>,
    keep_params_as_input: bool,
    unwrap_unit_return_tuple: bool,
    no_bind_return_tuple: bool,
    rules: Option<(HashSet<String>, Py<PyAny>)>,
) -> PyResult<IRModule> {
    let options = ImportOptions { keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple };
    let imported = if let Ok(bytes) = source.cast::<PyBytes>() {
        let mut tensors = Weights::new();
        for (name, tensor) in weights.iter() {
            let tensor = convert::from_py(&tensor)?.to::<relaxide::ffi::Tensor>().map_err(to_py)?;
            tensors.insert(name.extract::<String>()?, tensor);
        }
        let bytes = bytes.as_bytes();
        let mut rules = rules.map(|(places, convert)| Rules { places, convert });
        py.detach(move || {
            let converters = rules.as_mut().map(|rules| rules as &mut dyn Converters);
            relaxide::import_torch_program(bytes, &tensors, &options, converters)
        })
    } else {
        let path: PathBuf = source.extract()?;
        py.detach(|| relaxide::import_torch_file(&path, &options))
    };
    imported.map(|module| IRModule::of(Ref::new(module))).map_err(compiler)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(from_torch, m)?)
}
