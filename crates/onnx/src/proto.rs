//! The messages of an ONNX file, as far as an importer reads them.
//!
//! Field numbers are those of the published format; fields that nobody here looks at (documentation of nodes, training,
//! quantization notes) are left out, and the decoder skips them. Tensor data arrives as [`Bytes`]: a window onto the file, not a copy.

use prost::Message;
use prost::bytes::Bytes;

/// A file: a graph, the operator sets that it is written against, and notes.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format itself.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The tool that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// Whose names the model's name is one of, as a reversed domain name.
    #[prost(string, tag = "4")]
    pub domain: String,
    /// Version of the model.
    #[prost(int64, tag = "5")]
    pub model_version: i64,
    /// What the model is.
    #[prost(string, tag = "6")]
    pub doc_string: String,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Which version of each operator set the nodes mean.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Free notes by key.
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
    /// Functions that nodes may call like operators.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// An operator set and its version.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// The set; empty for the standard one.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A key and a value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// Key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A function of the model: nodes that another node may call like an operator.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Names of the inputs.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of the outputs.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Names of the attributes without a default.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// The nodes, each after those that it reads.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Which version of each operator set the nodes mean.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Domain of the name.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Attributes with their defaults.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Tells functions of one name apart.
    #[prost(string, tag = "13")]
    pub overload: String,
}

/// A graph: nodes in topological order, constants, inputs and outputs.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// The nodes, each after those that it reads.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants by name.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// What the graph is.
    #[prost(string, tag = "10")]
    pub doc_string: String,
    /// Inputs; before format version 4 the initializers are listed here too.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// What is known of intermediate values.
    #[prost(message, repeated, tag = "13")]
    pub value_info: Vec<ValueInfoProto>,
    /// Sparse constants; read only to say that they are not supported.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the inputs; an empty name is an input left out.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the outputs; an empty name is an output not wanted.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name, for messages.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator's set; empty for the standard one.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Which function of that name, where a model has several.
    #[prost(string, tag = "8")]
    pub overload: String,
}

/// An attribute of a node: one of the value fields, as `type` says.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// An integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// Text, not necessarily UTF-8.
    #[prost(bytes = "bytes", tag = "4")]
    pub s: Bytes,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph, as the branches of `If` and the body of `Loop` are.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Numbers.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// Integers.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// Texts.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Graphs.
    #[prost(message, repeated, tag = "11")]
    pub graphs: Vec<GraphProto>,
    /// A type.
    #[prost(message, optional, tag = "14")]
    pub tp: Option<TypeProto>,
    /// Which field holds the value: an [`AttributeKind`]; old files leave it out.
    #[prost(enumeration = "AttributeKind", tag = "20")]
    pub r#type: i32,
    /// The attribute of the enclosing function that is meant, inside a function.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
}

/// Which field of an [`AttributeProto`] holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum AttributeKind {
    /// Not said.
    Undefined = 0,
    /// `f`.
    Float = 1,
    /// `i`.
    Int = 2,
    /// `s`.
    String = 3,
    /// `t`.
    Tensor = 4,
    /// `g`.
    Graph = 5,
    /// `floats`.
    Floats = 6,
    /// `ints`.
    Ints = 7,
    /// `strings`.
    Strings = 8,
    /// `tensors`.
    Tensors = 9,
    /// `graphs`.
    Graphs = 10,
    /// `sparse_tensor`.
    SparseTensor = 11,
    /// `sparse_tensors`.
    SparseTensors = 12,
    /// `tp`.
    TypeProto = 13,
    /// `type_protos`.
    TypeProtos = 14,
}

/// A tensor constant. Its elements are in `raw_data`, in the field of its element type, or in another file.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Dimensions.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// Element type: an [`ElementType`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Elements of `float32` and `complex64`.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of the integers up to 32 bits, of bool, and the bits of `float16` and `bfloat16`.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements that are texts.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Elements of `int64`.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements as bytes, little-endian, without gaps.
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
    /// Elements of `float64` and `complex128`.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Elements of `uint32` and `uint64`.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Where the elements are, if in another file: `location`, `offset`, `length`.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 where the elements are in another file.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// A sparse tensor; its presence is all that is read.
#[derive(Clone, PartialEq, Message)]
pub struct SparseTensorProto {
    /// The values; their name is the tensor's.
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
}

/// The name and type of an input, an output or an intermediate value.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// Which kind; absent where the file says nothing.
    #[prost(oneof = "TypeKind", tags = "1, 4, 5, 8, 9")]
    pub value: Option<TypeKind>,
}

/// The kinds of types. The contents of sparse tensors are skipped.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TypeKind {
    /// A tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorTypeProto),
    /// A sequence.
    #[prost(message, tag = "4")]
    Sequence(Box<ElementTypeProto>),
    /// A map.
    #[prost(message, tag = "5")]
    Map(Box<MapTypeProto>),
    /// A sparse tensor.
    #[prost(message, tag = "8")]
    SparseTensor(Opaque),
    /// A value that may be absent.
    #[prost(message, tag = "9")]
    Optional(Box<ElementTypeProto>),
}

/// What a sequence or an optional value holds.
#[derive(Clone, PartialEq, Message)]
pub struct ElementTypeProto {
    /// The type.
    #[prost(message, optional, boxed, tag = "1")]
    pub elem_type: Option<Box<TypeProto>>,
}

/// What a map maps.
#[derive(Clone, PartialEq, Message)]
pub struct MapTypeProto {
    /// An [`ElementType`].
    #[prost(int32, tag = "1")]
    pub key_type: i32,
    /// The type of the values.
    #[prost(message, optional, boxed, tag = "2")]
    pub value_type: Option<Box<TypeProto>>,
}

/// A message whose contents are not read.
#[derive(Clone, PartialEq, Message)]
pub struct Opaque {}

/// The type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// An [`ElementType`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Dimensions; absent where not even the rank is known.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// Dimensions.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// In order.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<Dimension>,
}

/// A dimension.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    /// Number or name; absent where nothing is known.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
    /// What it stands for (`DATA_BATCH`), where the file says it.
    #[prost(string, tag = "3")]
    pub denotation: String,
}

/// The number or the name of a dimension.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DimensionValue {
    /// A number; negative in files of some tools where it is unknown.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// A name: equal names are equal dimensions.
    #[prost(string, tag = "2")]
    Param(String),
}

/// The element types of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum ElementType {
    Undefined = 0,
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    Bfloat16 = 16,
    Float8E4M3fn = 17,
    Float8E4M3fnuz = 18,
    Float8E5M2 = 19,
    Float8E5M2fnuz = 20,
    Uint4 = 21,
    Int4 = 22,
    Float4E2M1 = 23,
    Float8E8M0 = 24,
    Uint2 = 25,
    Int2 = 26,
}
