//! The features of AArch64, and where Linux tells of them.

/// One of the two words of the auxiliary vector.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code, reason = "only names are asked for there"))]
pub(super) enum Words {
    First,
    Second,
}

/// Name, which of the two words of the auxiliary vector, and bit.
pub(super) const FEATURES: &[(&str, Words, u32)] = &[
    ("aes", Words::First, 3),
    ("sha2", Words::First, 6),
    ("crc", Words::First, 7),
    ("lse", Words::First, 8),
    ("fullfp16", Words::First, 10),
    ("rdm", Words::First, 12),
    ("dotprod", Words::First, 20),
    ("sve", Words::First, 22),
    ("fp16fml", Words::First, 23),
    ("sve2", Words::Second, 1),
    ("i8mm", Words::Second, 13),
    ("bf16", Words::Second, 14),
];

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
pub(super) mod host {
    use super::{FEATURES, Words};

    pub(in super::super) fn has(name: &str) -> Option<bool> {
        let (_, word, bit) = FEATURES.iter().find(|(known, ..)| *known == name)?;
        let word = match word {
            Words::First => libc::AT_HWCAP,
            Words::Second => libc::AT_HWCAP2,
        };
        // SAFETY: this only asks for a number.
        let bits = unsafe { libc::getauxval(word) };
        Some(bits >> bit & 1 == 1)
    }
}
