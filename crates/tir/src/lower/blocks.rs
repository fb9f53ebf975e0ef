//! Blocks go: what they stand around is left.
//!
//! ```text
//! for i in range(n):                             for i in range(n):
//!     with T.sblock("B"):                            if i < m:
//!         T.where(i < m)                    ->           s = T.alloc_buffer((4,))
//!         s = T.sblock_alloc_buffer((4,))                ...
//!         ...
//! ```
//!
//! A block's predicate becomes a condition and its buffers become allocations in front of its body. Names, regions and
//! annotations go with it: they were for schedules.
//!
//! Needs opaque blocks without sub-buffers. Others are made so first, so that the pass takes any kernel; in a pipeline each of
//! those steps is a pass of its own.

use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimMutator;

use super::{LowerError, kernel_pass, match_buffer, opaque_blocks};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass!("s_tir.transform.LowerOpaqueBlock", "Blocks go; what they stand around is left.", lower_opaque_blocks);

/// A kernel without blocks.
pub(super) fn lower_opaque_blocks(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let func = super::views::lower_declared_buffers(func)?;
    let func = match_buffer::lower_match_buffers(&opaque_blocks::convert_blocks_to_opaque(&func)?)?;
    Ok(func.with_body(LowerBlocks.mutate_stmt(&func.body)))
}

/// Whether a kernel has blocks.
pub(super) fn has_blocks(func: &PrimFunc) -> bool {
    struct Find(bool);
    impl relaxide_ir::prim::PrimVisitor for Find {
        fn visit_prim(&mut self, _: &relaxide_ir::PrimExpr) {}
    }
    impl StmtVisitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= matches!(stmt, Stmt::Block(_));
            if !self.0 {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut find = Find(false);
    find.visit_stmt(&func.body);
    find.0
}

struct LowerBlocks;

impl PrimMutator for LowerBlocks {}

impl StmtMutator for LowerBlocks {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Block(n) = stmt else { return self.remake_stmt(stmt) };
        let allocations = n.block.alloc_buffers.iter().map(Stmt::alloc);
        let body = self.mutate_stmt(&n.block.body);
        Stmt::when(n.predicate.clone(), Stmt::seq(allocations.chain([body])))
    }
}
