//! Floats of eight bits and fewer, to and from single precision.
//!
//! The functions follow from a family's row in [`SmallFloat`]; a value is its code in a byte. What is below the smallest normal number is
//! made by a multiplication and an addition, so that nothing depends on whether a device has such floats itself.

use relaxide_ffi::{SmallFloat, Special};

use super::floats::bits_of;
use super::source::Source;
use crate::shared::ScalarKind;

const WORD: ScalarKind = ScalarKind::Int { bits: 32, signed: false };

/// How a family is called in the names of functions.
pub(super) fn name(family: SmallFloat) -> String {
    let exponent = family.bits - family.mantissa - u32::from(family.sign() != 0);
    let special = match family.special {
        Special::Ieee => "",
        Special::HighestIsNan | Special::Finite => "fn",
        Special::MinusZeroIsNan => "fnuz",
        Special::PowersOfTwo => "fnu",
    };
    format!("e{exponent}m{}b{}{special}", family.mantissa, family.bias)
}

/// The function that gives a code's number.
pub(super) fn widen(source: &mut Source, family: SmallFloat) -> String {
    bits_of(source, WORD, ScalarKind::F32);
    let function = format!("rx_{}_to_f32", name(family));
    source.helper(function.clone(), |_| {
        let body = if family.special == Special::PowersOfTwo { widen_power(family) } else { widen_number(family) };
        format!("static inline float {function}(uint8_t x) {{\n{body}}}\n")
    });
    function
}

/// The lowest power of two is half of the smallest normal number of single precision.
fn widen_power(family: SmallFloat) -> String {
    let nan = family.nan();
    format!(
        "    if (x == {nan}u) return NAN;\n    \
         return rx_bits_u32_f32(x == 0 ? 0x400000u : (uint32_t)x << 23);\n"
    )
}

fn widen_number(family: SmallFloat) -> String {
    let SmallFloat { bits, mantissa, bias, special } = family;
    let (sign, nan, infinity) = (family.sign(), family.nan(), family.infinity());
    let special = match special {
        Special::Ieee => {
            format!("    if (magnitude >= {infinity}u) return rx_bits_u32_f32(0x7f800000u | moved | sign);\n")
        }
        Special::HighestIsNan => format!("    if (magnitude == {nan}u) return NAN;\n"),
        Special::MinusZeroIsNan => format!("    if (x == {nan}u) return NAN;\n"),
        Special::Finite | Special::PowersOfTwo => String::new(),
    };
    let (up, unit, more) = (23 - mantissa, 1 - bias - mantissa as i32, ((127 - bias) as u32) << 23);
    format!(
        "    uint32_t magnitude = x & {}u;\n    \
             uint32_t sign = (uint32_t)(x & {sign}u) << {};\n    \
             uint32_t moved = magnitude << {up};\n\
         {special}    \
             if (magnitude < {}u) {{\n        \
                 float size = (float)magnitude * 0x1p{unit}f;\n        \
                 return sign ? -size : size;\n    \
             }}\n    \
             return rx_bits_u32_f32((moved + 0x{more:x}u) | sign);\n",
        sign - 1,
        32 - bits,
        1u32 << mantissa,
    )
}

/// The function that rounds a number of single precision to a code.
pub(super) fn narrow(source: &mut Source, family: SmallFloat) -> String {
    bits_of(source, ScalarKind::F32, WORD);
    bits_of(source, WORD, ScalarKind::F32);
    let function = format!("rx_f32_to_{}", name(family));
    source.helper(function.clone(), |_| {
        let body = if family.special == Special::PowersOfTwo { narrow_power(family) } else { narrow_number(family) };
        format!("static inline uint8_t {function}(float x) {{\n    uint32_t bits = rx_bits_f32_u32(x);\n{body}}}\n")
    });
    function
}

/// The exponent, one higher from half way on; up to the lowest power of two, the lowest code. What has no code is NaN.
fn narrow_power(family: SmallFloat) -> String {
    let nan = family.nan();
    format!(
        "    if (bits - 1u >= 0x7f3fffffu) return {nan}u;\n    \
         return (uint8_t)((bits + (bits <= 0x400000u ? 0x3fffffu : 0x400000u)) >> 23);\n"
    )
}

/// Normal results are rounded by adding just under half of the last kept place, others by adding a power of two whose last place is that of
/// the result.
fn narrow_number(family: SmallFloat) -> String {
    let SmallFloat { bits, mantissa, bias, special } = family;
    let (sign, nan, largest, infinity) = (family.sign(), family.nan(), family.largest(), family.infinity());
    let (dropped, smallest) = (23 - mantissa, (128 - bias) as u32);
    let magic = 2f32.powi(24 - bias - mantissa as i32);
    let special = match special {
        Special::Ieee => format!(
            "    if (magnitude > 0x7f800000u) return (uint8_t)(sign | {nan}u);\n    \
                 if (code > {largest}u) code = {infinity}u;\n"
        ),
        Special::HighestIsNan => format!("    if (code > {largest}u) code = {nan}u;\n"),
        Special::MinusZeroIsNan => {
            format!("    if (code > {largest}u) return {nan}u;\n    if (code == 0) return 0;\n")
        }
        // Of what has no NaN, that becomes zero of the opposite sign.
        Special::Finite | Special::PowersOfTwo => format!(
            "    if (magnitude > 0x7f800000u) return (uint8_t)(sign ^ {sign}u);\n    \
                 if (code > {largest}u) code = {largest}u;\n"
        ),
    };
    format!(
        "    uint32_t magnitude = bits & 0x7fffffffu;\n    \
             uint32_t sign = bits >> {} & {sign}u;\n    \
             uint32_t code = magnitude < 0x{:x}u\n        \
                 ? rx_bits_f32_u32(rx_bits_u32_f32(magnitude) + {magic:?}f) - 0x{:x}u\n        \
                 : ((magnitude + 0x{:x}u + (magnitude >> {dropped} & 1u)) >> {dropped}) - {}u;\n\
         {special}    \
             return (uint8_t)(code | sign);\n",
        32 - bits,
        smallest << 23,
        magic.to_bits(),
        (1u32 << (dropped - 1)) - 1,
        (smallest - 1) << mantissa,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_names_of_their_own() {
        let named = |code: u8, bits: u8| name(SmallFloat::of(relaxide_ffi::DataType { code, bits, lanes: 1 }).unwrap());
        let all: Vec<String> = (7..15).map(|code| named(code, 8)).chain([named(17, 4)]).collect();
        assert_eq!(all[3], "e4m3b7fn");
        assert_eq!(all[7], "e8m0b127fnu");
        let different: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }
}
