//! The bit fields that relocations fill.

/// How a value is stored at the place that a relocation patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// 64 bits.
    Word64,
    /// 32 bits, the value fits unsigned.
    Unsigned32,
    /// 32 bits, the value fits signed.
    Signed32,
    /// A branch offset in words: `width` bits from bit `shift` of the instruction.
    BranchWords { width: u32, shift: u32 },
    /// A word offset of a literal load, 19 bits from bit 5.
    LiteralWords,
    /// ADR: a byte offset, split into two low bits and 19 high bits.
    AdrBytes,
    /// ADRP: a page offset, split likewise.
    AdrPages,
    /// The twelve-bit immediate of an addition.
    Add12,
    /// The twelve-bit immediate of a load or store, scaled by the access size.
    Access12 { log2_size: u32 },
}

/// Why a value cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchError {
    /// The field lies outside its section.
    OutsideSection,
    /// The value needs more bits than the field has.
    OutOfRange,
    /// The value is not a multiple of what the field counts in.
    Misaligned,
}

impl PatchError {
    pub fn reason(self) -> &'static str {
        match self {
            Self::OutsideSection => "lies outside its section",
            Self::OutOfRange => "is out of range",
            Self::Misaligned => "is misaligned",
        }
    }
}

/// Stores `value` into the field at `offset` of `bytes`.
pub(crate) fn patch(field: Field, bytes: &mut [u8], offset: u64, value: i64) -> Result<(), PatchError> {
    match field {
        Field::Word64 => store(bytes, offset, value.to_le_bytes()),
        Field::Unsigned32 => {
            let value = u32::try_from(value).map_err(|_| PatchError::OutOfRange)?;
            store(bytes, offset, value.to_le_bytes())
        }
        Field::Signed32 => {
            let value = i32::try_from(value).map_err(|_| PatchError::OutOfRange)?;
            store(bytes, offset, value.to_le_bytes())
        }
        Field::BranchWords { width, shift } => {
            let words = signed(exact_shift(value, 2)?, width)?;
            instruction(bytes, offset, ((1 << width) - 1) << shift, words << shift)
        }
        Field::LiteralWords => {
            let words = signed(exact_shift(value, 2)?, 19)?;
            instruction(bytes, offset, 0x7_ffff << 5, words << 5)
        }
        Field::AdrBytes => adr(bytes, offset, signed(value, 21)?),
        Field::AdrPages => adr(bytes, offset, signed(exact_shift(value, 12)?, 21)?),
        Field::Add12 => instruction(bytes, offset, 0xfff << 10, unsigned12(value)? << 10),
        Field::Access12 { log2_size } => {
            let scaled = exact_shift(i64::from(unsigned12(value)?), log2_size)?;
            instruction(bytes, offset, 0xfff << 10, unsigned12(scaled)? << 10)
        }
    }
}

fn adr(bytes: &mut [u8], offset: u64, value: u32) -> Result<(), PatchError> {
    let (low, high) = (value & 3, (value >> 2) & 0x7_ffff);
    instruction(bytes, offset, (3 << 29) | (0x7_ffff << 5), (low << 29) | (high << 5))
}

/// `value >> shift`, which must lose no bits.
fn exact_shift(value: i64, shift: u32) -> Result<i64, PatchError> {
    if value & ((1 << shift) - 1) != 0 { Err(PatchError::Misaligned) } else { Ok(value >> shift) }
}

/// The low `width` bits of a value that fits in them as a signed number.
fn signed(value: i64, width: u32) -> Result<u32, PatchError> {
    let half = 1i64 << (width - 1);
    if (-half..half).contains(&value) { Ok((value & ((1 << width) - 1)) as u32) } else { Err(PatchError::OutOfRange) }
}

fn unsigned12(value: i64) -> Result<u32, PatchError> {
    u32::try_from(value).ok().filter(|value| *value < 0x1000).ok_or(PatchError::OutOfRange)
}

fn instruction(bytes: &mut [u8], offset: u64, mask: u32, bits: u32) -> Result<(), PatchError> {
    let slot: &mut [u8; 4] = window(bytes, offset)?;
    let word = (u32::from_le_bytes(*slot) & !mask) | (bits & mask);
    *slot = word.to_le_bytes();
    Ok(())
}

fn store<const N: usize>(bytes: &mut [u8], offset: u64, value: [u8; N]) -> Result<(), PatchError> {
    *window(bytes, offset)? = value;
    Ok(())
}

fn window<const N: usize>(bytes: &mut [u8], offset: u64) -> Result<&mut [u8; N], PatchError> {
    let start = usize::try_from(offset).map_err(|_| PatchError::OutsideSection)?;
    bytes.get_mut(start..).and_then(<[u8]>::first_chunk_mut).ok_or(PatchError::OutsideSection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(field: Field, word: u32, value: i64) -> Result<u32, PatchError> {
        let mut bytes = word.to_le_bytes();
        patch(field, &mut bytes, 0, value).map(|()| u32::from_le_bytes(bytes))
    }

    #[test]
    fn branch_fields_keep_the_opcode_and_sign() {
        let bl = Field::BranchWords { width: 26, shift: 0 };
        assert_eq!(patched(bl, 0x9400_0000, 8), Ok(0x9400_0002));
        assert_eq!(patched(bl, 0x9400_0000, -4), Ok(0x97ff_ffff));
        assert_eq!(patched(bl, 0x9400_0000, 2), Err(PatchError::Misaligned));
        assert_eq!(patched(bl, 0x9400_0000, 1 << 27), Err(PatchError::OutOfRange));
    }

    #[test]
    fn adrp_splits_its_page_count() {
        // adrp x0, +5 pages: low bits 01, high bits 1.
        assert_eq!(patched(Field::AdrPages, 0x9000_0000, 5 << 12), Ok(0xb000_0020));
        assert_eq!(patched(Field::AdrPages, 0x9000_0000, 1), Err(PatchError::Misaligned));
    }

    #[test]
    fn scaled_accesses_count_in_elements() {
        assert_eq!(patched(Field::Access12 { log2_size: 3 }, 0xf940_0000, 0x10), Ok(0xf940_0800));
        assert_eq!(patched(Field::Access12 { log2_size: 3 }, 0xf940_0000, 0x14), Err(PatchError::Misaligned));
    }

    #[test]
    fn words_are_checked_against_range_and_section() {
        let mut bytes = [0u8; 4];
        assert_eq!(patch(Field::Signed32, &mut bytes, 0, 1 << 31), Err(PatchError::OutOfRange));
        assert_eq!(patch(Field::Unsigned32, &mut bytes, 0, -1), Err(PatchError::OutOfRange));
        assert_eq!(patch(Field::Signed32, &mut bytes, 1, 0), Err(PatchError::OutsideSection));
        assert_eq!(patch(Field::Signed32, &mut bytes, u64::MAX, 0), Err(PatchError::OutsideSection));
    }
}
