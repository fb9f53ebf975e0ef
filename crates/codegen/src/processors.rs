//! Several processors for one library: how they are written, and the order in which they are preferred.
//!
//! `x86-64-v2,x86-64-v3,x86-64-v4` names three targets. A word that is no kind of target is a processor: of this machine's instruction
//! set, else of the one that has it; behind a target, with that one's options. So `llvm -mtriple=aarch64-linux-gnu -mcpu=generic,neoverse-n1`
//! is two targets for AArch64, and `cortex-a72,neoverse-n1` the same in short.
//!
//! The kernels of each are compiled and linked into one library, which chooses where it is loaded
//! ([`variants`](relaxide_runtime::processor::variants)). The first is the one whose instructions all others have: its kernels have their
//! plain names, and what the entries of all kernels call is compiled for it.

use relaxide_ir::target::{TargetError, TargetKind};
use relaxide_ir::{AttrValue, Target};
use relaxide_tir::schedule::Machine;

use crate::{Architecture, CodegenError, NativeTarget, check_target};

/// One of the processors that a library is for.
#[derive(Clone, Debug)]
pub struct ForProcessor {
    /// Its name, which is behind those of its kernels.
    pub name: String,
    /// What its kernels are compiled for.
    pub target: Target,
}

/// The targets in a text with commas between them.
pub fn parse_targets(text: &str) -> Result<Vec<Target>, TargetError> {
    if text.trim_start().starts_with('{') {
        return Ok(vec![text.parse()?]);
    }
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',') {
        // Lists within a target have commas too: of features, which have signs, and of two options.
        match pieces.last_mut() {
            Some(before) if piece.starts_with(['+', '-']) || ends_in_list(before) => {
                before.push(',');
                before.push_str(piece);
            }
            _ => pieces.push(piece.trim().to_string()),
        }
    }
    let mut targets: Vec<Target> = Vec::new();
    for piece in pieces {
        let target = parse_target(&piece, targets.last())?;
        targets.push(target);
    }
    Ok(targets)
}

fn ends_in_list(target: &str) -> bool {
    let last = target.split_whitespace().next_back().unwrap_or_default();
    ["-keys=", "-libs=", "--keys=", "--libs="].iter().any(|option| last.starts_with(option))
}

fn parse_target(text: &str, before: Option<&Target>) -> Result<Target, TargetError> {
    let (word, options) = text.split_once(' ').unwrap_or((text, ""));
    let is_target = TargetKind::named(word).is_some() || text.starts_with('-') || word.contains('/');
    if let Some(before) = before.filter(|before| !is_target && before.kind == TargetKind::Llvm) {
        let mut target = format!("llvm {options}").parse::<Target>()?;
        for (option, value) in before.attrs.0.iter().filter(|(option, _)| !["mcpu", "mattr"].contains(&option.as_str()))
        {
            if target.attrs.get(option).is_none() {
                target.set(option, value)?;
            }
        }
        target.set("mcpu", &AttrValue::from(word))?;
        return Ok(target);
    }
    let has_it = |architecture: &Architecture| architecture.processors().contains(&word);
    match [Architecture::X86_64, Architecture::Aarch64].iter().filter(|_| !is_target).find(|a| has_it(a)) {
        None => text.parse(),
        Some(architecture) if architecture.name() == std::env::consts::ARCH || word == "generic" => {
            format!("llvm -mcpu={word} {options}").parse()
        }
        Some(architecture) => format!("llvm -mtriple={}-linux-gnu -mcpu={word} {options}", architecture.name()).parse(),
    }
}

/// The processors of targets in the order in which they are preferred, the least first; an error where they cannot be in one library.
pub fn in_order(targets: &[Target]) -> Result<Vec<ForProcessor>, CodegenError> {
    let refused = |why: String| CodegenError::Processors { why };
    let mut found = Vec::new();
    for target in targets {
        check_target(target)?;
        if target.kind != TargetKind::Llvm {
            return Err(refused(format!("`{target}` is no native code, of which alone a library has several kinds")));
        }
        let native = NativeTarget::resolve(target)?;
        if native.architecture == Architecture::Wasm32 {
            return Err(refused(format!("`{target}`: a WebAssembly module has kernels for one machine")));
        }
        let name = format!("{}{}", native.cpu, target.mattr().replace(',', ""));
        let order = (Machine::of(target).vector_bytes, native.needed().features.len());
        found.push((order, native, ForProcessor { name, target: target.clone() }));
    }
    found.sort_by_key(|(order, ..)| *order);
    if let Some(((_, first, least), rest)) = found.split_first() {
        let needed = first.needed();
        for (_, native, other) in rest {
            if native.triple != first.triple {
                return Err(refused(format!(
                    "`{}` and `{}` are different machines: write a file for each",
                    least.target, other.target
                )));
            }
            let own = native.needed().features;
            if let Some(lacking) = needed.features.iter().find(|feature| !own.contains(feature)) {
                return Err(refused(format!(
                    "{} has {lacking}, which {} lacks: add a processor whose instructions all of them have, such as {}",
                    least.name,
                    other.name,
                    if first.architecture == Architecture::X86_64 { "x86-64-v2" } else { "generic" },
                )));
            }
        }
    }
    let mut features = found.iter().map(|(_, native, own)| (native.needed().features, own));
    let mut seen: Vec<(Vec<String>, &ForProcessor)> = Vec::new();
    features.try_for_each(|(needed, own)| match seen.iter().find(|(known, _)| *known == needed) {
        Some((_, other)) => Err(refused(format!(
            "{} and {} have the same instructions, so that none could be chosen: leave one of them out",
            other.name, own.name
        ))),
        None => {
            seen.push((needed, own));
            Ok(())
        }
    })?;
    Ok(found.into_iter().map(|(.., own)| own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        parse_targets(text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn processors_are_named_in_short_and_spelled_out() {
        let aarch64 = |cpu: &str| format!("llvm -mtriple=aarch64-linux-gnu -mcpu={cpu}").parse::<Target>().unwrap();
        let short = parse_targets("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72,neoverse-n1").unwrap();
        assert_eq!(short, [aarch64("cortex-a72"), aarch64("neoverse-n1")]);
        let features = parse_targets("llvm -mcpu=x86-64-v3 -mattr=+avxvnni,-fma,llvm -mcpu=x86-64-v4").unwrap();
        assert_eq!((features.len(), features[0].mattr(), features[1].mattr()), (2, "+avxvnni,-fma", ""));
        assert_eq!(parse_targets("c -keys=cpu,arm_cpu").unwrap().len(), 1);
        assert_eq!(parse_targets(r#"{"kind": "llvm", "mcpu": "x86-64-v3"}"#).unwrap().len(), 1);
        assert!(parse_targets("x87").is_err());
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(shown("x86-64-v2,x86-64-v3"), ["llvm -mcpu=x86-64-v2", "llvm -mcpu=x86-64-v3"]);
            assert_eq!(parse_targets("cortex-a72,neoverse-n1").unwrap(), short);
        }
        assert_eq!(shown("llvm"), ["llvm"]);
    }

    #[test]
    fn the_least_is_first_and_what_cannot_be_together_is_refused() {
        let order = |text: &str| in_order(&parse_targets(text).unwrap());
        let triple = "llvm -mtriple=x86_64-linux-gnu";
        let names: Vec<String> =
            order(&format!("{triple} -mcpu=x86-64-v4,x86-64-v2,x86-64-v3 -mattr=+avxvnni,x86-64-v3"))
                .unwrap()
                .into_iter()
                .map(|own| own.name)
                .collect();
        assert_eq!(names, ["x86-64-v2", "x86-64-v3", "x86-64-v3+avxvnni", "x86-64-v4"]);
        for (text, said) in [
            ("llvm -mcpu=x86-64-v2,c", "`c` is no native code"),
            (
                "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2,llvm -mtriple=aarch64-linux-gnu",
                "are different machines",
            ),
            ("llvm -mtriple=x86_64-linux-gnu -mcpu=alderlake,cascadelake", "which cascadelake lacks: add a processor"),
            ("llvm -mtriple=x86_64-linux-gnu -mcpu=corei7,nehalem", "corei7 and nehalem have the same instructions"),
            ("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v2,x86-64-v33", "unknown processor `x86-64-v33`"),
        ] {
            let error = order(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
