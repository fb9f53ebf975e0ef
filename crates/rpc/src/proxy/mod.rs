//! The proxy: leads clients to servers that they cannot reach, because those can only connect outwards, or are in a browser.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`serve`] | the proxy on its sockets |
//! | [`pairs`] | who waits for whom |
//! | [`offer`] | its servers at a tracker |
//! | [`behind`] | a server behind a proxy |
//! | `web` | browsers (feature `websocket`) |

pub mod behind;
pub mod offer;
pub mod pairs;
pub mod serve;
#[cfg(feature = "websocket")]
mod web;
