//! The relocations of AArch64 objects.

use object::elf;

use super::{
    Form,
    field::{Field, PatchError, patch},
};

pub(super) fn recipe(kind: u32) -> Option<(Form, Field)> {
    let access = |log2_size| (Form::PageOffset, Field::Access12 { log2_size });
    Some(match elf::RelocationType(kind) {
        elf::R_AARCH64_NONE => (Form::None, Field::Word64),
        elf::R_AARCH64_ABS64 => (Form::Absolute, Field::Word64),
        elf::R_AARCH64_ABS32 => (Form::Absolute, Field::Unsigned32),
        elf::R_AARCH64_PREL64 => (Form::Relative, Field::Word64),
        elf::R_AARCH64_PREL32 => (Form::Relative, Field::Signed32),
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => (Form::Call, Field::BranchWords { width: 26, shift: 0 }),
        elf::R_AARCH64_CONDBR19 => (Form::Relative, Field::BranchWords { width: 19, shift: 5 }),
        elf::R_AARCH64_TSTBR14 => (Form::Relative, Field::BranchWords { width: 14, shift: 5 }),
        elf::R_AARCH64_LD_PREL_LO19 => (Form::Relative, Field::LiteralWords),
        elf::R_AARCH64_ADR_PREL_LO21 => (Form::Relative, Field::AdrBytes),
        elf::R_AARCH64_ADR_PREL_PG_HI21 => (Form::Page, Field::AdrPages),
        elf::R_AARCH64_ADD_ABS_LO12_NC => (Form::PageOffset, Field::Add12),
        elf::R_AARCH64_LDST8_ABS_LO12_NC => access(0),
        elf::R_AARCH64_LDST16_ABS_LO12_NC => access(1),
        elf::R_AARCH64_LDST32_ABS_LO12_NC => access(2),
        elf::R_AARCH64_LDST64_ABS_LO12_NC => access(3),
        elf::R_AARCH64_LDST128_ABS_LO12_NC => access(4),
        elf::R_AARCH64_ADR_GOT_PAGE => (Form::GotPage, Field::AdrPages),
        elf::R_AARCH64_LD64_GOT_LO12_NC => (Form::GotPageOffset, Field::Access12 { log2_size: 3 }),
        _ => return None,
    })
}

/// `adrp x16, slot; ldr x17, [x16, slot]; br x17; nop`.
pub(crate) fn plt_entry(entry_address: u64, slot_address: u64) -> Result<[u8; 16], PatchError> {
    let mut code = [0; 16];
    for (chunk, word) in code.chunks_exact_mut(4).zip([0x9000_0010u32, 0xf940_0211, 0xd61f_0220, 0xd503_201f]) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let pages = (slot_address & !0xfff).wrapping_sub(entry_address & !0xfff) as i64;
    patch(Field::AdrPages, &mut code, 0, pages)?;
    patch(Field::Access12 { log2_size: 3 }, &mut code, 4, (slot_address & 0xfff) as i64)?;
    Ok(code)
}
