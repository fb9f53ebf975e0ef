//! What a loop does not change is computed in front of it: bound names, and conditions around the whole body.
//!
//! ```text
//! for i in range(16):                      for i in range(16):
//!     for j in range(4):                       t = T.sqrt(B[i])
//!         t = T.sqrt(B[i])                     if i * 4 < n:
//!         if i * 4 < n:              ->            for j in range(4):
//!             A[j] = A[j] + t                          A[j] = A[j] + t
//! ```
//!
//! A name leaves a loop if its value does not depend on the counter or on what is bound in the loop, has no effect and cannot fail. It
//! may read memory that the loop does not write, if the loop is known to have an iteration. Conditions leave as
//! [`HoistIfThenElse`](super::hoist_conditions) has it.
//!
//! Parts of conditions (`i < n and j < m`) stay: the comparison that is left would not be cheaper than both.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, Var};

use super::hoist_conditions::hoist_condition;
use super::pure::{always_safe, is_pure_but_for_loads};
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.HoistExpression",
    "Bound names and conditions that a loop does not change stand in front of it.",
    hoist_expressions
);

/// A kernel that computes in front of loops what they do not change.
fn hoist_expressions(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(Hoist.mutate_stmt(&func.body)))
}

struct Hoist;

impl PrimMutator for Hoist {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Hoist {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let stmt = self.remake_stmt(stmt);
        let Stmt::For(n) = &stmt else { return stmt };
        if n.kind == ForKind::ThreadBinding {
            return stmt;
        }
        let Stmt::Seq(seq) = &n.body else { return hoist_condition(n) };
        let writes = Writes::of(&n.body);
        let runs = n.extent.as_int().is_some_and(|count| count > 0);
        let mut inside = HashSet::from([n.var.clone()]);
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        for stmt in &seq.seq {
            match stmt {
                Stmt::Bind(bind) if leaves(&bind.value, &inside, &writes, runs) => leaving.push(stmt.clone()),
                Stmt::Bind(bind) => {
                    inside.insert(bind.var.clone());
                    staying.push(stmt.clone());
                }
                _ => staying.push(stmt.clone()),
            }
        }
        if leaving.is_empty() {
            return stmt;
        }
        let rest = match Stmt::loop_around(n, Stmt::seq(staying)) {
            Stmt::For(rest) => hoist_condition(&rest),
            other => other,
        };
        Stmt::seq(leaving.into_iter().chain([rest]))
    }
}

fn leaves(value: &PrimExpr, inside: &HashSet<Ref<Var>>, writes: &Writes, runs: bool) -> bool {
    let still = !free_vars(value).iter().any(|var| inside.contains(var));
    let reads = Reads::of(value);
    let unchanged = reads.is_empty() || runs && !writes.calls && reads.is_disjoint(&writes.memory);
    still && unchanged && is_pure_but_for_loads(value) && always_safe(value)
}

/// The memory that an expression reads, by its pointers.
struct Reads(HashSet<Ref<Var>>);

impl Reads {
    fn of(e: &PrimExpr) -> HashSet<Ref<Var>> {
        let mut reads = Reads(HashSet::new());
        reads.visit_prim(e);
        reads.0
    }
}

impl PrimVisitor for Reads {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.0.insert(buffer.data.clone());
    }
}

/// What a statement may change.
#[derive(Default)]
struct Writes {
    /// By its pointers. What is allocated inside counts, since it is not there in front.
    memory: HashSet<Ref<Var>>,
    /// Whether it calls something.
    calls: bool,
}

impl Writes {
    fn of(stmt: &Stmt) -> Writes {
        let mut writes = Writes::default();
        writes.visit_stmt(stmt);
        writes
    }
}

impl PrimVisitor for Writes {
    fn visit_prim(&mut self, _: &PrimExpr) {}
}

impl StmtVisitor for Writes {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.memory.insert(buffer.data.clone());
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Evaluate(_) => self.calls = true,
            Stmt::Alloc(n) => drop(self.memory.insert(n.buffer.data.clone())),
            Stmt::Block(n) => self.memory.extend(n.block.alloc_buffers.iter().map(|b| b.data.clone())),
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}
