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
//! Choices that expressions make leave as [`hoist_choices`](super::hoist_choices) has it. What is left is simplified.
//!
//! The option `s_tir.HoistExpression` says which conditions (`hoisted_conditionals`: 1 of statements, 2 of `if_then_else`, 4 the sides of
//! `and` and `or`, 8 also where loops over threads are concerned) and which names (`hoisted_let_bindings`: 1 those that such conditions
//! need, 2 of statements, 4 of expressions) leave, as sums.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassContext, PassInfo};
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, Var};

use super::hoist_choices::{Choices, hoist_choices};
use super::hoist_conditions::hoist_condition;
use super::no_op::remove_no_ops;
use super::pure::{always_safe, is_pure_but_for_loads};
use super::simplify::simplify_written_out;
use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

/// The option of a pass context that the pass reads.
const OPTION: &str = "s_tir.HoistExpression";

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.HoistExpression",
    "Bound names and conditions that a loop does not change stand in front of it.",
    |func, context, _| hoist_expressions(func, context)
);

/// A kernel that computes in front of loops what they do not change.
fn hoist_expressions(func: &PrimFunc, context: &PassContext) -> Result<PrimFunc, LowerError> {
    let conditions = context.config.entry(OPTION, "hoisted_conditionals");
    let bindings = context.config.entry(OPTION, "hoisted_let_bindings");
    let choices = Choices {
        statements: conditions & 1 != 0,
        expressions: conditions & 2 != 0,
        operands: conditions & 4 != 0,
        names: bindings & 4 != 0,
        threads: conditions & 8 != 0,
    };
    let mut hoist = Hoist {
        conditions: conditions & 1 != 0,
        threads: choices.threads,
        names: bindings & 2 != 0,
        needed: bindings & 1 != 0,
    };
    let body = hoist.mutate_stmt(&hoist_choices(&func.body, choices));
    remove_no_ops(&simplify_written_out(&func.with_body(body)))
}

struct Hoist {
    /// Whether conditions of statements leave.
    conditions: bool,
    /// Whether they leave loops over threads.
    threads: bool,
    /// Whether names leave.
    names: bool,
    /// Whether those leave that conditions need.
    needed: bool,
}

impl Hoist {
    /// A loop, below the condition that its body is.
    fn condition(&self, n: &Ref<For>) -> Stmt {
        if self.conditions { hoist_condition(n, self.threads) } else { n.clone().into() }
    }

    /// What the condition behind names needs, if it can leave.
    fn needs(&self, last: Option<&Stmt>) -> Vec<Ref<Var>> {
        match last {
            Some(Stmt::If(n)) if self.needed && self.conditions => free_vars(&n.condition),
            _ => Vec::new(),
        }
    }
}

impl PrimMutator for Hoist {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Hoist {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let stmt = self.remake_stmt(stmt);
        let Stmt::For(n) = &stmt else { return stmt };
        if n.kind == ForKind::ThreadBinding && !self.threads {
            return stmt;
        }
        let Stmt::Seq(seq) = &n.body else { return self.condition(n) };
        let needed = self.needs(seq.seq.last());
        let writes = Writes::of(&n.body);
        let runs = n.extent.as_int().is_some_and(|count| count > 0);
        let mut inside = HashSet::from([n.var.clone()]);
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        for stmt in &seq.seq {
            match stmt {
                Stmt::Bind(bind)
                    if (self.names || needed.contains(&bind.var)) && leaves(&bind.value, &inside, &writes, runs) =>
                {
                    leaving.push(stmt.clone());
                }
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
            Stmt::For(rest) => self.condition(&rest),
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
