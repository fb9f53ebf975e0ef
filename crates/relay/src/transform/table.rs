//! The passes by TVM's names: one table, from which they are found.

use relaxide_ir::{AttrValue, Attrs};

use crate::{DeviceConfig, Module, TypeError, VirtualDevice, infer, plan_devices};

/// Why a pass did not run.
#[derive(Debug, thiserror::Error)]
pub enum TransformError {
    /// There is no pass of that name.
    #[error("there is no pass `{name}`; there are {}", known())]
    Unknown {
        /// The name.
        name: String,
    },
    /// A pass has no such option.
    #[error("the pass {pass} has no option `{option}`; its options are: {known}")]
    Option {
        /// The pass.
        pass: &'static str,
        /// What was given.
        option: String,
        /// What there is.
        known: String,
    },
    /// An option has a value that it cannot have, or the program a form that the pass cannot take.
    #[error("{0}")]
    Refused(String),
    /// The program's types contradict each other.
    #[error("{}", .0.first().map_or(String::new(), |e| e.message.clone()))]
    Types(Vec<TypeError>),
    /// A constant could not be computed.
    #[error("{0}")]
    Value(relaxide_ffi::Error),
}

fn text(value: &AttrValue) -> Option<&str> {
    if let AttrValue::Str(text) = value { Some(text) } else { None }
}

/// One pass.
pub struct PassInfo {
    /// TVM's name.
    pub name: &'static str,
    /// The level from which on sequences run it.
    pub level: u32,
    /// What it does.
    pub doc: &'static str,
    /// Its options, by name.
    pub options: &'static [&'static str],
    run: fn(&Module, &Attrs) -> Result<Module, TransformError>,
}

/// Every pass.
pub static PASSES: &[PassInfo] = &[
    PassInfo {
        name: "InferType",
        level: 0,
        doc: "Types are inferred; the program stays as it is, or is refused.",
        options: &[],
        run: |module, _| infer(module).map(|_| module.clone()).map_err(TransformError::Types),
    },
    PassInfo {
        name: "ToANormalForm",
        level: 1,
        doc: "Every computation gets a name.",
        options: &[],
        run: |module, _| Ok(super::to_a_normal_form(module)),
    },
    PassInfo {
        name: "ToGraphNormalForm",
        level: 1,
        doc: "Names of computations without effects become sharing.",
        options: &[],
        run: |module, _| Ok(super::to_graph_normal_form(module)),
    },
    PassInfo {
        name: "EtaExpand",
        level: 1,
        doc: "An operator that stands as a value becomes a function that calls it.",
        options: &["expand_constructor", "expand_global_var"],
        run: |module, options| {
            let is_set = |name| options.bool(name).unwrap_or(false);
            let options =
                super::EtaOptions { constructors: is_set("expand_constructor"), globals: is_set("expand_global_var") };
            Ok(super::eta_expand_with(module, options))
        },
    },
    PassInfo {
        name: "RemoveUnusedFunctions",
        level: 1,
        doc: "Functions that main, or those that are named, do not reach are dropped.",
        options: &["entry_functions"],
        run: |module, options| {
            let named: Vec<&str> = match options.get("entry_functions") {
                None => return Ok(super::remove_unused_functions(module, &["main"])),
                Some(AttrValue::List(names)) => names.iter().filter_map(text).collect(),
                Some(name) => text(name).into_iter().collect(),
            };
            match named.iter().find(|name| !module.functions.contains_key(**name)) {
                Some(missing) => Err(TransformError::Refused(format!("the module has no function `@{missing}`"))),
                None => Ok(super::remove_unused_functions(module, &named)),
            }
        },
    },
    PassInfo {
        name: "DeadCodeElimination",
        level: 1,
        doc: "Values without effects that nothing uses are dropped.",
        options: &[],
        run: |module, _| Ok(super::dead_code_elimination(module)),
    },
    PassInfo {
        name: "Inline",
        level: 1,
        doc: "Calls of functions that are marked `Inline=1` become their bodies.",
        options: &[],
        run: |module, _| Ok(super::inline(module)),
    },
    PassInfo {
        name: "EliminateCommonSubexpr",
        level: 3,
        doc: "Equal calls of operators on the same operands are computed once.",
        options: &[],
        run: |module, _| Ok(super::eliminate_common_subexpr(module)),
    },
    PassInfo {
        name: "FoldConstant",
        level: 2,
        doc: "Calls of operators on constants become constants.",
        options: &[],
        run: |module, _| super::fold_constant(module).map_err(TransformError::Value),
    },
    PassInfo {
        name: "CanonicalizeOps",
        level: 3,
        doc: "A bias along a dimension becomes an addition.",
        options: &[],
        run: |module, _| super::canonicalize_ops(module),
    },
    PassInfo {
        name: "SimplifyInference",
        level: 0,
        doc: "What only training needs is left out; normalizations become arithmetic.",
        options: &[],
        run: |module, _| super::simplify_inference(module),
    },
    PassInfo {
        name: "SimplifyExpr",
        level: 0,
        doc: "Calls that change nothing are dropped, and those that follow each other become one.",
        options: &[],
        run: |module, _| super::simplify_expr(module),
    },
    PassInfo {
        name: "FastMath",
        level: 4,
        doc: "exp, tanh, erf and softmax become their fast forms.",
        options: &[],
        run: |module, _| super::fast_math(module),
    },
    PassInfo {
        name: "CanonicalizeCast",
        level: 3,
        doc: "A cast up that several read is made for each of them.",
        options: &[],
        run: |module, _| super::canonicalize_cast(module),
    },
    PassInfo {
        name: "DynamicToStatic",
        level: 2,
        doc: "Dynamic operators whose sizes are constants become static ones.",
        options: &[],
        run: |module, _| super::dynamic_to_static(module),
    },
    PassInfo {
        name: "BackwardFoldScaleAxis",
        level: 3,
        doc: "A scale behind a layer becomes part of its weight.",
        options: &[],
        run: |module, _| super::backward_fold_scale_axis(module),
    },
    PassInfo {
        name: "ForwardFoldScaleAxis",
        level: 3,
        doc: "A scale in front of a layer becomes part of its weight.",
        options: &[],
        run: |module, _| super::forward_fold_scale_axis(module),
    },
    PassInfo {
        name: "FoldScaleAxis",
        level: 3,
        doc: "Scales beside a layer become part of its weight.",
        options: &[],
        run: |module, _| super::fold_scale_axis(module),
    },
    PassInfo {
        name: "FuseOps",
        level: 0,
        doc: "Operators of one kernel become a function that is marked `Primitive`.",
        options: &["fuse_opt_level"],
        run: |module, options| super::fuse_ops(module, options.int("fuse_opt_level").unwrap_or(-1)),
    },
    PassInfo {
        name: "DefuseOps",
        level: 3,
        doc: "Functions of one kernel become what they compute.",
        options: &[],
        run: |module, _| Ok(super::defuse_ops(module)),
    },
    PassInfo {
        name: "InlinePrimitives",
        level: 1,
        doc: "Functions of one kernel stand where they are called.",
        options: &[],
        run: |module, _| Ok(super::inline_primitives(module)),
    },
    PassInfo {
        name: "LambdaLift",
        level: 1,
        doc: "Functions inside of functions become functions of the module.",
        options: &[],
        run: |module, _| super::lambda_lift(module),
    },
    PassInfo {
        name: "ToBasicBlockNormalForm",
        level: 1,
        doc: "What several scopes share gets a name in the scope around them.",
        options: &[],
        run: |module, _| Ok(super::to_basic_block_normal_form(module)),
    },
    PassInfo {
        name: "ToMixedPrecision",
        level: 1,
        doc: "Products are computed in half precision.",
        options: &["mixed_precision_type", "missing_op_mode"],
        run: |module, options| {
            let half = options.dtype("mixed_precision_type").unwrap_or(relaxide_ffi::DataType::float(16));
            let missing = super::MissingOps::of_number(options.int("missing_op_mode").unwrap_or(1))?;
            super::to_mixed_precision(module, half, missing)
        },
    },
    PassInfo {
        name: "AlterOpLayout",
        level: 3,
        doc: "Convolutions work in blocks of channels.",
        options: &[],
        run: |module, _| super::alter_op_layout(module),
    },
    PassInfo {
        name: "Legalize",
        level: 1,
        doc: "Operators that stand for others become those.",
        options: &[],
        run: |module, _| super::legalize(module),
    },
    PassInfo {
        name: "ManifestAlloc",
        level: 0,
        doc: "Memory of results is taken before the kernels that fill it.",
        options: &[],
        run: |module, _| super::manifest_alloc(module),
    },
    PassInfo {
        name: "MemoryPlan",
        level: 0,
        doc: "The storages of a scope become one, in which those lie over each other that are not needed at the same time.",
        options: &[],
        run: |module, _| super::memory_plan(module),
    },
    PassInfo {
        name: "ManifestLifetimes",
        level: 0,
        doc: "A name is given up behind its last use.",
        options: &[],
        run: |module, _| Ok(super::manifest_lifetimes(module)),
    },
    PassInfo {
        name: "PlanDevices",
        level: 0,
        doc: "Every value has a device, and copies stand where values cross.",
        options: &["host", "default"],
        run: |module, options| {
            let device = |name: &str| match options.get(name).map_or(Ok(None), VirtualDevice::of_attr) {
                Ok(device) => Ok(device.unwrap_or_else(VirtualDevice::cpu)),
                Err(why) => Err(TransformError::Refused(format!("{name}: {why}"))),
            };
            plan_devices(module, &DeviceConfig { host: device("host")?, default: device("default")? })
        },
    },
    PassInfo {
        name: "ConvertLayout",
        level: 3,
        doc: "Operators work in the layouts that are wished for.",
        options: &["desired_layouts"],
        run: |module, options| {
            let none = || TransformError::Refused("ConvertLayout needs desired_layouts".into());
            super::convert_layout(module, options.get("desired_layouts").ok_or_else(none)?)
        },
    },
];

fn known() -> String {
    PASSES.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

impl PassInfo {
    /// Runs it without options.
    pub fn run(&self, module: &Module) -> Result<Module, TransformError> {
        self.run_with(module, &Attrs::new())
    }

    /// Runs it with options, which must be its own.
    pub fn run_with(&self, module: &Module, options: &Attrs) -> Result<Module, TransformError> {
        if let Some(unknown) = options.0.keys().find(|name| !self.options.contains(&name.as_str())) {
            return Err(TransformError::Option {
                pass: self.name,
                option: unknown.clone(),
                known: self.options.join(", "),
            });
        }
        crate::stack::deep(|| (self.run)(module, options))
    }
}

/// The pass of a name.
pub fn pass(name: &str) -> Result<&'static PassInfo, TransformError> {
    PASSES.iter().find(|p| p.name == name).ok_or_else(|| TransformError::Unknown { name: name.to_string() })
}

/// Runs passes in order, those up to a level.
pub fn run_passes(module: &Module, names: &[&str], level: u32) -> Result<Module, TransformError> {
    let mut module = module.clone();
    for name in names {
        let info = pass(name)?;
        if info.level <= level {
            module = info.run(&module)?;
        }
    }
    Ok(module)
}
