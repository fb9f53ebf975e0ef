//! The variables that a statement uses.

use std::collections::HashSet;

use relaxide_ir::{Buffer, PrimExpr, Ref, Var, prim::PrimVisitor};
use relaxide_tir::{Stmt, StmtVisitor};

/// The variables that a statement or expression uses, data variables of buffers included, in order of first use.
#[derive(Default)]
pub(crate) struct Uses {
    pub vars: Vec<Ref<Var>>,
    seen: HashSet<Ref<Var>>,
    visited: HashSet<PrimExpr>,
}

impl Uses {
    pub fn of(stmt: &Stmt) -> Vec<Ref<Var>> {
        let mut uses = Self::default();
        uses.visit_stmt(stmt);
        uses.vars
    }

    fn add(&mut self, var: &Ref<Var>) {
        if self.seen.insert(var.clone()) {
            self.vars.push(var.clone());
        }
    }

    fn add_buffer(&mut self, buffer: &Ref<Buffer>) {
        self.add(&buffer.data);
        for e in buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]) {
            self.visit_prim(e);
        }
    }
}

impl PrimVisitor for Uses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Var(var) => self.add(var),
            PrimExpr::Int(_) | PrimExpr::Float(_) => {}
            // Expressions are graphs: what was seen once need not be walked again.
            _ if self.visited.insert(e.clone()) => self.walk_prim(e),
            _ => {}
        }
    }

    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.add_buffer(buffer);
    }
}

impl StmtVisitor for Uses {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.add_buffer(buffer);
    }
}
