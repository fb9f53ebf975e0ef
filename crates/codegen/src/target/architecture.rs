//! Instruction sets that there is code for.

use std::fmt;

use crate::export::{ExportError, Machine};

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm, little-endian.
    Aarch64,
    /// WebAssembly with addresses of 32 bits.
    Wasm32,
    /// PTX, the text that NVIDIA's drivers compile, with addresses of 64 bits.
    Nvptx64,
}

impl Architecture {
    /// As [`std::env::consts::ARCH`] calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Wasm32 => "wasm32",
            Self::Nvptx64 => "nvptx64",
        }
    }

    /// That of this program, if there is code for it.
    pub fn host() -> Option<Self> {
        let all = [Self::X86_64, Self::Aarch64, Self::Wasm32];
        all.into_iter().find(|architecture| architecture.name() == std::env::consts::ARCH)
    }

    /// The machine for which its files are linked here; an error where they are of another format than ELF.
    pub fn elf(self) -> Result<Machine, ExportError> {
        match self {
            Self::X86_64 => Ok(Machine::X86_64),
            Self::Aarch64 => Ok(Machine::Aarch64),
            Self::Wasm32 | Self::Nvptx64 => Err(ExportError::NotElf(self)),
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "AArch64",
            Self::Wasm32 => "WebAssembly",
            Self::Nvptx64 => "PTX",
        })
    }
}
