//! What is known of a target's processor, whether or not kernels are compiled for it.

use std::collections::BTreeSet;

use relaxide_ir::Target;
use relaxide_ir::target::processors::{self, Processors};
use relaxide_tir::schedule::Machine;

use super::{Architecture, Features, NativeTarget, names, others};
use crate::error::{CodegenError, TargetPart};

/// The width of a vector where a processor of another family says none.
const PLAIN_VECTOR_BITS: i64 = 128;

/// A processor, its family and its features.
#[derive(Clone, Debug)]
pub struct Facts {
    /// All processors of its family, by LLVM's names.
    pub processors: Vec<&'static str>,
    /// What it can do, by LLVM's names: of features that kernels may use, and those that come with them.
    pub features: BTreeSet<String>,
    /// How many bits its widest vectors have; scalable ones count by their least width.
    pub vector_bits: i64,
}

impl Facts {
    /// Of a target's processor, or what is wrong with the target.
    pub fn of(target: &Target) -> Result<Self, CodegenError> {
        match Other::of_triple(target.mtriple()) {
            Some(other) => other.facts(target),
            None => Self::native(target),
        }
    }

    fn native(target: &Target) -> Result<Self, CodegenError> {
        let native = NativeTarget::resolve(target)?;
        let always = match native.architecture {
            Architecture::X86_64 => "+sse2",
            Architecture::Aarch64 => "+neon",
            Architecture::Wasm32 | Architecture::Nvptx64 => "",
        };
        let own: Vec<String> = native.kernel_features().into_iter().collect();
        let features = Features::of(native.architecture, &own.join(",")).changed(always).changed(target.mattr());
        let features = features.into_names();
        let widest = [("avx512f", 512), ("avx", 256)].into_iter().find(|(name, _)| features.contains(*name));
        let of_kernels = Machine::of(target).vector_bytes * 8;
        let vector_bits = widest.map_or(of_kernels, |(_, bits)| of_kernels.max(bits));
        Ok(Self { processors: native.architecture.processors(), features, vector_bits })
    }
}

/// The instruction sets whose processors are known, by their names in triples: those that kernels are compiled for, and others.
pub fn known_architectures() -> impl Iterator<Item = &'static str> {
    names::architectures().chain(["arm", "riscv32", "riscv64"])
}

/// A family of processors that no kernels are compiled for.
#[derive(Clone, Copy)]
enum Other {
    Riscv32,
    Riscv64,
    Arm,
}

impl Other {
    fn of_triple(triple: &str) -> Option<Self> {
        let architecture = triple.split('-').next().unwrap_or_default();
        match architecture {
            "riscv32" | "riscv32be" => return Some(Self::Riscv32),
            "riscv64" | "riscv64be" => return Some(Self::Riscv64),
            _ => {}
        }
        // `armeb`, `armv7a`, `thumbv8m.main`: a version, or the other order of bytes.
        let version = architecture.strip_prefix("arm").or_else(|| architecture.strip_prefix("thumb"))?;
        let is_version = version.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c| ('4'..='9').contains(&c)));
        (version.is_empty() || version == "eb" || is_version).then_some(Self::Arm)
    }

    fn table(self) -> &'static [Processors] {
        match self {
            Self::Riscv32 | Self::Riscv64 => others::RISCV,
            Self::Arm => others::ARM,
        }
    }

    /// The processor that a target names; the plainest of the family where it names none.
    fn processor(self, target: &Target) -> &str {
        match (target.mcpu(), self) {
            ("" | "generic", Self::Riscv32) => "generic-rv32",
            ("" | "generic", Self::Riscv64) => "generic-rv64",
            ("", Self::Arm) => "generic",
            (cpu, _) => cpu,
        }
    }

    fn facts(self, target: &Target) -> Result<Facts, CodegenError> {
        let (table, cpu) = (self.table(), self.processor(target));
        let known = processors::names(table);
        let own = processors::features_of(table, cpu)
            .ok_or_else(|| names::unknown(TargetPart::Processor, cpu, target.mtriple(), known.clone()))?;
        let features = match self {
            Self::Riscv32 | Self::Riscv64 => Features::of_riscv(own),
            Self::Arm => Features::unrelated(own),
        };
        let features = features.changed(target.mattr()).into_names();
        let mut processors: Vec<&str> = known.collect();
        processors.sort_unstable();
        let vector_bits = vector_bits(&features);
        Ok(Facts { processors, features, vector_bits })
    }
}

/// The least width of vectors of RISC-V with these features, which say it as `zvl256b`.
fn vector_bits(features: &BTreeSet<String>) -> i64 {
    let width = |name: &String| name.strip_prefix("zvl")?.strip_suffix('b')?.parse::<i64>().ok();
    features.iter().filter_map(width).max().map_or(PLAIN_VECTOR_BITS, |bits| bits.max(PLAIN_VECTOR_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(target: &str) -> Result<Facts, CodegenError> {
        Facts::of(&target.parse().unwrap())
    }

    #[test]
    fn families_without_kernels_are_known_by_their_triples() {
        for (triple, known) in [
            ("riscv64-linux-gnu", "sifive-x280"),
            ("riscv32", "rocket-rv32"),
            ("armv7a-linux-gnueabihf", "cortex-a9"),
            ("thumbv8m.main-none-eabi", "cortex-m33"),
            ("armeb-linux-gnueabi", "krait"),
        ] {
            assert!(facts(&format!("llvm -mtriple={triple}")).unwrap().processors.contains(&known), "{triple}");
        }
        for triple in ["armada-linux-gnu", "riscv128-linux-gnu", "armv3-linux-gnu"] {
            assert!(facts(&format!("llvm -mtriple={triple}")).is_err(), "{triple}");
        }
    }

    #[test]
    fn widths_follow_features() {
        let bits = |target: &str| facts(&format!("llvm -mtriple={target}")).unwrap().vector_bits;
        assert_eq!(bits("riscv64-linux-gnu -mcpu=generic-rv64"), 128);
        assert_eq!(bits("riscv64-linux-gnu -mcpu=sifive-x280"), 512);
        assert_eq!(bits("riscv64-linux-gnu -mcpu=sifive-x280 -mattr=-zvl128b"), 128);
        assert_eq!(bits("arm-linux-gnueabihf -mcpu=cortex-a9"), 128);
        assert_eq!(bits("x86_64-linux-gnu -mcpu=ivybridge"), 256);
        assert_eq!(bits("x86_64-linux-gnu -mcpu=x86-64"), 128);
    }

    #[test]
    fn unknown_processors_show_their_neighbours() {
        let said = facts("llvm -mtriple=riscv64-linux-gnu -mcpu=sifive-x2800").unwrap_err().to_string();
        assert!(said.starts_with("unknown processor `sifive-x2800` for riscv64-linux-gnu; did you mean sifive-x280"));
    }
}
