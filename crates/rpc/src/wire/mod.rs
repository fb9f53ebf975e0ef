//! The bytes of the protocol: packets, values, handshakes.
//!
//! Everything is little-endian. A packet is `u64 length | i32 code | body`; a body is fields and sequences of values, each value an
//! `i32` type index and what the index says. TVM 0.27 fixes the form ([`Dialect::Tvm`]). Between two ends that are both ours there is
//! more to say ([`Dialect::Own`]): how deep a packet stands in a conversation of calls that call back, values that TVM has no form
//! for (containers, functions of the sender), errors with kind and trace. A packet that needs none of this has the same bytes in both.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`code`] | what a packet is for |
//! | [`reader`], [`writer`] | fields, with a budget |
//! | [`value`] | values and sequences of them |
//! | [`tensor`] | how a tensor is described |
//! | [`packet`] | requests and replies |
//! | [`frame`] | packets out of a stream of bytes |
//! | [`handshake`] | what is said before the first packet |

pub mod code;
pub mod frame;
pub mod handshake;
pub mod packet;
pub mod reader;
pub mod tensor;
pub mod value;
pub mod writer;

pub use code::Code;
pub use frame::{Framer, Piece};
pub use packet::{Cancel, Copy, Failure, Head, Reply, Request, Returned, SystemCall, Ticket};
pub use reader::{Malformed, Reader};
pub use tensor::WireTensor;
pub use value::{Owner, Value};
pub use writer::Writer;

/// The version that both ends of TVM's protocol must name.
pub const VERSION: &str = "0.8.0";

/// Which of the two forms a conversation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// TVM 0.27's, to the byte.
    Tvm,
    /// The same with what TVM has no form for; both ends are ours.
    Own,
}

/// What a packet may claim, whatever it is.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of a packet that is read as a whole: everything but the payloads of copies.
    pub packet: u64,
    /// The bytes of one copy's payload, which goes straight to its tensor.
    pub copy: u64,
    /// The values of a packet, those inside of others among them.
    pub values: usize,
    /// How deep values may stand inside of each other.
    pub value_depth: usize,
    /// How deep calls may stand inside of each other, counting those of both ends.
    pub call_depth: usize,
    /// How many requests may wait behind the one that is being served.
    pub waiting: usize,
    /// How many bytes of what stands behind a request are read while it is being served, to see whether it is cancelled.
    pub ahead: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            packet: 2 << 30,
            copy: 1 << 40,
            values: 1 << 20,
            value_depth: 64,
            call_depth: 64,
            waiting: 4096,
            ahead: 16 << 20,
        }
    }
}
