//! Writing tensors as a safetensors file.
//!
//! The format has no gaps between tensors. The data begins at a multiple of the [alignment](super::ALIGNMENT), as the header ends
//! in blanks, and tensors whose size is a multiple of it come first: all of those begin aligned. Data goes from the tensors' own
//! memory to the file; no second copy is made.

use std::fmt::Write as _;
use std::io::{self, Write};

use relaxide_ffi::{Any, Tensor, json};
use xxhash_rust::xxh64::{Xxh64, xxh64};

use super::ALIGNMENT;
use super::header::format_dtype;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The size of the file.
    pub bytes: u64,
    /// A checksum of all of it.
    pub checksum: u64,
}

/// The checksum of a file: it finds damage and files of another compilation, not malice.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// Writes tensors under different names. Each has to lie in the host's memory without gaps, and its type has to be one that
/// the format [has](format_dtype).
pub fn write_tensors(tensors: &[(String, Tensor)], producer: &str, out: &mut dyn Write) -> io::Result<Written> {
    let (whole, rest): (Vec<_>, Vec<_>) =
        tensors.iter().partition(|(_, tensor)| tensor.byte_size().is_multiple_of(ALIGNMENT));
    let ordered: Vec<&(String, Tensor)> = whole.into_iter().chain(rest).collect();
    let mut out = Counting { out, hash: Xxh64::new(0), bytes: 0 };
    let header = header(&ordered, producer)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for (name, tensor) in ordered {
        out.write_all(tensor.as_bytes().map_err(|error| invalid(format!("tensor {name:?}: {error}")))?)?;
    }
    Ok(Written { bytes: out.bytes, checksum: out.hash.digest() })
}

fn header(tensors: &[&(String, Tensor)], producer: &str) -> io::Result<String> {
    let quoted = |text: &str| json::stringify(&Any::from(text), 0).map_err(|error| invalid(error.to_string()));
    let mut header = format!("{{\"__metadata__\":{{\"producer\":{}}}", quoted(producer)?);
    let mut at = 0;
    for (name, tensor) in tensors {
        let dtype = tensor.dtype();
        let format = format_dtype(dtype).ok_or_else(|| invalid(format!("tensor {name:?} is of type {dtype}")))?;
        let end = at + tensor.byte_size();
        let (name, shape) = (quoted(name)?, tensor.shape());
        // Lists of numbers look alike in Rust and in JSON. Writing to a text cannot fail.
        let _ = write!(header, ",{name}:{{\"dtype\":\"{format}\",\"shape\":{shape:?},\"data_offsets\":[{at},{end}]}}");
        at = end;
    }
    header.push('}');
    let length = (header.len() + 8).next_multiple_of(ALIGNMENT) - 8;
    Ok(format!("{header:length$}"))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Counts and sums up what goes through.
struct Counting<'a> {
    out: &'a mut dyn Write,
    hash: Xxh64,
    bytes: u64,
}

impl Counting<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
