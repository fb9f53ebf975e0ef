//! Buffers of several dimensions become buffers of one.
//!
//! ```text
//! def f(A: T.Buffer((16, 16))):               def f(A: T.Buffer((16, 16))):
//!                                                 A_1 = T.decl_buffer((256,), data=A.data)
//!     B = T.alloc_buffer((1, 16))       ->        B = T.alloc_buffer((16,))
//!     B[0, j] = A[i, j]                           B[j] = A_1[i * 16 + j]
//! ```
//!
//! What the kernel is given keeps its shape, which is part of how it is called; its accesses go to a flat view that is declared in front.
//! Memory and views of the kernel itself lose their dimensions. In a kernel with blocks, whose regions have dimensions, only the accesses
//! become flat, as in compilation.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor};

use super::LowerError;
use super::flatten::flatten_buffers;
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::{BufferStore, Stmt};

/// A kernel that has buffers of one dimension only, but for its parameters.
pub(super) fn flatten_whole(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let func = flatten_buffers(func)?;
    let mut uses = Uses::default();
    uses.visit_stmt(&func.body);
    if uses.has_blocks {
        return Ok(func);
    }
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    let mut flat = Flat { analyzer, buffers: HashMap::new() };
    let given = func.buffers.iter().flatten().filter(|buffer| uses.buffers.contains(buffer));
    let mut seq: Vec<Stmt> = given
        .map(|buffer| {
            let view = Ref::new(flat.of(buffer));
            flat.buffers.insert(buffer.clone(), view.clone());
            Stmt::decl(&view, &view.data)
        })
        .collect();
    seq.push(flat.mutate_stmt(&func.body));
    Ok(func.with_body(Stmt::seq(seq)))
}

/// What a body accesses, and whether it has blocks.
#[derive(Default)]
struct Uses {
    buffers: Vec<Ref<Buffer>>,
    has_blocks: bool,
}

impl PrimVisitor for Uses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Load(n) = e {
            self.buffers.push(n.buffer.clone());
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Uses {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.has_blocks |= matches!(stmt, Stmt::Block(_));
        self.walk_stmt(stmt);
    }

    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.buffers.push(buffer.clone());
    }
}

struct Flat {
    analyzer: Analyzer,
    /// The flat ones, by those that have dimensions.
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl Flat {
    /// The buffer with the same elements in one row.
    fn of(&mut self, buffer: &Buffer) -> Buffer {
        let extent = self.extent(buffer);
        let shape = vec![self.analyzer.simplify(&extent)];
        Buffer { shape, strides: Vec::new(), ..buffer.clone() }
    }

    /// How many elements there are from the first to the last; where each dimension lies within a step of the one in front, the
    /// outermost step for each of its places.
    fn extent(&mut self, buffer: &Buffer) -> PrimExpr {
        let (dims, strides) = (&buffer.shape, &buffer.strides);
        let (Some(outer), Some(stride)) = (dims.first(), strides.first()) else {
            return dims.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::from(1));
        };
        let mut steps = strides.iter().zip(strides.iter().zip(dims).skip(1));
        if steps.all(|(outer, (inner, dim))| self.analyzer.can_prove(&prim::ge(outer, inner * dim))) {
            return outer.clone() * stride;
        }
        let spans = dims.iter().zip(strides).map(|(dim, stride)| (dim - 1) * stride);
        prim::max(spans.fold(PrimExpr::from(1), |sum, own| sum + own), 0)
    }

    /// An index in the analyzer's form, where its terms are in order of the dimensions.
    fn indices(&mut self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        self.mutate_prims(indices).iter().map(|index| self.analyzer.simplify(index)).collect()
    }
}

impl PrimMutator for Flat {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let PrimExpr::Load(n) = e else { return self.remake_prim(e) };
        let (buffer, indices) = (self.mutate_buffer_use(&n.buffer), self.indices(&n.indices));
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        Ref::new(BufferLoad { buffer, indices, predicate }).into()
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        if buffer.ndim() == 1 && buffer.strides.is_empty() {
            return buffer.clone();
        }
        let made = Ref::new(self.of(buffer));
        self.buffers.insert(buffer.clone(), made.clone());
        made
    }
}

impl StmtMutator for Flat {
    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let (value, buffer) = (self.mutate_prim(&n.value), self.mutate_buffer_use(&n.buffer));
        let indices = self.indices(&n.indices);
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        Ref::new(BufferStore { buffer, value, indices, predicate })
    }
}
