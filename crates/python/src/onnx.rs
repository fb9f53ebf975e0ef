//! What an ONNX model says of itself, for the sessions of `relaxide.onnxruntime`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use relaxide::onnx::Model;
use relaxide::onnx::given::{Beside, GivenTensor};
use relaxide::onnx::signature::{Extent, ValueSignature};

use crate::error::{compiler, to_py};

/// Reads a model from a file or from bytes, with what is given apart from it: `weights` (a list of name, tensor, and whether it is
/// that of a file), `files` (bytes by name), `denoted` (lengths by what dimensions stand for), `opened` (names of weights that are
/// inputs), `folder` (of the files that belong to bytes).
pub fn model(py: Python<'_>, source: &Bound<'_, PyAny>, apart: Option<&Bound<'_, PyDict>>) -> PyResult<Model> {
    let model = if let Ok(bytes) = source.cast::<PyBytes>() {
        let bytes = bytes.as_bytes().to_vec();
        py.detach(|| Model::from_bytes(bytes).map_err(relaxide::Error::from))
    } else {
        let path: PathBuf = source.extract()?;
        py.detach(|| relaxide::open_onnx(&path))
    };
    let mut model = model.map_err(compiler)?;
    let Some(apart) = apart else { return Ok(model) };
    let part = |name: &str| Ok::<_, PyErr>(apart.get_item(name)?.filter(|part| !part.is_none()));
    if let Some(weights) = part("weights")? {
        for weight in weights.try_iter()? {
            let (name, tensor, is_external): (String, Bound<'_, PyAny>, bool) = weight?.extract()?;
            let tensor = crate::convert::from_py(&tensor)?.to::<relaxide::ffi::Tensor>().map_err(to_py)?;
            model.given.tensors.insert(name, GivenTensor { tensor, is_external });
        }
    }
    if let Some(files) = part("files")? {
        for (name, bytes) in files.extract::<BTreeMap<String, Vec<u8>>>()? {
            model.given.files.insert(name, bytes.into());
        }
    }
    if let Some(denoted) = part("denoted")? {
        model.fix_denoted(&denoted.extract()?);
    }
    if let Some(opened) = part("opened")? {
        model.open_weights(&opened.extract::<Vec<String>>()?);
    }
    if let (Some(folder), None) = (part("folder")?, &model.beside) {
        model.beside = Some(Beside::model(&folder.extract::<PathBuf>()?.join("model.onnx")));
    }
    Ok(model)
}

/// Inputs, outputs, notes and files of a model, read without importing it.
#[pyfunction]
#[pyo3(signature = (source, apart = None))]
fn onnx_signature<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    apart: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let model = model(py, source, apart)?;
    let signature = model.signature();
    let head = PyDict::new(py);
    head.set_item("inputs", values(py, &signature.inputs)?)?;
    head.set_item("overridable", values(py, &signature.overridable)?)?;
    head.set_item("outputs", values(py, &signature.outputs)?)?;
    head.set_item("files", signature.external_files)?;
    let notes = PyDict::new(py);
    for entry in &model.frame.metadata_props {
        notes.set_item(&entry.key, &entry.value)?;
    }
    head.set_item("custom_metadata_map", notes)?;
    let texts = [
        ("producer_name", &model.frame.producer_name),
        ("domain", &model.frame.domain),
        ("description", &model.frame.doc_string),
        ("graph_name", &model.graph.name),
        ("graph_description", &model.graph.doc_string),
    ];
    for (name, text) in texts {
        head.set_item(name, text)?;
    }
    head.set_item("version", model.version().unwrap_or(i64::MAX))?;
    Ok(head)
}

/// Each as name, type and dimensions: numbers, names, and `None` where nothing is known.
fn values<'py>(py: Python<'py>, values: &[ValueSignature]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for value in values {
        let shape = PyList::empty(py);
        for extent in &value.shape {
            match extent {
                Extent::Known(number) => shape.append(number)?,
                Extent::Named(name) => shape.append(name)?,
                Extent::Unknown => shape.append(py.None())?,
            }
        }
        list.append((&value.name, &value.type_name, shape))?;
    }
    Ok(list)
}

/// Adds the function to the extension.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(onnx_signature, m)?)
}
