//! The protocol over HTTP.

pub(crate) mod elements;
mod fields;
pub mod request;
pub(crate) mod response;
pub(crate) mod routes;
