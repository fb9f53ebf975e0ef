//! The messages, with the field numbers of the public protocol.

use std::collections::HashMap;

use bytes::Bytes;
use prost::{Message, Oneof};

/// Asks whether the server lives, is ready, or what it is.
#[derive(Clone, PartialEq, Message)]
pub struct Nothing {}

/// Whether something is so: lives or is ready.
#[derive(Clone, PartialEq, Message)]
pub struct Truth {
    /// It is.
    #[prost(bool, tag = "1")]
    pub is_so: bool,
}

/// What the server is.
#[derive(Clone, PartialEq, Message)]
pub struct ServerMetadata {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// What it has beyond the protocol.
    #[prost(string, repeated, tag = "3")]
    pub extensions: Vec<String>,
}

/// A model by name and version.
#[derive(Clone, PartialEq, Message)]
pub struct ModelName {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version; empty: the latest.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// What a model takes and returns.
#[derive(Clone, PartialEq, Message)]
pub struct ModelMetadata {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its versions.
    #[prost(string, repeated, tag = "2")]
    pub versions: Vec<String>,
    /// What runs it.
    #[prost(string, tag = "3")]
    pub platform: String,
    /// Its inputs.
    #[prost(message, repeated, tag = "4")]
    pub inputs: Vec<TensorMetadata>,
    /// Its outputs.
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<TensorMetadata>,
}

/// An input or an output of a model.
#[derive(Clone, PartialEq, Message)]
pub struct TensorMetadata {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its element type.
    #[prost(string, tag = "2")]
    pub datatype: String,
    /// Its shape, -1 for what is open.
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
}

/// A request for inference.
#[derive(Clone, PartialEq, Message)]
pub struct InferRequest {
    /// The model.
    #[prost(string, tag = "1")]
    pub model_name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub model_version: String,
    /// What the client calls the request.
    #[prost(string, tag = "3")]
    pub id: String,
    /// Options.
    #[prost(map = "string, message", tag = "4")]
    pub parameters: HashMap<String, Parameter>,
    /// The inputs.
    #[prost(message, repeated, tag = "5")]
    pub inputs: Vec<InferTensor>,
    /// The outputs that are asked for.
    #[prost(message, repeated, tag = "6")]
    pub outputs: Vec<WantedOutput>,
    /// The bytes of all inputs, where none has contents of its own.
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub raw_input_contents: Vec<Bytes>,
}

/// An input or an output of a call.
#[derive(Clone, PartialEq, Message)]
pub struct InferTensor {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its element type.
    #[prost(string, tag = "2")]
    pub datatype: String,
    /// Its shape.
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    /// Options.
    #[prost(map = "string, message", tag = "4")]
    pub parameters: HashMap<String, Parameter>,
    /// Its elements.
    #[prost(message, optional, tag = "5")]
    pub contents: Option<Contents>,
}

/// An output that is asked for.
#[derive(Clone, PartialEq, Message)]
pub struct WantedOutput {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Options.
    #[prost(map = "string, message", tag = "2")]
    pub parameters: HashMap<String, Parameter>,
}

/// The result of inference.
#[derive(Clone, PartialEq, Message)]
pub struct InferResponse {
    /// The model.
    #[prost(string, tag = "1")]
    pub model_name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub model_version: String,
    /// What the client calls the request.
    #[prost(string, tag = "3")]
    pub id: String,
    /// The outputs.
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<InferTensor>,
    /// The bytes of the outputs.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub raw_output_contents: Vec<Bytes>,
}

/// An option.
#[derive(Clone, PartialEq, Message)]
pub struct Parameter {
    /// Its value.
    #[prost(oneof = "Choice", tags = "1, 2, 3, 4, 5")]
    pub choice: Option<Choice>,
}

/// The value of an option.
#[derive(Clone, PartialEq, Oneof)]
pub enum Choice {
    /// A bool.
    #[prost(bool, tag = "1")]
    Bool(bool),
    /// An integer.
    #[prost(int64, tag = "2")]
    Int64(i64),
    /// A text.
    #[prost(string, tag = "3")]
    Text(String),
    /// A float.
    #[prost(double, tag = "4")]
    Double(f64),
    /// An integer without a sign.
    #[prost(uint64, tag = "5")]
    Uint64(u64),
}

/// Elements of a tensor, in the field of their type.
#[derive(Clone, PartialEq, Message)]
pub struct Contents {
    /// BOOL.
    #[prost(bool, repeated, tag = "1")]
    pub bools: Vec<bool>,
    /// INT8, INT16 and INT32.
    #[prost(int32, repeated, tag = "2")]
    pub ints: Vec<i32>,
    /// INT64.
    #[prost(int64, repeated, tag = "3")]
    pub longs: Vec<i64>,
    /// UINT8, UINT16 and UINT32.
    #[prost(uint32, repeated, tag = "4")]
    pub uints: Vec<u32>,
    /// UINT64.
    #[prost(uint64, repeated, tag = "5")]
    pub ulongs: Vec<u64>,
    /// FP32.
    #[prost(float, repeated, tag = "6")]
    pub floats: Vec<f32>,
    /// FP64.
    #[prost(double, repeated, tag = "7")]
    pub doubles: Vec<f64>,
    /// BYTES.
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub texts: Vec<Bytes>,
}

/// Asks for the models that are served.
#[derive(Clone, PartialEq, Message)]
pub struct IndexRequest {
    /// Of which repository; there is one.
    #[prost(string, tag = "1")]
    pub repository: String,
    /// Only those that are ready.
    #[prost(bool, tag = "2")]
    pub is_ready: bool,
}

/// The models that are served.
#[derive(Clone, PartialEq, Message)]
pub struct Index {
    /// Each of them.
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<IndexEntry>,
}

/// A model that is served.
#[derive(Clone, PartialEq, Message)]
pub struct IndexEntry {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Its state.
    #[prost(string, tag = "3")]
    pub state: String,
    /// Why it is in that state.
    #[prost(string, tag = "4")]
    pub reason: String,
}

/// Asks for a model to be loaded, or to be unloaded.
#[derive(Clone, PartialEq, Message)]
pub struct LoadRequest {
    /// Of which repository; there is one.
    #[prost(string, tag = "1")]
    pub repository: String,
    /// Its name.
    #[prost(string, tag = "2")]
    pub model_name: String,
    /// Options.
    #[prost(map = "string, message", tag = "3")]
    pub parameters: HashMap<String, RepositoryParameter>,
}

/// An option of a load, of which only the name counts here.
#[derive(Clone, PartialEq, Message)]
pub struct RepositoryParameter {}

/// What is counted of models.
#[derive(Clone, PartialEq, Message)]
pub struct Statistics {
    /// Each of them.
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<ModelStatistics>,
}

/// What is counted of a model.
#[derive(Clone, PartialEq, Message)]
pub struct ModelStatistics {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// When the last request was answered, in milliseconds since 1970.
    #[prost(uint64, tag = "3")]
    pub last_inference: u64,
    /// Rows that were computed.
    #[prost(uint64, tag = "4")]
    pub inferences: u64,
    /// Runs of the model.
    #[prost(uint64, tag = "5")]
    pub executions: u64,
    /// What its requests took.
    #[prost(message, optional, tag = "6")]
    pub requests: Option<RequestStatistics>,
    /// What its runs took, by their rows.
    #[prost(message, repeated, tag = "7")]
    pub batches: Vec<BatchStatistics>,
}

/// How often something was, and how long it took in all.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct DurationStatistics {
    /// How often.
    #[prost(uint64, tag = "1")]
    pub count: u64,
    /// Nanoseconds in all.
    #[prost(uint64, tag = "2")]
    pub nanos: u64,
}

/// What requests took.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct RequestStatistics {
    /// Those that were answered.
    #[prost(message, optional, tag = "1")]
    pub success: Option<DurationStatistics>,
    /// Those that failed.
    #[prost(message, optional, tag = "2")]
    pub failure: Option<DurationStatistics>,
    /// Their time in the queue.
    #[prost(message, optional, tag = "3")]
    pub queue: Option<DurationStatistics>,
    /// Joining inputs.
    #[prost(message, optional, tag = "4")]
    pub input: Option<DurationStatistics>,
    /// The run.
    #[prost(message, optional, tag = "5")]
    pub run: Option<DurationStatistics>,
    /// Parting outputs.
    #[prost(message, optional, tag = "6")]
    pub output: Option<DurationStatistics>,
}

/// What runs of as many rows took.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct BatchStatistics {
    /// The rows.
    #[prost(uint64, tag = "1")]
    pub rows: u64,
    /// Joining inputs.
    #[prost(message, optional, tag = "2")]
    pub input: Option<DurationStatistics>,
    /// The run.
    #[prost(message, optional, tag = "3")]
    pub run: Option<DurationStatistics>,
    /// Parting outputs.
    #[prost(message, optional, tag = "4")]
    pub output: Option<DurationStatistics>,
}
