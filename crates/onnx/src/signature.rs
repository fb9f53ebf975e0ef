//! What a model says of itself: its inputs and outputs, who wrote it, and which files lie beside it.
//!
//! Nothing is imported for that, and no weight is read: a model whose operators are unknown has a signature too.

use std::collections::BTreeMap;

pub use crate::import::{OUTPUT_NAMES, TEXT_INPUTS};
use crate::model::Model;
use crate::proto::{
    DimensionValue, ElementType, GraphProto, NodeProto, TensorProto, TypeKind, TypeProto, ValueInfoProto,
};

/// The head of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// What a caller gives, in order.
    pub inputs: Vec<ValueSignature>,
    /// Inputs that have a value of their own, which old files list among the inputs.
    pub overridable: Vec<ValueSignature>,
    /// What comes out, in order.
    pub outputs: Vec<ValueSignature>,
    /// Locations of the files that hold weights, as the model writes them, each once.
    pub external_files: Vec<String>,
}

/// The name and type of an input or an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSignature {
    /// Name.
    pub name: String,
    /// The type as ONNX's operator definitions write it: `tensor(float)`, `seq(map(int64,tensor(float)))`.
    pub type_name: String,
    /// Dimensions of a tensor; empty for other values, and where not even the rank is known.
    pub shape: Vec<Extent>,
}

/// One dimension of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// A number.
    Known(i64),
    /// A name: equal names are equal numbers.
    Named(String),
    /// The file says nothing.
    Unknown,
}

/// Why a tensor is not what a model takes; the words are those of ONNX Runtime. Whoever gave the tensor is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It has more or fewer axes.
    #[error("Invalid rank for input: {name} Got: {got} Expected: {expected}")]
    Rank {
        /// The input.
        name: String,
        /// How many axes there are.
        got: usize,
        /// How many there should be.
        expected: usize,
    },
    /// An axis has another length.
    #[error("Got invalid dimensions for input: {name} index: {axis} Got: {got} Expected: {expected}")]
    Length {
        /// The input.
        name: String,
        /// Which axis.
        axis: usize,
        /// Its length.
        got: i64,
        /// What it should be.
        expected: i64,
    },
}

impl ValueSignature {
    /// Refuses a tensor of another rank or other lengths than the model says, where `fixed` are lengths of named dimensions. False where
    /// a name stands for two lengths; `named` keeps what names of earlier inputs stand for.
    pub fn fits<'a>(
        &'a self,
        shape: &[i64],
        fixed: &BTreeMap<String, i64>,
        named: &mut Vec<(&'a str, i64)>,
    ) -> Result<bool, Misfit> {
        if shape.len() != self.shape.len() {
            // A model that says nothing of the rank is told by its program.
            if self.shape.is_empty() {
                return Ok(true);
            }
            return Err(Misfit::Rank { name: self.name.clone(), got: shape.len(), expected: self.shape.len() });
        }
        let mut fits = true;
        for (axis, (&got, extent)) in shape.iter().zip(&self.shape).enumerate() {
            let expected = match extent {
                Extent::Known(length) => Some(*length),
                Extent::Named(dim) => {
                    match named.iter().find(|(name, _)| name == dim) {
                        Some((_, length)) => fits &= *length == got,
                        None => named.push((dim, got)),
                    }
                    if fixed.is_empty() { None } else { fixed.get(dim).copied() }
                }
                Extent::Unknown => None,
            };
            if let Some(expected) = expected.filter(|expected| *expected != got) {
                return Err(Misfit::Length { name: self.name.clone(), axis, got, expected });
            }
        }
        Ok(fits)
    }
}

impl Model {
    /// What the model says of itself.
    pub fn signature(&self) -> Signature {
        let graph = &self.graph;
        let sparse = graph.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_ref());
        let weights: std::collections::HashSet<&str> =
            graph.initializer.iter().chain(sparse).map(|tensor| tensor.name.as_str()).collect();
        let (overridable, inputs): (Vec<&ValueInfoProto>, _) =
            graph.input.iter().partition(|info| weights.contains(info.name.as_str()));
        let mut files = Vec::new();
        graph_files(graph, &mut files);
        for function in &self.frame.functions {
            function.node.iter().for_each(|node| node_files(node, &mut files));
        }
        Signature {
            inputs: inputs.into_iter().map(value).collect(),
            overridable: overridable.into_iter().map(value).collect(),
            outputs: graph.output.iter().map(value).collect(),
            external_files: files,
        }
    }
}

fn value(info: &ValueInfoProto) -> ValueSignature {
    let shape = match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
        Some(TypeKind::Tensor(tensor)) => tensor.shape.as_ref(),
        _ => None,
    };
    let dims = shape.into_iter().flat_map(|shape| &shape.dim);
    ValueSignature {
        name: info.name.clone(),
        type_name: type_name(info.r#type.as_ref()),
        shape: dims.map(|dim| extent(dim.value.as_ref())).collect(),
    }
}

fn extent(value: Option<&DimensionValue>) -> Extent {
    match value {
        Some(DimensionValue::Value(n)) if *n >= 0 => Extent::Known(*n),
        Some(DimensionValue::Param(name)) if !name.is_empty() => Extent::Named(name.clone()),
        _ => Extent::Unknown,
    }
}

/// A type as operator definitions write it.
fn type_name(r#type: Option<&TypeProto>) -> String {
    match r#type.and_then(|t| t.value.as_ref()) {
        Some(TypeKind::Tensor(tensor)) => format!("tensor({})", element_name(tensor.elem_type)),
        Some(TypeKind::Sequence(of)) => format!("seq({})", type_name(of.elem_type.as_deref())),
        Some(TypeKind::Optional(of)) => format!("optional({})", type_name(of.elem_type.as_deref())),
        Some(TypeKind::Map(map)) => {
            format!("map({},{})", element_name(map.key_type), type_name(map.value_type.as_deref()))
        }
        Some(TypeKind::SparseTensor(_)) => "sparse_tensor".into(),
        None => "unknown".into(),
    }
}

/// An element type as operator definitions write it.
fn element_name(number: i32) -> &'static str {
    match ElementType::try_from(number).unwrap_or(ElementType::Undefined) {
        ElementType::Undefined => "undefined",
        ElementType::Float => "float",
        ElementType::Uint8 => "uint8",
        ElementType::Int8 => "int8",
        ElementType::Uint16 => "uint16",
        ElementType::Int16 => "int16",
        ElementType::Int32 => "int32",
        ElementType::Int64 => "int64",
        ElementType::String => "string",
        ElementType::Bool => "bool",
        ElementType::Float16 => "float16",
        ElementType::Double => "double",
        ElementType::Uint32 => "uint32",
        ElementType::Uint64 => "uint64",
        ElementType::Complex64 => "complex64",
        ElementType::Complex128 => "complex128",
        ElementType::Bfloat16 => "bfloat16",
        ElementType::Float8E4M3fn => "float8e4m3fn",
        ElementType::Float8E4M3fnuz => "float8e4m3fnuz",
        ElementType::Float8E5M2 => "float8e5m2",
        ElementType::Float8E5M2fnuz => "float8e5m2fnuz",
        ElementType::Uint4 => "uint4",
        ElementType::Int4 => "int4",
        ElementType::Float4E2M1 => "float4e2m1",
        ElementType::Float8E8M0 => "float8e8m0",
        ElementType::Uint2 => "uint2",
        ElementType::Int2 => "int2",
    }
}

fn graph_files(graph: &GraphProto, files: &mut Vec<String>) {
    graph.initializer.iter().for_each(|tensor| tensor_file(tensor, files));
    graph.sparse_initializer.iter().filter_map(|t| t.values.as_ref()).for_each(|tensor| tensor_file(tensor, files));
    graph.node.iter().for_each(|node| node_files(node, files));
}

fn node_files(node: &NodeProto, files: &mut Vec<String>) {
    for attribute in &node.attribute {
        attribute.t.iter().for_each(|tensor| tensor_file(tensor, files));
        attribute.g.iter().chain(&attribute.graphs).for_each(|graph| graph_files(graph, files));
    }
}

fn tensor_file(tensor: &TensorProto, files: &mut Vec<String>) {
    let location = tensor.external_data.iter().find(|entry| entry.key == "location");
    // Tensors of one file stand side by side nearly always.
    if let Some(entry) = location
        && tensor.data_location == 1
        && files.last() != Some(&entry.value)
        && !files.contains(&entry.value)
    {
        files.push(entry.value.clone());
    }
}
