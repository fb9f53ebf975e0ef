//! The compiler to the Relay VM.
//!
//! | step | what it does |
//! | --- | --- |
//! | A-normal form | every computation has a name ([`crate::to_a_normal_form`]) |
//! | types | inferred anew, for the new names too |
//! | blocks ([`blocks`]) | each function becomes steps: closures are lifted, runs of operators become *regions* |
//! | regions ([`region`]) | a region is a function of Relax; Relax folds, legalizes and fuses it into kernels |
//! | emission ([`emit`]) | steps become instructions; kernels get memory, their shapes are computed where they are not known |
//! | memory ([`arena`]) | results that are not needed at the same time share one storage |
//! | lifetimes ([`lifetime`]) | a register is forgotten behind its last use |
//!
//! So kernels are those that Relax has, fused as there, and an operator is lowered in one place only. The result is an
//! executable without its kernels' machine code, and the kernels: who has a back end compiles them.

mod arena;
mod blocks;
mod constants;
mod emit;
mod emit_region;
mod lifetime;
mod lines;
mod matching;
mod memory;
mod region;
mod shapes;

use relaxide_ir::pass::{KernelRunner, Pass, PassContext};
use relaxide_ir::{Code, Diagnostic, IRModule, Target};
use relaxide_relax::transform;
use relaxide_relay_vm::Executable;
use relaxide_tir::PrimFunc;

use crate::devices::{Placement, mentions_devices, placement};
use crate::stack::deep;
use crate::transform::TransformError;
use crate::*;

/// A compiled program whose kernels have no machine code yet.
pub struct Compiled {
    /// The program.
    pub executable: Executable,
    /// Its kernels, under the names by which the program calls them.
    pub kernels: IRModule,
}

/// Options of a compilation.
#[derive(Default)]
pub struct VmOptions {
    /// What kernels are compiled for.
    pub target: Target,
    /// Processors besides the target's for which they are compiled as well.
    pub also: Vec<Target>,
    /// Passes of Relax that are left out, by name.
    pub disabled: Vec<String>,
    /// Where values of programs over several devices are of which the program says nothing.
    pub devices: DeviceConfig,
    /// What carries kernels over constants out: without it, those that are interpreted in a short time become constants, and
    /// large ones run with every call of the program.
    pub runner: Option<KernelRunner>,
}

/// Why a program was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Types contradict each other.
    #[error("{}", types_text(.0))]
    Types(Vec<TypeError>),
    /// A call or a construct that cannot be compiled.
    #[error("{0}")]
    Program(Diagnostic),
    /// A pass of Relax refused.
    #[error("{0}")]
    Pass(#[from] relaxide_ir::pass::PassError),
}

impl CompileError {
    /// What kind of problem it is.
    pub fn code(&self) -> Code {
        match self {
            CompileError::Types(_) => Code::Type,
            CompileError::Program(d) => d.code,
            CompileError::Pass(error) => error.refusal.code,
        }
    }

    /// As it is shown; `source` gives the text of a program by the name that it was parsed under.
    pub fn diagnostic(&self, source: impl FnOnce(&str) -> Option<String>) -> Diagnostic {
        match self {
            CompileError::Types(errors) => match errors.first() {
                Some(error) => {
                    let text = error.span.as_ref().and_then(|span| source(&span.source));
                    let d = Diagnostic::new(Code::Type, error.message.clone());
                    error.span.as_ref().map_or(d.clone(), |span| d.with_span(span, text.as_deref()))
                }
                None => Diagnostic::new(Code::Type, "the program's types contradict each other"),
            },
            CompileError::Program(d) => d.clone(),
            CompileError::Pass(error) => error.diagnostic(source),
        }
    }
}

fn types_text(errors: &[TypeError]) -> String {
    errors.iter().map(|e| e.diagnostic(None).to_string()).collect::<Vec<_>>().join("\n")
}

pub(crate) fn unsupported<T>(
    message: impl std::fmt::Display,
    span: Option<&relaxide_ir::Span>,
) -> Result<T, CompileError> {
    let d = Diagnostic::new(Code::Unsupported, message.to_string());
    Err(CompileError::Program(match span {
        Some(span) => d.with_span(span, None),
        None => d,
    }))
}

impl From<relaxide_ffi::Error> for CompileError {
    fn from(error: relaxide_ffi::Error) -> Self {
        CompileError::Program(Diagnostic::new(Code::Operator, error.message()))
    }
}

impl From<TransformError> for CompileError {
    fn from(error: TransformError) -> Self {
        match error {
            TransformError::Types(errors) => CompileError::Types(errors),
            other => CompileError::Program(Diagnostic::new(Code::Operator, other.to_string())),
        }
    }
}

impl From<op::LowerError> for CompileError {
    fn from(error: op::LowerError) -> Self {
        CompileError::Program(Diagnostic::new(Code::Operator, error.to_string()))
    }
}

impl From<relaxide_relax::BuildError> for CompileError {
    fn from(error: relaxide_relax::BuildError) -> Self {
        CompileError::Program(Diagnostic::new(Code::Operator, error.to_string()))
    }
}

/// The passes of Relax that make kernels of regions. What a region gives goes to the program, not to a caller: no copies.
fn kernel_passes() -> Vec<&'static str> {
    let legalize = transform::pipeline("default").map(|p| p.stage(transform::Stage::Legalize).collect::<Vec<_>>());
    let mut passes = legalize.unwrap_or_default();
    passes.retain(|pass| *pass != "CopyReturnedAliases");
    passes.push("RewriteDataflowReshape");
    passes
}

/// Compiles a module: all functions that `main` reaches, or all if there is no `main`.
pub fn vm_compile(module: &Module, options: &VmOptions) -> Result<Compiled, CompileError> {
    deep(|| {
        let mut module = crate::transform::remove_unused_functions(module, &["main"]);
        module = crate::transform::eta_expand(&crate::transform::expand_composed(&module));
        let over_devices = mentions_devices(&module) || options.devices != DeviceConfig::default();
        if over_devices {
            module = plan_devices(&module, &options.devices)?;
        }
        let module = crate::transform::to_a_normal_form(&module);
        let types = infer(&module).map_err(CompileError::Types)?;
        let placement = if over_devices { placement(&module, &types, &options.devices)? } else { Placement::default() };
        let plan = blocks::plan(&module, &types, placement)?;
        let context = PassContext {
            target: options.target.clone(),
            also: options.also.clone(),
            disabled: options.disabled.clone(),
            runner: options.runner.clone(),
            ..PassContext::default()
        };
        let passes = transform::parse_passes(&kernel_passes().join(", "))?;
        let lowered = Pass::sequential("relay kernels", passes).run(plan.regions.clone(), &context)?;
        emit::emit(&plan, &lowered)
    })
}

/// The kernels of a lowered module that a program calls, under its names for them.
pub(crate) fn renamed(kernels: Vec<(String, relaxide_ffi::Ref<PrimFunc>)>) -> IRModule {
    let mut module = IRModule::new();
    for (name, kernel) in kernels {
        let mut kernel = (*kernel).clone();
        kernel.attrs = kernel.attrs.with("global_symbol", name.clone());
        module.insert(name, relaxide_ffi::Ref::new(kernel));
    }
    module
}
