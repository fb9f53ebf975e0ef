//! Passes, by TVM's names ([`PASSES`]).

mod anf;
mod arithmetic;
mod basic_block;
mod bind;
mod eta;
mod fusion;
mod layout;
mod legalize;
mod lifetimes;
mod lift;
mod manifest_alloc;
mod memory_plan;
mod precision;
mod scale_axis;
mod simplify;
mod table;
mod unused;

pub use anf::{function_to_anf, to_a_normal_form};
pub(crate) use arithmetic::expand_composed;
pub use arithmetic::{canonicalize_cast, dynamic_to_static, fast_math, simplify_expr, simplify_inference};
pub use basic_block::to_basic_block_normal_form;
pub use bind::bind_params;
pub use eta::{EtaOptions, eta_expand, eta_expand_with};
pub(crate) use eta::{as_function, attrs_of_call, named_operator, type_of_operator};
pub use fusion::{defuse_ops, fuse_ops, inline_primitives};
pub use layout::{alter_op_layout, convert_layout};
pub use legalize::legalize;
pub use lifetimes::manifest_lifetimes;
pub use lift::lambda_lift;
pub use manifest_alloc::manifest_alloc;
pub use memory_plan::memory_plan;
pub use precision::{MissingOps, to_mixed_precision};
pub use scale_axis::{backward_fold_scale_axis, fold_scale_axis, forward_fold_scale_axis};
pub use simplify::{
    canonicalize_ops, dead_code_elimination, eliminate_common_subexpr, fold_constant, inline, to_graph_normal_form,
};
pub use table::{PASSES, PassInfo, TransformError, pass, run_passes};
pub use unused::remove_unused_functions;
