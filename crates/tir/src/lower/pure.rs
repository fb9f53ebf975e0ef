//! Which expressions may be evaluated at another place than where they stand.

use relaxide_ir::BinaryOp;
use relaxide_ir::prim::{Binary, PrimExpr, PrimVisitor};

use crate::intrin::Intrinsic;

/// Whether the value of an expression depends on its variables alone, and evaluating it does nothing else.
pub(super) fn is_pure(e: &PrimExpr) -> bool {
    all(e, |e| match e {
        PrimExpr::Load(_) | PrimExpr::Str(_) => false,
        PrimExpr::Call(n) => Intrinsic::of_call(&n.op).is_some_and(Intrinsic::is_elementwise),
        _ => true,
    })
}

/// The same, but that it may read memory.
pub(super) fn is_pure_but_for_loads(e: &PrimExpr) -> bool {
    all(e, |e| match e {
        PrimExpr::Call(n) => Intrinsic::of_call(&n.op).is_some_and(Intrinsic::is_elementwise),
        _ => true,
    })
}

/// Whether an expression can be evaluated for any values of its variables: it divides by nothing that might be zero. The side
/// of a choice that is not taken counts, too, since what is taken out of it is evaluated always.
pub(super) fn always_safe(e: &PrimExpr) -> bool {
    all(e, |e| !matches!(e, PrimExpr::Binary(n) if may_trap(n)))
}

/// Whether an operation divides integers by what might be zero, or by -1, of which the least number is no quotient.
pub(super) fn may_trap(n: &Binary) -> bool {
    let divides = matches!(n.op, BinaryOp::Div | BinaryOp::Mod | BinaryOp::FloorDiv | BinaryOp::FloorMod);
    let literal = match &n.b {
        PrimExpr::Broadcast(b) => b.value.as_int(),
        b => b.as_int(),
    };
    divides && !n.b.dtype().is_float() && literal.is_none_or(|c| c == 0 || c == -1)
}

/// Whether something holds for an expression and all parts of it.
fn all(e: &PrimExpr, holds: impl Fn(&PrimExpr) -> bool) -> bool {
    struct All<F>(F, bool);
    impl<F: Fn(&PrimExpr) -> bool> PrimVisitor for All<F> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.1 = self.1 && (self.0)(e);
            if self.1 {
                self.walk_prim(e);
            }
        }
    }
    let mut all = All(holds, true);
    all.visit_prim(e);
    all.1
}
