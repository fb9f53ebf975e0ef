//! The header of a GGUF file: which tensors there are, of which types, and where.
//!
//! ```text
//! "GGUF" │ u32 version │ u64 tensors │ u64 pairs │ pairs of a key and a value │ tensors: name, lengths, type, offset │ padding │ data
//! ```
//!
//! Numbers are little-endian. Lengths stand with the innermost first; here they are the other way around, as everywhere else. Of the pairs only
//! `general.alignment` counts.

use std::collections::HashMap;
use std::ops::Range;

use super::elements::GgufKind;

const MAGIC: &[u8; 4] = b"GGUF";
/// Versions whose lengths have 64 bits.
const VERSIONS: Range<u32> = 2..4;
/// Dimensions that a tensor has at most.
const MOST_DIMS: u32 = 8;
/// Where data begin a multiple of, if the file does not say.
const ALIGNMENT: u64 = 32;
/// How deep lists of lists are read.
const MOST_DEPTH: u32 = 8;
/// The least bytes that a tensor's entry takes: two lengths, a type and an offset.
const LEAST_ENTRY: u64 = 24;

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufEntry {
    /// How its elements are stored.
    pub kind: GgufKind,
    /// Its dimensions, the outermost first.
    pub shape: Vec<i64>,
    /// Where its bytes are in the file.
    pub range: Range<usize>,
}

/// Why bytes are no GGUF file. The file is damaged, cut off, of another version, or something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GgufError {
    /// It begins with something else.
    #[error("it does not begin with `GGUF`")]
    Magic,
    /// It is of another version.
    #[error("it is of version {0}; 2 and 3 are read")]
    Version(u32),
    /// The header ends too early.
    #[error("the file is cut off in {what} at byte {at}: {needed} bytes are to follow, and there are {left}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where.
        at: u64,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that there are.
        left: u64,
    },
    /// A text is none.
    #[error("{what} at byte {at} is not UTF-8")]
    Text {
        /// What was being read.
        what: &'static str,
        /// Where.
        at: u64,
    },
    /// A value is of a type that the format does not have, or lists are too deep.
    #[error("the value of {key:?} is of type {ty}, which is unknown or a list in too many others")]
    Value {
        /// Whose.
        key: String,
        /// The number of the type.
        ty: u32,
    },
    /// Data would begin at a multiple of something else than a power of two.
    #[error("`general.alignment` is {0}, which is no power of two of 32 bits")]
    Alignment(u64),
    /// What it says about a tensor does not make sense.
    #[error("tensor {name:?} {why}")]
    Tensor {
        /// Which.
        name: String,
        /// What is wrong.
        why: GgufEntryError,
    },
}

/// What the header says of a tensor that does not make sense, or is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GgufEntryError {
    /// There is another of that name.
    #[error("is there twice")]
    Twice,
    /// It has too many dimensions.
    #[error("has {0} dimensions, more than 8")]
    Dims(u32),
    /// Its elements are stored in a way that is not known here.
    #[error("is of type {0}, which is not read; F32, F16, BF16, F64, integers, Q4_0, Q4_1, Q8_0, Q4_K and Q6_K are")]
    Kind(u32),
    /// Its rows are no whole blocks, or its size is beyond all bounds.
    #[error(
        "of type {kind} has the shape {shape:?}, whose rows are no whole blocks of {block} elements, or more than memory holds"
    )]
    Shape {
        /// The type.
        kind: GgufKind,
        /// The dimensions.
        shape: Vec<u64>,
        /// Elements of a block.
        block: u64,
    },
    /// It begins where no tensor may.
    #[error("begins at offset {offset} of the data, which is no multiple of {alignment}")]
    Offset {
        /// Where, from the beginning of the data.
        offset: u64,
        /// What it is to be a multiple of.
        alignment: u64,
    },
    /// The file ends before it does.
    #[error("of type {kind} and shape {shape:?} takes {size} bytes from offset {offset} of the data, which has {data}")]
    Outside {
        /// The type.
        kind: GgufKind,
        /// The dimensions.
        shape: Vec<i64>,
        /// Bytes that it takes.
        size: u64,
        /// Where it begins, from the beginning of the data.
        offset: u64,
        /// Bytes of data.
        data: u64,
    },
}

/// Reads the header of a file. Every range that it gives lies inside of `bytes` and is as long as type and shape say.
pub fn read_gguf_header(bytes: &[u8]) -> Result<HashMap<String, GgufEntry>, GgufError> {
    let mut reader = GgufReader { bytes, at: 0 };
    if reader.take("the beginning", 4).map_or(true, |magic| magic != MAGIC) {
        return Err(GgufError::Magic);
    }
    let version = reader.u32("the version")?;
    if !VERSIONS.contains(&version) {
        return Err(GgufError::Version(version));
    }
    let (tensors, pairs) = (reader.u64("the number of tensors")?, reader.u64("the number of pairs")?);
    let mut alignment = ALIGNMENT;
    for _ in 0..pairs {
        let key = reader.text("a key")?;
        let value = reader.value(&key)?;
        if key == "general.alignment" {
            alignment = value.unwrap_or(0);
        }
    }
    if !alignment.is_power_of_two() || alignment > u64::from(u32::MAX) {
        return Err(GgufError::Alignment(alignment));
    }
    // Each takes some bytes, so that a lie about their number ends where the file does.
    let mut claimed = Vec::with_capacity(tensors.min(bytes.len() as u64 / LEAST_ENTRY) as usize);
    for _ in 0..tensors {
        claimed.push(reader.entry()?);
    }
    // Where no tensor has an element, the file may end before its padding does.
    let start = (reader.at as u64).next_multiple_of(alignment).min(bytes.len() as u64);
    let data = bytes.len() as u64 - start;
    let mut entries = HashMap::new();
    for claim in claimed {
        let placed = claim.place(start, data, alignment);
        let placed = placed.map_err(|why| GgufError::Tensor { name: claim.name.clone(), why })?;
        if entries.insert(claim.name.clone(), placed).is_some() {
            return Err(GgufError::Tensor { name: claim.name, why: GgufEntryError::Twice });
        }
    }
    Ok(entries)
}

/// What the header says of a tensor.
struct Claim {
    name: String,
    kind: u32,
    /// The innermost first.
    dims: Vec<u64>,
    offset: u64,
}

impl Claim {
    fn place(&self, start: u64, data: u64, alignment: u64) -> Result<GgufEntry, GgufEntryError> {
        let kind = GgufKind::of(self.kind).ok_or(GgufEntryError::Kind(self.kind))?;
        let unfit = || {
            let shape = self.dims.iter().rev().copied().collect();
            GgufEntryError::Shape { kind, shape, block: kind.elements() }
        };
        let shape = self.dims.iter().rev().map(|dim| i64::try_from(*dim)).collect::<Result<Vec<_>, _>>();
        let shape = shape.map_err(|_| unfit())?;
        let row = self.dims.first().copied().unwrap_or(1);
        let room = (row % kind.elements() == 0)
            .then(|| {
                // A length of zero leaves no bytes. The others have their bound all the same, in whatever order they stand.
                let row = (row / kind.elements()).max(1);
                self.dims.iter().skip(1).try_fold(row, |blocks, dim| blocks.checked_mul((*dim).max(1)))
            })
            .flatten()
            .and_then(|blocks| blocks.checked_mul(kind.bytes()))
            .filter(|room| room.checked_mul(kind.elements()).is_some_and(|n| n < 1 << 56))
            .ok_or_else(unfit)?;
        let size = if self.dims.contains(&0) { 0 } else { room };
        let offset = self.offset;
        if !offset.is_multiple_of(alignment) {
            return Err(GgufEntryError::Offset { offset, alignment });
        }
        if offset.checked_add(size).is_none_or(|end| end > data) {
            return Err(GgufEntryError::Outside { kind, shape, size, offset, data });
        }
        // Data begins and ends in the file, whose length is that of memory.
        let begin = (start + offset) as usize;
        Ok(GgufEntry { kind, shape, range: begin..begin + size as usize })
    }
}

struct GgufReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> GgufReader<'a> {
    fn take(&mut self, what: &'static str, count: u64) -> Result<&'a [u8], GgufError> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return Err(GgufError::Truncated { what, at: self.at as u64, needed: count, left });
        }
        let taken = &self.bytes[self.at..self.at + count as usize];
        self.at += count as usize;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], GgufError> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(what, N as u64)?);
        Ok(number)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, GgufError> {
        self.number(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, GgufError> {
        self.number(what).map(u64::from_le_bytes)
    }

    fn text(&mut self, what: &'static str) -> Result<String, GgufError> {
        let length = self.u64(what)?;
        let at = self.at as u64;
        let text = std::str::from_utf8(self.take(what, length)?).map_err(|_| GgufError::Text { what, at })?;
        Ok(text.to_owned())
    }

    /// A value, which is skipped unless it is a natural number.
    fn value(&mut self, key: &str) -> Result<Option<u64>, GgufError> {
        let ty = self.u32("the type of a value")?;
        self.value_of(key, ty, 0)
    }

    fn value_of(&mut self, key: &str, ty: u32, depth: u32) -> Result<Option<u64>, GgufError> {
        const WHAT: &str = "a value";
        match ty {
            // Signed or not, of 8 to 64 bits.
            0 => Ok(Some(u64::from(self.number::<1>(WHAT)?[0]))),
            2 => Ok(Some(u64::from(u16::from_le_bytes(self.number(WHAT)?)))),
            4 => Ok(Some(u64::from(self.u32(WHAT)?))),
            10 => Ok(Some(self.u64(WHAT)?)),
            8 => self.text("a text").map(|_| None),
            9 if depth < MOST_DEPTH => {
                let (ty, count) = (self.u32("the type of a list")?, self.u64("the length of a list")?);
                match size_of(ty) {
                    Some(size) => {
                        self.take("a list", count.saturating_mul(size))?;
                    }
                    None => {
                        for _ in 0..count {
                            self.value_of(key, ty, depth + 1)?;
                        }
                    }
                }
                Ok(None)
            }
            _ => match size_of(ty) {
                Some(size) => self.take(WHAT, size).map(|_| None),
                None => Err(GgufError::Value { key: key.to_owned(), ty }),
            },
        }
    }

    fn entry(&mut self) -> Result<Claim, GgufError> {
        let name = self.text("the name of a tensor")?;
        let count = self.u32("the dimensions of a tensor")?;
        if count > MOST_DIMS {
            return Err(GgufError::Tensor { name, why: GgufEntryError::Dims(count) });
        }
        let dims = (0..count).map(|_| self.u64("the shape of a tensor")).collect::<Result<_, _>>()?;
        let (kind, offset) = (self.u32("the type of a tensor")?, self.u64("the offset of a tensor")?);
        Ok(Claim { name, kind, dims, offset })
    }
}

/// Bytes of a value of a type of fixed size.
fn size_of(ty: u32) -> Option<u64> {
    match ty {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}
