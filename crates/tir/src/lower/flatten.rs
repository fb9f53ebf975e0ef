//! Accesses of several dimensions become flat ones.
//!
//! `A[i, j, k]` of a buffer of shape `(d, h, w)` becomes `A[(i * h + j) * w + k]`; with strides, the sum of index times
//! stride. A vector index stays a ramp where it is linear in the lane. Buffers keep their identity, shape and allocation;
//! an access to a buffer of one dimension is flat already.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator};

use super::{LowerError, ramp};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::{BufferStore, Stmt};

/// A kernel whose accesses have one index each.
pub(super) fn flatten_buffers(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut flatten = Flatten { error: None };
    let body = flatten.mutate_stmt(&func.body);
    match flatten.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

struct Flatten {
    error: Option<LowerError>,
}

impl Flatten {
    fn flat(&mut self, buffer: &Buffer, indices: Vec<PrimExpr>) -> Vec<PrimExpr> {
        let ndim = buffer.ndim();
        if indices.len() == 1 {
            return indices;
        }
        if indices.len() != ndim {
            let (buffer, indices) = (buffer.name.clone(), indices.len());
            self.error.get_or_insert(LowerError::WrongRank { buffer, ndim, indices });
            return vec![PrimExpr::from(0)];
        }
        let flat = if buffer.strides.len() == ndim {
            let terms = indices.iter().zip(&buffer.strides).map(|(index, stride)| ramp::mul(index, stride));
            terms.reduce(|sum, term| ramp::add(&sum, &term))
        } else {
            let dims = indices.into_iter().zip(&buffer.shape);
            dims.fold(None, |outer, (index, extent)| match outer {
                None => Some(index),
                Some(outer) => Some(ramp::add(&ramp::mul(&outer, extent), &index)),
            })
        };
        vec![flat.unwrap_or_else(|| PrimExpr::from(0))]
    }
}

impl PrimMutator for Flatten {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) if n.indices.len() != 1 => {
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let indices = self.flat(&n.buffer, indices);
                Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Flatten {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Store(n) if n.indices.len() != 1 => {
                let (value, indices) = (self.mutate_prim(&n.value), self.mutate_prims(&n.indices));
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let indices = self.flat(&n.buffer, indices);
                Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}
