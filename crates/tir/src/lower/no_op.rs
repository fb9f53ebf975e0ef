//! Statements without effect go: empty loops and conditions, evaluated constants, assertions that always hold, what stands
//! behind an early exit, a `continue` at the end of its loop, loops without a turn, and stores of what is there already.

use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};

use super::simplify::writes_what_is_there;
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
        if let Stmt::For(n) = stmt {
            if self.analyzer.bounds(&n.extent).max.is_some_and(|most| most <= 0) {
                return Stmt::nop();
            }
            self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
        }
        let stmt = self.remake_stmt(stmt);
        match &stmt {
            Stmt::For(n) if n.body.is_nop() => Stmt::nop(),
            Stmt::Store(n) if writes_what_is_there(n) => Stmt::nop(),
            Stmt::For(n) if ends_in_continue(&n.body) => {
                let body = without_last(&n.body);
                if body.is_nop() { Stmt::nop() } else { with_loop_body(n, body).into() }
            }
            Stmt::If(n) => match &n.else_case {
                Some(other) if other.is_nop() && n.then_case.is_nop() => Stmt::nop(),
                Some(other) if n.then_case.is_nop() => Stmt::when(prim::not(n.condition.clone()), other.clone()),
                Some(other) if other.is_nop() => Stmt::when(n.condition.clone(), n.then_case.clone()),
                None if n.then_case.is_nop() => Stmt::nop(),
                _ => stmt,
            },
            Stmt::Seq(n) => Stmt::seq(Stmt::reached(n.seq.iter().filter(|s| !s.is_nop()).cloned().collect())),
            Stmt::Attr(n) if n.body.is_nop() => Stmt::nop(),
            Stmt::Assert(n) if n.condition.as_int().is_some_and(|c| c != 0) => Stmt::nop(),
            Stmt::Evaluate(n) if is_nothing(&n.value) => Stmt::nop(),
            _ => stmt,
        }
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
