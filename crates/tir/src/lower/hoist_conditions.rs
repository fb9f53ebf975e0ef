//! Conditions that a loop does not change stand outside of it.
//!
//! ```text
//! for i in range(16):                   if n > 3:
//!     for j in range(m):                    for i in range(16):
//!         if n > 3:              ->             for j in range(m):
//!             A[i] = B[j]                           A[i] = B[j]
//! ```
//!
//! A condition leaves a loop whose whole body it is, as far out as what it depends on allows; its other branch gets a loop of its
//! own. Where something else stands beside it in the loop, it stays: two loops would have to be made of one.
//!
//! A condition that leaves is evaluated also where the loop has no iteration, and before all of them. So it stays if it reads
//! memory, calls what has an effect, or divides by what might be zero.
//!
//! With `variant="basic"` nothing changes: TVM's other variant also looks for conditions that are worth splitting blocks for,
//! which is meant for the threads of a GPU.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{PrimExpr, PrimMutator, free_vars};

use super::pure::{always_safe, is_pure};
use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::functor::{StmtMutator, fresh_copy};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.HoistIfThenElse",
    "Conditions that a loop does not change stand outside of it.",
    |func, _, args| match args.str("variant") {
        None | Some("basic") => hoist_conditions(func),
        Some(other) => Err(LowerError::Option { option: "variant", given: other.to_string(), known: "basic" }),
    }
)
.params(&[PassParam::optional("variant", ParamKind::Str, "`basic`, which does the same.")]);

/// A kernel that decides outside of loops where it can.
fn hoist_conditions(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(Hoist.mutate_stmt(&func.body)))
}

struct Hoist;

impl PrimMutator for Hoist {}

impl StmtMutator for Hoist {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match self.remake_stmt(stmt) {
            Stmt::For(n) => hoist_condition(&n),
            stmt => stmt,
        }
    }
}

/// A loop, below the condition that its body is, if that may leave it.
pub(super) fn hoist_condition(n: &Ref<For>) -> Stmt {
    let Stmt::If(inner) = &n.body else { return n.clone().into() };
    if n.kind == ForKind::ThreadBinding || !may_leave(&inner.condition, n) {
        return n.clone().into();
    }
    let then_case = Stmt::loop_around(n, inner.then_case.clone());
    match &inner.else_case {
        Some(other) => {
            let other = fresh_copy(&Stmt::loop_around(n, other.clone()));
            Stmt::if_else(inner.condition.clone(), then_case, other)
        }
        None => Stmt::when(inner.condition.clone(), then_case),
    }
}

/// Whether a condition may be evaluated in front of a loop.
fn may_leave(condition: &PrimExpr, n: &For) -> bool {
    is_pure(condition) && always_safe(condition) && !free_vars(condition).contains(&n.var)
}
