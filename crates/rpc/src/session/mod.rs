//! Sessions: one end's conversation with another, over any transport.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`machine`] | the conversation's state, without input or output |
//! | [`peer`] | an end over a transport: asking and serving |
//! | [`call`] | what is asked and can be cancelled |
//! | [`running`] | what is served and can be stopped |
//! | [`export`] | what an end gave handles and addresses of |
//! | [`convert`] | values of the process to values of the wire and back |
//! | [`remote`] | what an end has of the other: functions, modules, objects, memory |
//! | [`addresses`] | the addresses that remote memory has in this process |
//! | [`host`] | what a request does |
//! | [`connect`] | beginning one |
//! | [`client`] | the client's face |
//! | [`local`] | sessions within the process |

pub mod addresses;
pub mod call;
pub mod client;
pub mod connect;
pub mod convert;
pub mod export;
pub mod host;
pub mod local;
pub mod machine;
pub mod peer;
pub mod remote;
pub mod running;
