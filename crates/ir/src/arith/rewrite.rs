//! Minimum, maximum, comparisons and logic over canonical forms.

use super::Analyzer;
use super::atom::{Atom, Head, Value};
use super::bounds::Bounds;
use super::sum::{Product, Sum};
use crate::{BinaryOp, PrimExpr};
use relaxide_ffi::DataType;

impl Analyzer {
    /// The smaller of two.
    pub(super) fn minimum(&mut self, a: &Sum, b: &Sum) -> Sum {
        self.extremum(a, b, true)
    }

    /// The larger of two.
    pub(super) fn maximum(&mut self, a: &Sum, b: &Sum) -> Sum {
        self.extremum(a, b, false)
    }

    fn extremum(&mut self, a: &Sum, b: &Sum, smaller: bool) -> Sum {
        let atom_of = |a: Sum, b: Sum| if smaller { Atom::Min(a, b) } else { Atom::Max(a, b) };
        if a == b {
            return a.clone();
        }
        if self.atoms.sum_is_data(a) || self.atoms.sum_is_data(b) {
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            return Sum::atom(a.dtype, self.atoms.intern(atom_of(a.clone(), b.clone()), a.dtype));
        }
        if self.prove_at_most(a, b) {
            return if smaller { a.clone() } else { b.clone() };
        }
        if self.prove_at_most(b, a) {
            return if smaller { b.clone() } else { a.clone() };
        }
        if let Some(shorter) = self.without_covered(a, b, smaller) {
            return shorter;
        }
        let shared = shared_part(a, b);
        let (Some(left), Some(right)) = (a.sub(&shared), b.sub(&shared)) else {
            return Sum::atom(a.dtype, self.atoms.intern(atom_of(a.clone(), b.clone()), a.dtype));
        };
        let (left, right) = if left <= right { (left, right) } else { (right, left) };
        let atom = Sum::atom(a.dtype, self.atoms.intern(atom_of(left, right), a.dtype));
        // Putting the shared part back only undoes the subtraction above, so it stays within the type.
        atom.add(&shared).unwrap_or(atom)
    }

    /// A comparison: `Lt`, `Le`, `Eq` or `Ne`.
    pub(super) fn compare(&mut self, op: BinaryOp, a: &Sum, b: &Sum) -> Value {
        if self.atoms.sum_is_data(a) || self.atoms.sum_is_data(b) {
            if let Some(truth) = self.decide_apart(op, a, b) {
                return self.atoms.boolean(truth);
            }
            let args = vec![Value::Index(a.clone()), Value::Index(b.clone())];
            return self.node(Head::Binary(op), args, DataType::bool());
        }
        if let Some(truth) = self.decide(op, a, b) {
            return self.atoms.boolean(truth);
        }
        let (left, right) = balance(op, a, b).unwrap_or_else(|| (a.clone(), b.clone()));
        self.atoms.value(Atom::Compare(op, left, right), DataType::bool())
    }

    /// The truth of a comparison, where it can be proved or disproved.
    fn decide(&mut self, op: BinaryOp, a: &Sum, b: &Sum) -> Option<bool> {
        let (less, more) = (b.sub(a)?, a.sub(b)?);
        let (less, more) = (self.merge_divisions(less), self.merge_divisions(more));
        match op {
            BinaryOp::Le => self.decide_order(&less, &more.offset(-1)?),
            BinaryOp::Lt => self.decide_order(&less.offset(-1)?, &more),
            BinaryOp::Eq => self.decide_equal(&less, &more),
            BinaryOp::Ne => self.decide_equal(&less, &more).map(|equal| !equal),
            _ => None,
        }
    }

    /// The truth of a comparison of single values, neither of them computed here, that lie apart.
    fn decide_apart(&self, op: BinaryOp, a: &Sum, b: &Sum) -> Option<bool> {
        let is_single = |sum: &Sum| match sum.terms.as_slice() {
            [] => true,
            [(product, 1)] => product.len() == 1 && sum.constant == 0,
            _ => false,
        };
        if !is_single(a) || !is_single(b) {
            return None;
        }
        let (a, b) = (self.bounds_of(a), self.bounds_of(b));
        let least = |low: Bounds, high: Bounds| Some((low.max?, high.min?));
        let (below, above) = (least(a, b), least(b, a));
        let holds = |pair: Option<(i64, i64)>, asked: fn(i64, i64) -> bool| pair.is_some_and(|(x, y)| asked(x, y));
        let (less, not_more) = (|x, y| x < y, |x, y| x <= y);
        match op {
            BinaryOp::Le => holds(below, not_more).then_some(true).or(holds(above, less).then_some(false)),
            BinaryOp::Lt => holds(below, less).then_some(true).or(holds(above, not_more).then_some(false)),
            BinaryOp::Eq => (holds(below, less) || holds(above, less)).then_some(false),
            BinaryOp::Ne => (holds(below, less) || holds(above, less)).then_some(true),
            _ => None,
        }
    }

    fn decide_order(&mut self, holds: &Sum, fails: &Sum) -> Option<bool> {
        if self.prove_non_negative(holds) {
            Some(true)
        } else if self.prove_non_negative(fails) {
            Some(false)
        } else {
            None
        }
    }

    fn decide_equal(&mut self, less: &Sum, more: &Sum) -> Option<bool> {
        if let Some(constant) = less.as_constant() {
            return Some(constant == 0);
        }
        if less.constant % less.gcd() != 0 {
            return Some(false);
        }
        let apart = self.prove_non_negative(&less.offset(-1)?) || self.prove_non_negative(&more.offset(-1)?);
        apart.then_some(false)
    }

    /// The truth of a condition, where its form says it.
    pub(super) fn truth_of(&self, condition: &Value) -> Option<bool> {
        match condition {
            Value::Index(sum) => sum.as_constant().map(|c| c != 0),
            Value::Other(atom) => match self.atoms.get(*atom) {
                Atom::Node(Head::Int(..), _) | Atom::Compare(..) | Atom::Node(..) => {
                    let bounds = self.bounds_of_atom(*atom);
                    bounds.min.filter(|_| bounds.min == bounds.max).map(|v| v != 0)
                }
                _ => None,
            },
        }
    }

    /// The opposite of a condition.
    pub(super) fn negate(&mut self, condition: &Value) -> Value {
        if let Some(truth) = self.truth_of(condition) {
            return self.atoms.boolean(!truth);
        }
        let dtype = self.atoms.dtype_of(condition);
        let Value::Other(atom) = condition else {
            return self.node(Head::Not, vec![condition.clone()], dtype);
        };
        match self.atoms.get(*atom).clone() {
            Atom::Compare(BinaryOp::Lt, a, b) => self.atoms.value(Atom::Compare(BinaryOp::Le, b, a), dtype),
            Atom::Compare(BinaryOp::Le, a, b) => self.atoms.value(Atom::Compare(BinaryOp::Lt, b, a), dtype),
            Atom::Compare(BinaryOp::Eq, a, b) => self.atoms.value(Atom::Compare(BinaryOp::Ne, a, b), dtype),
            Atom::Compare(BinaryOp::Ne, a, b) => self.atoms.value(Atom::Compare(BinaryOp::Eq, a, b), dtype),
            Atom::Node(Head::Not, args) if args.len() == 1 => args[0].clone(),
            _ => self.node(Head::Not, vec![condition.clone()], dtype),
        }
    }

    /// `a and b`, `a or b`; the second is simplified under what the first says.
    pub(super) fn convert_logical(&mut self, op: BinaryOp, a: &PrimExpr, b: &PrimExpr) -> Value {
        let conjunction = op == BinaryOp::And;
        let a = self.convert(a);
        if let Some(truth) = self.truth_of(&a) {
            return if truth == conjunction { self.convert(b) } else { a };
        }
        let b = self.under(&a, conjunction, |this| this.convert(b));
        match self.truth_of(&b) {
            Some(truth) if truth == conjunction => a,
            Some(_) => b,
            None if a == b => a,
            None => self.node(Head::Binary(op), vec![a, b], DataType::bool()),
        }
    }
}

/// The terms that two sums have in common, and the smaller of their constants.
fn shared_part(a: &Sum, b: &Sum) -> Sum {
    let in_b = |product: &Product, k: i64| b.terms.iter().any(|(q, l)| q == product && *l == k);
    let (mut shared, _) = a.partition(in_b);
    shared.constant = a.constant.min(b.constant);
    shared
}

/// The sides of a comparison with all that is positive where it is: terms on the side where their coefficient is positive,
/// common divisors taken out. `None` where that overflows.
fn balance(op: BinaryOp, a: &Sum, b: &Sum) -> Option<(Sum, Sum)> {
    let mut difference = a.sub(b)?;
    let divisor = difference.gcd();
    if divisor > 1 {
        // a - b < 0 is g * d + k < 0, which is d < ceil(-k / g), and d <= floor(-k / g) for <=.
        difference.constant = match op {
            BinaryOp::Lt => difference.constant.div_euclid(divisor).checked_mul(divisor)?,
            BinaryOp::Le => difference.constant.checked_add(divisor - 1)?.div_euclid(divisor).checked_mul(divisor)?,
            _ => difference.constant,
        };
        difference = difference.divided_by(divisor);
    }
    let (mut left, right) = difference.partition(|_, k| k > 0);
    let mut right = right.without_constant().scale(-1)?;
    let constant = difference.constant;
    if op != BinaryOp::Lt && op != BinaryOp::Le {
        let flip = left.terms.is_empty();
        (left, right) = if flip { (right, left) } else { (left, right) };
        right.constant = if flip { constant } else { constant.checked_neg()? };
        return Some((left, right));
    }
    if constant > 0 {
        left.constant = constant;
    } else {
        right.constant = constant.checked_neg()?;
    }
    Some((left, right))
}
