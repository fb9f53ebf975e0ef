//! Choices inside of expressions are made in front of a loop that does not change them.
//!
//! ```text
//! for i in range(16):                                     if n > 3:
//!     A[i] = T.if_then_else(n > 3, B[i], 0.0)     ->          for i in range(16):
//!                                                                 A[i] = B[i]
//!                                                         else:
//!                                                             for i in range(16):
//!                                                                 A[i] = 0.0
//! ```
//!
//! Looked at are the conditions of statements and of `if_then_else`, the two sides of `and` and `or`, and names that an expression binds, as
//! [`Choices`] says. The outermost loop that they can leave is left at once. What stands beside other statements stays: the loop would
//! be written twice for a part of it. Where one side of an `and` or `or` is decided, what is left is none any more, and stays. A condition leaves if it is the same in every iteration, has no effect and cannot fail.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::same;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, PrimMutator, PrimVisitor, free_vars};

use super::pure::{always_safe, is_pure};
use crate::functor::{StmtMutator, StmtVisitor, fresh_copy};
use crate::stmt::*;

/// Most loops that one becomes: each condition doubles them.
const MOST_COPIES: usize = 64;

/// What leaves loops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices {
    /// Conditions of statements.
    pub statements: bool,
    /// Conditions of `if_then_else`.
    pub expressions: bool,
    /// The sides of `and` and `or`.
    pub operands: bool,
    /// Names that expressions bind.
    pub names: bool,
    /// Whether loops over threads are left, and conditions of threads leave others.
    pub threads: bool,
}

/// A statement whose loops leave to others what they do not decide themselves.
pub(super) fn hoist_choices(body: &Stmt, choices: Choices) -> Stmt {
    Hoist { choices, copies: 1, threads: Vec::new() }.mutate_stmt(body)
}

struct Hoist {
    choices: Choices,
    /// How many copies of the loop there are that is looked at.
    copies: usize,
    /// The threads around it.
    threads: Vec<Ref<Var>>,
}

impl PrimMutator for Hoist {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Hoist {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        let of_threads = n.kind == ForKind::ThreadBinding;
        if !of_threads || self.choices.threads {
            match self.first(n) {
                Some(HoistedChoice::Condition(condition)) if self.copies < MOST_COPIES => {
                    self.copies *= 2;
                    let yes = self.mutate_stmt(&Decide { condition: &condition, value: true }.mutate_stmt(stmt));
                    let no = Decide { condition: &condition, value: false }.mutate_stmt(stmt);
                    let no = self.mutate_stmt(&fresh_copy(&no));
                    self.copies /= 2;
                    return Stmt::if_else(condition, yes, no);
                }
                Some(HoistedChoice::Name(var, value)) => {
                    let rest = self.mutate_stmt(&Unbind { var: &var }.mutate_stmt(stmt));
                    return Stmt::seq([Ref::new(Bind { var, value }).into(), rest]);
                }
                _ => {}
            }
        }
        if of_threads {
            self.threads.push(n.var.clone());
        }
        let made = self.remake_stmt(stmt);
        if of_threads {
            self.threads.pop();
        }
        made
    }
}

impl Hoist {
    /// What leaves a loop first.
    fn first(&self, n: &Ref<For>) -> Option<HoistedChoice> {
        let inside = vec![n.var.clone()];
        let mut search = Search { hoist: self, inside, named: false, found: None };
        search.visit_stmt(&n.body);
        search.found
    }
}

enum HoistedChoice {
    Condition(PrimExpr),
    Name(Ref<Var>, PrimExpr),
}

struct Search<'a> {
    hoist: &'a Hoist,
    /// What is defined in the loop.
    inside: Vec<Ref<Var>>,
    /// Whether names stand beside what is looked at, which leave before conditions of statements do.
    named: bool,
    found: Option<HoistedChoice>,
}

impl Search<'_> {
    fn leaves(&self, e: &PrimExpr) -> bool {
        let outside = |var: &Ref<Var>| {
            !self.inside.contains(var) && (self.hoist.choices.threads || !self.hoist.threads.contains(var))
        };
        is_pure(e) && always_safe(e) && free_vars(e).iter().all(outside)
    }

    fn condition(&mut self, e: &PrimExpr) {
        if self.found.is_none() && e.as_int().is_none() && e.dtype().lanes == 1 && self.leaves(e) {
            self.found = Some(HoistedChoice::Condition(e.clone()));
        }
    }
}

impl PrimVisitor for Search<'_> {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if self.found.is_some() {
            return;
        }
        let choices = self.hoist.choices;
        match e {
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" && choices.expressions => {
                n.args.iter().take(1).for_each(|condition| self.condition(condition));
            }
            PrimExpr::Binary(n) if matches!(n.op, BinaryOp::And | BinaryOp::Or) && choices.operands => {
                self.condition(&n.a);
                self.condition(&n.b);
            }
            PrimExpr::Let(n) => {
                if choices.names && self.leaves(&n.value) {
                    self.found = Some(HoistedChoice::Name(n.var.clone(), n.value.clone()));
                }
                self.inside.push(n.var.clone());
            }
            _ => {}
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Search<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(n) if n.seq.iter().filter(|s| !matches!(s, Stmt::Bind(_))).count() > 1 => return,
            // One statement behind names.
            Stmt::Seq(_) => self.named = true,
            Stmt::For(n) => self.inside.push(n.var.clone()),
            Stmt::Bind(n) => self.inside.push(n.var.clone()),
            Stmt::If(n) if self.hoist.choices.statements && !self.named => self.condition(&n.condition),
            Stmt::Block(n) => self.inside.extend(n.block.iter_vars.iter().map(|iter| iter.var.clone())),
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// Takes a condition to hold, or not to.
struct Decide<'a> {
    condition: &'a PrimExpr,
    value: bool,
}

impl PrimMutator for Decide<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        if same(e, self.condition) {
            return prim::boolean(self.value);
        }
        match self.remake_prim(e) {
            PrimExpr::Call(made) if made.op == "tirx.if_then_else" => match made.args.as_slice() {
                [condition, yes, _] if condition.is_int(1) => yes.clone(),
                [condition, _, no] if condition.is_int(0) => no.clone(),
                _ => made.into(),
            },
            PrimExpr::Binary(made) if made.op == BinaryOp::And => prim::and(made.a.clone(), made.b.clone()),
            PrimExpr::Binary(made) if made.op == BinaryOp::Or => prim::or(made.a.clone(), made.b.clone()),
            made => made,
        }
    }
}

impl StmtMutator for Decide<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match self.remake_stmt(stmt) {
            Stmt::If(n) if n.condition.is_int(1) => n.then_case.clone(),
            Stmt::If(n) if n.condition.is_int(0) => n.else_case.clone().unwrap_or_else(Stmt::nop),
            made => made,
        }
    }
}

/// Takes a name out of the expression that binds it.
struct Unbind<'a> {
    var: &'a Ref<Var>,
}

impl PrimMutator for Unbind<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Let(n) if n.var == *self.var => self.mutate_prim(&n.body),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Unbind<'_> {}
