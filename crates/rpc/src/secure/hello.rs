//! What is said first inside of TLS: one short message of JSON each way.

use std::io;
use std::time::Instant;

use relaxide_ffi::{Error, ErrorKind};
use rustls::Connection;
use serde_json::Value;

use crate::transport::{Sink, Source, read_by};

/// The longest message.
const MAX: usize = 8 << 10;
/// The version of the protocol.
pub const VERSION: i64 = 1;

/// A side of a connection, as a proof names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// What TLS derived for one connection and one side: what a token's proof is about.
pub fn material(state: &Connection, prover: Prover) -> Result<[u8; 32], Error> {
    let context: &[u8] = match prover {
        Prover::Client => b"client",
        Prover::Server => b"server",
    };
    state
        .export_keying_material([0; 32], b"EXPORTER-relaxide-rpc-token", Some(context))
        .map_err(|error| Error::new(ErrorKind::RuntimeError, format!("TLS derives nothing: {error}")))
}

/// Writes a message.
pub fn write(sink: &mut dyn Sink, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    sink.write(&bytes, &[])
}

/// Reads a message that has to be all there by a time.
pub fn read(source: &mut dyn Source, deadline: Option<Instant>) -> Result<Value, Error> {
    let lost = |error: io::Error| Error::new(ErrorKind::OSError, format!("the greeting failed: {error}"));
    let mut length = [0; 4];
    read_by(source, &mut length, deadline).map_err(lost)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX {
        return Err(Error::new(ErrorKind::ValueError, format!("a greeting of {length} bytes; it may have {MAX}")));
    }
    let mut text = vec![0; length];
    read_by(source, &mut text, deadline).map_err(lost)?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new(ErrorKind::ValueError, format!("the greeting is no JSON: {error}")))
}

/// Bytes as digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digits as bytes; none if they are no digits.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(pair).collect::<Option<Vec<_>>>().unwrap_or_default()
}
