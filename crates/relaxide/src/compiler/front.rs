//! Programs in and out: ONNX, PyTorch and TVMScript.

use std::path::Path;

use relaxide_ffi::Tensor;
use relaxide_ir::IRModule;
use relaxide_onnx::options::{InputDim, InputNames, Weights};
use relaxide_onnx::{ImportOptions, Model, ModelError};

use crate::{DimRange, DimSpec, Error, bound_dims};

/// What a user may say about an ONNX model.
#[derive(Clone, Debug)]
pub struct OnnxOptions {
    /// Shapes of inputs by name, in place of the file's.
    pub shapes: Vec<(String, Vec<DimSpec>)>,
    /// What lengths symbolic dimensions of inputs may have, by their names.
    pub dims: Vec<DimRange>,
    /// Opset version, in place of the file's.
    pub opset: Option<i64>,
    /// Make the weights parameters of `main` instead of constants.
    pub keep_params_in_input: bool,
    /// Turn input names into identifiers.
    pub sanitize_input_names: bool,
}

impl Default for OnnxOptions {
    fn default() -> Self {
        OnnxOptions {
            shapes: Vec::new(),
            dims: Vec::new(),
            opset: None,
            keep_params_in_input: false,
            sanitize_input_names: true,
        }
    }
}

impl OnnxOptions {
    fn to_import(&self) -> ImportOptions {
        let dim = |dim: &DimSpec| match dim {
            DimSpec::Int(value) => InputDim::Fixed(*value),
            DimSpec::Name(name) => InputDim::Named(name.clone()),
        };
        ImportOptions {
            shapes: self.shapes.iter().map(|(name, dims)| (name.clone(), dims.iter().map(dim).collect())).collect(),
            opset: self.opset,
            weights: if self.keep_params_in_input { Weights::Parameters } else { Weights::Constants },
            names: if self.sanitize_input_names { InputNames::Sanitized } else { InputNames::AsWritten },
            ..ImportOptions::default()
        }
    }
}

/// Imports an ONNX file.
pub fn import_onnx_file(path: &Path, options: &OnnxOptions) -> Result<IRModule, Error> {
    import_onnx_model(&open_onnx(path)?, options)
}

/// Reads an ONNX file without importing it.
pub fn open_onnx(path: &Path) -> Result<Model, Error> {
    Model::open(path).map_err(|error| match error {
        ModelError::Io { .. } => Error::Model(error),
        source => Error::ModelFile { path: path.to_path_buf(), source },
    })
}

/// Imports an ONNX model from memory.
pub fn import_onnx_bytes(bytes: &[u8], options: &OnnxOptions) -> Result<IRModule, Error> {
    import_onnx_model(&Model::from_bytes(bytes.to_vec())?, options)
}

/// Imports an ONNX model that was read before.
pub fn import_onnx_model(model: &Model, options: &OnnxOptions) -> Result<IRModule, Error> {
    bound_dims(&relaxide_onnx::import(model, &options.to_import())?, "main", &options.dims)
}

/// Imports an ONNX file with given shapes of inputs.
pub fn from_onnx_file(path: &Path, shapes: &[(String, Vec<DimSpec>)]) -> Result<IRModule, Error> {
    import_onnx_file(path, &OnnxOptions { shapes: shapes.to_vec(), ..OnnxOptions::default() })
}

/// Imports a program that PyTorch exported (`.pt2`).
pub fn import_torch_file(path: &Path, options: &relaxide_torch::ImportOptions) -> Result<IRModule, Error> {
    let archive = relaxide_torch::Archive::open(path)?;
    Ok(relaxide_torch::import(&archive.program, &archive.weights, options)?)
}

/// Imports a program of PyTorch from its description (JSON), with the weights by their names in the user's module, and perhaps with
/// rules for operators that go before those that there are.
pub fn import_torch_program(
    description: &[u8],
    weights: &relaxide_torch::Weights,
    options: &relaxide_torch::ImportOptions,
    converters: Option<&mut dyn relaxide_torch::Converters>,
) -> Result<IRModule, Error> {
    let program = relaxide_torch::parse(description)?;
    Ok(relaxide_torch::import_with(&program, weights, options, converters)?)
}

/// Parses TVMScript; `file` names it in errors.
pub fn parse_script(text: &str, file: &str) -> Result<IRModule, Error> {
    Ok(relaxide_script::parse_module(text, file)?)
}

/// Prints a program as TVMScript.
pub fn to_script(module: &IRModule) -> String {
    relaxide_script::print_module(module)
}

/// Values for parameters of `main`, by name.
pub type Params = Vec<(String, Tensor)>;

/// A program whose `main` has constants in the place of parameters, by name.
pub fn bind_params(module: IRModule, params: &Params) -> Result<IRModule, Error> {
    Ok(relaxide_relax::transform::bind_params(module, "main", params)?)
}
