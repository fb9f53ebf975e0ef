//! The protocol over gRPC: the service `inference.GRPCInferenceService`.
//!
//! A call of gRPC is a request of HTTP/2 whose body is a message with five bytes in front, and whose answer ends with the status. The
//! methods here have one message each way.

pub mod convert;
pub mod frame;
pub mod messages;
pub(crate) mod methods;
