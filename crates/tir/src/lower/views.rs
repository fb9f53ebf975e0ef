//! Declared buffers become accesses to the memory that they are declared over.
//!
//! ```text
//! for i in range(n):                                      for i in range(n):
//!     B = T.decl_buffer((2,), data=A.data,
//!                       elem_offset=i * 2)          ->
//!     B[1] = 0                                                A_flat[i * 2 + 1] = 0
//! ```
//!
//! A view whose place and size nothing changes stays as it is: back ends know of offsets and strides. One whose offset, strides or dimensions name a counter or a bound name could not be moved by the passes that
//! move what names it, so its accesses are written out, over a buffer of one dimension that has no limit of its own. A buffer
//! over an address that has no name yet (`data=T.address_of(A[i])`) binds its pointer to it.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, free_vars, is_data};
use relaxide_ir::{Buffer, Var};

use super::match_buffer::strides_of;
use super::{LowerError, kernel_pass, ramp};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "tirx.transform.LowerDeclaredBuffers",
    "Accesses to buffers whose place moves become accesses to the memory that they are declared over.",
    lower_declared_buffers
);

/// A kernel whose declared buffers are plain views.
pub(super) fn lower_declared_buffers(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut search = Declared(false);
    search.visit_stmt(&func.body);
    if !search.0 {
        return Ok(func.clone());
    }
    let dims = func.buffers.iter().flatten().flat_map(|b| b.shape.iter().chain(&b.strides).chain([&b.elem_offset]));
    let fixed = func.params.iter().cloned().chain(dims.flat_map(free_vars)).collect();
    Ok(func.with_body(OpenViews { fixed, open: HashMap::new() }.mutate_stmt(&func.body)))
}

/// Whether there is a declaration at all.
struct Declared(bool);

impl PrimVisitor for Declared {}

impl StmtVisitor for Declared {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.0 |= matches!(stmt, Stmt::Decl(_));
        if !self.0 {
            self.walk_stmt(stmt);
        }
    }
}

struct OpenViews {
    /// Variables that have one value throughout the kernel.
    fixed: HashSet<Ref<Var>>,
    /// For each buffer whose accesses are written out, the flat one.
    open: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

/// More elements than memory has: accesses by a flat index are limited by what the memory holds.
const UNLIMITED: i64 = i64::MAX / 64;

impl OpenViews {
    fn declare(&mut self, n: &DeclBuffer) -> Stmt {
        let buffer = &n.buffer;
        let pointer = match n.is_view() {
            true => Stmt::nop(),
            false => Stmt::bind(buffer.data.clone(), self.mutate_prim(&n.data)),
        };
        let mut parts = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
        if parts.all(|e| free_vars(e).iter().all(|var| self.fixed.contains(var)) && !is_data(e)) {
            return Stmt::seq([pointer, Stmt::decl(buffer, &buffer.data)]);
        }
        let flat = Buffer {
            name: buffer.name.clone(),
            data: buffer.data.clone(),
            dtype: buffer.dtype,
            shape: vec![prim::int(UNLIMITED)],
            strides: Vec::new(),
            elem_offset: prim::int(0),
            scope: buffer.scope.clone(),
            alignment: buffer.alignment,
            offset_factor: 1,
            layout: relaxide_ir::layout::Placement::Strided,
            producer: None,
        };
        self.open.insert(buffer.clone(), Ref::new(flat));
        pointer
    }

    /// An access to a buffer that is written out.
    fn flat(&self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Option<(Ref<Buffer>, Vec<PrimExpr>)> {
        let flat = self.open.get(buffer)?;
        let offset = buffer.elem_offset.clone();
        let index = match indices {
            [index] if buffer.ndim() != 1 => ramp::add(&offset, index),
            _ => {
                let terms = indices.iter().zip(strides_of(buffer)).map(|(index, stride)| ramp::mul(index, &stride));
                terms.fold(offset, |sum, term| ramp::add(&sum, &term))
            }
        };
        Some((flat.clone(), vec![index]))
    }
}

impl PrimMutator for OpenViews {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let PrimExpr::Load(n) = e else { return self.remake_prim(e) };
        if !self.open.contains_key(&n.buffer) {
            return self.remake_prim(e);
        }
        let indices = self.mutate_prims(&n.indices);
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        let Some((buffer, indices)) = self.flat(&n.buffer, &indices) else { return e.clone() };
        Ref::new(BufferLoad { buffer, indices, predicate }).into()
    }
}

impl StmtMutator for OpenViews {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Decl(n) => self.declare(n),
            Stmt::Store(n) if self.open.contains_key(&n.buffer) => {
                let (value, indices) = (self.mutate_prim(&n.value), self.mutate_prims(&n.indices));
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let Some((buffer, indices)) = self.flat(&n.buffer, &indices) else { return stmt.clone() };
                Ref::new(BufferStore { buffer, value, indices, predicate }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}
