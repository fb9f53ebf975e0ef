//! The executable: what the compiler hands to the VM, in memory.
//!
//! An [`Executable`] has a function table, a constant pool, the memory scope of some constants, and code. It is plain
//! data: building one proves nothing about it. [`verify`](crate::verify) checks one and yields the
//! [`VerifiedExecutable`](crate::VerifiedExecutable) that the VM accepts.
//!
//! The submodules are its forms: [`read`] and [`write`] for the binary form, [`text`] for the two listings, [`script`]
//! for a program that builds it again, and [`stats`] for the summary.

mod constant;
pub mod module;
mod origins;
pub mod params;
pub mod read;
pub mod script;
pub mod stats;
pub mod text;
mod trailer;
pub mod weights;
pub mod write;

/// Reading and writing bytes that nobody vouches for, which the executables of both virtual machines are made of.
pub mod stream {
    pub use super::constant::{read_tensor, write_tensor, write_tensor_before_bool};
    pub use super::read::{Problem, ReadError, Reader, Section};
    pub use super::write::Writer;
}

use std::collections::HashMap;

use relaxide_ffi::{Any, SavedBytes};

pub use constant::UnsupportedConstant;
pub(crate) use constant::{digest, same};
pub use origins::Origins;
pub use read::ReadError;
pub use script::NoScript;
pub use trailer::TRAILER_MAGIC;

use crate::bytecode::{BytecodeError, Instruction};

/// What kind of function an entry of the function table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum FuncKind {
    /// A function from outside: from an imported module, or registered globally.
    Packed = 0,
    /// A function in bytecode.
    Vm = 1,
    /// A function compiled to native code that works on the register file.
    VmTir = 2,
}

impl FuncKind {
    /// The kind that a number in the file stands for.
    pub fn from_i32(value: i32) -> Option<Self> {
        [Self::Packed, Self::Vm, Self::VmTir].into_iter().find(|kind| *kind as i32 == value)
    }
}

/// The number of arguments of a function that was declared and not defined.
pub const UNDEFINED_NUM_ARGS: i64 = -2;

/// An entry of the function table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuncInfo {
    /// What kind of function it is.
    pub kind: FuncKind,
    /// Its name.
    pub name: String,
    /// The first instruction, as an index in the table of instructions.
    pub start_instr: i64,
    /// One past the last instruction.
    pub end_instr: i64,
    /// How many arguments it takes; [`UNDEFINED_NUM_ARGS`] for a function from outside.
    pub num_args: i64,
    /// How many registers its frame has.
    pub register_file_size: i64,
    /// The names of its parameters; may be empty.
    pub param_names: Vec<String>,
}

/// The memory scope in which a constant is to be put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryScope {
    /// Index in the constant pool.
    pub constant: i64,
    /// The name of the scope.
    pub scope: String,
}

/// A function table, a constant pool and code.
#[derive(Clone, Debug, Default)]
pub struct Executable {
    pub(crate) functions: Vec<FuncInfo>,
    pub(crate) by_name: HashMap<String, usize>,
    pub(crate) memory_scopes: Vec<MemoryScope>,
    pub(crate) constants: Vec<Any>,
    pub(crate) instr_offset: Vec<i64>,
    pub(crate) instr_data: Vec<i64>,
    /// What instructions were made of, where that is known.
    pub(crate) origins: Origins,
    /// What follows the sections in the file. Loaders that know only the sections do not look there.
    pub(crate) trailer: Vec<u8>,
}

impl Executable {
    /// The function table.
    pub fn functions(&self) -> &[FuncInfo] {
        &self.functions
    }

    /// The index and the entry of a function.
    pub fn function(&self, name: &str) -> Option<(usize, &FuncInfo)> {
        let index = *self.by_name.get(name)?;
        Some((index, self.functions.get(index)?))
    }

    /// The constant pool.
    pub fn constants(&self) -> &[Any] {
        &self.constants
    }

    /// The memory scope of a constant; empty if none was given.
    pub fn memory_scope(&self, constant: usize) -> &str {
        let found = self.memory_scopes.iter().rev().find(|entry| usize::try_from(entry.constant) == Ok(constant));
        found.map_or("", |entry| entry.scope.as_str())
    }

    /// How many instructions there are, over all functions.
    pub fn num_instructions(&self) -> usize {
        self.instr_offset.len()
    }

    /// How many words the code has.
    pub(crate) fn num_words(&self) -> usize {
        self.instr_data.len()
    }

    /// Reads instruction number `index`.
    pub fn instruction(&self, index: usize) -> Result<Instruction<'_>, BytecodeError> {
        let at = self.instr_offset.get(index).and_then(|at| usize::try_from(*at).ok());
        let words = self.instr_data.len();
        let at = at.ok_or(BytecodeError::Truncated { at: usize::MAX, words })?;
        Instruction::decode(&self.instr_data, at)
    }

    /// The instructions of a function, with their numbers. An entry whose range is not inside the code yields an error
    /// where the code ends.
    pub fn instructions_of<'a>(
        &'a self,
        function: &FuncInfo,
    ) -> impl Iterator<Item = Result<(usize, Instruction<'a>), BytecodeError>> + 'a {
        let start = usize::try_from(function.start_instr).unwrap_or(0);
        // One instruction beyond the table, at most, so that a false range ends in an error and not in a long loop.
        let end = usize::try_from(function.end_instr).unwrap_or(0).min(self.instr_offset.len() + 1);
        (start..end).map(|index| Ok((index, self.instruction(index)?)))
    }

    /// Reads the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReadError> {
        read::read(bytes)
    }

    /// The binary form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, UnsupportedConstant> {
        self.save().map(SavedBytes::into_bytes)
    }

    /// The binary form in pieces; those with the weights are the weights.
    pub fn save(&self) -> Result<SavedBytes, UnsupportedConstant> {
        write::write(self)
    }

    /// The assembly-like listing.
    pub fn as_text(&self) -> Result<String, BytecodeError> {
        text::as_text(self)
    }

    /// The listing as a Python program.
    pub fn as_python(&self) -> Result<String, BytecodeError> {
        text::as_python(self)
    }

    /// A Python program that stands on its own and builds the executable again.
    pub fn as_script(&self) -> Result<String, NoScript> {
        script::as_script(self)
    }

    /// The summary.
    pub fn stats(&self) -> Result<String, UnsupportedConstant> {
        stats::stats(self)
    }

    /// Bytes that ride behind the sections: TVM's loader does not look there.
    pub fn trailer(&self) -> &[u8] {
        &self.trailer
    }

    /// Replaces the bytes that ride behind the sections.
    pub fn set_trailer(&mut self, trailer: Vec<u8>) {
        self.trailer = trailer;
    }

    /// Adds a function to the table. A later function hides an earlier one of the same name.
    pub(crate) fn push_function(&mut self, function: FuncInfo) -> usize {
        let index = self.functions.len();
        self.by_name.insert(function.name.clone(), index);
        self.functions.push(function);
        index
    }
}
