//! The tracker: servers offer themselves, clients ask for one by key.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`queue`] | who waits for what, without input or output |
//! | [`protocol`] | what is asked and answered |
//! | [`text`] | JSON as TVM writes it |
//! | [`serve`] | the tracker on a socket |
//! | [`client`] | asking one |
//! | [`metrics`] | how it stands, for those who watch |
//! | `state` | what survives a restart (feature `sqlite`) |

pub mod client;
pub mod metrics;
pub mod protocol;
pub mod queue;
pub mod serve;
#[cfg(feature = "sqlite")]
pub mod state;
pub mod text;
