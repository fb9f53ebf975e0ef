//! Floating-point operators that are no operators of C, and conversions.
//!
//! Floats of sixteen bits and fewer are kept as their bits and computed with in single precision, by integer arithmetic that every compiler
//! has: not all know a type for them. Floats become integers as near as possible, NaN becomes zero.

use super::{
    integers::replace_word,
    small_floats,
    source::Source,
    types::{memory_type, suffix},
};
use crate::shared::ScalarKind;

/// A function of floats that C's library lacks.
#[derive(Clone, Copy)]
pub(crate) enum Helper {
    Min,
    Max,
    Sigmoid,
    /// A remainder that rounds down.
    FloorMod,
}

/// The name of such a function in `float` or `double`.
pub(crate) fn helper(source: &mut Source, helper: Helper, kind: ScalarKind) -> String {
    let (ty, suffix, f) = if kind == ScalarKind::F64 { ("double", "f64", "") } else { ("float", "f32", "f") };
    let (name, params, attribute, body) = match helper {
        // NaN if either is.
        Helper::Min => ("min", "T a, T b", "", "    return a < b || a != a ? a : b;\n"),
        Helper::Max => ("max", "T a, T b", "", "    return a > b || a != a ? a : b;\n"),
        Helper::Sigmoid => ("sigmoid", "T x", "", "    return 1 / (1 + exp{f}(-x));\n"),
        // A product that is fused with the difference would show the division's rounding error.
        Helper::FloorMod => (
            "floormod",
            "T a, T b",
            "RX_SEPARATE_ROUNDING\n",
            "    RX_NO_FUSION\n    return a - b * floor{f}(a / b);\n",
        ),
    };
    let function = format!("rx_{name}_{suffix}");
    if !attribute.is_empty() {
        separate_rounding(source);
    }
    let text = format!("{attribute}static inline T {function}({params}) {{\n{body}}}\n").replace("{f}", f);
    source.helper(function.clone(), |_| replace_word(&text, "T", ty));
    function
}

/// Defines what keeps a compiler from making one operation of a product and a sum: `RX_SEPARATE_ROUNDING` in front of a
/// function, and `RX_NO_FUSION` at its beginning.
pub(crate) fn separate_rounding(source: &mut Source) {
    source.helper("RX_SEPARATE_ROUNDING", |_| SEPARATE_ROUNDING.into());
}

const SEPARATE_ROUNDING: &str = "/* Every operation rounds on its own. */
#if defined(__clang__)
#define RX_SEPARATE_ROUNDING
#define RX_NO_FUSION _Pragma(\"STDC FP_CONTRACT OFF\")
#elif defined(__GNUC__)
#define RX_SEPARATE_ROUNDING __attribute__((optimize(\"fp-contract=off\")))
#define RX_NO_FUSION
#else
#define RX_SEPARATE_ROUNDING
#define RX_NO_FUSION
#endif
";

/// The function that converts a float to an integer.
pub(crate) fn to_integer(source: &mut Source, from: ScalarKind, to: ScalarKind) -> String {
    let (from_suffix, to_suffix, ty) = (suffix(from), suffix(to), memory_type(to));
    let name = format!("rx_{from_suffix}_to_{to_suffix}");
    let bits = to.bytes() * 8;
    let (least, greatest, beyond) = if to.is_signed() {
        (format!("INT{bits}_MIN"), format!("INT{bits}_MAX"), 2f64.powi(bits as i32 - 1))
    } else {
        ("0".to_string(), format!("UINT{bits}_MAX"), 2f64.powi(bits as i32))
    };
    // Both bounds are powers of two, which every float has.
    let low = if to.is_signed() { format!("-{beyond:?}") } else { "-1.0".into() };
    let below = if to.is_signed() { "<" } else { "<=" };
    let float = memory_type(from);
    source.helper(name.clone(), |_| {
        format!(
            "static inline {ty} {name}({float} x) {{\n    \
             if (isnan(x)) return 0;\n    \
             if (x {below} ({float}){low}) return {least};\n    \
             if (x >= ({float}){beyond:?}) return {greatest};\n    \
             return ({ty})x;\n}}\n"
        )
    });
    name
}

/// The function that gives a float of sixteen bits or fewer in single precision.
pub(crate) fn widen(source: &mut Source, kind: ScalarKind) -> String {
    if let ScalarKind::Small(family) = kind {
        return small_floats::widen(source, family);
    }
    bits_of(source, ScalarKind::Int { bits: 32, signed: false }, ScalarKind::F32);
    if kind == ScalarKind::BF16 {
        source.helper("rx_bf16_to_f32", |_| BF16_TO_F32.into());
        return "rx_bf16_to_f32".into();
    }
    bits_of(source, ScalarKind::F32, ScalarKind::Int { bits: 32, signed: false });
    source.helper("rx_f16_to_f32", |_| F16_TO_F32.into());
    "rx_f16_to_f32".into()
}

/// The function that rounds to a float of sixteen bits or fewer, from single or double precision.
pub(crate) fn narrow(source: &mut Source, from: ScalarKind, to: ScalarKind) -> String {
    bits_of(source, ScalarKind::F32, ScalarKind::Int { bits: 32, signed: false });
    let name = match to {
        ScalarKind::Small(family) => small_floats::narrow(source, family),
        ScalarKind::F16 => {
            source.helper("rx_f32_to_f16", |_| F32_TO_F16.into());
            "rx_f32_to_f16".into()
        }
        _ => {
            source.helper("rx_f32_to_bf16", |_| F32_TO_BF16.into());
            "rx_f32_to_bf16".into()
        }
    };
    if from != ScalarKind::F64 {
        return name;
    }
    bits_of(source, ScalarKind::Int { bits: 32, signed: false }, ScalarKind::F32);
    source.helper("rx_round_to_odd", |_| ROUND_TO_ODD.into());
    let wide = format!("rx_f64_to_{}", suffix(to));
    let ty = memory_type(to);
    source.helper(wide.clone(), |_| {
        format!("static inline {ty} {wide}(double x) {{\n    return {name}(rx_round_to_odd(x));\n}}\n")
    });
    wide
}

/// The function that gives the same bits as another type of the same size.
pub(crate) fn bits_of(source: &mut Source, from: ScalarKind, to: ScalarKind) -> String {
    let name = format!("rx_bits_{}_{}", suffix(from), suffix(to));
    let (from, to) = (memory_type(from), memory_type(to));
    source.helper(name.clone(), |_| {
        format!(
            "static inline {to} {name}({from} x) {{\n    {to} same;\n    memcpy(&same, &x, sizeof same);\n    \
             return same;\n}}\n"
        )
    });
    name
}

const BF16_TO_F32: &str = "static inline float rx_bf16_to_f32(uint16_t x) {
    return rx_bits_u32_f32((uint32_t)x << 16);
}
";

/// Rounds to nearest even by adding just under half of the last kept place, and keeps NaN a NaN.
const F32_TO_BF16: &str = "static inline uint16_t rx_f32_to_bf16(float x) {
    uint32_t bits = rx_bits_f32_u32(x);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
";

/// Moves exponent and mantissa into place and lets a multiplication by a power of two do the rest, subnormals included.
const F16_TO_F32: &str = "static inline float rx_f16_to_f32(uint16_t x) {
    uint32_t magnitude = x & 0x7fffu;
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    uint32_t shifted = magnitude << 13;
    if (magnitude >= 0x7c00) return rx_bits_u32_f32(shifted | 0x7f800000 | sign);
    return rx_bits_u32_f32(rx_bits_f32_u32(rx_bits_u32_f32(shifted) * 0x1p112f) | sign);
}
";

/// Normal results drop thirteen bits with rounding to even, and the exponent's bias goes from 127 to 15; for subnormal ones the
/// sum with one half has the wanted bits at its end.
const F32_TO_F16: &str = "static inline uint16_t rx_f32_to_f16(float x) {
    uint32_t bits = rx_bits_f32_u32(x);
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t sign = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) return (uint16_t)(sign | (rx_bits_f32_u32(fabsf(x) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13);
}
";

/// A double whose last kept bit is set if anything is lost rounds on as if it had not been rounded.
const ROUND_TO_ODD: &str = "static inline float rx_round_to_odd(double x) {
    float nearest = (float)x;
    uint32_t bits = rx_bits_f32_u32(nearest);
    if (isnan(x) || (double)nearest == x || (bits & 1)) return nearest;
    return rx_bits_u32_f32(fabs((double)nearest) > fabs(x) ? bits - 1 : bits + 1);
}
";
