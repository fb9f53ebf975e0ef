//! The relocations of x86-64 objects.

use object::elf;

use super::{
    Form,
    field::{Field, PatchError, patch},
};

pub(super) fn recipe(kind: u32) -> Option<(Form, Field)> {
    Some(match elf::RelocationType(kind) {
        elf::R_X86_64_NONE => (Form::None, Field::Word64),
        elf::R_X86_64_64 => (Form::Absolute, Field::Word64),
        elf::R_X86_64_32 => (Form::Absolute, Field::Unsigned32),
        elf::R_X86_64_32S => (Form::Absolute, Field::Signed32),
        elf::R_X86_64_PC32 => (Form::Relative, Field::Signed32),
        elf::R_X86_64_PC64 => (Form::Relative, Field::Word64),
        elf::R_X86_64_PLT32 => (Form::Call, Field::Signed32),
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => (Form::Got, Field::Signed32),
        _ => return None,
    })
}

/// `endbr64; jmp *slot(%rip)`, padded to 16 bytes.
pub(crate) fn plt_entry(entry_address: u64, slot_address: u64) -> Result<[u8; 16], PatchError> {
    let mut code = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x00, 0x00, 0x00, 0x00, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00];
    let displacement = slot_address.wrapping_sub(entry_address + 10) as i64;
    patch(Field::Signed32, &mut code, 6, displacement)?;
    Ok(code)
}
