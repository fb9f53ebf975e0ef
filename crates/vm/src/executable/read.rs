//! Reading the binary form, from bytes that nobody vouches for.
//!
//! Sections in order: magic, version, function table, memory scopes (not in the older form), constants, the table of
//! instruction positions, the instruction words. Everything is little-endian and unaligned; a list is its length as
//! `u64` and then its elements.
//!
//! The reader never allocates from a length that the input does not cover: a list of `n` elements, each of at least
//! `k` bytes, needs `n * k` bytes to be there. Every error names the section and the byte at which it was noticed.

use std::fmt;

use super::constant;
use super::{Executable, FuncInfo, FuncKind, MemoryScope};

/// The first eight bytes of an executable.
pub const MAGIC: u64 = 0xD225_DE2F_4214_151E;
/// The first eight bytes of an executable in the older form, which has no section for memory scopes.
pub const MAGIC_V1: u64 = 0xD225_DE2F_4214_151D;
/// The version text behind the magic.
pub const VERSION: &str = "0.14";

/// A section of the binary form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Magic and version.
    Header,
    /// The function table.
    Functions,
    /// The memory scopes of constants.
    MemoryScopes,
    /// The constant pool.
    Constants,
    /// Where each instruction begins.
    InstructionOffsets,
    /// The instruction words.
    InstructionData,
    /// The Relay VM: the devices that the program names.
    VirtualDevices,
    /// The Relay VM: the names of functions.
    Globals,
    /// The Relay VM: the names of kernels, and what is said of them.
    Primitives,
    /// The Relay VM: functions with their instructions.
    Code,
    /// A dictionary of parameters.
    Parameters,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::Functions => "function table",
            Self::MemoryScopes => "memory scopes",
            Self::Constants => "constant pool",
            Self::InstructionOffsets => "instruction offsets",
            Self::InstructionData => "instruction data",
            Self::VirtualDevices => "virtual devices",
            Self::Globals => "names of functions",
            Self::Primitives => "names of kernels",
            Self::Code => "code",
            Self::Parameters => "parameters",
        })
    }
}

/// What is wrong with the bytes of an executable. The file is damaged, or not one that this runtime reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the VM executable: {section}, byte {offset}: {problem}")]
pub struct ReadError {
    /// The section that was being read.
    pub section: Section,
    /// The byte at which the trouble was noticed.
    pub offset: usize,
    /// What was found.
    pub problem: Problem,
}

/// What a [`ReadError`] found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The input ends too early.
    #[error("{needed} more bytes are needed and {left} are left")]
    Truncated {
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that there are.
        left: usize,
    },
    /// A list is longer than the input can hold.
    #[error("a list of {count} elements does not fit the {left} bytes that are left")]
    Length {
        /// Claimed length.
        count: u64,
        /// Bytes that there are.
        left: usize,
    },
    /// It does not begin like an executable.
    #[error("the magic is {0:#018x}, not that of a VM executable")]
    Magic(u64),
    /// Another version of the format.
    #[error("the version is \"{0}\"; this runtime reads \"{VERSION}\"")]
    Version(String),
    /// A text is not UTF-8.
    #[error("a text is not valid UTF-8")]
    Utf8,
    /// A function has a kind that does not exist.
    #[error("function kind {0} does not exist")]
    FunctionKind(i32),
    /// A constant of a kind that does not exist.
    #[error("constant tag {0} does not exist")]
    ConstantTag(i32),
    /// A tensor that cannot be taken in; says why.
    #[error("bad tensor: {0}")]
    Tensor(String),
    /// Anything else; says what.
    #[error("{0}")]
    Other(String),
}

/// Reads an executable. Bytes behind the last section are kept as the trailer.
pub fn read(bytes: &[u8]) -> Result<Executable, ReadError> {
    let mut reader = Reader::new(bytes, Section::Header);
    let has_scopes = read_header(&mut reader)?;
    let mut executable = Executable::default();

    reader.section = Section::Functions;
    // The smallest entry: kind, five numbers, and two empty lists (name and parameter names).
    for _ in 0..reader.count(4 + 8 * 6)? {
        executable.push_function(read_function(&mut reader)?);
    }
    if has_scopes {
        reader.section = Section::MemoryScopes;
        for _ in 0..reader.count(8 + 8)? {
            executable.memory_scopes.push(MemoryScope { constant: reader.i64()?, scope: reader.string()? });
        }
    }
    reader.section = Section::Constants;
    for _ in 0..reader.count(4 + 4)? {
        executable.constants.push(constant::read(&mut reader)?);
    }
    reader.section = Section::InstructionOffsets;
    executable.instr_offset = reader.i64_list()?;
    reader.section = Section::InstructionData;
    executable.instr_data = reader.i64_list()?;
    executable.trailer = reader.rest().to_vec();
    Ok(executable)
}

/// Reads magic and version; true if the file has a section for memory scopes.
fn read_header(reader: &mut Reader<'_>) -> Result<bool, ReadError> {
    let has_scopes = match reader.u64()? {
        MAGIC => true,
        MAGIC_V1 => false,
        other => return Err(reader.error_at(0, Problem::Magic(other))),
    };
    let at = reader.position;
    let version = reader.string()?;
    if version != VERSION {
        return Err(reader.error_at(at, Problem::Version(version.chars().take(32).collect())));
    }
    Ok(has_scopes)
}

fn read_function(reader: &mut Reader<'_>) -> Result<FuncInfo, ReadError> {
    let at = reader.position;
    let kind = reader.i32()?;
    let kind = FuncKind::from_i32(kind).ok_or_else(|| reader.error_at(at, Problem::FunctionKind(kind)))?;
    let name = reader.string()?;
    let (start_instr, end_instr) = (reader.i64()?, reader.i64()?);
    let (num_args, register_file_size) = (reader.i64()?, reader.i64()?);
    let count = reader.count(8)?;
    let param_names = (0..count).map(|_| reader.string()).collect::<Result<_, _>>()?;
    Ok(FuncInfo { kind, name, start_instr, end_instr, num_args, register_file_size, param_names })
}

/// A position in the input, with the section that it is in.
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    section: Section,
}

impl<'a> Reader<'a> {
    /// A reader of a text of bytes, in its first section.
    pub fn new(bytes: &'a [u8], section: Section) -> Reader<'a> {
        Reader { bytes, position: 0, section }
    }

    /// Goes on in another section, which errors name from here on.
    pub fn enter(&mut self, section: Section) {
        self.section = section;
    }

    /// Where the reader is.
    pub fn position(&self) -> usize {
        self.position
    }

    /// A problem at a byte.
    pub fn error_at(&self, offset: usize, problem: Problem) -> ReadError {
        ReadError { section: self.section, offset, problem }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: u64) -> Result<&'a [u8], ReadError> {
        let rest = self.rest();
        let taken = usize::try_from(count).ok().and_then(|n| rest.get(..n));
        let problem = Problem::Truncated { needed: count, left: rest.len() };
        let taken = taken.ok_or_else(|| self.error_at(self.position, problem))?;
        self.position += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64)?);
        Ok(out)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, ReadError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    pub fn i32(&mut self) -> Result<i32, ReadError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, without a sign.
    pub fn u64(&mut self) -> Result<u64, ReadError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    pub fn i64(&mut self) -> Result<i64, ReadError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A number.
    pub fn f64(&mut self) -> Result<f64, ReadError> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Reads the length of a list whose elements take at least `element` bytes each, and proves that they can be there.
    pub fn count(&mut self, element: u64) -> Result<u64, ReadError> {
        let at = self.position;
        let count = self.u64()?;
        self.fits(at, count, element)?;
        Ok(count)
    }

    /// Proves that `count` elements of at least `element` bytes can follow.
    pub fn fits(&self, at: usize, count: u64, element: u64) -> Result<(), ReadError> {
        let left = self.rest().len();
        match count.checked_mul(element) {
            Some(bytes) if bytes <= left as u64 => Ok(()),
            _ => Err(self.error_at(at, Problem::Length { count, left })),
        }
    }

    /// A length and a text.
    pub fn string(&mut self) -> Result<String, ReadError> {
        let at = self.position;
        let count = self.count(1)?;
        let text = std::str::from_utf8(self.take(count)?);
        text.map(str::to_owned).map_err(|_| self.error_at(at, Problem::Utf8))
    }

    /// A length and so many integers.
    pub fn i64_list(&mut self) -> Result<Vec<i64>, ReadError> {
        let count = self.count(8)?;
        let (words, _) = self.take(count.saturating_mul(8))?.as_chunks();
        Ok(words.iter().map(|word| i64::from_le_bytes(*word)).collect())
    }
}
