//! Which features come with others: LLVM adds to a feature what it needs, and takes away with a feature what needs it.

use std::collections::BTreeSet;

use super::Architecture;

/// A feature, and what there must be for it.
struct Needs {
    /// LLVM's name of the feature.
    feature: &'static str,
    /// What it needs, with commas between; what those need is found from them.
    needs: &'static str,
}

/// The row of a feature.
const fn needs(feature: &'static str, needs: &'static str) -> Needs {
    Needs { feature, needs }
}

/// Vectors of x86-64 and what stands in their registers.
const X86_64: &[Needs] = &[
    needs("sse2", "sse"),
    needs("sse3", "sse2"),
    needs("ssse3", "sse3"),
    needs("sse4.1", "ssse3"),
    needs("sse4.2", "sse4.1"),
    needs("sse4a", "sse3"),
    needs("aes", "sse2"),
    needs("pclmul", "sse2"),
    needs("sha", "sse2"),
    needs("gfni", "sse2"),
    needs("avx", "sse4.2"),
    needs("avx2", "avx"),
    needs("fma", "avx"),
    needs("f16c", "avx"),
    needs("fma4", "avx,sse4a"),
    needs("xop", "fma4"),
    needs("vaes", "avx2,aes"),
    needs("vpclmulqdq", "avx,pclmul"),
    needs("avxifma", "avx2"),
    needs("avxneconvert", "avx2"),
    needs("avxvnni", "avx2"),
    needs("avxvnniint8", "avx2"),
    needs("avxvnniint16", "avx2"),
    needs("sha512", "avx2"),
    needs("sm3", "avx"),
    needs("sm4", "avx2"),
    needs("avx512f", "avx2,fma,f16c"),
    needs("avx512cd", "avx512f"),
    needs("avx512dq", "avx512f"),
    needs("avx512bw", "avx512f"),
    needs("avx512vl", "avx512f"),
    needs("avx512ifma", "avx512f"),
    needs("avx512vnni", "avx512f"),
    needs("avx512vpopcntdq", "avx512f"),
    needs("avx512vp2intersect", "avx512f"),
    needs("avx512vbmi", "avx512bw"),
    needs("avx512vbmi2", "avx512bw"),
    needs("avx512bitalg", "avx512bw"),
    needs("avx512bf16", "avx512bw"),
    needs("avx512fp16", "avx512bw"),
    needs(
        "avx10.1",
        "avx512cd,avx512vbmi,avx512ifma,avx512vnni,avx512bf16,avx512vpopcntdq,avx512vbmi2,avx512bitalg,avx512fp16,avx512dq,avx512vl",
    ),
    needs("avx10.1-512", "avx10.1"),
    needs("avx10.2", "avx10.1"),
    needs("avx10.2-512", "avx10.2"),
];

/// Vectors of AArch64.
const AARCH64: &[Needs] = &[
    needs("neon", "fp-armv8"),
    needs("aes", "neon"),
    needs("sha2", "neon"),
    needs("dotprod", "neon"),
    needs("rdm", "neon"),
    needs("bf16", "neon"),
    needs("i8mm", "neon"),
    needs("fullfp16", "fp-armv8"),
    needs("fp16fml", "fullfp16"),
    needs("sve", "fullfp16"),
    needs("sve2", "sve"),
    needs("sve2p1", "sve2"),
    needs("sve2p2", "sve2p1"),
];

/// Extensions of RISC-V, as far as vectors and floats are concerned.
const RISCV: &[Needs] = &[
    needs("f", "zicsr"),
    needs("d", "f"),
    needs("v", "d,zve64d,zvl128b"),
    needs("zve64d", "d,zve64f"),
    needs("zve64f", "zve32f,zve64x"),
    needs("zve64x", "zve32x,zvl64b"),
    needs("zve32f", "f,zve32x"),
    needs("zve32x", "zicsr,zvl32b"),
    needs("zvl64b", "zvl32b"),
    needs("zvl128b", "zvl64b"),
    needs("zvl256b", "zvl128b"),
    needs("zvl512b", "zvl256b"),
    needs("zvl1024b", "zvl512b"),
];

/// The features of a processor that may have more, and lack some.
pub(super) struct Features {
    table: &'static [Needs],
    has: BTreeSet<String>,
}

impl Features {
    /// Of a processor of an instruction set: what it has, by names with commas between, and what comes with that.
    pub(super) fn of(architecture: Architecture, own: &str) -> Self {
        Self::within(
            match architecture {
                Architecture::X86_64 => X86_64,
                Architecture::Aarch64 => AARCH64,
                Architecture::Wasm32 | Architecture::Nvptx64 => &[],
            },
            own,
        )
    }

    /// Of a processor of RISC-V.
    pub(super) fn of_riscv(own: &str) -> Self {
        Self::within(RISCV, own)
    }

    /// Of a processor whose features stand for themselves.
    pub(super) fn unrelated(own: &str) -> Self {
        Self::within(&[], own)
    }

    fn within(table: &'static [Needs], own: &str) -> Self {
        let mut features = Self { table, has: BTreeSet::new() };
        names(own).for_each(|name| features.add(name));
        features
    }

    /// Adds and takes away, in the order that a target's `mattr` says: `+avx2,-fma`. A name without a sign is added.
    pub(super) fn changed(mut self, changes: &str) -> Self {
        for change in names(changes) {
            match change.strip_prefix('-') {
                Some(name) => self.remove(name),
                None => self.add(change.trim_start_matches('+')),
            }
        }
        self
    }

    /// The names.
    pub(super) fn into_names(self) -> BTreeSet<String> {
        self.has
    }

    fn add(&mut self, name: &str) {
        if self.has.insert(name.to_string()) {
            needed_by(self.table, name).for_each(|needed| self.add(needed));
        }
    }

    fn remove(&mut self, name: &str) {
        // What a feature needs is there with it, so nothing needs one that is not there: hosts name a hundred of those.
        if !self.has.contains(name) {
            return;
        }
        let table = self.table;
        self.has.retain(|feature| !is_or_needs(table, feature, name));
    }
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|name| !name.is_empty())
}

fn needed_by(table: &'static [Needs], feature: &str) -> impl Iterator<Item = &'static str> + use<> {
    let row = table.iter().find(|row| row.feature == feature);
    row.into_iter().flat_map(|row| names(row.needs))
}

/// Whether a feature is the one of that name, or one that there is not without it.
fn is_or_needs(table: &'static [Needs], feature: &str, name: &str) -> bool {
    feature == name || needed_by(table, feature).any(|needed| is_or_needs(table, needed, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_and_goes_along() {
        let of = |own, changes| Features::of(Architecture::X86_64, own).changed(changes).into_names();
        assert!(of("", "+avx512vl").is_superset(&of("", "avx2,fma,f16c,sse4.2")));
        assert_eq!(of("avx2,popcnt", "-sse2").into_iter().collect::<Vec<_>>(), ["popcnt", "sse"]);
        assert!(of("", "+vaes,-aes").contains("avx2") && !of("", "+vaes,-aes").contains("vaes"));
        assert_eq!(of("", "-fma,+fma"), of("", "+fma"));
    }

    #[test]
    fn whatever_is_needed_is_a_feature_of_the_instruction_set() {
        for (table, known) in [(X86_64, super::super::features::X86_64), (AARCH64, super::super::features::AARCH64)] {
            for row in table {
                for name in names(row.needs).chain([row.feature]) {
                    assert!(known.split(' ').any(|feature| feature == name), "{name}");
                }
            }
        }
    }
}
