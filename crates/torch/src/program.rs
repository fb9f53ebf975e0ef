//! The serialized form of an exported program, as `torch.export.save` writes it (schema version 8).
//!
//! Only what the importer reads is named; what else a file says is skipped.

use std::collections::HashMap;

use serde::Deserialize;

/// The version of the schema whose meaning is known. A file with a higher one may mean something else.
pub const SCHEMA_VERSION: u64 = 8;

/// An exported program.
#[derive(Debug, Clone, Deserialize)]
pub struct ExportedProgram {
    /// Graph and signature.
    pub graph_module: GraphModule,
    /// What values symbols may have.
    #[serde(default)]
    pub range_constraints: HashMap<String, Range>,
    /// Which schema it is written in.
    pub schema_version: SchemaVersion,
    /// What wrote it.
    #[serde(default)]
    pub torch_version: String,
}

/// Which schema a program is written in.
#[derive(Debug, Clone, Deserialize)]
pub struct SchemaVersion {
    /// Changes with the meaning of what was there.
    pub major: u64,
    /// Changes with additions.
    #[serde(default)]
    pub minor: u64,
}

/// What values a symbol may have; none is no bound.
#[derive(Debug, Clone, Deserialize)]
pub struct Range {
    /// The least.
    pub min_val: Option<i64>,
    /// The greatest.
    pub max_val: Option<i64>,
}

/// A graph, and what its inputs and outputs are for.
#[derive(Debug, Clone, Deserialize)]
pub struct GraphModule {
    /// The graph.
    pub graph: Graph,
    /// What its inputs and outputs are for.
    pub signature: Signature,
}

/// Nodes in order, with the types of all values.
#[derive(Debug, Clone, Deserialize)]
pub struct Graph {
    /// Values that are given.
    pub inputs: Vec<Argument>,
    /// Values that are returned.
    pub outputs: Vec<Argument>,
    /// Operations, each behind what it uses.
    pub nodes: Vec<Node>,
    /// Types of the tensors, by name.
    pub tensor_values: HashMap<String, TensorMeta>,
    /// Integers over dimensions, by name.
    #[serde(default)]
    pub sym_int_values: HashMap<String, SymInt>,
}

/// One operation.
#[derive(Debug, Clone, Deserialize)]
pub struct Node {
    /// Its operator, such as `torch.ops.aten.add.Tensor`.
    pub target: String,
    /// Its arguments; those that have their default values are left out.
    pub inputs: Vec<NamedArgument>,
    /// Its results.
    pub outputs: Vec<Argument>,
    /// Its name in the graph, where the file has it.
    #[serde(default)]
    pub name: Option<String>,
    /// What else is known: where in the user's code it comes from.
    #[serde(default)]
    pub metadata: HashMap<String, String>,
}

/// An argument with the name of its parameter.
#[derive(Debug, Clone, Deserialize)]
pub struct NamedArgument {
    /// The parameter.
    pub name: String,
    /// The argument.
    pub arg: Argument,
}

/// The name of a value.
#[derive(Debug, Clone, Deserialize)]
pub struct Name {
    /// The name.
    pub name: String,
}

/// An argument, or a result.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// Nothing.
    AsNone(bool),
    /// A tensor.
    AsTensor(Name),
    /// Tensors.
    AsTensors(Vec<Name>),
    /// A tensor, or nothing.
    AsOptionalTensor(OptionalTensor),
    /// Tensors, of which some are missing.
    AsOptionalTensors(Vec<OptionalTensor>),
    /// An integer.
    AsInt(i64),
    /// Integers.
    AsInts(Vec<i64>),
    /// A number.
    AsFloat(Float),
    /// Numbers.
    AsFloats(Vec<Float>),
    /// A text.
    AsString(String),
    /// An integer over dimensions.
    AsSymInt(Symbolic<i64>),
    /// Integers over dimensions.
    AsSymInts(Vec<Symbolic<i64>>),
    /// A number that the program computes.
    AsSymFloat(Symbolic<Float>),
    /// A bool over dimensions.
    AsSymBool(Symbolic<bool>),
    /// An element type, by PyTorch's number.
    AsScalarType(i64),
    /// How a tensor lies in memory, which the program does not see.
    AsMemoryFormat(i64),
    /// How a tensor is stored.
    AsLayout(i64),
    /// A device.
    AsDevice(serde_json::Value),
    /// A bool.
    AsBool(bool),
    /// Bools.
    AsBools(Vec<bool>),
    /// A graph that is called.
    AsGraph(NamedGraph),
    /// Something that no rule takes.
    #[serde(untagged)]
    Other(serde_json::Value),
}

/// A number; infinities and NaN are texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Float {
    /// As a number.
    Number(f64),
    /// As `Infinity`, `-Infinity` or `NaN`.
    Text(String),
}

impl Float {
    /// Its value.
    pub fn value(&self) -> Option<f64> {
        match self {
            Float::Number(value) => Some(*value),
            Float::Text(text) => match text.as_str() {
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                "NaN" => Some(f64::NAN),
                _ => None,
            },
        }
    }
}

/// A value that is known, or the name of one that is computed.
#[derive(Debug, Clone, Deserialize)]
pub enum Symbolic<T> {
    /// The name of a value.
    #[serde(rename = "as_name")]
    Named(String),
    /// An integer.
    #[serde(rename = "as_int", alias = "as_float", alias = "as_bool")]
    Known(T),
}

/// A tensor, or nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionalTensor {
    /// A tensor.
    AsTensor(Name),
    /// Nothing.
    AsNone(bool),
}

/// A graph that an operator calls.
#[derive(Debug, Clone, Deserialize)]
pub struct NamedGraph {
    /// Its name.
    pub name: String,
    /// The graph.
    pub graph: Box<Graph>,
}

/// The type of a tensor.
#[derive(Debug, Clone, Deserialize)]
pub struct TensorMeta {
    /// Element type, by PyTorch's number.
    pub dtype: i64,
    /// Dimensions.
    pub sizes: Vec<SymInt>,
    /// Distances of neighbours along each axis, in elements.
    #[serde(default)]
    pub strides: Vec<SymInt>,
    /// Where the first element lies, in elements.
    #[serde(default)]
    pub storage_offset: Option<SymInt>,
    /// How it is stored, by PyTorch's number.
    #[serde(default)]
    pub layout: i64,
}

/// An integer over dimensions.
#[derive(Debug, Clone, Deserialize)]
pub enum SymInt {
    /// An integer.
    #[serde(rename = "as_int")]
    Known(i64),
    /// An expression over symbols.
    #[serde(rename = "as_expr")]
    Expr(SymExpr),
}

/// An expression over symbols.
#[derive(Debug, Clone, Deserialize)]
pub struct SymExpr {
    /// As SymPy prints it.
    pub expr_str: String,
}

/// What the inputs and outputs of a graph are for.
#[derive(Debug, Clone, Deserialize)]
pub struct Signature {
    /// The inputs, in order.
    pub input_specs: Vec<InputSpec>,
    /// The outputs, in order.
    pub output_specs: Vec<OutputSpec>,
}

/// What an input is for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSpec {
    /// Given at each call.
    UserInput {
        /// The value.
        arg: Argument,
    },
    /// A weight.
    Parameter {
        /// The value.
        arg: Name,
        /// Its name in the user's module.
        parameter_name: String,
    },
    /// State that is no weight.
    Buffer {
        /// The value.
        arg: Name,
        /// Its name in the user's module.
        buffer_name: String,
    },
    /// A constant of the user's code.
    TensorConstant {
        /// The value.
        arg: Name,
        /// Its name among the constants.
        tensor_constant_name: String,
    },
    /// A number or text that was given when the program was exported, and is fixed since.
    ConstantInput {
        /// Its name.
        name: String,
    },
    /// Something else.
    #[serde(untagged)]
    Other(serde_json::Value),
}

/// What an output is for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputSpec {
    /// Returned to the caller.
    UserOutput {
        /// The value.
        arg: Argument,
    },
    /// The new state of a buffer.
    BufferMutation {
        /// The value.
        arg: Name,
        /// The buffer's name in the user's module.
        buffer_name: String,
    },
    /// What the caller's tensor becomes.
    UserInputMutation {
        /// The value.
        arg: Name,
        /// The input.
        user_input_name: String,
    },
    /// Something else.
    #[serde(untagged)]
    Other(serde_json::Value),
}
