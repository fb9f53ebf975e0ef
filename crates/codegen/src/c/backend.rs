//! C as a back end.

use relaxide_ir::{Ref, Target, target::TargetKind};
use relaxide_tir::PrimFunc;

use super::{check_target, compile_to_c};
use crate::backend::{Artifact, Backend, Profile, check_options};
use crate::{CodegenError, CompileSettings};

/// C, for machines that there is no native code for.
pub(crate) struct C;

impl Backend for C {
    fn kind(&self) -> TargetKind {
        TargetKind::C
    }

    fn profile(&self) -> Profile {
        // Compilers of C make vectors of loops themselves; unrolled, loops are long to read and to compile.
        Profile { keep_loops: true, is_loadable: false, has_lines: false, is_device: false }
    }

    fn ending(&self, _target: &Target) -> Result<&'static str, CodegenError> {
        Ok("c")
    }

    fn check(&self, target: &Target) -> Result<(), CodegenError> {
        check_target(target)?;
        check_options(target, &["num-cores"])
    }

    fn emit(
        &self,
        kernels: &[Ref<PrimFunc>],
        target: &Target,
        settings: CompileSettings<'_>,
        _: &mut dyn FnMut(usize, usize),
    ) -> Result<Artifact, CodegenError> {
        if settings.debug.is_some() {
            return Err(CodegenError::LinesInC);
        }
        Ok(Artifact::Source(Box::new(compile_to_c(kernels, target)?)))
    }

    fn text(&self, kernels: &[Ref<PrimFunc>], target: &Target, form: &str) -> Option<Result<String, CodegenError>> {
        matches!(form, "" | "c").then(|| compile_to_c(kernels, target).map(|source| source.text(&[], "")))
    }
}
