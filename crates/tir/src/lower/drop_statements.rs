//! Statements that say something and compute nothing go.
//!
//! * `RemoveAssume`: what is taken for granted (`T.assume(n < 4)`), once no pass is left that could use it.
//! * `SkipAssert`: assertions, for programs that are known to be right.
//! * `RemoveStoreUndef`: stores of values that may be anything (`A[i] = T.undef()`), which say that an element need not be
//!   kept. A loop that stores nothing else goes with them.
//!
//! A value that is computed of an undefined one is undefined as well, and so is its store. An undefined value in an index, a
//! condition or a call with an effect is refused: what the program would do is not known.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
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

/// A kernel that stores nothing undefined, and gives no name to it.
fn remove_undefined_stores(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut names = Undefined::default();
    names.visit_stmt(&func.body);
    if names.in_index {
        return Err(LowerError::Refused("an undefined value is used in an index, a condition or a call".into()));
    }
    let undefined = |e: &PrimExpr| names.is_undefined(e) && !effects(e);
    let kept = without(func, |stmt| match stmt {
        Stmt::Store(n) => undefined(&n.value),
        Stmt::Bind(n) => undefined(&n.value),
        _ => false,
    });
    let mut left = Undefined { names: names.names.clone(), ..Undefined::default() };
    left.visit_stmt(&kept.body);
    match left.is_used {
        true => Err(LowerError::Refused("an undefined value is used in an index, a condition or a call".into())),
        false => no_op::remove_no_ops(&kept),
    }
}

/// The names of undefined values, and where these are used.
#[derive(Default)]
struct Undefined {
    names: HashSet<Ref<Var>>,
    in_index: bool,
    is_used: bool,
}

impl Undefined {
    fn is_undefined(&self, e: &PrimExpr) -> bool {
        any(e, |e| is_call(e, "tirx.undef") || e.as_var().is_some_and(|var| self.names.contains(var)))
    }
}

impl PrimVisitor for Undefined {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Load(n) = e {
            self.in_index |= n.indices.iter().any(|index| self.is_undefined(index));
        }
        self.is_used |= is_call(e, "tirx.undef") || e.as_var().is_some_and(|var| self.names.contains(var));
        self.walk_prim(e);
    }
}

impl StmtVisitor for Undefined {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Bind(n) if self.is_undefined(&n.value) => drop(self.names.insert(n.var.clone())),
            Stmt::Store(n) => self.in_index |= n.indices.iter().any(|index| self.is_undefined(index)),
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

fn is_call(e: &PrimExpr, name: &str) -> bool {
    matches!(e, PrimExpr::Call(n) if n.op == name)
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
