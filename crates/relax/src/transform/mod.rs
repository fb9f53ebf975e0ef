//! Passes over Relax functions and the pipelines that they make.
//!
//! [`PASSES`] is the one table: the command line, Python and the tests find a pass by name in it. [`pipeline`] names the
//! orders in which they are usually run.

mod attach_global_symbol;
mod call_tir_rewrite;
mod compute_prim_value;
mod emit;
mod kill_after_last_use;
mod lower_alloc_tensor;
mod lower_runtime_builtin;
mod remove_purity_checking;
mod static_plan;
mod to_non_dataflow;
mod vm_shape_lower;

use relaxide_ir::pass::PassInfo;

/// Every pass over Relax.
pub static PASSES: &[PassInfo] = &[
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
