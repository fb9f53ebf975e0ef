//! [`Reader`]: fields out of bytes that nobody vouches for.
//!
//! A length is checked against the bytes that are there before anything is made of it, numbers are added with checks, and depth and
//! number of values are counted. What does not fit is a [`Malformed`], which names the field and the place.

use std::fmt;

use relaxide_ffi::{Error, ErrorKind};

use super::Limits;

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong.
    pub what: String,
    /// How many bytes into the packet.
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes into the packet", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for Error {
    fn from(error: Malformed) -> Error {
        Error::new(ErrorKind::ValueError, format!("the packet is malformed: {error}"))
    }
}

/// Bytes, and how far they were read.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the start.
    pub fn new(bytes: &'a [u8], limits: &Limits) -> Reader<'a> {
        Reader { bytes, at: 0, values: limits.values, depth: limits.value_depth }
    }

    /// The error of a field that begins where the reader stands.
    pub fn wrong(&self, what: impl Into<String>) -> Malformed {
        Malformed { what: what.into(), at: self.at }
    }

    /// That many bytes.
    pub fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], Malformed> {
        let taken = self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end));
        let there = self.bytes.len() - self.at;
        let taken = taken.ok_or_else(|| self.wrong(format!("{what} needs {count} bytes and there are {there}")))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Malformed> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    /// An `u8`.
    pub fn u8(&mut self, what: &str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|bytes| bytes[0])
    }

    /// An `u16`.
    pub fn u16(&mut self, what: &str) -> Result<u16, Malformed> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// An `i32`.
    pub fn i32(&mut self, what: &str) -> Result<i32, Malformed> {
        self.array(what).map(i32::from_le_bytes)
    }

    /// An `u32`.
    pub fn u32(&mut self, what: &str) -> Result<u32, Malformed> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// An `i64`.
    pub fn i64(&mut self, what: &str) -> Result<i64, Malformed> {
        self.array(what).map(i64::from_le_bytes)
    }

    /// An `u64`.
    pub fn u64(&mut self, what: &str) -> Result<u64, Malformed> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// An `f64`.
    pub fn f64(&mut self, what: &str) -> Result<f64, Malformed> {
        self.array(what).map(f64::from_le_bytes)
    }

    /// An `u64` and as many bytes.
    pub fn bytes(&mut self, what: &str) -> Result<&'a [u8], Malformed> {
        let length = self.u64(what)?;
        let count = usize::try_from(length).map_err(|_| self.wrong(format!("{what} claims {length} bytes")))?;
        self.take(count, what)
    }

    /// A number of things, each of which takes at least `least` bytes: no more than the bytes that are left can hold.
    pub fn count(&mut self, claimed: i64, least: usize, what: &str) -> Result<usize, Malformed> {
        let left = (self.bytes.len() - self.at) / least.max(1);
        let count = usize::try_from(claimed).ok().filter(|count| *count <= left);
        count.ok_or_else(|| self.wrong(format!("{what}: {claimed} do not fit the packet")))
    }

    /// Counts one value.
    pub fn spend_value(&mut self) -> Result<(), Malformed> {
        self.values = self.values.checked_sub(1).ok_or_else(|| self.wrong("too many values"))?;
        Ok(())
    }

    /// Reads what stands inside of a value.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Malformed>) -> Result<T, Malformed> {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| self.wrong("values stand too deep in each other"))?;
        let value = read(self)?;
        self.depth += 1;
        Ok(value)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// An error if anything is left.
    pub fn end(&self) -> Result<(), Malformed> {
        let left = self.bytes.len() - self.at;
        if left == 0 { Ok(()) } else { Err(self.wrong(format!("{left} bytes are left over"))) }
    }

    /// How far it has read.
    pub fn position(&self) -> usize {
        self.at
    }
}
