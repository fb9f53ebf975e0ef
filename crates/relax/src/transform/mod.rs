//! Passes over Relax functions and the pipelines that they make.
//!
//! [`PASSES`] is the one table: the command line, Python and the tests find a pass by name in it. [`pipeline`] names the
//! orders in which they are usually run.

mod allocate_workspace;
mod alter_op_impl;
mod annotate_op_pattern;
mod append;
mod attach_global_symbol;
mod bind_kernel_targets;
mod bind_params;
mod bind_symbols;
mod block_pass;
mod bundle_model_params;
mod call_tir_rewrite;
mod callees;
mod canonicalize;
mod checkpoints;
mod combine_parallel_matmul;
mod common_subexpr;
mod compute_prim_value;
mod convert_layout;
mod convert_to_dataflow;
mod copy_returned_aliases;
mod cuda_graph;
mod dead_code;
mod decompose_inference;
mod decompose_training;
mod dispatch;
mod emit;
mod expand_tuple_arguments;
mod fast_math;
mod fold_constant;
mod fold_conv;
mod fold_repeat_to_matmul;
mod fresh;
mod fuse_by_pattern;
mod fuse_loops;
mod fuse_ops;
mod fuse_tir;
mod fuse_transpose_matmul;
mod gradient;
mod inline_body;
mod inline_private;
mod kill_after_last_use;
mod lambda_lift;
mod layout_free_buffers;
mod lazy_params;
mod lazy_transform_params;
pub(crate) mod legalize;
mod lift_transform_params;
mod lower_alloc_tensor;
mod lower_runtime_builtin;
mod merge_composite;
mod merge_equal_kernels;
mod narrow_weights;
mod normalize;
mod optimize_layout_transform;
mod outline;
mod pack_weights;
mod partition;
mod pattern_rewriter;
mod pipeline;
mod plain_conv;
mod private_calls;
mod promote_outputs;
mod propagate_constants;
mod redundant_reshape;
mod remove_purity_checking;
mod remove_unused_parts;
mod reorder_products;
mod reshape_proof;
mod rewrite_dataflow_reshape;
mod root_block;
mod rules;
mod run_codegen;
mod specialize_kernels;
mod split_call_tir;
mod split_layout_rewrite;
mod static_plan;
mod take_weights;
mod to_mixed_precision;
mod to_non_dataflow;
mod topological_sort;
mod update_param_type;
mod use_inplace;
mod vdevice;
mod view_results;
mod vm_shape_lower;
mod winograd;

use relaxide_ir::diagnostic::closest;
use relaxide_ir::pass::{Check, Pass, PassContext, PassError, PassInfo, Refusal, parse_calls};
use relaxide_ir::{Attrs, Code, IRModule};
use relaxide_tir::{PrimFunc, lower};

pub use annotate_op_pattern::{PATTERN_ATTR, op_pattern};
pub use bind_params::bind_params;
pub use bind_symbols::{Symbol, bind_symbolic_vars, bind_symbols};
pub use block_pass::{dataflow_block_pass, function_pass};
pub(crate) use callees::drop_uncalled;
pub use canonicalize::canonicalize_function;
pub use combine_parallel_matmul::{MatmulCheck, ParallelMatmul, combine_parallel_matmul};
pub use dead_code::remove_unused;
pub use fresh::fresh_copy;
pub use fuse_by_pattern::{FuseByPattern, FusionPattern, PatternCheck, fuse_ops_by_pattern};
pub use gradient::{CustomGradient, GradientOptions, gradient_with};
pub(crate) use inline_body::inline_body;
pub use legalize::{CustomLowering, LegalizeOptions, RESHAPE_ATTR, legalize_ops, note_lowering};
pub use narrow_weights::{WeightNote, WeightNotes, narrow_weights};
pub use pattern_rewriter::Rewriter;
pub use pipeline::{Pipeline, Stage, default_pipeline, pipeline, pipelines};
pub use reshape_proof::is_reshape;
pub use run_codegen::EXTERNAL_MODULES_ATTR;
pub use split_call_tir::{LibraryCode, MatchResult, split_call_tir_by_pattern};
pub use update_param_type::update_param_type;

/// A function in which names that only rename are resolved, what is computed twice is computed once, and what is not used
/// goes: what a pass that replaced values leaves behind.
pub fn clean_up(
    b: &mut crate::BlockBuilder,
    func: &relaxide_ffi::Ref<crate::Function>,
) -> Result<relaxide_ffi::Ref<crate::Function>, crate::BuildError> {
    let func = canonicalize_function(b, func)?;
    Ok(remove_unused(&common_subexpr::eliminate(&func, false)))
}

/// Every pass over Relax.
pub static PASSES: &[PassInfo] = &[
    bind_params::PASS,
    bind_symbols::PASS,
    canonicalize::PASS,
    dead_code::PASS,
    fold_conv::BATCHNORM,
    fold_conv::SCALE,
    winograd::PASS,
    pack_weights::PASS,
    decompose_inference::PASS,
    common_subexpr::PASS,
    lambda_lift::PASS,
    legalize::PASS,
    legalize::DECOMPOSE,
    annotate_op_pattern::PASS,
    fold_constant::PASS,
    to_mixed_precision::PASS,
    convert_layout::PASS,
    fast_math::PASS,
    alter_op_impl::PASS,
    optimize_layout_transform::PASS,
    layout_free_buffers::PASS,
    split_layout_rewrite::PASS,
    split_call_tir::PASS,
    gradient::PASS,
    lift_transform_params::PASS,
    bundle_model_params::PASS,
    lazy_params::GET_INPUT,
    lazy_params::SET_OUTPUT,
    lazy_transform_params::PASS,
    copy_returned_aliases::PASS,
    convert_to_dataflow::PASS,
    expand_tuple_arguments::PASS,
    propagate_constants::PASS,
    remove_unused_parts::PARAMETERS,
    remove_unused_parts::OUTPUTS,
    inline_private::PASS,
    normalize::NORMALIZE,
    normalize::GLOBAL_VAR,
    combine_parallel_matmul::PASS,
    reorder_products::ADJUST,
    reorder_products::EXPAND,
    reorder_products::PERMUTE,
    reorder_products::TAKE,
    narrow_weights::PASS,
    fuse_transpose_matmul::PASS,
    fuse_transpose_matmul::READ_PERMUTED,
    fold_repeat_to_matmul::PASS,
    redundant_reshape::PASS,
    decompose_training::PASS,
    topological_sort::PASS,
    bind_kernel_targets::PASS,
    vdevice::REALIZE,
    vdevice::UPDATE,
    use_inplace::PASS,
    fuse_by_pattern::PASS,
    merge_composite::PASS,
    merge_equal_kernels::PASS,
    run_codegen::PASS,
    allocate_workspace::PASS,
    specialize_kernels::PASS,
    dispatch::SAMPLING,
    dispatch::SORT_SCAN,
    pipeline::SCHEDULE,
    append::keep::PASS,
    fuse_ops::PASS,
    fuse_tir::PASS,
    fuse_loops::PASS,
    rewrite_dataflow_reshape::PASS,
    view_results::PASS,
    to_non_dataflow::PASS,
    remove_purity_checking::PASS,
    append::in_place::PASS,
    call_tir_rewrite::PASS,
    static_plan::PASS,
    cuda_graph::PASS,
    lower_alloc_tensor::PASS,
    kill_after_last_use::PASS,
    lower_runtime_builtin::PASS,
    compute_prim_value::PASS,
    vm_shape_lower::PASS,
    attach_global_symbol::PASS,
];

/// The row of a pass, Relax's or one over kernels. A name may carry the prefix `relax.transform.`; that of a pass over kernels
/// carries its own, or none where no pass over Relax is called so.
pub fn pass(name: &str) -> Option<&'static PassInfo> {
    let name = name.strip_prefix("relax.transform.").unwrap_or(name);
    PASSES.iter().find(|p| p.name == name).or_else(|| lower::pass(name))
}

/// Every pass that [`pass`] finds: those over Relax, then those over kernels.
pub fn all_passes() -> impl Iterator<Item = &'static PassInfo> {
    PASSES.iter().chain(lower::PASSES)
}

/// The pass of a name with parameters; those left out have their defaults.
pub fn make_pass(name: &str, given: &Attrs) -> Result<Pass, PassError> {
    find(name)?.make(given)
}

/// A module that was written without dataflow blocks, with those that it can have and without what nobody uses.
pub fn into_dataflow_blocks(mut module: IRModule) -> Result<IRModule, PassError> {
    for pass in parse_passes("ConvertToDataflow, DeadCodeElimination")? {
        module = pass.run(module, &PassContext::default())?;
    }
    Ok(module)
}

/// Passes in the words of the command line: `LegalizeOps, ToMixedPrecision(out_dtype=float16)`.
pub fn parse_passes(text: &str) -> Result<Vec<Pass>, PassError> {
    let calls = parse_calls(text)?;
    let make = |call: relaxide_ir::pass::PassCall| {
        let info = find(&call.name)?;
        let mut given = call.named;
        if call.positional.len() > info.params.len() {
            return Err(PassError::arguments(info.name, format!("it takes {} parameters at most", info.params.len())));
        }
        for (param, value) in info.params.iter().zip(call.positional) {
            if given.0.insert(param.name.to_string(), value).is_some() {
                return Err(PassError::arguments(info.name, format!("parameter {:?} is given twice", param.name)));
            }
        }
        info.make(&given)
    };
    calls.into_iter().map(make).collect()
}

/// What is wrong with a module between passes: the rules of [`wellformed`](crate::wellformed) that it breaks, but for
/// purity, which passes that make memory visible give up on purpose; and those of kernels.
pub fn broken_rules(module: &IRModule) -> Vec<String> {
    let broken = crate::wellformed::check_module(module).into_iter();
    let broken = broken.filter(|violation| violation.code != Code::Impure).map(|violation| violation.to_string());
    let kernels = module.functions_of::<PrimFunc>().filter_map(|(name, func)| {
        let error = relaxide_tir::verify::verify(&func).err()?;
        Some(format!("kernel `{name}`: {error}"))
    });
    broken.chain(kernels).collect()
}

/// An instrument that looks for [`broken_rules`] behind every pass.
pub fn verify() -> std::sync::Arc<Check> {
    Check::new(broken_rules)
}

fn find(name: &str) -> Result<&'static PassInfo, PassError> {
    pass(name).ok_or_else(|| {
        if let Some(why) = lower::absent(name) {
            let refusal = Refusal::new(Code::UnknownPass, format!("this pass of TVM is not here: {why}"));
            return PassError::new(name, refusal.help("`relaxide opt --list` shows those that are"));
        }
        let key = |name: &str| name.to_ascii_lowercase().replace('_', "");
        let all = || all_passes().map(|p| p.name);
        let close = all().filter(|p| key(p).contains(&key(name)) || key(name).contains(&key(p)));
        let close: Vec<&str> = close.collect();
        let close = match close.as_slice() {
            [] => closest(name, all()).map(str::to_string),
            close => Some(close.join(", ")),
        };
        let help = close.map_or_else(|| "`relaxide opt --list` shows them".into(), |c| format!("did you mean {c}?"));
        PassError::new(name, Refusal::new(Code::UnknownPass, "there is no pass of this name").help(help))
    })
}
