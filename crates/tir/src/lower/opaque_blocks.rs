//! The axes of blocks become the expressions that they are given.
//!
//! ```text
//! with T.sblock("B"):                               with T.sblock("B"):
//!     v_i = T.axis.spatial(16, i * 4 + j)     ->        B[i * 4 + j] = A[i * 4 + j]
//!     B[v_i] = A[v_i]
//! ```
//!
//! What is left is an *opaque* block: a name, a condition, regions and scratch, over the loops around it. Only such blocks may
//! be taken apart by the passes behind. A block's axes say that its values are independent of their order; behind this pass
//! nothing says so any more, and a kernel can no longer be scheduled.
//!
//! Needs blocks without an initial statement ([`init_block`](super::init_block)); one that is left is executed as part of the
//! body, which is the same for it.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator, VarMap};

use super::{LowerError, init_block, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.ConvertBlocksToOpaque",
    "The axes of blocks become the expressions that they are given.",
    convert_blocks_to_opaque
);

/// A kernel whose blocks have no axes.
pub(super) fn convert_blocks_to_opaque(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let func = init_block::lower_init_blocks(func)?;
    let mut convert = Convert { axes: VarMap::new(), sized: HashMap::new(), error: None };
    let body = convert.mutate_stmt(&func.body);
    match convert.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

struct Convert {
    axes: VarMap,
    /// Buffers whose dimensions name what is replaced, with those in their places.
    sized: HashMap<Ref<Buffer>, Ref<Buffer>>,
    error: Option<LowerError>,
}

impl PrimMutator for Convert {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.axes.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.sized.get(buffer) {
            return known.clone();
        }
        let shape = self.mutate_prims(&buffer.shape);
        let strides = self.mutate_prims(&buffer.strides);
        let elem_offset = self.mutate_prim(&buffer.elem_offset);
        if shape == buffer.shape && strides == buffer.strides && elem_offset == buffer.elem_offset {
            return buffer.clone();
        }
        let sized = Ref::new(Buffer { shape, strides, elem_offset, ..(**buffer).clone() });
        self.sized.insert(buffer.clone(), sized.clone());
        sized
    }
}

impl StmtMutator for Convert {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Block(n) = stmt else { return self.remake_stmt(stmt) };
        let (axes, values) = (n.block.iter_vars.len(), n.iter_values.len());
        if axes != values {
            self.error.get_or_insert(LowerError::AxisValues { block: n.block.name.clone(), axes, values });
            return Stmt::nop();
        }
        let predicate = self.mutate_prim(&n.predicate);
        let values = self.mutate_prims(&n.iter_values);
        self.axes.extend(n.block.iter_vars.iter().map(|iter| iter.var.clone()).zip(values));
        let block = self.remake_block(&n.block);
        let block = match block.iter_vars.is_empty() {
            true => block,
            false => Ref::new(SBlock { iter_vars: Vec::new(), ..(*block).clone() }),
        };
        if predicate == n.predicate && block == n.block {
            return stmt.clone();
        }
        Ref::new(SBlockRealize { iter_values: Vec::new(), predicate, block }).into()
    }
}
