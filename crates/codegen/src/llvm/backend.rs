//! Native code as a back end.

use relaxide_ir::{Ref, Target, target::TargetKind};
use relaxide_tir::PrimFunc;

use crate::backend::{Artifact, Backend, Processor, Profile, check_options};
use crate::compile::{assembly, compile_with, llvm_text};
use crate::{Architecture, CodegenError, CompileSettings, NativeTarget};

/// Native code through LLVM.
pub(crate) struct Llvm;

/// The options that have an effect.
const OPTIONS: &[&str] = &["mtriple", "mcpu", "mattr", "num-cores", "opt-level", "deterministic"];

impl Backend for Llvm {
    fn kind(&self) -> TargetKind {
        TargetKind::Llvm
    }

    fn profile(&self) -> Profile {
        Profile { keep_loops: false, is_loadable: true, has_lines: true, is_device: false }
    }

    fn ending(&self, target: &Target) -> Result<&'static str, CodegenError> {
        let is_wasm = NativeTarget::resolve(target)?.architecture == Architecture::Wasm32;
        Ok(if is_wasm { "wasm" } else { "so" })
    }

    fn check(&self, target: &Target) -> Result<(), CodegenError> {
        check_options(target, OPTIONS)?;
        NativeTarget::resolve(target).map(drop)
    }

    fn processor(&self, target: &Target) -> Result<Option<Processor>, CodegenError> {
        let native = NativeTarget::resolve(target)?;
        Ok(Some(Processor { named: native.named(target), needed: native.needed() }))
    }

    fn emit(
        &self,
        kernels: &[Ref<PrimFunc>],
        target: &Target,
        settings: CompileSettings<'_>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Artifact, CodegenError> {
        Ok(Artifact::Library(Box::new(compile_with(kernels, target, settings, progress)?)))
    }

    fn text(&self, kernels: &[Ref<PrimFunc>], target: &Target, form: &str) -> Option<Result<String, CodegenError>> {
        match form {
            "" | "ll" => Some(llvm_text(kernels, target)),
            "asm" | "s" => Some(assembly(kernels, target)),
            // The same kernels in C, to be read.
            "c" => Some(crate::compile_to_c(kernels, &Target::c()).map(|source| source.text(&[], ""))),
            _ => None,
        }
    }
}
