//! Allocations move out of serial loops.
//!
//! Scratch that is allocated in the body of a serial loop is allocated once in front of it instead, if its size does not
//! depend on what the loop changes. It does not leave a parallel loop, whose iterations need memory of their own, nor a
//! branch or an endless loop, which may never be taken, nor pass a statement that may end the loop or the kernel before it.
//!
//! ```text
//! for i in range(n):                    s = T.alloc_buffer((16,))
//!     s = T.alloc_buffer((16,))    ->   for i in range(n):
//!     ...                                   ...
//! ```

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor};

use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::early_exit::EarlyExits;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass_with!("tirx.transform.StorageRewrite", "Moves allocations out of serial loops.", |func, context, _| {
        match context.config.bool(DISABLE_OPTION) {
            Some(true) => Ok(func.clone()),
            _ => hoist_allocations(func),
        }
    });

/// The option of a context that leaves allocations where they are.
const DISABLE_OPTION: &str = "tirx.disable_storage_rewrite";

/// A kernel that allocates outside of its serial loops where it can.
pub(super) fn hoist_allocations(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut hoist = Hoist::default();
    let body = hoist.mutate_stmt(&func.body);
    Ok(func.with_body(hoist.before(body)))
}

#[derive(Default)]
struct Hoist {
    /// Allocations on their way out.
    leaving: Vec<Stmt>,
}

impl Hoist {
    /// What is on its way out, and then a statement.
    fn before(&mut self, stmt: Stmt) -> Stmt {
        if self.leaving.is_empty() {
            return stmt;
        }
        let leaving = std::mem::take(&mut self.leaving);
        Stmt::seq(leaving.into_iter().chain([stmt]))
    }

    /// A statement that nothing leaves.
    fn closed(&mut self, stmt: &Stmt) -> Stmt {
        let outer = std::mem::take(&mut self.leaving);
        let stmt = self.mutate_stmt(stmt);
        let stmt = self.before(stmt);
        self.leaving = outer;
        stmt
    }

    /// The body of a serial loop; what depends on its variables stays inside.
    fn serial_body(&mut self, n: &For) -> Stmt {
        let outer = std::mem::take(&mut self.leaving);
        let body = self.mutate_stmt(&n.body);
        let inside = HashSet::from([n.var.clone()]);
        let (stay, leave): (Vec<Stmt>, Vec<Stmt>) =
            std::mem::take(&mut self.leaving).into_iter().partition(|s| depends(s, &inside));
        self.leaving = outer;
        self.leaving.extend(leave);
        Stmt::seq(stay.into_iter().chain([body]))
    }

    /// A sequence; an allocation leaves it unless its size is computed in it.
    fn sequence(&mut self, n: &SeqStmt) -> Stmt {
        let mut bound = HashSet::new();
        let mut result = Vec::with_capacity(n.seq.len());
        let mut reached = true;
        for stmt in &n.seq {
            if !reached {
                result.push(if let Stmt::Alloc(_) = stmt { stmt.clone() } else { self.closed(stmt) });
                continue;
            }
            reached = !EarlyExits::of(stmt).any();
            let before = self.leaving.len();
            match stmt {
                Stmt::Alloc(_) => self.leaving.push(stmt.clone()),
                _ => result.push(self.mutate_stmt(stmt)),
            }
            let new = self.leaving.split_off(before);
            let (stay, leave): (Vec<Stmt>, Vec<Stmt>) = new.into_iter().partition(|s| depends(s, &bound));
            self.leaving.extend(leave);
            let at = result.len() - usize::from(!matches!(stmt, Stmt::Alloc(_)));
            result.splice(at..at, stay);
            if let Stmt::Bind(bind) = stmt {
                bound.insert(bind.var.clone());
            }
        }
        Stmt::seq(result)
    }
}

/// Whether an allocation's size depends on variables, or on memory.
fn depends(stmt: &Stmt, vars: &HashSet<Ref<Var>>) -> bool {
    struct Depends<'a>(&'a HashSet<Ref<Var>>, bool);
    impl PrimVisitor for Depends<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.1 |= matches!(e, PrimExpr::Load(_) | PrimExpr::Call(_));
            self.1 |= e.as_var().is_some_and(|var| self.0.contains(var));
            self.walk_prim(e);
        }
    }
    let Stmt::Alloc(n) = stmt else { return false };
    let mut depends = Depends(vars, false);
    n.buffer.shape.iter().chain(&n.buffer.strides).for_each(|d| depends.visit_prim(d));
    depends.1
}

impl PrimMutator for Hoist {}

impl StmtMutator for Hoist {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) => {
                let body = match n.kind {
                    ForKind::Parallel | ForKind::ThreadBinding => self.closed(&n.body),
                    _ => self.serial_body(n),
                };
                if body == n.body {
                    return stmt.clone();
                }
                Stmt::loop_around(n, body)
            }
            Stmt::Seq(n) => self.sequence(n),
            Stmt::If(n) => {
                let then_case = self.closed(&n.then_case);
                let else_case = n.else_case.as_ref().map(|s| self.closed(s));
                match else_case {
                    Some(other) => Stmt::if_else(n.condition.clone(), then_case, other),
                    None => Stmt::when(n.condition.clone(), then_case),
                }
            }
            Stmt::While(n) => {
                let (condition, body) = (n.condition.clone(), self.closed(&n.body));
                Ref::new(While { condition, body }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}
