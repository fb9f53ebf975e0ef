//! Whether a kernel for a device touches the device's memory in the device's threads only.
//!
//! The host cannot read or write the memory of a GPU. A kernel whose `target` is one has its loads and stores inside of loops that
//! are bound to threads; one outside is refused, for a schedule has been forgotten. Kernels for processors, and those that name no
//! target, pass as they are.

use relaxide_ir::Buffer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimVisitor;

use relaxide_ffi::Ref;

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtVisitor;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "tirx.transform.VerifyMemory",
    "Refuses kernels for a device that touch its memory outside of its threads.",
    verify_memory
);

/// The kernel, if it touches memory where it may.
fn verify_memory(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let target = func.target().map_err(|error| LowerError::Refused(error.to_string()))?;
    let Some(target) = target.filter(|target| target.is_gpu()) else { return Ok(func.clone()) };
    let kind = target.kind;
    let mut accesses = Accesses::default();
    accesses.visit_stmt(&func.body);
    match accesses.outside {
        Some(buffer) => Err(LowerError::Refused(format!(
            "buffer `{}` is in the memory of {kind} and is accessed outside of its threads; a schedule binds loops to them",
            buffer.name
        ))),
        None => Ok(func.clone()),
    }
}

#[derive(Default)]
struct Accesses {
    in_threads: bool,
    outside: Option<Ref<Buffer>>,
}

impl Accesses {
    fn access(&mut self, buffer: &Ref<Buffer>) {
        if !self.in_threads {
            self.outside.get_or_insert_with(|| buffer.clone());
        }
    }
}

impl PrimVisitor for Accesses {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.access(buffer);
    }
}

impl StmtVisitor for Accesses {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.access(buffer);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        let outer = self.in_threads;
        self.in_threads |= matches!(stmt, Stmt::For(n) if n.kind == ForKind::ThreadBinding);
        self.walk_stmt(stmt);
        self.in_threads = outer;
    }
}
