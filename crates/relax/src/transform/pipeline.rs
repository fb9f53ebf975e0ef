//! Pipelines: the orders in which passes are usually run.

use relaxide_ir::IRModule;
use relaxide_ir::pass::{Pass, PassContext, PassError, PassResult};

use super::parse_passes;

/// A named order of passes.
#[derive(Debug, Clone, Copy)]
pub struct Pipeline {
    /// The name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// The passes, in order, as [`parse_passes`] reads them.
    pub passes: &'static [&'static str],
}

/// From kernels and graphs to what VM code generation reads; every build ends with it.
macro_rules! lowering {
    ($($first:literal),*) => {
        &[
            $($first,)*
            "RewriteDataflowReshape",
            "ToNonDataflow",
            "RemovePurityChecking",
            "CallTIRRewrite",
            "StaticPlanBlockMemory",
            "LowerAllocTensor",
            "KillAfterLastUse",
            "LowerRuntimeBuiltin",
            "ComputePrimValue",
            "VMShapeLower",
            "AttachGlobalSymbol",
        ]
    };
}

#[rustfmt::skip]
static PIPELINES: &[Pipeline] = &[
    Pipeline {
        name: "zero",
        doc: "Operators become kernels and kernels are fused; nothing is lowered.",
        passes: &["LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR"],
    },
    Pipeline {
        name: "default_build",
        doc: "The shortest way to bytecode: one kernel an operator, no fusion.",
        passes: lowering!("LegalizeOps"),
    },
    Pipeline {
        name: "default",
        doc: "What a build for the CPU runs: constants folded, kernels fused, memory planned.",
        passes: lowering!(
            "LambdaLift",
            "FoldBatchnormToConv2D",
            "CanonicalizeBindings",
            "FoldScaleToConv2D",
            "DecomposeOpsForInference",
            "CanonicalizeBindings",
            "DeadCodeElimination",
            "LegalizeOps",
            "AnnotateTIROpPattern",
            "FoldConstant",
            "FuseOps",
            "FuseTIR",
            "DeadCodeElimination"
        ),
    },
];

/// All pipelines.
pub fn pipelines() -> &'static [Pipeline] {
    PIPELINES
}

/// The pipeline of a name.
pub fn pipeline(name: &str) -> Option<&'static Pipeline> {
    PIPELINES.iter().find(|p| p.name == name)
}

impl Pipeline {
    /// The passes themselves.
    pub fn resolve(&self) -> Result<Vec<Pass>, PassError> {
        self.passes.iter().try_fold(Vec::new(), |mut passes, text| {
            passes.extend(parse_passes(text)?);
            Ok(passes)
        })
    }

    /// Runs the passes in order.
    pub fn run(&self, module: IRModule, context: &PassContext) -> PassResult {
        Pass::sequential(self.name, self.resolve()?).run(module, context)
    }
}
