//! The features of x86-64, and where CPUID tells of them.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only names are asked for there"))]

/// A register of CPUID's answer.
#[derive(Clone, Copy)]
pub(super) enum Word {
    A,
    B,
    C,
    D,
}
use Word::{A, B, C, D};

/// What the system has to save on a switch of threads for the feature to be usable: bits of XCR0.
const NONE: u64 = 0;
const YMM: u64 = 0b110;
const ZMM: u64 = 0b1110_0110;
const TILES: u64 = 0b110 << 16;
const EGPR: u64 = 1 << 19;

/// Name, leaf and sub-leaf of CPUID, register, bit, and state.
pub(super) type Feature = (&'static str, (u32, u32), Word, u32, u64);

pub(super) const FEATURES: &[Feature] = &[
    ("sse3", (1, 0), C, 0, NONE),
    ("pclmul", (1, 0), C, 1, NONE),
    ("ssse3", (1, 0), C, 9, NONE),
    ("fma", (1, 0), C, 12, YMM),
    ("sse4.1", (1, 0), C, 19, NONE),
    ("sse4.2", (1, 0), C, 20, NONE),
    ("movbe", (1, 0), C, 22, NONE),
    ("popcnt", (1, 0), C, 23, NONE),
    ("aes", (1, 0), C, 25, NONE),
    ("avx", (1, 0), C, 28, YMM),
    ("f16c", (1, 0), C, 29, YMM),
    ("bmi", (7, 0), B, 3, NONE),
    ("avx2", (7, 0), B, 5, YMM),
    ("bmi2", (7, 0), B, 8, NONE),
    ("avx512f", (7, 0), B, 16, ZMM),
    ("avx512dq", (7, 0), B, 17, ZMM),
    ("adx", (7, 0), B, 19, NONE),
    ("avx512ifma", (7, 0), B, 21, ZMM),
    ("avx512cd", (7, 0), B, 28, ZMM),
    ("sha", (7, 0), B, 29, NONE),
    ("avx512bw", (7, 0), B, 30, ZMM),
    ("avx512vl", (7, 0), B, 31, ZMM),
    ("avx512vbmi", (7, 0), C, 1, ZMM),
    ("avx512vbmi2", (7, 0), C, 6, ZMM),
    ("gfni", (7, 0), C, 8, NONE),
    ("vaes", (7, 0), C, 9, YMM),
    ("vpclmulqdq", (7, 0), C, 10, YMM),
    ("avx512vnni", (7, 0), C, 11, ZMM),
    ("avx512bitalg", (7, 0), C, 12, ZMM),
    ("avx512vpopcntdq", (7, 0), C, 14, ZMM),
    ("avx512vp2intersect", (7, 0), D, 8, ZMM),
    ("amx-bf16", (7, 0), D, 22, TILES),
    ("avx512fp16", (7, 0), D, 23, ZMM),
    ("amx-tile", (7, 0), D, 24, TILES),
    ("amx-int8", (7, 0), D, 25, TILES),
    ("sha512", (7, 1), A, 0, YMM),
    ("sm3", (7, 1), A, 1, YMM),
    ("sm4", (7, 1), A, 2, YMM),
    ("avxvnni", (7, 1), A, 4, YMM),
    ("avx512bf16", (7, 1), A, 5, ZMM),
    ("amx-fp16", (7, 1), A, 21, TILES),
    ("avxifma", (7, 1), A, 23, YMM),
    ("avxvnniint8", (7, 1), D, 4, YMM),
    ("avxneconvert", (7, 1), D, 5, YMM),
    ("amx-complex", (7, 1), D, 8, TILES),
    ("avxvnniint16", (7, 1), D, 10, YMM),
    ("egpr", (7, 1), D, 21, EGPR),
    // A version and not a bit: the second of a number whose first is 1.
    ("avx10.2", (0x24, 0), B, 1, ZMM),
    ("lzcnt", (0x8000_0001, 0), C, 5, NONE),
    ("sse4a", (0x8000_0001, 0), C, 6, NONE),
    ("xop", (0x8000_0001, 0), C, 11, YMM),
    ("fma4", (0x8000_0001, 0), C, 16, YMM),
    ("tbm", (0x8000_0001, 0), C, 21, NONE),
];

#[cfg(target_arch = "x86_64")]
pub(super) mod host {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::LazyLock;

    use super::{A, B, C, D, FEATURES, Feature, Word};

    /// The names of what the processor has and the system saves.
    static PRESENT: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let saved = saved_state();
        let present =
            |(_, leaf, word, bit, state): &&Feature| bit_of(leaf.0, leaf.1, *word, *bit) && saved & state == *state;
        FEATURES.iter().filter(present).map(|(name, ..)| *name).collect()
    });

    pub(in super::super) fn has(name: &str) -> Option<bool> {
        FEATURES.iter().any(|(known, ..)| *known == name).then(|| PRESENT.contains(&name))
    }

    fn bit_of(leaf: u32, sub_leaf: u32, word: Word, bit: u32) -> bool {
        // A leaf beyond the last answers with that of another.
        if leaf > __cpuid(leaf & 0x8000_0000).eax {
            return false;
        }
        // The first sub-leaf says how many there are.
        if sub_leaf > 0 && sub_leaf > __cpuid_count(leaf, 0).eax {
            return false;
        }
        let answer = __cpuid_count(leaf, sub_leaf);
        let word = match word {
            A => answer.eax,
            B => answer.ebx,
            C => answer.ecx,
            D => answer.edx,
        };
        word >> bit & 1 == 1
    }

    /// XCR0; nothing where the system does not use it.
    fn saved_state() -> u64 {
        const USES_XSAVE: u32 = 27;
        if !bit_of(1, 0, C, USES_XSAVE) {
            return 0;
        }
        // SAFETY: the system has switched the instruction on, as CPUID has just said.
        unsafe { xgetbv() }
    }

    #[target_feature(enable = "xsave")]
    fn xgetbv() -> u64 {
        // SAFETY: register 0 exists wherever the instruction does.
        unsafe { std::arch::x86_64::_xgetbv(0) }
    }
}
