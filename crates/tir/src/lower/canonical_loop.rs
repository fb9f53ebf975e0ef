//! Loops count from zero.
//!
//! ```text
//! for i in range(3, n):          for i in range(n - 3):
//!     A[i] = B[i]          ->        A[i + 3] = B[i + 3]
//! ```
//!
//! Passes behind it need not ask where a loop begins. Loops step by one here in any case; that of another step is read as the loop
//! over its iterations.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, VarMap};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass!("s_tir.transform.CanonicalizeLoop", "Loops count from zero.", canonicalize_loops);

/// A kernel whose loops count from zero.
pub(super) fn canonicalize_loops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(FromZero(VarMap::new()).mutate_stmt(&func.body)))
}

/// Counters with what stands in their place.
struct FromZero(VarMap);

impl PrimMutator for FromZero {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.0.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for FromZero {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        if n.min.is_int(0) {
            return self.remake_stmt(stmt);
        }
        let (min, extent) = (self.mutate_prim(&n.min), self.mutate_prim(&n.extent));
        let shifted = prim::add(&n.var, prim::cast(n.var.dtype(), min));
        self.0.insert(n.var.clone(), shifted);
        let body = self.mutate_stmt(&n.body);
        let min = prim::int_of(n.var.dtype(), 0);
        Ref::new(For { min, extent, body, ..(**n).clone() }).into()
    }
}
