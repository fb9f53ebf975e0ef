//! The public face: what goes into a shared library.

use std::{borrow::Cow, fmt, io, path::Path};

use object::elf;

use super::{error::ExportError, file, input::InputObject, link};

/// The symbol under which a loader finds the serialized module tree: a 64-bit length, then the tree.
pub const LIBRARY_BIN_SYMBOL: &str = "__tvm_ffi__library_bin";

/// The instruction set that a library is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm, little-endian.
    Aarch64,
}

impl Machine {
    /// The machine that this program was built for, if libraries can be written for it.
    pub fn host() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    pub(super) fn elf(self) -> elf::Machine {
        match self {
            Self::X86_64 => elf::EM_X86_64,
            Self::Aarch64 => elf::EM_AARCH64,
        }
    }

    /// The largest page size that the machine's kernels use; segments are kept this far apart.
    pub(super) fn max_page(self) -> u64 {
        match self {
            Self::X86_64 => 0x1000,
            Self::Aarch64 => 0x1_0000,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "AArch64",
        })
    }
}

/// Bytes that ride in the library behind the code, in a read-only section of their own.
///
/// The pieces are written one after another and borrowed until then, so that large weights are never copied together.
#[derive(Debug, Clone)]
pub struct ExtraSection<'a> {
    name: String,
    symbol: Option<String>,
    alignment: u64,
    pieces: Vec<Cow<'a, [u8]>>,
}

impl<'a> ExtraSection<'a> {
    /// An empty section of that name, found by its name only, aligned to a cache line.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), symbol: None, alignment: 64, pieces: Vec::new() }
    }

    /// The module tree as loaders look for it: its length and the rest, in as many pieces as it comes.
    pub fn module_tree<T: Into<Cow<'a, [u8]>>>(tree: impl IntoIterator<Item = T>) -> Self {
        let mut section = Self::new(".rodata.tvm_ffi").symbol(LIBRARY_BIN_SYMBOL);
        section.pieces.extend(tree.into_iter().map(Into::into));
        section
    }

    /// Exports the section's start under a symbol.
    pub fn symbol(mut self, symbol: impl Into<String>) -> Self {
        self.symbol = Some(symbol.into());
        self
    }

    /// Appends bytes.
    pub fn piece(mut self, bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        self.pieces.push(bytes.into());
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn exported_as(&self) -> Option<&str> {
        self.symbol.as_deref()
    }

    pub(super) fn alignment(&self) -> u64 {
        self.alignment
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece)
    }

    pub(super) fn size(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }
}

/// A shared library in the making.
#[derive(Debug)]
pub struct SharedLibrary<'a> {
    pub(super) machine: Machine,
    pub(super) soname: Option<String>,
    pub(super) objects: Vec<InputObject<'a>>,
    pub(super) extra: Vec<ExtraSection<'a>>,
    pub(super) host_symbols: Vec<String>,
}

impl<'a> SharedLibrary<'a> {
    /// An empty library for `machine`.
    pub fn new(machine: Machine) -> Self {
        Self { machine, soname: None, objects: Vec::new(), extra: Vec::new(), host_symbols: Vec::new() }
    }

    /// Adds a relocatable object; `name` is what errors call it.
    pub fn object(&mut self, name: impl Into<String>, bytes: &'a [u8]) -> Result<&mut Self, ExportError> {
        let object = InputObject::parse(name.into(), bytes, self.machine)?;
        self.objects.push(object);
        Ok(self)
    }

    /// Appends a section behind the code; sections keep the order in which they are added.
    pub fn section(&mut self, section: ExtraSection<'a>) -> &mut Self {
        self.extra.push(section);
        self
    }

    /// Sets the name by which the dynamic linker knows the library (`DT_SONAME`).
    pub fn soname(&mut self, name: impl Into<String>) -> &mut Self {
        self.soname = Some(name.into());
        self
    }

    /// Allows a function that the loading process will provide under this name.
    pub fn host_symbol(&mut self, name: impl Into<String>) -> &mut Self {
        self.host_symbols.push(name.into());
        self
    }

    /// Links and writes the library.
    pub fn write_to(&self, out: &mut dyn io::Write) -> Result<(), ExportError> {
        link::link(self, out)
    }

    /// Links and writes the library to a file.
    pub fn write_file(&self, path: &Path) -> Result<(), ExportError> {
        file::write_file(path, 0o755, |out| self.write_to(out))
    }
}
