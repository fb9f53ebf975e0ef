//! What is checked of a kernel that was made of computes.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::{PrimExpr, PrimVisitor};

use super::prim_func::TeError;
use crate::functor::StmtVisitor;
use crate::stmt::Stmt;

/// Checks that every access is to a buffer of the kernel, with an index for each dimension.
pub(super) fn check_accesses<'a>(body: &Stmt, buffers: impl Iterator<Item = &'a Ref<Buffer>>) -> Result<(), TeError> {
    struct Check<'a> {
        known: HashSet<&'a Ref<Buffer>>,
        local: HashSet<Ref<Buffer>>,
        result: Result<(), TeError>,
    }
    impl Check<'_> {
        fn access(&mut self, buffer: &Ref<Buffer>, indices: usize) {
            if self.result.is_err() {
                return;
            }
            if !self.known.contains(buffer) && !self.local.contains(buffer) {
                self.result = Err(TeError::UnknownTensor(buffer.name.clone()));
            } else if indices != buffer.shape.len() {
                self.result = Err(TeError::WrongRank { name: buffer.name.clone(), ndim: buffer.shape.len(), indices });
            }
        }
    }
    impl PrimVisitor for Check<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Load(load) = e {
                self.access(&load.buffer, load.indices.len());
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Check<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match stmt {
                Stmt::Store(store) => self.access(&store.buffer, store.indices.len()),
                Stmt::Alloc(alloc) => {
                    self.local.insert(alloc.buffer.clone());
                }
                Stmt::Block(realize) => self.local.extend(realize.block.alloc_buffers.iter().cloned()),
                _ => {}
            }
            self.walk_stmt(stmt);
        }
    }
    let mut check = Check { known: buffers.collect(), local: HashSet::new(), result: Ok(()) };
    check.visit_stmt(body);
    check.result
}
