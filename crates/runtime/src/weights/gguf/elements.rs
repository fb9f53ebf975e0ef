//! How elements of a GGUF file are stored: numbers, or blocks of numbers of a few bits with their scales.
//!
//! | type | elements of a block | its bytes | an element is |
//! | --- | --- | --- | --- |
//! | Q8_0 | 32 | f16 d, 32 × i8 | d · q |
//! | Q4_0 | 32 | f16 d, 16 bytes: element i in the lower half of byte i, i + 16 in the upper | d · (q - 8) |
//! | Q4_1 | 32 | f16 d, f16 m, the same | d · q + m |
//! | Q4_K | 256 | f16 d, f16 m, 12 bytes with a scale and a minimum of 6 bits for each 32, 128 bytes | d · s · q - m · n |
//! | Q6_K | 256 | 128 bytes with four lower bits, 64 with two upper ones, a scale of i8 for each 16, f16 d | d · s · (q - 32) |

use std::fmt;

use half::f16;
use relaxide_ffi::DataType;

/// How elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GgufKind {
    /// As numbers.
    Plain(DataType),
    /// In blocks of 32, 4 bits with a scale.
    Q4_0,
    /// In blocks of 32, 4 bits with a scale and a minimum.
    Q4_1,
    /// In blocks of 32, 8 bits with a scale.
    Q8_0,
    /// In blocks of 256, 4 bits with scales and minima.
    Q4K,
    /// In blocks of 256, 6 bits with scales.
    Q6K,
}

impl fmt::Display for GgufKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GgufKind::Plain(dtype) => write!(f, "{dtype}"),
            GgufKind::Q4_0 => f.write_str("Q4_0"),
            GgufKind::Q4_1 => f.write_str("Q4_1"),
            GgufKind::Q8_0 => f.write_str("Q8_0"),
            GgufKind::Q4K => f.write_str("Q4_K"),
            GgufKind::Q6K => f.write_str("Q6_K"),
        }
    }
}

impl GgufKind {
    /// The kind by its number in files.
    pub fn of(number: u32) -> Option<GgufKind> {
        Some(match number {
            0 => GgufKind::Plain(DataType::float(32)),
            1 => GgufKind::Plain(DataType::float(16)),
            2 => GgufKind::Q4_0,
            3 => GgufKind::Q4_1,
            8 => GgufKind::Q8_0,
            12 => GgufKind::Q4K,
            14 => GgufKind::Q6K,
            24 => GgufKind::Plain(DataType::int(8)),
            25 => GgufKind::Plain(DataType::int(16)),
            26 => GgufKind::Plain(DataType::int(32)),
            27 => GgufKind::Plain(DataType::int(64)),
            28 => GgufKind::Plain(DataType::float(64)),
            30 => GgufKind::Plain(DataType::bfloat16()),
            _ => return None,
        })
    }

    /// The type of a tensor of such elements: their own, or float32.
    pub fn dtype(self) -> DataType {
        match self {
            GgufKind::Plain(dtype) => dtype,
            _ => DataType::float(32),
        }
    }

    /// Elements of a block.
    pub fn elements(self) -> u64 {
        match self {
            GgufKind::Plain(_) => 1,
            GgufKind::Q4_0 | GgufKind::Q4_1 | GgufKind::Q8_0 => 32,
            GgufKind::Q4K | GgufKind::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub fn bytes(self) -> u64 {
        match self {
            GgufKind::Plain(dtype) => u64::from(dtype.bits / 8),
            GgufKind::Q4_0 => 18,
            GgufKind::Q4_1 => 20,
            GgufKind::Q8_0 => 34,
            GgufKind::Q4K => 144,
            GgufKind::Q6K => 210,
        }
    }

    /// The numbers that whole blocks stand for; none where elements are numbers themselves.
    pub fn numbers(self, bytes: &[u8]) -> Option<Vec<f32>> {
        let block: fn(&[u8], &mut Vec<f32>) = match self {
            GgufKind::Plain(_) => return None,
            GgufKind::Q4_0 => q4_0,
            GgufKind::Q4_1 => q4_1,
            GgufKind::Q8_0 => q8_0,
            GgufKind::Q4K => q4_k,
            GgufKind::Q6K => q6_k,
        };
        let size = self.bytes() as usize;
        let mut numbers = Vec::with_capacity(bytes.len() / size * self.elements() as usize);
        bytes.chunks_exact(size).for_each(|bytes| block(bytes, &mut numbers));
        Some(numbers)
    }
}

fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

fn q4_0(block: &[u8], numbers: &mut Vec<f32>) {
    let (d, q) = (half(block, 0), &block[2..18]);
    let number = |q: u8| d * (f32::from(q) - 8.0);
    numbers.extend(q.iter().map(|q| number(q & 15)));
    numbers.extend(q.iter().map(|q| number(q >> 4)));
}

fn q4_1(block: &[u8], numbers: &mut Vec<f32>) {
    let (d, m, q) = (half(block, 0), half(block, 2), &block[4..20]);
    numbers.extend(q.iter().map(|q| d * f32::from(q & 15) + m));
    numbers.extend(q.iter().map(|q| d * f32::from(q >> 4) + m));
}

fn q8_0(block: &[u8], numbers: &mut Vec<f32>) {
    let d = half(block, 0);
    numbers.extend(block[2..34].iter().map(|q| d * f32::from(*q as i8)));
}

fn q4_k(block: &[u8], numbers: &mut Vec<f32>) {
    let (d, m, packed, q) = (half(block, 0), half(block, 2), &block[4..16], &block[16..144]);
    // The first four have six bits of a byte, the others four of one and two of another.
    let of = |at: usize| match at {
        ..4 => (packed[at] & 63, packed[at + 4] & 63),
        _ => (packed[at + 4] & 15 | packed[at - 4] >> 6 << 4, packed[at + 4] >> 4 | packed[at] >> 6 << 4),
    };
    for (pair, q) in q.chunks_exact(32).enumerate() {
        for upper in 0..2 {
            let (scale, least) = of(2 * pair + upper);
            let (scale, least) = (d * f32::from(scale), m * f32::from(least));
            numbers.extend(q.iter().map(|q| scale * f32::from(q >> (4 * upper) & 15) - least));
        }
    }
}

fn q6_k(block: &[u8], numbers: &mut Vec<f32>) {
    let (lower, upper, scales, d) = (&block[..128], &block[128..192], &block[192..208], half(block, 208));
    for part in 0..2 {
        let (lower, upper, scales) = (&lower[64 * part..], &upper[32 * part..], &scales[8 * part..]);
        for quarter in 0..4 {
            for at in 0..32 {
                let four = lower[at + 32 * (quarter % 2)] >> (4 * (quarter / 2)) & 15;
                let two = upper[at] >> (2 * quarter) & 3;
                let scale = d * f32::from(scales[2 * quarter + at / 16] as i8);
                numbers.push(scale * (f32::from(four | two << 4) - 32.0));
            }
        }
    }
}
