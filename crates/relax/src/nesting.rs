//! How deep expressions may be nested in each other.
//!
//! Passes, printers and analyses walk expressions by recursion, so a program must not be deeper than the stack of a thread
//! allows. Texts are limited by their parser; what a front end builds node by node is looked at here when it comes in.
//! Bindings that follow each other are not nested: a program may be as long as it likes.

use std::collections::HashMap;

use relaxide_ffi::{Object, Ref};
use relaxide_ir::prim::{PrimExpr, PrimVisitor};

use crate::*;

/// The number of levels that are accepted. Each takes a few kilobytes of stack at most.
pub const MAX_NESTING: usize = 500;

/// Whether an expression is nested deeper than [`MAX_NESTING`].
pub fn is_too_deep(e: &Expr) -> bool {
    let mut walk = Depth::default();
    walk.visit_expr(e);
    walk.too_deep
}

/// The same of a scalar expression.
pub fn is_scalar_too_deep(e: &PrimExpr) -> bool {
    let mut walk = Depth::default();
    walk.visit_prim(e);
    walk.too_deep
}

/// What tells nodes apart.
fn address<T: Object>(node: &Ref<T>) -> usize {
    Ref::as_ptr(node).addr()
}

/// A walk that goes no deeper than the limit.
#[derive(Default)]
struct Depth {
    level: usize,
    too_deep: bool,
    /// The deepest level at which a node that others share was met: it need not be visited again from above that.
    seen: HashMap<usize, usize>,
}

impl Depth {
    fn below(&mut self, address: usize, walk: impl FnOnce(&mut Self)) {
        if self.too_deep || self.seen.get(&address).is_some_and(|deepest| *deepest >= self.level) {
            return;
        }
        self.seen.insert(address, self.level);
        self.too_deep = self.level >= MAX_NESTING;
        if !self.too_deep {
            self.level += 1;
            walk(self);
            self.level -= 1;
        }
    }
}

impl ExprVisitor for Depth {
    fn visit_expr(&mut self, e: &Expr) {
        let address = match e {
            Expr::Call(n) => address(n),
            Expr::Tuple(n) => address(n),
            Expr::TupleGetItem(n) => address(n),
            Expr::If(n) => address(n),
            Expr::Seq(n) => address(n),
            Expr::Function(n) => address(n),
            Expr::Prim(n) => return self.visit_prim(&n.value),
            Expr::Shape(n) => return n.values.iter().for_each(|dim| self.visit_prim(dim)),
            _ => return,
        };
        self.below(address, |walk| walk.walk_expr(e));
    }
}

impl PrimVisitor for Depth {
    fn visit_prim(&mut self, e: &PrimExpr) {
        let address = match e {
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => return,
            PrimExpr::Cast(n) => address(n),
            PrimExpr::Binary(n) => address(n),
            PrimExpr::Not(n) => address(n),
            PrimExpr::Select(n) => address(n),
            PrimExpr::Let(n) => address(n),
            PrimExpr::Ramp(n) => address(n),
            PrimExpr::Broadcast(n) => address(n),
            PrimExpr::Load(n) => address(n),
            PrimExpr::Call(n) => address(n),
        };
        self.below(address, |walk| walk.walk_prim(e));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relaxide_ffi::DataType;
    use relaxide_ir::Var;

    fn nested(levels: usize) -> Expr {
        (0..levels).fold(Expr::tuple([]), |inner, _| Expr::tuple([inner]))
    }

    #[test]
    fn depth_is_counted_and_length_is_not() {
        assert!(!is_too_deep(&nested(MAX_NESTING - 1)));
        assert!(is_too_deep(&nested(MAX_NESTING)));
        assert!(is_too_deep(&nested(1_000_000)));
        assert!(!is_too_deep(&Expr::tuple(vec![nested(3); 10_000])));
    }

    #[test]
    fn shared_nodes_are_visited_once() {
        let doubled = (0..MAX_NESTING / 2).fold(Expr::tuple([]), |inner, _| Expr::tuple([inner.clone(), inner]));
        assert!(!is_too_deep(&doubled));
        let n = PrimExpr::from(Var::prim("n", DataType::int(64)));
        let sum = (0..MAX_NESTING * 2).fold(n.clone(), |sum, _| relaxide_ir::prim::min(sum, n.clone() * 2));
        assert!(is_scalar_too_deep(&sum));
    }
}
