//! Remote procedure calls: a model runs, is timed and is served on another machine.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod server;
pub mod session;
pub mod transport;
pub mod wire;

pub use session::client::Session;
