//! What has a visible effect.

use crate::builder::is_pure;
use crate::*;

/// The first call with an effect in an expression, if there is one. A nested function is looked into only by who asks for
/// it: defining one has no effect. Calls of the variable `own`, a function's own name in a recursion, do not count.
pub fn find_impure_call(e: &Expr, own: Option<&AnyVar>) -> Option<Expr> {
    struct Find<'a> {
        own: Option<&'a AnyVar>,
        found: Option<Expr>,
    }
    impl ExprVisitor for Find<'_> {
        fn visit_expr(&mut self, e: &Expr) {
            if self.found.is_some() || matches!(e, Expr::Function(_)) {
                return;
            }
            if let Expr::Call(call) = e {
                let recursion = call.op.as_var().is_some_and(|v| Some(&v) == self.own);
                if !recursion && !is_pure(e) {
                    self.found = Some(e.clone());
                    return;
                }
            }
            self.walk_expr(e);
        }
    }
    let mut find = Find { own, found: None };
    match e {
        Expr::Function(func) if func.attrs.bool("relax.force_pure") == Some(true) => {}
        Expr::Function(func) => find.visit_seq(&func.body),
        _ => find.visit_expr(e),
    }
    find.found
}

/// Whether an expression, or the body of a function, has a visible effect.
pub fn contains_impure_call(e: &Expr, own: Option<&AnyVar>) -> bool {
    find_impure_call(e, own).is_some()
}
