//! Statements without effect go: empty loops and conditions, evaluated constants, assertions that always hold, what stands
//! behind an early exit, a `continue` at the end of its loop, loops without an iteration, and stores of what is there already.

use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};

use super::simplify::{is_lasting, writes_what_is_there};
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::early_exit::EarlyExit;
use crate::functor::StmtMutator;
use crate::s_tir::state::with_loop_body;
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass!("tirx.transform.RemoveNoOp", "Removes statements without effect.", remove_no_ops);

/// A kernel without statements that do nothing.
pub(super) fn remove_no_ops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let body = RemoveNoOps { analyzer: Analyzer::new() }.mutate_stmt(&func.body);
    Ok(func.with_body(body.or_evaluated()))
}

struct RemoveNoOps {
    analyzer: Analyzer,
}

impl PrimMutator for RemoveNoOps {}

impl StmtMutator for RemoveNoOps {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let Stmt::If(n) = stmt {
            return self.choice(n);
        }
        if let Stmt::For(n) = stmt {
            if self.analyzer.bounds(&n.extent).max.is_some_and(|most| most <= 0) {
                return Stmt::nop();
            }
            self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
        }
        if let Stmt::Bind(n) = stmt
            && is_lasting(&n.value)
        {
            self.analyzer.bind_value(&n.var, &n.value);
        }
        let stmt = self.remake_stmt(stmt);
        match &stmt {
            Stmt::For(n) if n.body.is_nop() => Stmt::nop(),
            Stmt::Store(n) if writes_what_is_there(n, |a, b| same(a, b) || self.analyzer.can_prove_equal(a, b)) => {
                Stmt::nop()
            }
            Stmt::For(n) if ends_in_continue(&n.body) => {
                let body = without_last(&n.body);
                if body.is_nop() { Stmt::nop() } else { with_loop_body(n, body).into() }
            }
            Stmt::Seq(n) => Stmt::seq(Stmt::reached(n.seq.iter().filter(|s| !s.is_nop()).cloned().collect())),
            Stmt::Attr(n) if n.body.is_nop() => Stmt::nop(),
            Stmt::Assert(n) if n.condition.as_int().is_some_and(|c| c != 0) => Stmt::nop(),
            Stmt::Evaluate(n) if is_nothing(&n.value) => Stmt::nop(),
            _ => stmt,
        }
    }
}

impl RemoveNoOps {
    /// A choice, in whose branches is known what was asked.
    fn choice(&mut self, n: &IfThenElse) -> Stmt {
        let condition = n.condition.clone();
        let then_case = self.under(&condition, &n.then_case);
        let other = n.else_case.as_ref().map(|other| self.under(&prim::not(condition.clone()), other));
        match other {
            Some(other) if other.is_nop() && then_case.is_nop() => Stmt::nop(),
            Some(other) if then_case.is_nop() => Stmt::when(prim::not(condition), other),
            Some(other) if !other.is_nop() => Stmt::if_else(condition, then_case, other),
            _ if then_case.is_nop() => Stmt::nop(),
            _ => Stmt::when(condition, then_case),
        }
    }

    fn under(&mut self, condition: &PrimExpr, stmt: &Stmt) -> Stmt {
        let mark = is_lasting(condition).then(|| self.analyzer.assume(condition));
        let made = self.mutate_stmt(stmt);
        if let Some(mark) = mark {
            self.analyzer.forget(mark);
        }
        made
    }
}

/// Whether an expression has no effect, and is there for what it says at most.
fn is_nothing(value: &PrimExpr) -> bool {
    match value {
        PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_) => true,
        PrimExpr::Call(n) => matches!(n.op.as_str(), "tirx.assume" | "tirx.undef"),
        _ => false,
    }
}

fn ends_in_continue(body: &Stmt) -> bool {
    let last = if let Stmt::Seq(n) = body { n.seq.last() } else { Some(body) };
    last.is_some_and(|s| s.early_exit() == Some(EarlyExit::Continue))
}

fn without_last(body: &Stmt) -> Stmt {
    match body {
        Stmt::Seq(n) => Stmt::seq(n.seq[..n.seq.len() - 1].iter().cloned()),
        _ => Stmt::nop(),
    }
}
