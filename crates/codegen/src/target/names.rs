//! Names in targets, held against what there is: instruction sets, systems, processors, features.

use relaxide_ir::diagnostic::nearest;
use relaxide_ir::target::processors;

use super::{Architecture, features};
use crate::error::{CodegenError, TargetPart};

/// How many names that look alike are shown.
const NEIGHBOURS: usize = 3;

/// Instruction sets by their names in triples.
const ARCHITECTURES: &[(&str, Architecture)] = &[
    ("x86_64", Architecture::X86_64),
    ("amd64", Architecture::X86_64),
    ("aarch64", Architecture::Aarch64),
    ("arm64", Architecture::Aarch64),
    ("wasm32", Architecture::Wasm32),
];

/// The instruction set and system that a triple in normal form names.
pub(super) fn architecture(triple: &str) -> Result<Architecture, CodegenError> {
    let given = triple.split('-').next().unwrap_or_default();
    let found = ARCHITECTURES.iter().find(|(name, _)| *name == given);
    let known = ARCHITECTURES.iter().map(|(name, _)| *name);
    let (_, architecture) = found.ok_or_else(|| unknown(TargetPart::Architecture, given, triple, known))?;
    // Behind the instruction set come the vendor, the system and its environment.
    let mut rest = triple.split('-').skip(1);
    if *architecture != Architecture::Wasm32 && !rest.any(|part| part.starts_with("linux")) {
        let system = triple.split('-').nth(2).unwrap_or_default();
        return Err(unknown(TargetPart::System, system, triple, ["linux"].into_iter()));
    }
    Ok(*architecture)
}

/// Refuses a processor that LLVM does not know.
pub(super) fn check_processor(cpu: &str, architecture: Architecture, triple: &str) -> Result<(), CodegenError> {
    let known = processors(architecture);
    if known.contains(&cpu) {
        return Ok(());
    }
    Err(unknown(TargetPart::Processor, cpu, triple, known.into_iter()))
}

/// Refuses a feature, written `+name` or `-name`, that LLVM does not know.
pub(super) fn check_feature(feature: &str, architecture: Architecture, triple: &str) -> Result<(), CodegenError> {
    let name = feature.trim_start_matches(['+', '-']);
    let (sets, tuning) = features(architecture);
    if sets.split(' ').chain(tuning.split(' ')).any(|known| known == name) {
        return Ok(());
    }
    // Whoever misspells wanted an instruction set.
    Err(unknown(TargetPart::Feature, name, triple, sets.split(' ')))
}

/// The features of a machine's processors: instruction sets, and the rest.
pub(super) fn features(architecture: Architecture) -> (&'static str, &'static str) {
    match architecture {
        Architecture::X86_64 => (features::X86_64, features::X86_64_TUNING),
        Architecture::Aarch64 => (features::AARCH64, features::AARCH64_TUNING),
        Architecture::Wasm32 => (features::WASM32, ""),
        Architecture::Nvptx64 => ("", ""),
    }
}

/// Instruction sets by their names in triples.
pub(super) fn architectures() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().map(|(name, _)| *name)
}

pub(super) fn processors(architecture: Architecture) -> Vec<&'static str> {
    match architecture {
        Architecture::X86_64 => processors::names(processors::X86_64).collect(),
        Architecture::Aarch64 => processors::names(processors::AARCH64).collect(),
        Architecture::Wasm32 => processors::WASM32.to_vec(),
        Architecture::Nvptx64 => processors::NVPTX64.to_vec(),
    }
}

pub(super) fn unknown<'a>(
    part: TargetPart,
    given: &str,
    triple: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> CodegenError {
    let near = nearest(given, known.clone(), NEIGHBOURS).into_iter().map(str::to_string).collect();
    let mut known: Vec<String> = known.map(str::to_string).collect();
    known.sort_unstable();
    CodegenError::Unknown { part, given: given.to_string(), triple: triple.to_string(), near, known }
}
