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
}

impl Architecture {
    /// That of this program, if there is code for it.
    pub fn host() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            "wasm32" => Some(Self::Wasm32),
            _ => None,
        }
    }

    /// The machine for which its files are linked here; an error where they are of another format than ELF.
    pub fn elf(self) -> Result<Machine, ExportError> {
        match self {
            Self::X86_64 => Ok(Machine::X86_64),
            Self::Aarch64 => Ok(Machine::Aarch64),
            Self::Wasm32 => Err(ExportError::NotElf(self)),
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "AArch64",
            Self::Wasm32 => "WebAssembly",
        })
    }
}
