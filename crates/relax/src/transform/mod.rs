//! Passes over Relax functions and the pipelines that they make.
//!
//! [`PASSES`] is the one table: the command line, Python and the tests find a pass by name in it. [`pipeline`] names the
//! orders in which they are usually run.

mod annotate_op_pattern;
mod attach_global_symbol;
mod bind_params;
mod bind_symbols;
mod call_tir_rewrite;
mod callees;
mod canonicalize;
mod common_subexpr;
mod compute_prim_value;
mod dead_code;
mod decompose_inference;
mod emit;
mod fold_constant;
mod fold_conv;
mod fuse_ops;
mod fuse_tir;
mod kill_after_last_use;
mod lambda_lift;
mod legalize;
mod lower_alloc_tensor;
mod lower_runtime_builtin;
mod pipeline;
mod remove_purity_checking;
mod reshape_proof;
mod rewrite_dataflow_reshape;
mod static_plan;
mod to_non_dataflow;
mod vm_shape_lower;

use relaxide_ir::pass::PassInfo;

pub use annotate_op_pattern::{PATTERN_ATTR, op_pattern};
pub use bind_params::bind_params;
pub use bind_symbols::bind_symbolic_vars;
pub use legalize::{RESHAPE_ATTR, broadcast_index};
pub use pipeline::{Pipeline, pipeline, pipelines};

/// Every pass over Relax.
pub static PASSES: &[PassInfo] = &[
    canonicalize::PASS,
    dead_code::PASS,
    fold_conv::BATCHNORM,
    fold_conv::SCALE,
    decompose_inference::PASS,
    common_subexpr::PASS,
    lambda_lift::PASS,
    legalize::PASS,
    annotate_op_pattern::PASS,
    fold_constant::PASS,
    fuse_ops::PASS,
    fuse_tir::PASS,
    rewrite_dataflow_reshape::PASS,
    to_non_dataflow::PASS,
    remove_purity_checking::PASS,
    call_tir_rewrite::PASS,
    static_plan::PASS,
    lower_alloc_tensor::PASS,
    kill_after_last_use::PASS,
    lower_runtime_builtin::PASS,
    compute_prim_value::PASS,
    vm_shape_lower::PASS,
    attach_global_symbol::PASS,
];

/// The pass of a name.
pub fn pass(name: &str) -> Option<&'static PassInfo> {
    PASSES.iter().find(|p| p.name == name)
}
