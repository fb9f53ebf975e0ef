//! Pipelines: the orders in which passes are usually run.
//!
//! A pipeline is made of stages, which several share:
//!
//! | stage | what it does |
//! | --- | --- |
//! | [`Stage::Dispatch`] | operators whose kernels depend on the device become kernels |
//! | [`Stage::Append`] | what lengthens a parameter and is a result stays apart from kernels, and is written in place |
//! | [`Stage::Legalize`] | operators become kernels, and kernels are fused |
//! | [`Stage::Lower`] | graphs become statements |
//! | [`Stage::Finalize`] | memory is planned, shapes become computations |
//!
//! `default_build` and those named after devices are TVM's, step by step, and find the devices of what passes have made; `default` is what a build here
//! runs.

use relaxide_ir::pass::{Pass, PassContext, PassError, PassInfo, PassResult};
use relaxide_ir::target::TargetKind;
use relaxide_ir::{IRModule, Target};

use super::parse_passes;
use crate::rewrite::in_function;

/// What a stage of a pipeline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Operators whose kernels depend on the device.
    Dispatch,
    /// Results that lengthen a parameter, where the machine is Relax's.
    Append,
    /// Operators to kernels.
    Legalize,
    /// Graphs to statements.
    Lower,
    /// Statements to what code generation reads.
    Finalize,
}

/// A named order of passes.
#[derive(Debug, Clone, Copy)]
pub struct Pipeline {
    /// The name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// The passes of each stage, in order, as [`parse_passes`] reads them. A stage may come in parts, which pipelines share.
    pub stages: &'static [(Stage, &'static [&'static str])],
}

/// Where the module lists devices: values get theirs, and what crosses is copied. Once for those of the program, and once more for
/// those that passes made since: constants, and what is computed from nothing.
const PLACE: &[&str] = &["RealizeVDevice"];
const DISPATCH: &[&str] = &["DispatchSampling", "DispatchSortScan"];
const FUSED: &[&str] =
    &["LegalizeOps(fast=True)", "AnnotateTIROpPattern", "FoldConstant", "FuseOps(keep_scalars=True)", "FuseTIR"];
const SPREAD: &[&str] = &["ApplyDefaultSchedule"];
/// Graphs, before operators become kernels.
const GRAPH: &[&str] = &[
    "LambdaLift",
    "FoldBatchnormToConv2D(keep_training=True)",
    "CanonicalizeBindings",
    "FoldScaleToConv2D",
    "DecomposeOpsForInference(scale_first=True)",
    "CanonicalizeBindings",
    "DeadCodeElimination(keep_packed_calls=True)",
    "FoldRepeatToMatmul",
    "ReadPermutedMatrix",
    "DecomposeOps(fast=True, before_algorithms=True)",
    "FoldConstant",
    "PropagateConstants",
    "WinogradConv2D",
    "DecomposeOps(fast=True)",
    "FoldRepeatToMatmul",
    "FoldConstant",
    "PackWeights",
];
/// Kernels of what is left.
const KERNELS: &[&str] = &[
    "LegalizeOps(fast=True)",
    "AnnotateTIROpPattern",
    "FoldConstant",
    "FuseOps(keep_scalars=True, products=True)",
    "FuseTIR",
    "FuseLoops",
    "DeadCodeElimination(keep_packed_calls=True)",
    "MergeEqualKernels",
    "CopyReturnedAliases",
    "ViewOwnResults",
];
/// Behind what makes kernels of its own, one for each function.
const MERGE: &[&str] = &["MergeEqualKernels"];
/// Where the module lists devices: each kernel is for the kind that it runs on.
const TARGETS: &[&str] = &["BindKernelTargets"];
const OPEN: &[&str] = &["RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking"];
const KEEP_APPENDS: &[&str] = &["KeepAppends"];
const APPEND_IN_PLACE: &[&str] = &["AppendInPlace"];
const CALLS: &[&str] = &["CallTIRRewrite"];
const PLAN: &[&str] = &["StaticPlanBlockMemory(least_memory=True)"];
/// Between the plan, whose storage it shares, and what makes memory visible.
const GRAPHS: &[&str] = &["RewriteCUDAGraph"];
const FINISH: &[&str] =
    &["LowerAllocTensor", "KillAfterLastUse", "LowerRuntimeBuiltin", "ComputePrimValue", "VMShapeLower"];
const SYMBOLS: &[&str] = &["AttachGlobalSymbol"];

/// Kernels over the threads of a GPU.
const GPU: &[(Stage, &[&str])] = &[
    (Stage::Dispatch, DISPATCH),
    (Stage::Legalize, FUSED),
    (Stage::Legalize, PLACE),
    (Stage::Legalize, SPREAD),
    (Stage::Lower, OPEN),
    (Stage::Lower, CALLS),
    (Stage::Finalize, PLAN),
    (Stage::Finalize, FINISH),
    (Stage::Finalize, SYMBOLS),
];

static PIPELINES: &[Pipeline] = &[
    Pipeline {
        name: "zero",
        doc: "Operators become kernels and kernels are fused; nothing is lowered.",
        stages: &[(Stage::Legalize, FUSED)],
    },
    Pipeline {
        name: "default_build",
        doc: "The shortest way to bytecode: one kernel an operator, no fusion.",
        stages: &[
            (Stage::Dispatch, DISPATCH),
            (Stage::Legalize, &["LegalizeOps(fast=True)"]),
            (Stage::Legalize, PLACE),
            (Stage::Lower, OPEN),
            (Stage::Lower, CALLS),
            (Stage::Finalize, PLAN),
            (Stage::Finalize, GRAPHS),
            (Stage::Finalize, FINISH),
            (Stage::Finalize, SYMBOLS),
        ],
    },
    Pipeline {
        name: "default",
        doc: "What a build for the CPU runs: constants folded, kernels fused, memory planned.",
        stages: &[
            (Stage::Dispatch, PLACE),
            (Stage::Legalize, GRAPH),
            (Stage::Append, KEEP_APPENDS),
            (Stage::Legalize, KERNELS),
            (Stage::Legalize, PLACE),
            (Stage::Legalize, TARGETS),
            (Stage::Lower, OPEN),
            (Stage::Append, APPEND_IN_PLACE),
            (Stage::Lower, CALLS),
            (Stage::Finalize, PLAN),
            (Stage::Finalize, FINISH),
            (Stage::Finalize, MERGE),
            (Stage::Finalize, SYMBOLS),
        ],
    },
    Pipeline {
        name: "cpu_generic",
        doc: "TVM's for processors: kernels are fused as they come.",
        stages: &[
            (Stage::Dispatch, DISPATCH),
            (Stage::Legalize, FUSED),
            (Stage::Legalize, PLACE),
            (Stage::Lower, OPEN),
            (Stage::Lower, CALLS),
            (Stage::Finalize, PLAN),
            (Stage::Finalize, FINISH),
            (Stage::Finalize, SYMBOLS),
        ],
    },
    Pipeline { name: "gpu_generic", doc: "TVM's for GPUs of no particular kind.", stages: GPU },
    Pipeline { name: "rocm", doc: "TVM's for AMD's GPUs.", stages: GPU },
    Pipeline {
        name: "cuda",
        doc: "TVM's for NVIDIA's GPUs, with graphs where the option asks for them.",
        stages: &[
            (Stage::Dispatch, DISPATCH),
            (Stage::Legalize, FUSED),
            (Stage::Legalize, PLACE),
            (Stage::Legalize, SPREAD),
            (Stage::Lower, OPEN),
            (Stage::Lower, CALLS),
            (Stage::Finalize, PLAN),
            (Stage::Finalize, GRAPHS),
            (Stage::Finalize, FINISH),
            (Stage::Finalize, SYMBOLS),
        ],
    },
];

/// What pipelines of other devices have instead of schedules that are chosen when kernels are compiled.
pub(super) const SCHEDULE: PassInfo = PassInfo::new(
    "ApplyDefaultSchedule",
    "Kernels are spread over the threads of a GPU; those for processors are scheduled when they are compiled.",
    |module, context, _| {
        let device = module.vdevices.iter().filter_map(|device| device.kind()).find(|kind| kind.is_gpu());
        let kind = device.unwrap_or(context.target.kind);
        let kernel = module.functions_of::<relaxide_tir::PrimFunc>().next().map(|(name, _)| name.to_string());
        match kernel.filter(|_| kind.is_gpu()) {
            Some(name) => {
                let why = format!("there are no schedule rules for `{}` yet: leave this stage out", kind);
                Err(in_function("ApplyDefaultSchedule", &name, why))
            }
            None => Ok(module),
        }
    },
);

/// All pipelines.
pub fn pipelines() -> &'static [Pipeline] {
    PIPELINES
}

/// The pipeline of a name.
pub fn pipeline(name: &str) -> Option<&'static Pipeline> {
    PIPELINES.iter().find(|p| p.name == name)
}

/// TVM's pipeline for a target; `None` where it has none.
pub fn default_pipeline(target: &Target) -> Option<&'static Pipeline> {
    if target.has_textures() {
        return None;
    }
    // A device with a pipeline of its own goes by its kind's name; PTX is TVM's for GPUs of no particular kind.
    let own = PIPELINES.iter().find(|pipeline| pipeline.name == target.kind.name());
    own.or_else(|| match target.kind {
        kind if kind.is_gpu() => pipeline("gpu_generic"),
        TargetKind::Llvm => pipeline("cpu_generic"),
        _ => None,
    })
}

impl Pipeline {
    /// The passes, in order, as [`parse_passes`] reads them.
    pub fn passes(&self) -> impl Iterator<Item = &'static str> {
        self.stages.iter().flat_map(|(_, passes)| passes.iter().copied())
    }

    /// The passes of one stage.
    pub fn stage(&self, stage: Stage) -> impl Iterator<Item = &'static str> {
        self.stages.iter().filter(move |(own, _)| *own == stage).flat_map(|(_, passes)| passes.iter().copied())
    }

    /// The passes themselves.
    pub fn resolve(&self) -> Result<Vec<Pass>, PassError> {
        self.passes().try_fold(Vec::new(), |mut passes, text| {
            passes.extend(parse_passes(text)?);
            Ok(passes)
        })
    }

    /// Runs the passes in order.
    pub fn run(&self, module: IRModule, context: &PassContext) -> PassResult {
        Pass::sequential(self.name, self.resolve()?).run(module, context)
    }
}
