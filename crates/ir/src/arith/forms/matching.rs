//! Matching an expression with the left side of a rule, and calculating with what was matched.

use super::super::same;
use super::term::{MAX_NAMES, Node, Order, Rule, Term, commutes, leading};
use crate::PrimExpr;
use crate::prim;

/// What the names of a rule stand for.
pub(super) type Bindings = [Option<PrimExpr>; MAX_NAMES];

/// What is left to be matched.
struct Work<'a> {
    term: &'a Term,
    expr: &'a PrimExpr,
    next: Option<&'a Work<'a>>,
}

/// Finds what the names of a rule stand for in an expression, such that `accept` takes it.
pub(super) fn find(rule: &Rule, expr: &PrimExpr, accept: &mut dyn FnMut(&Bindings) -> bool) -> Option<Bindings> {
    let fixed = if rule.order == Order::Leading { leading(&rule.left) } else { None };
    let mut search = Search { fixed, free: rule.order != Order::All, accept };
    let mut bindings = Bindings::default();
    search.go(Some(&Work { term: &rule.left, expr, next: None }), &mut bindings).then_some(bindings)
}

struct Search<'a> {
    /// The node whose operands do not change places.
    fixed: Option<&'a Term>,
    /// Whether those of others do.
    free: bool,
    accept: &'a mut dyn FnMut(&Bindings) -> bool,
}

impl Search<'_> {
    fn go(&mut self, work: Option<&Work<'_>>, bindings: &mut Bindings) -> bool {
        let Some(&Work { term, expr, next }) = work else { return (self.accept)(bindings) };
        match (term, expr) {
            (Term::Any(place) | Term::Lanes(place), _) | (Term::Literal(place), PrimExpr::Int(_)) => {
                self.bind(*place, expr, next, bindings)
            }
            (Term::Int(value), PrimExpr::Int(n)) => n.value == *value && self.go(next, bindings),
            (Term::Bool(value), PrimExpr::Int(n)) => {
                n.dtype.is_bool() && (n.value != 0) == *value && self.go(next, bindings)
            }
            (Term::Binary(op, operands), PrimExpr::Binary(n)) if n.op == *op => {
                let [a, b] = &**operands;
                let before = bindings.clone();
                let right = Work { term: b, expr: &n.b, next };
                if self.go(Some(&Work { term: a, expr: &n.a, next: Some(&right) }), bindings) {
                    return true;
                }
                *bindings = before;
                if !self.free || !commutes(*op) || self.fixed.is_some_and(|fixed| std::ptr::eq(fixed, term)) {
                    return false;
                }
                let right = Work { term: b, expr: &n.a, next };
                self.go(Some(&Work { term: a, expr: &n.b, next: Some(&right) }), bindings)
            }
            (Term::Not(operand), PrimExpr::Not(n)) => {
                self.go(Some(&Work { term: operand, expr: &n.a, next }), bindings)
            }
            (Term::Node(node, operands), _) => {
                let Some(parts) = parts(*node, expr) else { return false };
                match (operands.as_slice(), parts.as_slice()) {
                    ([a, b], [x, y]) => {
                        let second = Work { term: b, expr: y, next };
                        self.go(Some(&Work { term: a, expr: x, next: Some(&second) }), bindings)
                    }
                    ([a, b, c], [x, y, z]) => {
                        let third = Work { term: c, expr: z, next };
                        let second = Work { term: b, expr: y, next: Some(&third) };
                        self.go(Some(&Work { term: a, expr: x, next: Some(&second) }), bindings)
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn bind(&mut self, place: usize, expr: &PrimExpr, next: Option<&Work<'_>>, bindings: &mut Bindings) -> bool {
        match &bindings[place] {
            Some(known) => same(known, expr) && self.go(next, bindings),
            None => {
                bindings[place] = Some(expr.clone());
                if self.go(next, bindings) {
                    return true;
                }
                bindings[place] = None;
                false
            }
        }
    }
}

/// The operands of a node of this kind; the lanes of a vector are a number as [`prim::broadcast`] counts them.
fn parts(node: Node, expr: &PrimExpr) -> Option<Vec<PrimExpr>> {
    match (node, expr) {
        (Node::Ramp, PrimExpr::Ramp(n)) => Some(vec![n.base.clone(), n.stride.clone(), prim::int(n.lanes)]),
        (Node::Broadcast, PrimExpr::Broadcast(n)) => Some(vec![n.value.clone(), prim::int(n.lanes)]),
        (Node::Select, PrimExpr::Select(n)) => {
            Some(vec![n.condition.clone(), n.true_value.clone(), n.false_value.clone()])
        }
        (Node::IfThenElse, PrimExpr::Call(n)) if n.op == "tirx.if_then_else" && n.args.len() == 3 => {
            Some(n.args.clone())
        }
        _ => None,
    }
}

/// What a calculation with literals gives; `None` where it overflows, divides by zero or meets what is no literal.
pub(super) fn calculate(term: &Term, bindings: &Bindings) -> Option<i64> {
    match term {
        Term::Any(place) | Term::Literal(place) | Term::Lanes(place) => bindings[*place].as_ref()?.as_int(),
        Term::Int(value) => Some(*value),
        Term::Bool(value) => Some(i64::from(*value)),
        Term::Computed(inner) => calculate(inner, bindings),
        Term::Binary(op, operands) => {
            prim::fold(*op, calculate(&operands[0], bindings)?, calculate(&operands[1], bindings)?)
        }
        Term::Not(inner) => Some(i64::from(calculate(inner, bindings)? == 0)),
        Term::Node(Node::Abs, operands) => calculate(operands.first()?, bindings)?.checked_abs(),
        Term::Node(..) => None,
    }
}
