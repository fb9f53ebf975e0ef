//! Remote procedure calls: a model runs, is timed and is served on another machine.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod command;
pub mod proxy;
mod random;
mod register;
#[cfg(feature = "secure")]
pub mod secure;
pub mod server;
pub mod session;
pub mod tracker;
pub mod transport;
pub mod wire;

pub use register::register;
pub use session::client::Session;
