//! Views that rules made are declared, as a program would have to.
//!
//! Rules reach buffers of several dimensions by flat views of them, and simply use those. Each is declared here, behind the
//! allocation of its memory or, for what the caller hands over, at the beginning of the kernel:
//!
//! ```text
//! acc = T.alloc_local((4, 8))             acc = T.alloc_local((4, 8))
//! acc_1[T.Ramp(…)] = …             ->     acc_1 = acc.view(32)
//!                                         acc_1[T.Ramp(…)] = …
//! ```

use std::collections::HashSet;

use indexmap::{IndexMap, IndexSet};
use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{Buffer, Var};

use crate::functor::{StmtMutator, StmtVisitor};
use crate::{PrimFunc, Stmt};

/// The kernel with every view declared.
pub(crate) fn declare_views(func: &PrimFunc) -> PrimFunc {
    let params: Vec<&Ref<Buffer>> = func.buffers.iter().flatten().collect();
    let mut found = Found { known: params.iter().map(|b| (*b).clone()).collect(), ..Found::default() };
    found.visit_stmt(&func.body);
    let mut views: IndexMap<Ref<Var>, Vec<Ref<Buffer>>> = IndexMap::new();
    for view in found.used.difference(&found.known) {
        views.entry(view.data.clone()).or_default().push(view.clone());
    }
    if views.is_empty() {
        return func.clone();
    }
    let mut first: Vec<Stmt> = Vec::new();
    let mut seen = HashSet::new();
    for buffer in params {
        if seen.insert(&buffer.data) {
            first.extend(views.swap_remove(&buffer.data).iter().flatten().map(declaration));
        }
    }
    let body = Declare { views }.mutate_stmt(&func.body);
    func.with_body(Stmt::seq(first.into_iter().chain([body])))
}

fn declaration(view: &Ref<Buffer>) -> Stmt {
    Stmt::decl(view, &view.data)
}

/// Buffers that are used, and those that something introduces.
#[derive(Default)]
struct Found {
    used: IndexSet<Ref<Buffer>>,
    known: IndexSet<Ref<Buffer>>,
}

impl PrimVisitor for Found {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.used.insert(buffer.clone());
    }
}

impl StmtVisitor for Found {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.used.insert(buffer.clone());
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Alloc(n) => drop(self.known.insert(n.buffer.clone())),
            Stmt::Decl(n) => drop(self.known.insert(n.buffer.clone())),
            Stmt::Block(n) => {
                self.known.extend(n.block.alloc_buffers.iter().cloned());
                self.known.extend(n.block.match_buffers.iter().map(|m| m.buffer.clone()));
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

struct Declare {
    views: IndexMap<Ref<Var>, Vec<Ref<Buffer>>>,
}

impl PrimMutator for Declare {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Declare {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Alloc(n) => match self.views.get(&n.buffer.data) {
                Some(views) => Stmt::seq([stmt.clone()].into_iter().chain(views.iter().map(declaration))),
                None => stmt.clone(),
            },
            Stmt::Store(_) => stmt.clone(),
            _ => self.remake_stmt(stmt),
        }
    }
}
