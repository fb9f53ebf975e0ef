//! Loops of kernels that are written out as statements, because what they do follows from one step to the next.

use relaxide_ir::Var;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::Stmt;

/// A loop over `0 .. extent`, one step after the other.
pub fn each(name: &str, extent: impl Into<PrimExpr>, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
    let var = Var::dim(name);
    let at = PrimExpr::from(&var);
    Stmt::serial(var, extent, body(&at))
}
