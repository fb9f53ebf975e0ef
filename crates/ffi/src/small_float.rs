//! [`SmallFloat`]: the floating-point numbers of eight bits and fewer.
//!
//! Each family is a row of one table: how many bits its exponent and its mantissa have, which power of two the exponents
//! count from, and which codes mean no finite number. Everything else follows, here as two functions that say what a code
//! means and which code a number becomes, elsewhere as instructions made from the same row. Numbers are rounded to the
//! nearest code, to the even one of two; what is too large, and NaN, go where the Python package `ml_dtypes` lets them go:
//!
//! | family | too large | NaN |
//! | --- | --- | --- |
//! | `e3m4`, `e4m3`, `e5m2` | infinity | a quiet NaN, with its sign |
//! | `e4m3fn` | NaN, with its sign | the same |
//! | `…fnuz` | the one NaN, where others have minus zero | the same |
//! | `e8m0fnu` | NaN, as all that is not positive | the one NaN |
//! | `e2m3fn`, `e3m2fn`, `e2m1fn` | the largest number | zero of the opposite sign, for they have no NaN |

use crate::DataType;

/// A family of floating-point numbers of at most eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SmallFloat {
    /// How many bits a number has: a sign, unless there is no mantissa, the exponent, the mantissa.
    pub bits: u32,
    /// How many of them are the mantissa.
    pub mantissa: u32,
    /// What is added to exponents.
    pub bias: i32,
    /// Which codes are special.
    pub special: Special,
}

/// Which codes of a family are no finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// The highest exponent has infinity, and NaNs above it.
    Ieee,
    /// The highest code is NaN, and there is no infinity.
    HighestIsNan,
    /// What would be minus zero is NaN, and there is no infinity.
    MinusZeroIsNan,
    /// There are only finite numbers.
    Finite,
    /// There are only positive powers of two, and NaN as the highest code.
    PowersOfTwo,
}

/// The families by their codes, from [`SmallFloat::FIRST`].
const FAMILIES: [SmallFloat; 11] = [
    SmallFloat::new(8, 4, 3, Special::Ieee),
    SmallFloat::new(8, 3, 7, Special::Ieee),
    SmallFloat::new(8, 3, 11, Special::MinusZeroIsNan),
    SmallFloat::new(8, 3, 7, Special::HighestIsNan),
    SmallFloat::new(8, 3, 8, Special::MinusZeroIsNan),
    SmallFloat::new(8, 2, 15, Special::Ieee),
    SmallFloat::new(8, 2, 16, Special::MinusZeroIsNan),
    SmallFloat::new(8, 0, 127, Special::PowersOfTwo),
    SmallFloat::new(6, 3, 1, Special::Finite),
    SmallFloat::new(6, 2, 3, Special::Finite),
    SmallFloat::new(4, 1, 1, Special::Finite),
];

impl SmallFloat {
    /// The type code of the first family.
    const FIRST: u8 = 7;

    const fn new(bits: u32, mantissa: u32, bias: i32, special: Special) -> SmallFloat {
        SmallFloat { bits, mantissa, bias, special }
    }

    /// The family of a type of elements.
    pub fn of(dtype: DataType) -> Option<SmallFloat> {
        let family = FAMILIES.get(usize::from(dtype.code.checked_sub(SmallFloat::FIRST)?))?;
        (family.bits == u32::from(dtype.bits)).then_some(*family)
    }

    /// The bit that is the sign; none where numbers are positive.
    pub fn sign(self) -> u32 {
        if self.special == Special::PowersOfTwo { 0 } else { 1 << (self.bits - 1) }
    }

    /// The code of the largest number.
    pub fn largest(self) -> u32 {
        let highest = (1 << (self.bits - 1)) - 1;
        match self.special {
            Special::Ieee => self.infinity() - 1,
            Special::HighestIsNan => highest - 1,
            Special::MinusZeroIsNan | Special::Finite => highest,
            Special::PowersOfTwo => 0xfe,
        }
    }

    /// The code of infinity, where there is one, and above it those of NaN.
    pub fn infinity(self) -> u32 {
        ((1 << (self.bits - 1 - self.mantissa)) - 1) << self.mantissa
    }

    /// The code of NaN without its sign, of a family that has signs; zero where there is no NaN.
    pub fn nan(self) -> u32 {
        match self.special {
            Special::Ieee => self.infinity() | 1 << (self.mantissa - 1),
            Special::HighestIsNan => self.largest() + 1,
            Special::MinusZeroIsNan => self.sign(),
            Special::Finite => 0,
            Special::PowersOfTwo => 0xff,
        }
    }

    /// The number that a code means. Bits above those of the family are ignored.
    pub fn decode(self, code: u8) -> f64 {
        let code = u32::from(code) & ((1 << self.bits) - 1);
        if self.special == Special::PowersOfTwo {
            return if code == self.nan() { f64::NAN } else { power_of_two(code as i32 - self.bias) };
        }
        let magnitude = code & !self.sign();
        let sign = if code == magnitude { 1.0 } else { -1.0 };
        match self.special {
            Special::Ieee if magnitude == self.infinity() => return sign * f64::INFINITY,
            Special::Ieee | Special::HighestIsNan if magnitude > self.largest() => return f64::NAN.copysign(sign),
            Special::MinusZeroIsNan if code == self.sign() => return f64::NAN,
            _ => {}
        }
        let (exponent, fraction) = (magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1));
        // Below the smallest exponent there is no leading one.
        let (leading, exponent) = if exponent == 0 { (0, 1) } else { (1 << self.mantissa, exponent) };
        let unit = power_of_two(exponent as i32 - self.bias - self.mantissa as i32);
        sign * f64::from(leading + fraction) * unit
    }

    /// The code that a number becomes.
    pub fn encode(self, value: f64) -> u8 {
        if self.special == Special::PowersOfTwo {
            return self.encode_power(value);
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let code = match (value.is_nan(), self.special) {
            (true, Special::MinusZeroIsNan) => self.nan(),
            (true, Special::Finite) => sign ^ self.sign(),
            (true, _) => sign | self.nan(),
            (false, _) => self.encode_number(value.abs(), sign),
        };
        code as u8
    }

    fn encode_number(self, magnitude: f64, sign: u32) -> u32 {
        let smallest = 1 - self.bias;
        let exponent = exponent_of(magnitude).clamp(smallest, 128);
        let units = (magnitude * power_of_two(self.mantissa as i32 - exponent)).round_ties_even();
        // Rounding up to the next power of two carries into the exponent by itself.
        let code = (((exponent - smallest) as u32) << self.mantissa).saturating_add(units as u32);
        match (code > self.largest(), self.special) {
            (false, Special::MinusZeroIsNan) if code == 0 => 0,
            (false, _) => sign | code,
            (true, Special::Ieee) => sign | self.infinity(),
            (true, Special::MinusZeroIsNan) => self.nan(),
            (true, Special::HighestIsNan) => sign | self.nan(),
            (true, _) => sign | self.largest(),
        }
    }

    /// Of two powers of two the nearer, the larger if both are as near; below the smallest but one whatever is not at most
    /// the smallest goes up.
    fn encode_power(self, value: f64) -> u8 {
        if value.is_nan() || value <= 0.0 {
            return 0xff;
        }
        if value <= power_of_two(-self.bias) {
            return 0;
        }
        let exponent = exponent_of(value);
        let nearer = if value >= 1.5 * power_of_two(exponent.min(1000)) { exponent + 1 } else { exponent };
        (nearer + self.bias).clamp(1, 255) as u8
    }
}

/// `2^exponent` in the range of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// The exponent of the leading bit of a number that is not negative; that of the smallest normal number for those below.
fn exponent_of(value: f64) -> i32 {
    ((value.to_bits() >> 52) as i32).max(1) - 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (DataType, SmallFloat)> {
        (7..=17).filter_map(|code| {
            [8, 6, 4].iter().find_map(|bits| {
                let dtype = DataType::new(code, *bits);
                Some((dtype, SmallFloat::of(dtype)?))
            })
        })
    }

    #[test]
    fn every_code_reads_back() {
        assert_eq!(all().count(), 11);
        for (dtype, family) in all() {
            for code in 0..1u32 << family.bits {
                let value = family.decode(code as u8);
                let back = family.encode(value);
                // NaNs keep their sign and nothing else.
                let same = if value.is_nan() { family.decode(back).is_nan() } else { u32::from(back) == code };
                assert!(same, "{dtype}: {code:#x} means {value}, which becomes {back:#x}");
            }
        }
    }

    /// The definition: of all finite numbers the nearest, the even code of two.
    #[test]
    fn numbers_become_the_nearest_code() {
        for (dtype, family) in all().filter(|(_, family)| family.special != Special::PowersOfTwo) {
            let finite: Vec<(u8, f64)> = (0..=family.largest() as u8).map(|code| (code, family.decode(code))).collect();
            assert!(finite.is_sorted_by(|a, b| a.1 < b.1), "{dtype}");
            for pair in finite.windows(2) {
                let [(low, a), (high, b)] = [pair[0], pair[1]];
                let middle = (a + b) / 2.0;
                let even = if low % 2 == 0 { low } else { high };
                for (value, code) in [(middle, even), (middle.next_down(), low), (middle.next_up(), high)] {
                    assert_eq!(family.encode(value), code, "{dtype}: {value}");
                    let negative = if code == 0 && family.special == Special::MinusZeroIsNan {
                        0
                    } else {
                        code | family.sign() as u8
                    };
                    assert_eq!(family.encode(-value), negative, "{dtype}: {}", -value);
                }
            }
        }
    }

    #[test]
    fn what_has_no_code_goes_where_it_should() {
        let of = |name: &str| SmallFloat::of(name.parse().unwrap()).unwrap();
        let cases: &[(&str, f64, u8)] = &[
            ("float8_e3m4", 15.5, 0x6f),
            ("float8_e3m4", 15.75, 0x70),
            ("float8_e4m3", f64::INFINITY, 0x78),
            ("float8_e4m3", f64::NAN, 0x7c),
            ("float8_e4m3fn", 464.0, 0x7e),
            ("float8_e4m3fn", 465.0, 0x7f),
            ("float8_e4m3fn", f64::NEG_INFINITY, 0xff),
            ("float8_e4m3fnuz", -0.0, 0),
            ("float8_e4m3fnuz", 1e30, 0x80),
            ("float8_e5m2", 61440.0, 0x7c),
            ("float8_e5m2", -f64::NAN, 0xfe),
            ("float8_e5m2fnuz", -1e-30, 0),
            ("float8_e8m0fnu", 0.0, 0xff),
            ("float8_e8m0fnu", -1.0, 0xff),
            ("float8_e8m0fnu", 1.5, 0x80),
            ("float8_e8m0fnu", 3.0, 0x81),
            ("float8_e8m0fnu", 1e-300, 0),
            ("float8_e8m0fnu", 1.25 * 2f64.powi(-127), 1),
            ("float8_e8m0fnu", f64::MAX, 0xff),
            ("float6_e2m3fn", 100.0, 0x1f),
            ("float6_e3m2fn", f64::NAN, 0x20),
            ("float4_e2m1fn", f64::NEG_INFINITY, 0xf),
            ("float4_e2m1fn", -f64::NAN, 0),
            ("float4_e2m1fn", 2.5, 4),
        ];
        for (name, value, code) in cases {
            assert_eq!(of(name).encode(*value), *code, "{name}: {value}");
        }
        assert!(SmallFloat::of(DataType::float(32)).is_none());
        assert!(SmallFloat::of(DataType::new(7, 4)).is_none());
    }
}
