//! Weights that come in the layout that a kernel would bring them to.
//!
//! A block that is marked `meta_schedule.layout_rewrite_preproc` copies a parameter into another layout. Whoever calls the kernel does that
//! from now on: the copy is the parameter, and the block does nothing.
//!
//! ```text
//! def f(W: (16, 16)):                         def f(W_packed: (4, 16, 4)):
//!     W_packed = alloc (4, 16, 4)       ->        C[…] = … W_packed[…]
//!     W_packed[i // 4, j, i % 4] = W[i, j]
//!     C[…] = … W_packed[…]
//! ```
//!
//! Source: TVM's `RemoveWeightLayoutRewriteBlock`.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{PrimExpr, PrimMutator};

use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

/// The annotation of such a block.
const MARK: &str = "meta_schedule.layout_rewrite_preproc";

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.RemoveWeightLayoutRewriteBlock",
    "Parameters that a kernel copies into another layout come in it.",
    |func, _, _| take_rewritten(func)
)
.params(&[PassParam::new(
    "skip_tensor_rewrite",
    ParamKind::Bool,
    ParamDefault::Bool(false),
    "For programs that give it: kernels here hold no tensors that would be rewritten.",
)]);

/// A kernel whose weights come as its blocks want them.
fn take_rewritten(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut remove = Remove::default();
    let body = remove.mutate_stmt(&func.body);
    if let Some(error) = remove.error {
        return Err(error);
    }
    let mut made = func.with_body(body);
    for buffer in made.buffers.iter_mut().flatten() {
        if let Some((_, rewritten)) = remove.rewritten.iter().find(|(weight, _)| weight == buffer) {
            *buffer = rewritten.clone();
        }
    }
    Ok(made)
}

#[derive(Default)]
struct Remove {
    /// Weights, and what they are copied to.
    rewritten: Vec<(Ref<Buffer>, Ref<Buffer>)>,
    error: Option<LowerError>,
}

impl Remove {
    /// What a marked block copies.
    fn copied(&self, block: &SBlock) -> Result<(Ref<Buffer>, Ref<Buffer>), LowerError> {
        let copy = match &block.body {
            Stmt::Store(store) => match &store.value {
                PrimExpr::Load(load) if load.indices.iter().all(|i| matches!(i, PrimExpr::Var(_))) => {
                    Some((load.buffer.clone(), store.buffer.clone()))
                }
                _ => None,
            },
            _ => None,
        };
        copy.filter(|_| block.alloc_buffers.is_empty() && block.match_buffers.is_empty()).ok_or_else(|| {
            LowerError::Refused(format!(
                "block `{}` is marked {MARK:?}, and is not one store of one element that is read at the block's axes",
                block.name
            ))
        })
    }
}

impl PrimMutator for Remove {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Remove {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let made = self.remake_stmt(stmt);
        let Stmt::Block(n) = &made else { return made };
        let mut block = SBlock::clone(&n.block);
        let marked = block.annotations.int(MARK) == Some(1) || block.annotations.bool(MARK) == Some(true);
        if marked {
            match self.copied(&block) {
                Ok(copy) => self.rewritten.push(copy),
                Err(error) => drop(self.error.get_or_insert(error)),
            }
            (block.reads, block.writes, block.body) = (Vec::new(), Vec::new(), Stmt::nop());
        } else if block.alloc_buffers.iter().any(|buffer| self.rewritten.iter().any(|(_, copy)| copy == buffer)) {
            block.alloc_buffers.retain(|buffer| !self.rewritten.iter().any(|(_, copy)| copy == buffer));
        } else {
            return made;
        }
        Ref::new(SBlockRealize { block: Ref::new(block), ..SBlockRealize::clone(n) }).into()
    }
}
