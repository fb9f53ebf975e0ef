//! Passes, by TVM's names ([`PASSES`]).

mod anf;
mod bind;
mod eta;
mod simplify;
mod table;
mod unused;

pub use anf::{function_to_anf, to_a_normal_form};
pub use bind::bind_params;
pub use eta::eta_expand;
pub use simplify::{
    canonicalize_ops, dead_code_elimination, eliminate_common_subexpr, fold_constant, inline, simplify_inference,
    to_graph_normal_form,
};
pub use table::{PASSES, PassInfo, TransformError, pass, run_passes};
pub use unused::remove_unused_functions;
