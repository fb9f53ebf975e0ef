//! Blocks become the loops around them.
//!
//! ```text
//! for i, k in T.grid(n, 64):                     for i, k in T.grid(n, 64):
//!     with T.sblock("B"):                            if k == 0:
//!         v_i, v_k = T.axis.remap("SR", [i, k])          B[i] = 0
//!         with T.init():                   ->        B[i] = B[i] + A[i, k]
//!             B[v_i] = 0
//!         B[v_i] = B[v_i] + A[v_i, v_k]
//! ```
//!
//! Axes are replaced by their values, a block's predicate and the guard of its initial value become conditions, its buffers
//! become allocations in front of its body, and its sub-buffers become accesses to the buffers that they are parts of.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, VarMap};

use super::LowerError;
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

/// A kernel without blocks.
pub(super) fn lower_blocks(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut lowering = LowerBlocks { vars: VarMap::new(), parts: HashMap::new(), error: None };
    let func = &super::views::open_views(func);
    let body = lowering.mutate_stmt(&func.body);
    match lowering.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

/// The part of a buffer that a sub-buffer stands for.
struct Part {
    source: Ref<Buffer>,
    /// Where it begins; as many as the source has dimensions.
    begin: Vec<PrimExpr>,
}

struct LowerBlocks {
    vars: VarMap,
    parts: HashMap<Ref<Buffer>, Part>,
    error: Option<LowerError>,
}

impl LowerBlocks {
    fn block(&mut self, n: &SBlockRealize) -> Stmt {
        let block = &n.block;
        if block.iter_vars.len() != n.iter_values.len() {
            let (axes, values) = (block.iter_vars.len(), n.iter_values.len());
            self.error.get_or_insert(LowerError::AxisValues { block: block.name.clone(), axes, values });
            return Stmt::nop();
        }
        let predicate = self.mutate_prim(&n.predicate);
        let values = self.mutate_prims(&n.iter_values);
        let mut first = prim::boolean(true);
        for (iter, value) in block.iter_vars.iter().zip(values) {
            if iter.kind == IterKind::Reduce {
                first = prim::and(first, prim::eq(value.clone(), self.mutate_prim(&iter.min)));
            }
            self.vars.insert(iter.var.clone(), value);
        }
        let allocations: Vec<Stmt> =
            block.alloc_buffers.iter().map(|buffer| Stmt::alloc(&self.mutate_buffer_def(buffer))).collect();
        for matched in &block.match_buffers {
            if let Err(error) = self.match_buffer(matched) {
                self.error.get_or_insert(error);
                return Stmt::nop();
            }
        }
        let init = block.init.as_ref().map(|init| {
            let init = self.mutate_stmt(init);
            Stmt::when(first, init)
        });
        let body = self.mutate_stmt(&block.body);
        Stmt::when(predicate, Stmt::seq(allocations.into_iter().chain(init).chain([body])))
    }

    fn match_buffer(&mut self, matched: &MatchBufferRegion) -> Result<(), LowerError> {
        let (buffer, region) = (&matched.buffer, &matched.source);
        let unfit = |reason| LowerError::SubBuffer {
            buffer: buffer.name.clone(),
            source_buffer: region.buffer.name.clone(),
            reason,
        };
        let begin: Vec<PrimExpr> = region.region.iter().map(|r| self.mutate_prim(&r.min)).collect();
        let extents: Vec<PrimExpr> = region.region.iter().map(|r| self.mutate_prim(&r.extent)).collect();
        let kept = extents.len().checked_sub(buffer.ndim()).ok_or_else(|| unfit("it has more dimensions"))?;
        for (dim, extent) in buffer.shape.iter().zip(&extents[kept..]) {
            if let Some(var) = dim.as_var() {
                self.vars.entry(var.clone()).or_insert_with(|| extent.clone());
            }
        }
        let (source, begin) = match self.parts.get(&region.buffer) {
            // A part of a part is a part of the whole.
            Some(outer) => (outer.source.clone(), outer.at(&begin).ok_or_else(|| unfit("it has more dimensions"))?),
            None => (self.mutate_buffer_use(&region.buffer), begin),
        };
        let strides = strides_of(&source);
        let skipped = strides.len().checked_sub(buffer.ndim()).ok_or_else(|| unfit("it has more dimensions"))?;
        for (stride, value) in buffer.strides.iter().zip(&strides[skipped..]) {
            if let Some(var) = stride.as_var() {
                self.vars.insert(var.clone(), value.clone());
            }
        }
        if let Some(var) = buffer.elem_offset.as_var() {
            let terms = begin.iter().zip(&strides).map(|(i, s)| i * s);
            let offset = terms.fold(source.elem_offset.clone(), |sum, term| sum + term);
            self.vars.insert(var.clone(), offset);
        }
        self.parts.insert(buffer.clone(), Part { source, begin });
        Ok(())
    }

    /// An access to a sub-buffer as one to its source.
    fn redirect(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Option<(Ref<Buffer>, Vec<PrimExpr>)> {
        let part = self.parts.get(buffer)?;
        let moved = if indices.len() == buffer.ndim() { part.at(indices) } else { None };
        if moved.is_none() {
            let (ndim, indices) = (buffer.ndim(), indices.len());
            self.error.get_or_insert(LowerError::WrongRank { buffer: buffer.name.clone(), ndim, indices });
        }
        Some((part.source.clone(), moved?))
    }
}

impl Part {
    /// Indices into the part as indices into the source; missing leading ones are zero.
    fn at(&self, indices: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
        let skipped = self.begin.len().checked_sub(indices.len())?;
        let (outer, inner) = self.begin.split_at(skipped);
        let moved = inner.iter().zip(indices).map(|(begin, index)| begin + index);
        Some(outer.iter().cloned().chain(moved).collect())
    }
}

/// The distances between neighbours, given or as in a compact buffer.
pub(super) fn strides_of(buffer: &Buffer) -> Vec<PrimExpr> {
    if !buffer.strides.is_empty() {
        return buffer.strides.clone();
    }
    let mut strides = vec![PrimExpr::from(1); buffer.ndim()];
    for d in (1..buffer.ndim()).rev() {
        strides[d - 1] = &buffer.shape[d] * &strides[d];
    }
    strides
}

impl PrimMutator for LowerBlocks {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).cloned().unwrap_or_else(|| e.clone()),
            PrimExpr::Load(n) if self.parts.contains_key(&n.buffer) => {
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                match self.redirect(&n.buffer, &indices) {
                    Some((buffer, indices)) => Ref::new(BufferLoad { buffer, indices, predicate }).into(),
                    None => e.clone(),
                }
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for LowerBlocks {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Block(n) => self.block(n),
            Stmt::Store(n) if self.parts.contains_key(&n.buffer) => {
                let value = self.mutate_prim(&n.value);
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                match self.redirect(&n.buffer, &indices) {
                    Some((buffer, indices)) => Ref::new(BufferStore { buffer, value, indices, predicate }).into(),
                    None => stmt.clone(),
                }
            }
            _ => self.remake_stmt(stmt),
        }
    }
}
