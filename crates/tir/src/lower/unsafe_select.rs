//! A choice that must not evaluate both sides becomes one that does not.
//!
//! ```text
//! T.Select(i < n, A[i], 0.0)     ->     T.if_then_else(i < n, A[i], 0.0)
//! ```
//!
//! `Select` may evaluate both sides, which is cheap and has no branch. A side that reads memory, calls what is not known to be
//! without effect, or divides by what might be zero, may be one that its condition guards.
//!
//! Not touched: choices lane by lane. There both sides are vectors in any case, and a load that must not happen has a
//! predicate.

use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};

use super::pure::may_trap;
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::intrin::Intrinsic;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.RewriteUnsafeSelect",
    "A choice that must not evaluate both sides becomes one that does not.",
    rewrite_unsafe_selects
);

/// A kernel whose choices evaluate nothing that must not be.
fn rewrite_unsafe_selects(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(Rewrite.mutate_stmt(&func.body)))
}

struct Rewrite;

impl PrimMutator for Rewrite {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = self.remake_prim(e);
        match &e {
            PrimExpr::Select(n)
                if n.condition.dtype().lanes == 1 && (is_unsafe(&n.true_value) || is_unsafe(&n.false_value)) =>
            {
                prim::if_then_else(n.condition.clone(), &n.true_value, &n.false_value)
            }
            _ => e,
        }
    }
}

impl StmtMutator for Rewrite {}

/// Whether evaluating an expression may do harm.
fn is_unsafe(e: &PrimExpr) -> bool {
    match e {
        PrimExpr::Load(_) => true,
        PrimExpr::Call(n) => match Intrinsic::of_call(&n.op) {
            // What it guards, it guards already.
            Some(Intrinsic::IfThenElse) => n.args.first().is_some_and(is_unsafe),
            Some(intrinsic) if intrinsic.is_elementwise() => n.args.iter().any(is_unsafe),
            _ => true,
        },
        PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => false,
        PrimExpr::Cast(n) => is_unsafe(&n.value),
        PrimExpr::Binary(n) => is_unsafe(&n.a) || is_unsafe(&n.b) || may_trap(n),
        PrimExpr::Not(n) => is_unsafe(&n.a),
        PrimExpr::Select(n) => [&n.condition, &n.true_value, &n.false_value].into_iter().any(is_unsafe),
        PrimExpr::Let(n) => is_unsafe(&n.value) || is_unsafe(&n.body),
        PrimExpr::Ramp(n) => is_unsafe(&n.base) || is_unsafe(&n.stride),
        PrimExpr::Broadcast(n) => is_unsafe(&n.value),
    }
}
