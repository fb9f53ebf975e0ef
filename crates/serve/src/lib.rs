//! A server of compiled models: the Open Inference Protocol (KServe's v2) over HTTP and gRPC.
//!
//! ```text
//!   http, grpc        requests as the two protocols have them, to and from `Call`
//!       │
//!   service           which model, whether the tensors fit, how long it may take
//!       │
//!   scheduler         what waits, and what of it is run together
//!       │
//!   engine            threads that run batches: by a `Machine` in this process, or by a worker of their own
//!       │
//!   worker            another process, over a pair of sockets; one that ends is started again and asked again
//! ```
//!
//! One thread reads and writes all connections; batches run on the engines' threads. The crate uses `vm` and what lies below: a server
//! needs no compiler. What it does not do: encryption and authentication (a proxy in front does), sequences with state, streams.
#![forbid(unsafe_code)]

pub mod command;
mod datatype;
mod engine;
mod error;
mod grpc;
mod http;
mod machine;
mod metrics;
mod padding;
mod repository;
mod scheduler;
mod server;
mod service;
mod signature;
mod statistics;
mod tensor;
mod worker;

pub use datatype::Datatype;
pub use error::{Error, Fault};
pub use grpc::messages;
pub use machine::{Machine, Opened};
pub use signature::{Dim, Port, Signature};
pub use tensor::Tensor;

/// What hostile input is tried on: the readers of all that comes from outside.
pub mod decode {
    pub use crate::grpc::{convert::read as grpc_request, frame::unframe as grpc_frame};
    pub use crate::http::request::read as http_request;
    pub use crate::service::Call;
    pub use crate::worker::message::{Answer, Order};
}
