//! What a [`Target`] means to LLVM: triple, processor, features, and what the code generator must know of them.

mod architecture;
mod facts;
mod features;
mod implied;
mod names;
mod others;

use std::collections::BTreeSet;

use inkwell::{
    OptimizationLevel,
    targets::{self, CodeModel, InitializationConfig, RelocMode, TargetMachine, TargetTriple},
};
use relaxide_ir::Target;
use relaxide_ir::target::{TargetKind, processors};
use relaxide_runtime::processor::{self, Needed};
use relaxide_tir::schedule::Machine;

pub use architecture::Architecture;
pub use facts::{Facts, known_architectures};

use implied::Features;

use crate::{error::CodegenError, memo::Memo};

/// A target, resolved: the host's own processor is spelled out and the names are known to LLVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeTarget {
    /// The triple in LLVM's normal form.
    pub triple: String,
    /// The processor.
    pub cpu: String,
    /// Features that differ from the processor's own.
    pub features: String,
    /// The instruction set.
    pub architecture: Architecture,
    /// How hard LLVM optimises, 0 to 3.
    pub opt_level: u8,
    /// Whether results have the same bits on every processor.
    pub deterministic: bool,
    /// How many vector registers the processor has.
    vector_registers: i64,
}

impl NativeTarget {
    /// Resolves a target, or says what is wrong with it.
    pub fn resolve(target: &Target) -> Result<Self, CodegenError> {
        let host = host_triple();
        let triple = if target.mtriple().is_empty() { host.clone() } else { normal_triple(target.mtriple()) };
        if target.kind != TargetKind::Llvm {
            return Err(CodegenError::UnsupportedTarget(target.to_string()));
        }
        let architecture = names::architecture(&triple)?;
        initialize();
        let is_host = triple == host;
        let (cpu, mut features) = match (target.mcpu(), is_host) {
            ("", true) => host_processor().clone(),
            ("", false) => (baseline(architecture).to_string(), String::new()),
            (cpu, _) => (cpu.to_string(), String::new()),
        };
        // What the host calls itself needs no checking; it may be newer than our list.
        if !target.mcpu().is_empty() {
            names::check_processor(&cpu, architecture, &triple)?;
        }
        for feature in target.mattr().split(',').filter(|feature| !feature.is_empty()) {
            names::check_feature(feature, architecture, &triple)?;
            features = if features.is_empty() { feature.to_string() } else { format!("{features},{feature}") };
        }
        let opt_level = u8::try_from(target.opt_level().clamp(0, 3)).unwrap_or(3);
        let (vector_registers, deterministic) = (Machine::of(target).vector_registers, target.is_deterministic());
        let native = Self { triple, cpu, features, architecture, opt_level, deterministic, vector_registers };
        if deterministic && !native.has_fused_multiply_add() {
            return Err(CodegenError::NoFusedMultiplyAdd { target: target.to_string(), processor: native.cpu });
        }
        Ok(native)
    }

    /// The processor that a device of CUDA's kind is compiled for.
    pub(crate) fn of_cuda(target: &Target) -> Result<Self, CodegenError> {
        let triple = "nvptx64-nvidia-cuda";
        let cpu = if target.kind == TargetKind::Nvptx { target.mcpu() } else { target.text("arch") };
        names::check_processor(cpu, Architecture::Nvptx64, triple)?;
        Ok(Self {
            triple: triple.to_string(),
            cpu: cpu.to_string(),
            features: String::new(),
            architecture: Architecture::Nvptx64,
            opt_level: 3,
            deterministic: false,
            vector_registers: 255,
        })
    }

    /// Whether the constants of a function may exceed the processor's registers, and instructions read vectors from memory.
    pub(crate) fn reads_coefficients(&self) -> bool {
        self.architecture == Architecture::X86_64 && self.vector_registers < 32
    }

    /// The features that kernels may use, by LLVM's names: the processor's own, with those that the target adds and without
    /// those that it removes, and what either brings along.
    pub fn kernel_features(&self) -> BTreeSet<String> {
        let table = match self.architecture {
            Architecture::X86_64 => processors::X86_64,
            Architecture::Aarch64 => processors::AARCH64,
            Architecture::Wasm32 | Architecture::Nvptx64 => &[],
        };
        let own = processors::features_of(table, &self.cpu).unwrap_or_default();
        Features::of(self.architecture, own).changed(&self.features).into_names()
    }

    /// The target with the processor's name, where it was left to the host.
    pub fn named(&self, target: &Target) -> Target {
        if target.mcpu().is_empty() { target.clone().with("mcpu", self.cpu.as_str()) } else { target.clone() }
    }

    /// What a processor must have to run the kernels.
    pub fn needed(&self) -> Needed {
        let counts = |name: &String| processor::is_of_kernels(name);
        Needed {
            architecture: self.architecture.name().to_string(),
            processor: self.cpu.clone(),
            features: self.kernel_features().into_iter().filter(counts).collect(),
        }
    }

    /// Whether the processor has vectors whose length is known only when it runs.
    pub(crate) fn has_scalable_vectors(&self) -> bool {
        let features = self.kernel_features();
        self.architecture == Architecture::Aarch64 && ["sve", "sve2"].iter().any(|name| features.contains(*name))
    }

    /// Whether the processor has an instruction that gathers in the lanes of a mask, and LLVM takes it: those of AVX2 it takes for
    /// some processors only, and they are no faster than loads.
    pub(crate) fn has_masked_gather(&self) -> bool {
        match self.architecture {
            Architecture::Aarch64 => self.has_scalable_vectors(),
            Architecture::Wasm32 | Architecture::Nvptx64 => false,
            Architecture::X86_64 => self.kernel_features().contains("avx512f"),
        }
    }

    /// Whether a masked load takes a vector as its mask, as those of AVX do: AVX-512 has registers for masks, and older processors have no such load.
    pub(crate) fn has_vectors_as_masks(&self) -> bool {
        let features = self.kernel_features();
        self.architecture == Architecture::X86_64 && features.contains("avx") && !features.contains("avx512f")
    }

    /// Whether a masked store takes the last bits of wider elements.
    pub(crate) fn narrows_as_it_stores(&self) -> bool {
        self.architecture == Architecture::X86_64 && self.kernel_features().contains("avx512f")
    }

    /// Whether an instruction rounds floats to integers of 32 bits, lane by lane, to nearest even, and LLVM knows it: before 20 it went lane by lane.
    pub(crate) fn rounds_to_ints(&self) -> bool {
        self.architecture == Architecture::X86_64 && !cfg!(feature = "llvm19")
    }

    /// Whether the processor converts half-precision numbers by an instruction.
    pub(crate) fn has_f16_conversion(&self) -> bool {
        match self.architecture {
            Architecture::Aarch64 | Architecture::Nvptx64 => true,
            Architecture::Wasm32 => false,
            Architecture::X86_64 => self.kernel_features().contains("f16c"),
        }
    }

    /// Whether the processor adds to a product without rounding it first.
    pub(crate) fn has_fused_multiply_add(&self) -> bool {
        match self.architecture {
            Architecture::Aarch64 | Architecture::Nvptx64 => true,
            Architecture::Wasm32 => false,
            Architecture::X86_64 => self.kernel_features().contains("fma"),
        }
    }

    /// Whether the processor multiplies vectors of any of its lengths by powers of two (AVX-512).
    pub(crate) fn has_scaling(&self) -> bool {
        let features = self.kernel_features();
        self.architecture == Architecture::X86_64 && features.contains("avx512f") && features.contains("avx512vl")
    }

    /// How LLVM lays out data for the target, as modules say it. LLVM says it of an object for the target only, so that is asked once.
    pub(crate) fn layout(&self) -> Result<String, CodegenError> {
        static LAYOUTS: Memo<[String; 3], String> = Memo::new();
        LAYOUTS.get([&self.triple, &self.cpu, &self.features].map(String::clone), || {
            let layout = self.machine()?.get_target_data().get_data_layout();
            Ok(layout.as_str().to_string_lossy().into_owned())
        })
    }

    /// LLVM's object for the target.
    pub(crate) fn machine(&self) -> Result<TargetMachine, CodegenError> {
        initialize();
        let triple = TargetTriple::create(&self.triple);
        let target = targets::Target::from_triple(&triple)
            .map_err(|error| CodegenError::Llvm(error.to_string_lossy().into()))?;
        let level = match self.opt_level {
            0 => OptimizationLevel::None,
            1 => OptimizationLevel::Less,
            2 => OptimizationLevel::Default,
            _ => OptimizationLevel::Aggressive,
        };
        // What is relocatable in WebAssembly is for modules that are linked while they run.
        let addresses = if self.architecture == Architecture::Wasm32 { RelocMode::Static } else { RelocMode::PIC };
        target
            .create_target_machine(&triple, &self.cpu, &self.features, level, addresses, CodeModel::Small)
            .ok_or_else(|| CodegenError::Llvm(format!("no code generator for {} on {}", self.cpu, self.triple)))
    }
}

/// The major version of LLVM.
pub fn llvm_version() -> u32 {
    inkwell::support::get_llvm_version().0
}

impl Architecture {
    /// Its processors, by LLVM's names.
    pub fn processors(self) -> Vec<&'static str> {
        names::processors(self)
    }
}

/// What is safe on any machine of the kind.
fn baseline(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "x86-64",
        Architecture::Aarch64 | Architecture::Wasm32 => "generic",
        Architecture::Nvptx64 => "sm_50",
    }
}

fn initialize() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        targets::Target::initialize_x86(&InitializationConfig::default());
        targets::Target::initialize_aarch64(&InitializationConfig::default());
        targets::Target::initialize_webassembly(&InitializationConfig::default());
        targets::Target::initialize_nvptx(&InitializationConfig::default());
    });
}

fn host_triple() -> String {
    text(TargetMachine::get_default_triple().as_str().to_str())
}

/// The name of the host's processor and its features, which a program asks for often and LLVM finds out each time.
fn host_processor() -> &'static (String, String) {
    static FOUND: std::sync::OnceLock<(String, String)> = std::sync::OnceLock::new();
    FOUND.get_or_init(|| {
        let name = text(TargetMachine::get_host_cpu_name().to_str());
        (name, text(TargetMachine::get_host_cpu_features().to_str()))
    })
}

/// A triple in LLVM's normal form. One that names no system is of Linux, but that of WebAssembly, which has none.
fn normal_triple(triple: &str) -> String {
    let normal = text(TargetMachine::normalize_triple(&TargetTriple::create(triple)).as_str().to_str());
    match normal.split('-').collect::<Vec<_>>().as_slice() {
        [architecture, vendor, "unknown"] if *architecture != "wasm32" => format!("{architecture}-{vendor}-linux-gnu"),
        _ => normal,
    }
}

fn text<E>(text: Result<&str, E>) -> String {
    text.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use relaxide_ir::Code;

    use super::*;

    fn resolve(text: &str) -> Result<NativeTarget, CodegenError> {
        NativeTarget::resolve(&text.parse::<Target>().unwrap())
    }

    #[test]
    fn the_host_is_spelled_out() {
        let host = resolve("llvm").unwrap();
        assert!(!host.cpu.is_empty() && host.features.contains('+'), "{host:?}");
        assert_eq!(Some(host.architecture), Architecture::host());
    }

    /// The error of a target, as a message.
    fn refusal(target: &str) -> String {
        resolve(target).unwrap_err().to_string()
    }

    #[test]
    fn unknown_names_show_their_neighbours() {
        let x86 = "x86_64-unknown-linux-gnu";
        assert_eq!(
            refusal("llvm -mtriple=x86_64-linux-gnu -mcpu=skylke"),
            format!("unknown processor `skylke` for {x86}; did you mean skylake?")
        );
        assert_eq!(
            refusal("llvm -mtriple=x86_64-linux-gnu -mattr=+avx2,-avx512"),
            format!("unknown feature `avx512` for {x86}; did you mean avx512f, avx2, avx512bw?")
        );
        assert_eq!(
            refusal("llvm -mtriple=aarch46-linux-gnu"),
            "kernels are not compiled for instruction set `aarch46` of aarch46-unknown-linux-gnu; did you mean aarch64?"
        );
        assert_eq!(
            refusal("llvm -mtriple=x86_64-apple-darwin"),
            "kernels are not compiled for system `darwin` of x86_64-apple-darwin"
        );
        assert!(resolve("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+sve2,-fuse-aes").is_ok());
    }

    #[test]
    fn errors_say_what_kind_they_are_and_what_there_is() {
        let error = resolve("llvm -mtriple=riscv64-linux-gnu").unwrap_err();
        assert_eq!(error.code(), Code::Architecture);
        assert_eq!(error.help().unwrap(), "known instruction sets: aarch64, amd64, arm64, wasm32, x86_64");
        let error = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=znver3").unwrap_err();
        assert_eq!(error.code(), Code::Processor);
        assert!(error.help().unwrap().contains("neoverse-n1"), "{error:?}");
        assert_eq!(resolve("llvm -mtriple=aarch64-linux-gnu -mattr=+avx2").unwrap_err().code(), Code::Feature);
    }

    #[test]
    fn every_name_in_the_lists_is_unique() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64, Architecture::Wasm32] {
            let (sets, tuning) = names::features(architecture);
            let all: Vec<&str> = sets.split(' ').chain(tuning.split_whitespace()).collect();
            let distinct: std::collections::BTreeSet<&&str> = all.iter().collect();
            assert_eq!(all.len(), distinct.len());
            assert!(all.iter().all(|name| !name.is_empty()));
        }
    }

    #[test]
    fn what_kernels_need_follows_processor_and_features() {
        let needed = |text: &str| resolve(text).unwrap().needed();
        let plain = needed("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64");
        assert_eq!((plain.architecture.as_str(), plain.features.len()), ("x86_64", 0));
        let v3 = needed("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -mattr=-avx2,+aes,+cx16").features;
        assert!(v3.contains(&"fma".into()) && v3.contains(&"aes".into()), "{v3:?}");
        assert!(!v3.contains(&"avx2".into()) && !v3.contains(&"cx16".into()), "{v3:?}");
        assert!(needed("llvm -mcpu=neoverse-v1 -mtriple=aarch64-linux-gnu").features.contains(&"sve".into()));
        assert!(needed("llvm").missing().is_empty(), "the host runs what is compiled for it");
    }

    #[test]
    fn half_precision_conversion_follows_processor_and_features() {
        let has = |text: &str| resolve(text).unwrap().has_f16_conversion();
        assert!(has("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=nehalem"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=-f16c"));
        assert!(has("llvm -mtriple=aarch64-linux-gnu"));
    }

    #[test]
    fn fused_operations_follow_processor_and_features() {
        let has = |text: &str| resolve(text).unwrap().has_fused_multiply_add();
        assert!(has("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=ivybridge"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"));
        assert!(has("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64 -mattr=+avx2,+fma"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=-avx"));
        assert!(has("llvm -mtriple=aarch64-linux-gnu"));
    }
}
