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
//! annotations go with it: they were for schedules. The pass by itself leaves what TVM's leaves for passes behind it: the
//! kernel's attribute `s_tir`, and of each allocation where it begins and how it is aligned; where kernels are lowered nobody reads it.
//!
//! Needs opaque blocks without sub-buffers. Others are made so first, so that the pass takes any kernel; in a pipeline each of
//! those steps is a pass of its own.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimMutator;
use relaxide_ir::{AttrValue, Attrs, Buffer};

use super::{LowerError, kernel_pass, match_buffer, opaque_blocks};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass!("s_tir.transform.LowerOpaqueBlock", "Blocks go; what they stand around is left.", lower_and_note);

/// The same where kernels are lowered.
pub(super) const LOWERING: PassInfo =
    kernel_pass!("s_tir.transform.LowerOpaqueBlock", "Blocks go; what they stand around is left.", lower_opaque_blocks);

/// The attribute of a kernel in block form that has no block.
const S_TIR: &str = "s_tir";

/// A kernel without blocks.
pub(super) fn lower_opaque_blocks(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    without_blocks(func, false)
}

/// The same, with notes of what there was.
fn lower_and_note(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let had_blocks = has_blocks(func);
    let mut func = without_blocks(func, true)?;
    if had_blocks {
        func.attrs.0.insert(S_TIR.to_string(), true.into());
    }
    Ok(func)
}

fn without_blocks(func: &PrimFunc, noted: bool) -> Result<PrimFunc, LowerError> {
    let func = super::views::lower_declared_buffers(func)?;
    let func = match_buffer::lower_match_buffers(&opaque_blocks::convert_blocks_to_opaque(&func)?)?;
    Ok(func.with_body(LowerBlocks { noted }.mutate_stmt(&func.body)))
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

struct LowerBlocks {
    /// Whether allocations say where they begin and how they are aligned.
    noted: bool,
}

impl LowerBlocks {
    fn allocation(&self, buffer: &Ref<Buffer>) -> Stmt {
        if !self.noted {
            return Stmt::alloc(buffer);
        }
        let nowhere = AttrValue::List(Vec::new());
        let annotations =
            Attrs::new().with("buffer_allocated_addr", nowhere).with("buffer_data_alignment", buffer.alignment);
        Ref::new(AllocBuffer { buffer: buffer.clone(), annotations }).into()
    }
}

impl PrimMutator for LowerBlocks {}

impl StmtMutator for LowerBlocks {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Block(n) = stmt else { return self.remake_stmt(stmt) };
        let allocations: Vec<Stmt> = n.block.alloc_buffers.iter().map(|buffer| self.allocation(buffer)).collect();
        let body = self.mutate_stmt(&n.block.body);
        Stmt::when(n.predicate.clone(), Stmt::seq(allocations.into_iter().chain([body])))
    }
}
