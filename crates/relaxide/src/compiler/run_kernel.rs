//! Kernels that are compiled for this machine and run at once: what a compilation computes of constants.
//!
//! A network may standardize its weights or multiply them with each other. Interpreted, that takes minutes; compiled, it takes
//! what the same costs when the program runs, once. Kernels that are the same up to names are compiled once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use relaxide_codegen::CodegenError;
use relaxide_ffi::{
    Any, AnyView, Error, ErrorKind, FreeVars, Function, ObjectRef, Ref, SavedBytes, structural_equal, structural_hash,
};
use relaxide_ir::Target;
use relaxide_ir::pass::KernelRunner;
use relaxide_tir::lower::{LowerOptions, lower_with};
use relaxide_tir::{PrimFunc, schedule};

/// The name of a kernel in its library.
const NAME: &str = "kernel";

/// Kernels that are compiled, by their structural hash.
type Compiled = HashMap<u64, Vec<(Ref<PrimFunc>, Function)>>;

/// What runs the kernels of one compilation.
pub fn runner() -> KernelRunner {
    let compiled: Mutex<Compiled> = Mutex::default();
    KernelRunner::new(move |kernel: &ObjectRef, args: &[Any]| {
        let kernel: Ref<PrimFunc> =
            kernel.clone().downcast().map_err(|_| Error::new(ErrorKind::TypeError, "only kernels are run"))?;
        let attrs = kernel.attrs.clone().with("global_symbol", NAME);
        let named = Ref::new(PrimFunc { attrs, ..PrimFunc::clone(&kernel) });
        let key = structural_hash(&named, FreeVars::Mapped);
        let mut compiled = compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = compiled.entry(key).or_default();
        let same = known.iter().find(|(other, _)| structural_equal(other, &named, FreeVars::Mapped).is_ok());
        let function = match same {
            Some((_, function)) => function.clone(),
            None => {
                let function = compile(&named).map_err(|why| Error::new(ErrorKind::RuntimeError, why.to_string()))?;
                known.push((named, function.clone()));
                function
            }
        };
        drop(compiled);
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        function.call(&views).map(drop)
    })
}

/// Why a kernel is no function of this process.
#[derive(Debug, thiserror::Error)]
enum NotRun {
    #[error(transparent)]
    Schedule(#[from] schedule::ScheduleError),
    #[error(transparent)]
    Lower(#[from] relaxide_tir::lower::LowerError),
    #[error(transparent)]
    Compile(#[from] CodegenError),
    #[error(transparent)]
    Library(#[from] std::io::Error),
    #[error(transparent)]
    Load(#[from] Error),
    #[error("the library has no function {NAME}")]
    Missing,
}

/// A kernel as a function of this process: what a program's constants become must not depend on the machine that compiles it, if its processor
/// allows that.
fn compile(kernel: &PrimFunc) -> Result<Function, NotRun> {
    match compile_for(kernel, &Target::default().with("deterministic", true)) {
        Err(NotRun::Compile(CodegenError::NoFusedMultiplyAdd { .. })) => compile_for(kernel, &Target::default()),
        other => other,
    }
}

fn compile_for(kernel: &PrimFunc, target: &Target) -> Result<Function, NotRun> {
    let scheduled = schedule::apply(kernel, target)?;
    let lowered = lower_with(&scheduled.func, LowerOptions::default())?;
    let library = relaxide_codegen::compile(&[Ref::new(lowered)], target)?;
    let file = tempfile::Builder::new().prefix("relaxide-").suffix(".so").tempfile()?;
    relaxide_codegen::export_library(&SavedBytes::default(), &library, file.path())?;
    let module = crate::load_module(file.path())?;
    module.get_function(NAME, false).ok_or(NotRun::Missing)
}
