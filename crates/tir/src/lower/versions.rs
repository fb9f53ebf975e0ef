//! Scratch in several versions: what one iteration of a loop reads while another writes it.
//!
//! ```text
//! B = T.alloc_buffer((4,))               B = T.alloc_buffer((2, 4))
//! B[j] = A[i, j]                  ->     B[i % 2, j] = A[i, j]
//! ```
//!
//! What is known by a pointer has no versions; who asks for them refuses it.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, PrimVisitor, VarMap, add, int, int_of, mul};
use relaxide_ir::{Buffer, Var};

use crate::functor::{StmtMutator, StmtVisitor, fresh_copy, substitute_stmt};
use crate::stmt::*;

/// A buffer with so many versions.
pub fn with_versions(buffer: &Buffer, versions: i64) -> Ref<Buffer> {
    let dtype = buffer.shape.first().map_or(DataType::int(32), PrimExpr::dtype);
    let shape: Vec<PrimExpr> = [int_of(dtype, versions)].into_iter().chain(buffer.shape.iter().cloned()).collect();
    Buffer::scoped(buffer.name.clone(), buffer.dtype, shape, &buffer.scope)
}

/// Which version a buffer is.
pub struct Version {
    /// The buffer of all of them.
    buffer: Ref<Buffer>,
    at: PrimExpr,
    /// What blocks say that they touch of the versions.
    said: Ref<Range>,
}

impl Version {
    /// A version by its number.
    pub fn at(buffer: &Ref<Buffer>, at: PrimExpr) -> Version {
        let said = Ref::new(Range { min: at.clone(), extent: int_of(at.dtype(), 1) });
        Version { buffer: buffer.clone(), at, said }
    }

    /// The same, of which blocks say that they touch all versions.
    pub fn among_all(buffer: &Ref<Buffer>, at: PrimExpr) -> Version {
        let extent = buffer.shape[0].clone();
        let said = Ref::new(Range { min: int_of(extent.dtype(), 0), extent });
        Version { buffer: buffer.clone(), at, said }
    }
}

/// A statement of an iteration: a copy whose counter has a value, and whose buffers are versions.
pub fn of_iteration(
    stmt: &Stmt,
    counter: &Ref<Var>,
    value: &PrimExpr,
    buffers: &HashMap<Ref<Buffer>, Version>,
) -> Stmt {
    let stmt = Versions { buffers }.mutate_stmt(stmt);
    fresh_copy(&substitute_stmt(&stmt, &VarMap::from([(counter.clone(), value.clone())])))
}

/// Puts versions in the place of buffers.
struct Versions<'a> {
    buffers: &'a HashMap<Ref<Buffer>, Version>,
}

impl Versions<'_> {
    fn indices(&self, old: &Buffer, at: &PrimExpr, indices: Vec<PrimExpr>) -> Vec<PrimExpr> {
        // One index of a buffer with several dimensions counts its elements.
        if let ([flat], true) = (indices.as_slice(), old.shape.len() > 1) {
            let size = old.shape.iter().fold(int(1), mul);
            return vec![add(mul(at.clone(), size), flat.clone())];
        }
        [at.clone()].into_iter().chain(indices).collect()
    }
}

impl PrimMutator for Versions<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let PrimExpr::Load(n) = e else { return self.remake_prim(e) };
        let Some(Version { buffer, at, .. }) = self.buffers.get(&n.buffer) else { return self.remake_prim(e) };
        let indices = n.indices.iter().map(|index| self.mutate_prim(index)).collect();
        let indices = self.indices(&n.buffer, at, indices);
        let predicate = n.predicate.as_ref().map(|predicate| self.mutate_prim(predicate));
        Ref::new(BufferLoad { buffer: buffer.clone(), indices, predicate }).into()
    }
}

impl StmtMutator for Versions<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Store(n) = stmt else { return self.remake_stmt(stmt) };
        let Some(Version { buffer, at, .. }) = self.buffers.get(&n.buffer) else { return self.remake_stmt(stmt) };
        let indices = n.indices.iter().map(|index| self.mutate_prim(index)).collect();
        let indices = self.indices(&n.buffer, at, indices);
        let (value, predicate) = (self.mutate_prim(&n.value), n.predicate.as_ref().map(|p| self.mutate_prim(p)));
        Ref::new(BufferStore { buffer: buffer.clone(), value, indices, predicate }).into()
    }

    fn remake_region(&mut self, n: &Ref<BufferRegion>) -> Ref<BufferRegion> {
        let Some(Version { buffer, said, .. }) = self.buffers.get(&n.buffer) else { return n.clone() };
        let region = [said.clone()].into_iter().chain(n.region.iter().cloned()).collect();
        Ref::new(BufferRegion { buffer: buffer.clone(), region })
    }
}

/// The buffers that a statement reads and writes.
#[derive(Default)]
pub struct Uses {
    pub read: HashSet<Ref<Buffer>>,
    pub written: HashSet<Ref<Buffer>>,
}

impl Uses {
    pub fn of(stmt: &Stmt) -> Uses {
        let mut uses = Uses::default();
        uses.visit_stmt(stmt);
        uses
    }
}

impl PrimVisitor for Uses {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.read.insert(buffer.clone());
    }
}

impl StmtVisitor for Uses {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.written.insert(buffer.clone());
    }
}
