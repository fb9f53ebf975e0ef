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
//! The entry `support_block_scope_hoisting` of the option `s_tir.HoistIfThenElse` lets them leave loops over threads, too.
//!
//! With `variant="basic"` nothing changes: TVM's other variant also looks for conditions that are worth splitting blocks for,
//! which is meant for the threads of a GPU.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{PrimExpr, PrimMutator, free_vars};

use super::pure::{always_safe, is_pure};
use super::{LowerError, kernel_pass_with};
use crate::functor::{StmtMutator, fresh_copy};
use crate::stmt::*;

/// The option of a pass context that the pass reads.
const OPTION: &str = "s_tir.HoistIfThenElse";

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.HoistIfThenElse",
    "Conditions that a loop does not change stand outside of it.",
    |func, context, args| match args.str("variant") {
        None | Some("basic") => {
            let threads = context.config.entry(OPTION, "support_block_scope_hoisting") != 0;
            Ok(func.with_body(Hoist { threads }.mutate_stmt(&func.body)))
        }
        Some(other) => Err(LowerError::Option { option: "variant", given: other.to_string(), known: "basic" }),
    }
)
.params(&[PassParam::optional("variant", ParamKind::Str, "`basic`, which does the same.")]);

struct Hoist {
    /// Whether conditions leave loops over threads.
    threads: bool,
}

impl PrimMutator for Hoist {}

impl StmtMutator for Hoist {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match self.remake_stmt(stmt) {
            Stmt::For(n) => hoist_condition(&n, self.threads),
            stmt => stmt,
        }
    }
}

/// A loop, below the conditions that its body is, as far as these may leave it. Names that are bound in front of a condition that
/// does not use them go with its branches.
pub(super) fn hoist_condition(n: &Ref<For>, threads: bool) -> Stmt {
    let (names, last) = match &n.body {
        Stmt::Seq(seq) => match seq.seq.split_last() {
            Some((last, names)) if names.iter().all(|s| matches!(s, Stmt::Bind(_))) => (names, last),
            _ => return n.clone().into(),
        },
        body => (&[][..], body),
    };
    let Stmt::If(inner) = last else { return n.clone().into() };
    if n.kind == ForKind::ThreadBinding && !threads || !may_leave(&inner.condition, n, names) {
        return n.clone().into();
    }
    let around = |branch: &Stmt| {
        let body = Stmt::seq(names.iter().chain([branch]).cloned());
        hoist_condition(&Ref::new(For { body, ..(**n).clone() }), threads)
    };
    let then_case = around(&inner.then_case);
    match &inner.else_case {
        Some(other) => Stmt::if_else(inner.condition.clone(), then_case, fresh_copy(&around(other))),
        None => Stmt::when(inner.condition.clone(), then_case),
    }
}

/// Whether a condition may be evaluated in front of a loop.
fn may_leave(condition: &PrimExpr, n: &For, names: &[Stmt]) -> bool {
    let inside = |var: &Ref<Var>| *var == n.var || names.iter().any(|s| matches!(s, Stmt::Bind(b) if b.var == *var));
    is_pure(condition) && always_safe(condition) && !free_vars(condition).iter().any(inside)
}
