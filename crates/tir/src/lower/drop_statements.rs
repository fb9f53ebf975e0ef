//! Statements that say something and compute nothing go.
//!
//! * `RemoveAssume`: what is taken for granted (`T.assume(n < 4)`), once no pass is left that could use it.
//! * `SkipAssert`: assertions, for programs that are known to be right.
//! * `RemoveStoreUndef`: stores of values that may be anything (`A[i] = T.undef()`), which say that an element need not be
//!   kept. A loop that stores nothing else goes with them.
//!
//! A value that is computed of an undefined one is undefined as well, and so is its store. An undefined value in an index, a
//! condition or a call with an effect is refused: what the program would do is not known.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor, any};

use super::{LowerError, kernel_pass, no_op};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const ASSUME: PassInfo =
    kernel_pass!("tirx.transform.RemoveAssume", "What is taken for granted goes.", remove_assumptions);

pub(super) const ASSERT: PassInfo = kernel_pass!("tirx.transform.SkipAssert", "Assertions go.", skip_assertions);

pub(super) const UNDEF: PassInfo =
    kernel_pass!("s_tir.transform.RemoveStoreUndef", "Stores of undefined values go.", remove_undefined_stores);

/// A kernel that takes nothing for granted.
fn remove_assumptions(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    no_op::remove_no_ops(&without(func, |stmt| matches!(stmt, Stmt::Evaluate(n) if is_call(&n.value, "tirx.assume"))))
}

/// A kernel without assertions.
fn skip_assertions(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(without(func, |stmt| matches!(stmt, Stmt::Assert(_))))
}

/// A kernel that stores nothing undefined.
fn remove_undefined_stores(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let kept = without(func, |stmt| matches!(stmt, Stmt::Store(n) if has_undef(&n.value) && !effects(&n.value)));
    struct Left(Option<String>);
    impl PrimVisitor for Left {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if is_call(e, "tirx.undef") {
                self.0.get_or_insert("an undefined value is used in an index, a condition or a call".into());
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Left {}
    let mut left = Left(None);
    left.visit_stmt(&kept.body);
    match left.0 {
        Some(message) => Err(LowerError::Refused(message)),
        None => no_op::remove_no_ops(&kept),
    }
}

fn is_call(e: &PrimExpr, name: &str) -> bool {
    matches!(e, PrimExpr::Call(n) if n.op == name)
}

fn has_undef(e: &PrimExpr) -> bool {
    any(e, |e| is_call(e, "tirx.undef"))
}

/// Whether evaluating an expression does more than to give a value.
fn effects(e: &PrimExpr) -> bool {
    use crate::intrin::Intrinsic;
    let known = |op: &str| op == "tirx.undef" || Intrinsic::of_call(op).is_some_and(Intrinsic::is_elementwise);
    any(e, |e| matches!(e, PrimExpr::Call(n) if !known(&n.op)))
}

/// A kernel without some statements.
fn without(func: &PrimFunc, goes: impl Fn(&Stmt) -> bool) -> PrimFunc {
    struct Without<F>(F);
    impl<F> PrimMutator for Without<F> {
        fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
            e.clone()
        }
    }
    impl<F: Fn(&Stmt) -> bool> StmtMutator for Without<F> {
        fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
            if (self.0)(stmt) {
                return Stmt::nop();
            }
            match stmt {
                // Conditions that are known stay as they are: only what was asked for goes.
                Stmt::Seq(n) => Stmt::seq(n.seq.iter().map(|s| self.mutate_stmt(s)).filter(|s| !s.is_nop())),
                Stmt::Store(n) => Stmt::Store(Ref::clone(n)),
                _ => self.remake_stmt(stmt),
            }
        }
    }
    func.with_body(Without(goes).mutate_stmt(&func.body))
}
