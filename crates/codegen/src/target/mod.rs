//! What a [`Target`] means to LLVM: triple, processor, features, and what the code generator must know of them.

mod cpus;

use inkwell::{
    OptimizationLevel,
    targets::{self, CodeModel, InitializationConfig, RelocMode, TargetMachine, TargetTriple},
};
use relaxide_ir::Target;

use crate::{error::CodegenError, export::Machine};

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
    pub machine: Machine,
    /// How hard LLVM optimises, 0 to 3.
    pub opt_level: u8,
}

impl NativeTarget {
    /// Resolves a target, or says what is wrong with it.
    pub fn resolve(target: &Target) -> Result<Self, CodegenError> {
        let host = host_triple();
        let triple = if target.mtriple.is_empty() { host.clone() } else { normal_triple(&target.mtriple) };
        let unsupported = || CodegenError::UnsupportedTarget(target.to_string());
        let machine = match triple.split('-').next() {
            Some("x86_64" | "amd64") => Machine::X86_64,
            Some("aarch64" | "arm64") => Machine::Aarch64,
            _ => return Err(unsupported()),
        };
        if target.kind != "llvm" || !triple.contains("linux") {
            return Err(unsupported());
        }
        initialize();
        let is_host = triple == host;
        let (cpu, mut features) = match (target.mcpu.as_str(), is_host) {
            ("", true) => (text(TargetMachine::get_host_cpu_name().to_str()), host_features()),
            ("", false) => (baseline(machine).to_string(), String::new()),
            (cpu, _) => (cpu.to_string(), String::new()),
        };
        // What the host calls itself needs no checking; it may be newer than our list.
        if !target.mcpu.is_empty() {
            check_cpu(&cpu, machine, &triple)?;
        }
        for feature in target.mattr.split(',').filter(|feature| !feature.is_empty()) {
            features = if features.is_empty() { feature.to_string() } else { format!("{features},{feature}") };
        }
        let opt_level = u8::try_from(target.opt_level.clamp(0, 3)).unwrap_or(3);
        Ok(Self { triple, cpu, features, machine, opt_level })
    }

    /// Whether the processor converts half-precision numbers by an instruction.
    pub(crate) fn has_f16_conversion(&self) -> bool {
        if self.machine == Machine::Aarch64 {
            return true;
        }
        let said = self.features.split(',').rev().find_map(|feature| match feature {
            "+f16c" => Some(true),
            "-f16c" => Some(false),
            _ => None,
        });
        said.unwrap_or_else(|| cpus::X86_64_WITH_F16C.contains(&self.cpu.as_str()))
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
        target
            .create_target_machine(&triple, &self.cpu, &self.features, level, RelocMode::PIC, CodeModel::Small)
            .ok_or_else(|| CodegenError::Llvm(format!("no code generator for {} on {}", self.cpu, self.triple)))
    }
}

/// What is safe on any machine of the kind.
fn baseline(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "x86-64",
        Machine::Aarch64 => "generic",
    }
}

fn initialize() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        targets::Target::initialize_x86(&InitializationConfig::default());
        targets::Target::initialize_aarch64(&InitializationConfig::default());
    });
}

fn host_triple() -> String {
    text(TargetMachine::get_default_triple().as_str().to_str())
}

fn normal_triple(triple: &str) -> String {
    text(TargetMachine::normalize_triple(&TargetTriple::create(triple)).as_str().to_str())
}

fn host_features() -> String {
    text(TargetMachine::get_host_cpu_features().to_str())
}

fn text<E>(text: Result<&str, E>) -> String {
    text.unwrap_or_default().to_string()
}

fn check_cpu(cpu: &str, machine: Machine, triple: &str) -> Result<(), CodegenError> {
    let known: Vec<&str> = match machine {
        Machine::X86_64 => cpus::X86_64_WITH_F16C.iter().chain(cpus::X86_64_WITHOUT_F16C).copied().collect(),
        Machine::Aarch64 => cpus::AARCH64.to_vec(),
    };
    if known.contains(&cpu) {
        return Ok(());
    }
    let mut near: Vec<(usize, &str)> = known.iter().map(|name| (distance(cpu, name), *name)).collect();
    near.sort();
    let limit = (cpu.len() / 2).max(2);
    let candidates = near.iter().take(3).filter(|(far, _)| *far <= limit).map(|(_, name)| name.to_string()).collect();
    Err(CodegenError::UnknownCpu { cpu: cpu.to_string(), triple: triple.to_string(), candidates })
}

/// How many letters must be added, dropped or changed to get from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<NativeTarget, CodegenError> {
        NativeTarget::resolve(&text.parse::<Target>().unwrap())
    }

    #[test]
    fn the_host_is_spelled_out() {
        let host = resolve("llvm").unwrap();
        assert!(!host.cpu.is_empty() && host.features.contains('+'), "{host:?}");
        assert_eq!(Some(host.machine), Machine::host());
    }

    #[test]
    fn an_unknown_processor_names_its_neighbours() {
        let error = resolve("llvm -mtriple=x86_64-linux-gnu -mcpu=skylke").unwrap_err().to_string();
        assert!(error.contains("unknown processor `skylke`") && error.contains("skylake"), "{error}");
        assert!(matches!(resolve("llvm -mtriple=riscv64-linux-gnu"), Err(CodegenError::UnsupportedTarget(_))));
    }

    #[test]
    fn half_precision_conversion_follows_processor_and_features() {
        let has = |text: &str| resolve(text).unwrap().has_f16_conversion();
        assert!(has("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=nehalem"));
        assert!(!has("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=-f16c"));
        assert!(has("llvm -mtriple=aarch64-linux-gnu"));
    }
}
