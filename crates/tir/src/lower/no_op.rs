//! Statements without effect go: empty loops and conditions, evaluated constants, assertions that always hold.

use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass!("tirx.transform.RemoveNoOp", "Removes statements without effect.", remove_no_ops);

/// A kernel without statements that do nothing.
pub(super) fn remove_no_ops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(RemoveNoOps.mutate_stmt(&func.body)))
}

struct RemoveNoOps;

impl PrimMutator for RemoveNoOps {}

impl StmtMutator for RemoveNoOps {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let stmt = self.remake_stmt(stmt);
        match &stmt {
            Stmt::For(n) if n.body.is_nop() => Stmt::nop(),
            Stmt::If(n) => match &n.else_case {
                Some(other) if other.is_nop() => Stmt::when(n.condition.clone(), n.then_case.clone()),
                None if n.then_case.is_nop() => Stmt::nop(),
                _ => stmt,
            },
            Stmt::Seq(n) => Stmt::seq(n.seq.iter().filter(|s| !s.is_nop()).cloned()),
            Stmt::Attr(n) if n.body.is_nop() => Stmt::nop(),
            Stmt::Assert(n) if n.condition.as_int().is_some_and(|c| c != 0) => Stmt::nop(),
            Stmt::Evaluate(n) if matches!(n.value, PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_)) => {
                Stmt::nop()
            }
            _ => stmt,
        }
    }
}
