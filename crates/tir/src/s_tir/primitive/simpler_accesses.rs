//! Indices in a simpler form, once the axes that they are made of have become sums of others.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator};

use crate::functor::StmtMutator;
use crate::stmt::*;

/// A statement with the indices of its accesses simplified, under axes with these ranges.
pub(super) fn simpler_accesses(stmt: &Stmt, axes: &[Ref<IterVar>]) -> Stmt {
    let mut simpler = Simpler(Analyzer::new());
    simpler.bind(axes);
    simpler.mutate_stmt(stmt)
}

struct Simpler(Analyzer);

impl Simpler {
    fn bind(&mut self, axes: &[Ref<IterVar>]) {
        for axis in axes {
            self.0.bind(&axis.var, axis.min.clone(), axis.extent.clone());
        }
    }

    fn indices(&mut self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        let indices = self.mutate_prims(indices);
        indices.iter().map(|e| self.0.simplify_as_tvm(e)).collect()
    }
}

impl PrimMutator for Simpler {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) => {
                let indices = self.indices(&n.indices);
                if indices == n.indices {
                    return e.clone();
                }
                Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate: n.predicate.clone() }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Simpler {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) => self.0.bind(&n.var, n.min.clone(), n.extent.clone()),
            Stmt::Block(n) => self.bind(&n.block.iter_vars),
            _ => {}
        }
        self.remake_stmt(stmt)
    }

    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let (value, indices) = (self.mutate_prim(&n.value), self.indices(&n.indices));
        if value == n.value && indices == n.indices {
            return n.clone();
        }
        Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate: n.predicate.clone() })
    }
}
