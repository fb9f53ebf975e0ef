//! Accesses of several dimensions become flat ones.
//!
//! `A[i, j, k]` of a buffer of shape `(d, h, w)` becomes `A[(i * h + j) * w + k]`; with strides, the sum of index times
//! stride. A vector index stays a ramp where it is linear in the lane. In compilation buffers keep their identity, shape and
//! allocation; the pass by itself makes flat ones ([`super::flat_buffers`]). An access to a buffer of one dimension is flat already.
//!
//! Counters of 32 bits serve as long as the buffer is known to have no more elements than that. An index into any other is
//! computed in 64 bits, and a loop over a product of dimensions that may be larger counts in 64:
//!
//! ```text
//! for f in range(n * m):     ->     for f in range(int64(n) * int64(m)):
//!     A[f // m, f % m]                  A[f // int64(m) * int64(m) + f % int64(m)]
//! ```

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BinaryOp, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, VarMap};

use super::{LowerError, kernel_pass, ramp};
use crate::PrimFunc;
use crate::analysis::wide::{Widen, fits, holds_indices_of, in_64_bits, wider};
use crate::functor::StmtMutator;
use crate::stmt::{BufferStore, For, ForKind, Stmt};

pub(super) const PASS: PassInfo = kernel_pass!(
    "tirx.transform.FlattenBuffer",
    "Turns buffers of several dimensions, and accesses to them, into flat ones.",
    super::flat_buffers::flatten_whole
);

/// A kernel whose accesses have one index each.
pub(super) fn flatten_buffers(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    let mut flatten = Flatten { analyzer, narrow: HashMap::new(), error: None };
    let body = flatten.mutate_stmt(&func.body);
    match flatten.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

struct Flatten {
    analyzer: Analyzer,
    /// Whether indices of so many bits reach all elements of a buffer.
    narrow: HashMap<(Ref<Buffer>, u8), bool>,
    error: Option<LowerError>,
}

impl Flatten {
    fn flat(&mut self, buffer: &Ref<Buffer>, indices: Vec<PrimExpr>) -> Vec<PrimExpr> {
        let ndim = buffer.ndim();
        let indices = self.wide_enough(buffer, indices);
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

impl Flatten {
    /// Indices of a type that holds the flat one.
    fn wide_enough(&mut self, buffer: &Ref<Buffer>, indices: Vec<PrimExpr>) -> Vec<PrimExpr> {
        let Some(bits) = indices.iter().map(|i| i.dtype().bits).min() else { return indices };
        let analyzer = &mut self.analyzer;
        let narrow = self.narrow.entry((buffer.clone(), bits));
        match *narrow.or_insert_with(|| holds_indices_of(buffer, bits, analyzer)) {
            true => indices,
            false => indices.iter().map(in_64_bits).collect(),
        }
    }

    /// A loop; one over a product that its counter may not hold gets a wider counter.
    fn for_loop(&mut self, n: &Ref<For>) -> Stmt {
        let (dtype, extent) = (n.var.dtype(), in_64_bits(&n.extent));
        let narrow = !has_product(&n.extent) || n.kind == ForKind::ThreadBinding;
        let mark = self.analyzer.assume(&prim::ge(n.extent.clone(), 1));
        self.analyzer.bind(&n.var, &n.min, &n.extent);
        let stmt = if narrow || fits(&extent, dtype.bits, &mut self.analyzer) {
            self.remake_stmt(&Stmt::For(n.clone()))
        } else {
            let var = wider(&n.var);
            let body = Widen(VarMap::from([(n.var.clone(), PrimExpr::from(&var))])).mutate_stmt(&n.body);
            // Extents of buffers may name the counter, too.
            let narrow = Stmt::bind(n.var.clone(), prim::cast(dtype, &var));
            let body = Stmt::seq([narrow, self.mutate_stmt(&body)]);
            let min = in_64_bits(&n.min);
            Ref::new(For { var, min, extent, body, ..For::clone(n) }).into()
        };
        self.analyzer.forget(mark);
        stmt
    }
}

/// Whether it multiplies.
fn has_product(e: &PrimExpr) -> bool {
    struct Product(bool);
    impl PrimVisitor for Product {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= matches!(e, PrimExpr::Binary(n) if n.op == BinaryOp::Mul);
            self.walk_prim(e);
        }
    }
    let mut product = Product(false);
    product.visit_prim(e);
    product.0
}

impl PrimMutator for Flatten {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) => {
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let indices = self.flat(&n.buffer, indices);
                if indices == n.indices && predicate == n.predicate {
                    return e.clone();
                }
                Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Flatten {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) => self.for_loop(n),
            Stmt::Store(n) => {
                let (value, indices) = (self.mutate_prim(&n.value), self.mutate_prims(&n.indices));
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let indices = self.flat(&n.buffer, indices);
                Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}
