//! What a block does first becomes a condition in front of its body.
//!
//! ```text
//! with T.sblock("B"):                            with T.sblock("B"):
//!     v_i, v_k = T.axis.remap("SR", [i, k])          v_i, v_k = T.axis.remap("SR", [i, k])
//!     with T.init():                       ->        if v_k == 0:
//!         B[v_i] = 0                                     B[v_i] = 0
//!     B[v_i] = B[v_i] + A[v_i, v_k]                  B[v_i] = B[v_i] + A[v_i, v_k]
//! ```
//!
//! The condition is that every reduction axis is at its first value. A block without such axes sets its elements always. The
//! loops over reduction axes go upwards, which is what makes the first value the first that is visited.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimMutator};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.LowerInitBlock",
    "What a block does first becomes a condition in front of its body.",
    lower_init_blocks
);

/// A kernel whose blocks have no initial statement.
pub(super) fn lower_init_blocks(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(LowerInit.mutate_stmt(&func.body)))
}

struct LowerInit;

impl PrimMutator for LowerInit {}

impl StmtMutator for LowerInit {
    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        let body = self.mutate_stmt(&n.body);
        let Some(init) = &n.init else {
            return if body == n.body { n.clone() } else { Ref::new(SBlock { body, ..(**n).clone() }) };
        };
        let first = Stmt::when(at_first_values(n), self.mutate_stmt(init));
        let body = Stmt::seq([first, body]);
        Ref::new(SBlock { init: None, body, ..(**n).clone() })
    }
}

/// Whether all reduction axes of a block are at their first values.
pub(super) fn at_first_values(block: &SBlock) -> prim::PrimExpr {
    let reductions = block.iter_vars.iter().filter(|iter| iter.kind == IterKind::Reduce);
    reductions.fold(prim::boolean(true), |all, iter| prim::and(all, prim::eq(&iter.var, &iter.min)))
}
