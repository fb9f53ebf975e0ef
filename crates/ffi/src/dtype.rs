//! [`DataType`]: the type of one element, as DLPack describes it.

use std::fmt;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// `DLDataType`: a family of numbers, the bits of one lane, and how many lanes make an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct DataType {
    /// The family, one of the constants of this type.
    pub code: u8,
    /// The bits of one lane.
    pub bits: u8,
    /// The lanes of a vector; 1 for a scalar, negative (as a signed number) for a scalable vector's multiplier.
    pub lanes: u16,
}

/// The families whose names carry their width, with the width that a bare name means.
const SIZED: &[(&str, u8, u8)] = &[
    ("int", DataType::INT, 32),
    ("uint", DataType::UINT, 32),
    ("float", DataType::FLOAT, 32),
    ("handle", DataType::HANDLE, 64),
    ("bfloat", DataType::BFLOAT, 16),
    ("bool", DataType::BOOL, 8),
];

/// The families whose names say everything: code, bits.
const NARROW: &[(&str, u8, u8)] = &[
    ("float8_e3m4", 7, 8),
    ("float8_e4m3", 8, 8),
    ("float8_e4m3b11fnuz", 9, 8),
    ("float8_e4m3fn", 10, 8),
    ("float8_e4m3fnuz", 11, 8),
    ("float8_e5m2", 12, 8),
    ("float8_e5m2fnuz", 13, 8),
    ("float8_e8m0fnu", 14, 8),
    ("float6_e2m3fn", 15, 6),
    ("float6_e3m2fn", 16, 6),
    ("float4_e2m1fn", 17, 4),
];

/// Short spellings of the sized families; the width must follow.
const SHORT: &[(&str, u8)] =
    &[("bf", DataType::BFLOAT), ("i", DataType::INT), ("u", DataType::UINT), ("f", DataType::FLOAT)];

impl DataType {
    /// Signed integers.
    pub const INT: u8 = 0;
    /// Unsigned integers.
    pub const UINT: u8 = 1;
    /// IEEE floats.
    pub const FLOAT: u8 = 2;
    /// Addresses; with no bits and no lanes, the absence of a type.
    pub const HANDLE: u8 = 3;
    /// Brain floats.
    pub const BFLOAT: u8 = 4;
    /// Complex numbers, which have no name in text.
    pub const COMPLEX: u8 = 5;
    /// Bools.
    pub const BOOL: u8 = 6;

    /// A type of one lane.
    pub const fn new(code: u8, bits: u8) -> DataType {
        DataType { code, bits, lanes: 1 }
    }

    /// A signed integer of that many bits.
    pub const fn int(bits: u8) -> DataType {
        DataType::new(DataType::INT, bits)
    }

    /// An unsigned integer of that many bits.
    pub const fn uint(bits: u8) -> DataType {
        DataType::new(DataType::UINT, bits)
    }

    /// A float of that many bits.
    pub const fn float(bits: u8) -> DataType {
        DataType::new(DataType::FLOAT, bits)
    }

    /// The 16-bit brain float.
    pub const fn bfloat16() -> DataType {
        DataType::new(DataType::BFLOAT, 16)
    }

    /// A bool of one byte.
    pub const fn bool() -> DataType {
        DataType::new(DataType::BOOL, 8)
    }

    /// An address.
    pub const fn handle() -> DataType {
        DataType::new(DataType::HANDLE, 64)
    }

    /// No type.
    pub const fn void() -> DataType {
        DataType { code: DataType::HANDLE, bits: 0, lanes: 0 }
    }

    /// The same family and width with other lanes.
    pub const fn with_lanes(self, lanes: u16) -> DataType {
        DataType { lanes, ..self }
    }

    /// The type of one lane.
    pub const fn element(self) -> DataType {
        self.with_lanes(1)
    }

    /// True for signed and unsigned integers.
    pub const fn is_integer(self) -> bool {
        matches!(self.code, DataType::INT | DataType::UINT)
    }

    /// True for signed integers.
    pub const fn is_int(self) -> bool {
        self.code == DataType::INT
    }

    /// True for unsigned integers.
    pub const fn is_uint(self) -> bool {
        self.code == DataType::UINT
    }

    /// True for floats of every kind: IEEE, brain, and those of eight bits and fewer.
    pub const fn is_float(self) -> bool {
        matches!(self.code, DataType::FLOAT | DataType::BFLOAT | 7..=17)
    }

    /// True for bools, also in the older spelling as an unsigned integer of one bit.
    pub const fn is_bool(self) -> bool {
        self.code == DataType::BOOL || (self.code == DataType::UINT && self.bits == 1)
    }

    /// True for addresses.
    pub const fn is_handle(self) -> bool {
        self.code == DataType::HANDLE && !self.is_void()
    }

    /// True for the absence of a type.
    pub const fn is_void(self) -> bool {
        self.code == DataType::HANDLE && self.bits == 0 && self.lanes == 0
    }

    /// True if an element has one lane.
    pub const fn is_scalar(self) -> bool {
        self.lanes == 1
    }

    /// The multiplier of a scalable vector.
    pub const fn scalable_lanes(self) -> Option<u16> {
        let lanes = self.lanes as i16;
        if lanes < -1 { Some(lanes.unsigned_abs()) } else { None }
    }

    /// The lanes as expressions count them: of a scalable vector minus the multiplier.
    pub const fn lane_count(self) -> i64 {
        match self.scalable_lanes() {
            Some(multiplier) => -(multiplier as i64),
            None => self.lanes as i64,
        }
    }

    /// The bytes of one element, its bits rounded up. A scalable vector has no such size and counts one lane.
    pub const fn bytes(self) -> usize {
        let lanes = if self.scalable_lanes().is_some() { 1 } else { self.lanes as usize };
        (self.bits as usize * lanes).div_ceil(8)
    }

    /// True if elements share bytes with their neighbours, which only those do that have less than a byte; bools have
    /// one.
    pub const fn is_packed(self) -> bool {
        !self.is_bool() && !self.is_handle() && !self.bits.is_multiple_of(8)
    }

    /// The bytes of so many elements in a row: those that share bytes leave no gaps, as DLPack has them. `None` for more than
    /// memory can be.
    pub fn bytes_of(self, count: usize) -> Option<usize> {
        if !self.is_packed() || self.scalable_lanes().is_some() {
            return count.checked_mul(self.bytes());
        }
        count.checked_mul(self.bits as usize)?.checked_mul(self.lanes as usize).map(|bits| bits.div_ceil(8))
    }

    /// True if text can name the type.
    pub fn has_name(self) -> bool {
        self.family().is_some()
    }

    pub(crate) fn to_word(self) -> i64 {
        let lanes = self.lanes.to_ne_bytes();
        i64::from_ne_bytes([self.code, self.bits, lanes[0], lanes[1], 0, 0, 0, 0])
    }

    /// The name of the lane type, apart from the bits that follow a sized name.
    fn family(self) -> Option<(&'static str, bool)> {
        let narrow = NARROW.iter().find(|(_, code, _)| *code == self.code).map(|(name, ..)| (*name, false));
        narrow.or_else(|| SIZED.iter().find(|(_, code, _)| *code == self.code).map(|(name, ..)| (*name, true)))
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_void() {
            return f.write_str("void");
        }
        match self.family() {
            Some(("handle", _)) => return f.write_str("handle"),
            Some(("bool", _)) if self.bits == 8 => f.write_str("bool")?,
            Some((name, true)) => write!(f, "{name}{}", self.bits)?,
            Some((name, false)) => f.write_str(name)?,
            None => write!(f, "dtype[{}]{}", self.code, self.bits)?,
        }
        match self.scalable_lanes() {
            Some(multiplier) => write!(f, "xvscalex{multiplier}"),
            None if self.lanes as i16 > 1 => write!(f, "x{}", self.lanes),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DataType {
    type Err = Error;

    fn from_str(text: &str) -> Result<DataType, Error> {
        if matches!(text, "" | "void") {
            return Ok(DataType::void());
        }
        let (dtype, rest) = parse_element(text)?;
        let lanes = parse_lanes(text, rest)?;
        Ok(dtype.with_lanes(lanes))
    }
}

fn unknown(text: &str) -> Error {
    Error::new(ErrorKind::ValueError, format!("unknown dtype `{text}`"))
}

/// Reads the family and the width; returns what follows.
fn parse_element(text: &str) -> Result<(DataType, &str), Error> {
    if let Some(found) = parse_narrow(text) {
        return Ok(found);
    }
    let sized = SIZED.iter().map(|(name, code, bits)| (*name, *code, Some(*bits)));
    let short = SHORT.iter().map(|(name, code)| (*name, *code, None));
    let Some((name, code, default_bits)) = sized.chain(short).find(|(name, ..)| text.starts_with(name)) else {
        return Err(unknown(text));
    };
    let rest = &text[name.len()..];
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 {
        return Ok((DataType::new(code, default_bits.ok_or_else(|| unknown(text))?), rest));
    }
    let width = rest[..digits].parse().ok().filter(|bits| *bits != 0);
    let out_of_range = || format!("the width of dtype `{text}` is not from 1 to 255 bits");
    let bits = width.ok_or_else(|| Error::new(ErrorKind::ValueError, out_of_range()))?;
    Ok((DataType::new(code, bits), &rest[digits..]))
}

/// Reads a family whose name says everything; `float` may be short.
fn parse_narrow(text: &str) -> Option<(DataType, &str)> {
    let after = |prefix| text.strip_prefix(prefix).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let rest = ["float", "fp", "f"].into_iter().find_map(after)?;
    // The longest name that fits is meant: `float8_e4m3fnuz` begins with `float8_e4m3`.
    let names = NARROW.iter().map(|(name, code, bits)| (&name["float".len()..], *code, *bits));
    let (name, code, bits) = names.filter(|(name, ..)| rest.starts_with(name)).max_by_key(|(name, ..)| name.len())?;
    let rest = &rest[name.len()..];
    // Elements of half a byte are also named as the pairs that they come in: `float4_e2m1fn_x2`.
    let pairs = rest.strip_prefix('_').filter(|rest| bits == 4 && rest.starts_with('x'));
    Some((DataType::new(code, bits), pairs.unwrap_or(rest)))
}

/// Reads `x4` and `xvscalex4`; nothing means one lane.
fn parse_lanes(text: &str, rest: &str) -> Result<u16, Error> {
    if rest.is_empty() {
        return Ok(1);
    }
    let number = |digits: &str| -> Result<i16, Error> {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unknown(text));
        }
        let lanes: i16 = digits.parse().unwrap_or(0);
        if lanes > 0 {
            return Ok(lanes);
        }
        Err(Error::new(ErrorKind::ValueError, format!("the lanes of dtype `{text}` are not between 1 and 32767")))
    };
    if let Some(digits) = rest.strip_prefix("xvscalex") {
        // A single scalable lane would print as a scalar.
        return match number(digits)? {
            1 => Err(Error::new(ErrorKind::ValueError, format!("the lanes of dtype `{text}` are fewer than two"))),
            lanes => Ok(-lanes as u16),
        };
    }
    let digits = rest.strip_prefix('x').ok_or_else(|| unknown(text))?;
    Ok(number(digits)? as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_mean_what_they_mean_elsewhere() {
        let cases: &[(&str, (u8, u8, i16), &str)] = &[
            ("float32", (2, 32, 1), "float32"),
            ("int", (0, 32, 1), "int32"),
            ("uint1", (1, 1, 1), "uint1"),
            ("bool", (6, 8, 1), "bool"),
            ("bool1", (6, 1, 1), "bool1"),
            ("boolx4", (6, 8, 4), "boolx4"),
            ("handle", (3, 64, 1), "handle"),
            ("handle32", (3, 32, 1), "handle"),
            ("bfloat16", (4, 16, 1), "bfloat16"),
            ("bf16", (4, 16, 1), "bfloat16"),
            ("i8", (0, 8, 1), "int8"),
            ("u64x2", (1, 64, 2), "uint64x2"),
            ("f32", (2, 32, 1), "float32"),
            ("fp8_e5m2", (12, 8, 1), "float8_e5m2"),
            ("f4_e2m1fn_x2", (17, 4, 2), "float4_e2m1fnx2"),
            ("float8_e4m3fn", (10, 8, 1), "float8_e4m3fn"),
            ("float8_e4m3fnuz", (11, 8, 1), "float8_e4m3fnuz"),
            ("float8_e4m3", (8, 8, 1), "float8_e4m3"),
            ("float4_e2m1fn_x2", (17, 4, 2), "float4_e2m1fnx2"),
            ("float32x4", (2, 32, 4), "float32x4"),
            ("float32xvscalex4", (2, 32, -4), "float32xvscalex4"),
            ("", (3, 0, 0), "void"),
            ("void", (3, 0, 0), "void"),
        ];
        for (text, (code, bits, lanes), printed) in cases {
            let dtype: DataType = text.parse().unwrap();
            assert_eq!((dtype.code, dtype.bits, dtype.lanes as i16), (*code, *bits, *lanes), "{text}");
            assert_eq!(dtype.to_string(), *printed, "{text}");
        }
    }

    #[test]
    fn what_is_no_dtype_is_refused() {
        for text in [
            "f",
            "fp32",
            "i0",
            "f8_e4m3_x4",
            "complex64",
            "float32xvscalex1",
            "e4m3fn",
            "x4",
            "float32 ",
            "float99999",
            "float32x99999",
            "int32x0",
            "int32x-1",
            "Ж",
        ] {
            assert!(text.parse::<DataType>().is_err(), "{text}");
        }
    }

    #[test]
    fn elements_have_whole_bytes() {
        assert_eq!(DataType::float(32).with_lanes(4).bytes(), 16);
        assert_eq!(DataType::int(4).bytes(), 1);
        assert_eq!(DataType::bool().bytes(), 1);
        assert_eq!(DataType::void().bytes(), 0);
    }

    #[test]
    fn rows_of_small_elements_have_no_gaps() {
        assert_eq!(DataType::int(4).bytes_of(7), Some(4));
        assert_eq!(DataType::new(15, 6).bytes_of(6), Some(5));
        assert_eq!(DataType::int(4).with_lanes(3).bytes_of(3), Some(5));
        assert_eq!(DataType::uint(1).bytes_of(9), Some(9));
        assert_eq!(DataType::bool().bytes_of(9), Some(9));
        assert_eq!(DataType::float(32).with_lanes(4).bytes_of(2), Some(32));
        assert_eq!(DataType::int(64).bytes_of(usize::MAX / 4), None);
    }

    proptest! {
        #[test]
        fn any_text_parses_or_fails_without_a_panic(text in "\\PC{0,12}") {
            let _ = text.parse::<DataType>();
        }

        #[test]
        fn any_near_miss_parses_or_fails_without_a_panic(text in "(int|float|bool|handle|float8_e4m3|bf16)?[0-9x_a-z]{0,8}") {
            let _ = text.parse::<DataType>();
        }

        #[test]
        fn printed_types_read_back(code in 0u8..=17, bits in 1u8..=255, lanes in 1u16..=300) {
            prop_assume!(code != DataType::COMPLEX && code != DataType::HANDLE);
            let bits = NARROW.iter().find(|(_, narrow, _)| *narrow == code).map_or(bits, |(.., bits)| *bits);
            let dtype = DataType { code, bits, lanes };
            prop_assert_eq!(dtype.to_string().parse::<DataType>().unwrap(), dtype);
        }
    }
}
