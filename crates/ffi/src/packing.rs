//! Elements of less than a byte, one to a byte and without gaps.
//!
//! Without gaps, as tensors have them, the first element is the upper part of the first byte: so arrays of numpy become
//! tensors. One to a byte, an element is the lower bits.

use crate::DataType;

/// Elements without gaps; the unused bits of the last byte are zero.
pub fn pack(dtype: DataType, elements: &[u8]) -> Vec<u8> {
    let bits = usize::from(dtype.bits.min(8));
    let mut bytes = vec![0; (elements.len() * bits).div_ceil(8)];
    for (i, element) in elements.iter().enumerate() {
        let (at, shift) = (i * bits / 8, 16 - i * bits % 8 - bits);
        let word = (u16::from(*element) & ((1 << bits) - 1)) << shift;
        let [upper, lower] = word.to_be_bytes();
        bytes[at] |= upper;
        if let Some(next) = bytes.get_mut(at + 1) {
            *next |= lower;
        }
    }
    bytes
}

/// The elements that lie without gaps in some bytes, as many as are asked for and there are; numbers with a sign have it in
/// the upper bits as well.
pub fn unpack(dtype: DataType, bytes: &[u8], count: usize) -> Vec<u8> {
    let bits = usize::from(dtype.bits.clamp(1, 8));
    let count = count.min(bytes.len() * 8 / bits);
    let element = |i: usize| {
        let (at, shift) = (i * bits / 8, 16 - i * bits % 8 - bits);
        let word = u16::from_be_bytes([bytes[at], bytes.get(at + 1).copied().unwrap_or(0)]);
        let upper = ((word >> shift) as u8) << (8 - bits);
        if dtype.is_int() { (upper as i8 >> (8 - bits)) as u8 } else { upper >> (8 - bits) }
    };
    (0..count).map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_element_is_the_upper_part() {
        assert_eq!(pack(DataType::uint(4), &[1, 2, 3]), [0x12, 0x30]);
        assert_eq!(pack(DataType::int(2), &[0xff, 1, 0xfe, 0]), [0b1101_1000]);
        assert_eq!(unpack(DataType::int(4), &[0x1f, 0x80], 3), [1, 0xff, 0xf8]);
        assert_eq!(unpack(DataType::uint(4), &[0x1f], 9), [1, 15]);
    }

    proptest! {
        #[test]
        fn elements_come_back(bits in 1u8..8, elements in proptest::collection::vec(any::<u8>(), 0..20)) {
            let dtype = DataType::uint(bits);
            let elements: Vec<u8> = elements.iter().map(|e| e & ((1 << bits) - 1)).collect();
            prop_assert_eq!(unpack(dtype, &pack(dtype, &elements), elements.len()), elements);
        }
    }
}
