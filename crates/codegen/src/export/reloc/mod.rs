//! Relocations: what each number asks for, and the bit fields that it fills.
//!
//! A relocation is a *form*, which says what value is computed from the symbol `S`, the addend `A` and the place `P`, and a
//! *field*, which says how the value is stored. The two tables of numbers are in [`x86_64`] and [`aarch64`].

mod aarch64;
mod field;
mod x86_64;

pub(super) use aarch64::plt_entry as plt_entry_aarch64;
pub(super) use field::{Field, PatchError, patch};
pub(super) use x86_64::plt_entry as plt_entry_x86_64;

use object::elf;

use super::library::Machine;

/// What value a relocation computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing; a hint that a linker may ignore.
    None,
    /// `S + A`.
    Absolute,
    /// `S + A - P`.
    Relative,
    /// `S + A - P`, where `S` may be the symbol's PLT entry.
    Call,
    /// The symbol's GOT entry `+ A - P`.
    Got,
    /// `page(S + A) - page(P)`.
    Page,
    /// The low twelve bits of `S + A`.
    PageOffset,
    /// `page(GOT entry) - page(P)`.
    GotPage,
    /// The low twelve bits of the address of the GOT entry.
    GotPageOffset,
}

impl Form {
    pub fn needs_got(self) -> bool {
        matches!(self, Self::Got | Self::GotPage | Self::GotPageOffset)
    }
}

/// The form and field of a relocation number, or `None` if this writer does not know it.
pub(super) fn recipe(machine: Machine, kind: u32) -> Option<(Form, Field)> {
    match machine {
        Machine::X86_64 => x86_64::recipe(kind),
        Machine::Aarch64 => aarch64::recipe(kind),
    }
}

/// The relocation by which the dynamic linker adds the load address.
pub(super) fn dynamic_relative(machine: Machine) -> elf::RelocationType {
    match machine {
        Machine::X86_64 => elf::R_X86_64_RELATIVE,
        Machine::Aarch64 => elf::R_AARCH64_RELATIVE,
    }
}

/// The relocation by which the dynamic linker fills a GOT entry.
pub(super) fn dynamic_got(machine: Machine) -> elf::RelocationType {
    match machine {
        Machine::X86_64 => elf::R_X86_64_GLOB_DAT,
        Machine::Aarch64 => elf::R_AARCH64_GLOB_DAT,
    }
}

/// The relocation by which the dynamic linker stores a symbol's address plus an addend.
pub(super) fn dynamic_address(machine: Machine) -> elf::RelocationType {
    match machine {
        Machine::X86_64 => elf::R_X86_64_64,
        Machine::Aarch64 => elf::R_AARCH64_ABS64,
    }
}
