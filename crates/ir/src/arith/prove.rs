//! Proving that a sum is never negative.
//!
//! Constant bounds settle most cases. Where they do not, known inequalities `fact >= 0` are taken off: if `s - m * fact`
//! is never negative and `m` is not either, nor is `s`. A fact is of use if it cancels a term of `s` with a multiplier of
//! known sign. Facts come from ranges of loop variables, from assumed conditions, and from the meaning of atoms:
//! `c * (x // c) <= x <= c * (x // c) + c - 1`, `min(a, b) <= a`.
//!
//! The search is bounded in depth and in total work; most proofs take one or two steps.

use std::sync::Arc;

use super::Analyzer;
use super::atom::{Atom, AtomId, Head, Value};
use super::gcd;
use super::sum::{Product, Sum, without};
use crate::BinaryOp;

/// How many facts may be combined in one proof.
const MAX_DEPTH: u32 = 5;
/// How many combinations may be tried in one proof.
const MAX_STEPS: u32 = 128;
/// How many facts are looked at for one sum, the latest first.
const MAX_FACTS: usize = 64;
/// Longer sums are not searched: what a kernel says of a hundred lengths at once is not settled by taking some of them off.
const MAX_TERMS: usize = 16;

impl Analyzer {
    /// Whether `a <= b` always.
    pub(super) fn prove_at_most(&mut self, a: &Sum, b: &Sum) -> bool {
        let Some(difference) = b.sub(a) else { return false };
        let difference = self.merge_divisions(difference);
        self.prove_non_negative(&difference)
    }

    /// Whether a sum is at least zero always.
    pub(super) fn prove_non_negative(&mut self, sum: &Sum) -> bool {
        let bounds = self.bounds_of(sum);
        if bounds.min.is_some_and(|min| min >= 0) {
            return true;
        }
        if bounds.max.is_some_and(|max| max < 0) || sum.terms.is_empty() || self.atoms.sum_is_data(sum) {
            return false;
        }
        // What is known as it stands: the search looks for help against terms that may be negative, and in `n - 1` none is.
        let known = self.facts_about(sum);
        let follows =
            |fact: &Arc<Sum>| sum.sub(fact).is_some_and(|rest| self.bounds_of(&rest).min.is_some_and(|min| min >= 0));
        if known.iter().any(follows) {
            return true;
        }
        if sum.terms.len() > MAX_TERMS {
            return false;
        }
        // The search simplifies what it combines, and simplifying proves; inside a proof only bounds count.
        if self.proving {
            return false;
        }
        if let Some(found) = self.answers.proofs.get(sum) {
            return *found;
        }
        self.proving = true;
        let mut steps = MAX_STEPS;
        let found = self.search(sum, 1, MAX_DEPTH, &mut steps);
        self.proving = false;
        self.answers.proofs.insert(sum.clone(), found);
        found
    }

    /// What is known of the atoms of a sum, the latest first. Facts about others cancel none of its terms.
    fn facts_about(&self, sum: &Sum) -> Vec<Arc<Sum>> {
        let mut atoms: Vec<AtomId> = sum.terms.iter().flat_map(|(product, _)| product.iter().copied()).collect();
        atoms.sort_unstable();
        let is_about = |fact: &&Arc<Sum>| {
            let mut own = fact.terms.iter().flat_map(|(product, _)| product);
            fact.dtype == sum.dtype && own.any(|atom| atoms.binary_search(atom).is_ok())
        };
        self.facts.iter().rev().filter(is_about).take(MAX_FACTS).cloned().collect()
    }

    /// Whether what is sought is never negative, of which `sum` is `scale` times as much at most. An integer that is more than
    /// minus one is not negative, so `sum` may be as low as that allows.
    fn search(&mut self, sum: &Sum, scale: i64, depth: u32, steps: &mut u32) -> bool {
        if self.bounds_of(sum).min.is_some_and(|min| min > -scale) {
            return true;
        }
        if depth == 0 {
            return false;
        }
        let mut facts = self.facts_about(sum);
        for atom in sum.terms.iter().flat_map(|(product, _)| product) {
            self.facts_of_atom(*atom, &mut facts);
        }
        self.facts_of_extrema(sum, &mut facts);
        for (product, coefficient) in &sum.terms {
            // A term that cannot pull the sum below zero needs no help.
            let own = self.bounds_of(&Sum::term(sum.dtype, product.clone(), *coefficient));
            if own.min.is_some_and(|min| min >= 0) {
                continue;
            }
            for fact in facts.iter().filter(|f| f.dtype == sum.dtype) {
                let Some((rest, times)) = self.cancel(sum, product, *coefficient, fact) else { continue };
                let Some(scale) = scale.checked_mul(times) else { continue };
                if *steps == 0 {
                    return false;
                }
                *steps -= 1;
                if self.search(&rest, scale, depth - 1, steps) {
                    return true;
                }
            }
        }
        false
    }

    /// `n * sum - m * fact` without the term at `product`, for some `n > 0` and `m >= 0`, and `n`; if it is never negative, nor is
    /// `sum`.
    fn cancel(&mut self, sum: &Sum, product: &Product, coefficient: i64, fact: &Sum) -> Option<(Sum, i64)> {
        for (part, factor) in &fact.terms {
            if factor.signum() != coefficient.signum() {
                continue;
            }
            let Some(rest) = without(product, part) else { continue };
            if !rest.is_empty() && self.bounds_of_product(&rest).min.is_none_or(|min| min < 0) {
                continue;
            }
            let divisor = gcd(coefficient, *factor).max(1);
            let (n, m) = ((factor / divisor).abs(), (coefficient / divisor).abs());
            let difference = sum.scale(n)?.sub(&fact.times_product(&rest, m)?)?;
            return Some((self.merge_divisions(difference), n));
        }
        None
    }

    /// The inequalities that follow from what an atom is.
    fn facts_of_atom(&mut self, id: AtomId, facts: &mut Vec<Arc<Sum>>) {
        let atom = self.atoms.get(id).clone();
        let this = Sum::atom(self.atoms.dtype(id), id);
        match atom {
            Atom::FloorDiv(x, c) => {
                if self.bounds_of(&c).min.is_none_or(|min| min <= 0) {
                    return;
                }
                let Some(multiple) = this.mul(&c) else { return };
                let below = x.sub(&multiple);
                let above = below.as_ref().and_then(|below| c.offset(-1)?.sub(below));
                facts.extend(below.into_iter().chain(above).map(Arc::new));
            }
            Atom::FloorMod(x, c) => {
                if self.bounds_of(&c).min.is_none_or(|min| min <= 0) {
                    return;
                }
                facts.extend(c.offset(-1).and_then(|last| last.sub(&this)).map(Arc::new));
                if self.bounds_of(&x).min.is_some_and(|min| min >= 0) {
                    facts.extend(x.sub(&this).map(Arc::new));
                }
            }
            Atom::Min(a, b) => facts.extend([a.sub(&this), b.sub(&this)].into_iter().flatten().map(Arc::new)),
            Atom::Max(a, b) => facts.extend([this.sub(&a), this.sub(&b)].into_iter().flatten().map(Arc::new)),
            _ => {}
        }
    }

    /// Answers with a condition taken to hold, or to fail.
    pub(super) fn under<T>(&mut self, condition: &Value, holds: bool, ask: impl FnOnce(&mut Analyzer) -> T) -> T {
        let before = self.facts.len();
        self.learn(condition, holds);
        if self.facts.len() == before {
            return ask(self);
        }
        // Forms that were found without the condition may not be the simplest under it, and the other way round they may
        // not even be right.
        let answers = std::mem::take(&mut self.answers);
        let answer = ask(self);
        self.answers = answers;
        self.facts.truncate(before);
        answer
    }

    /// Adds what follows from a condition (or from its failure) to the facts.
    pub(super) fn learn(&mut self, condition: &Value, holds: bool) {
        let Value::Other(atom) = condition else { return };
        match (self.atoms.get(*atom).clone(), holds) {
            (Atom::Compare(BinaryOp::Lt, a, b), true) | (Atom::Compare(BinaryOp::Le, b, a), false) => {
                self.facts.extend(b.sub(&a).and_then(|d| d.offset(-1)).map(Arc::new));
            }
            (Atom::Compare(BinaryOp::Le, a, b), true) | (Atom::Compare(BinaryOp::Lt, b, a), false) => {
                self.facts.extend(b.sub(&a).map(Arc::new));
            }
            (Atom::Compare(BinaryOp::Eq, a, b), true) | (Atom::Compare(BinaryOp::Ne, a, b), false) => {
                self.facts.extend(a.sub(&b).into_iter().chain(b.sub(&a)).map(Arc::new));
            }
            (Atom::Node(Head::Binary(BinaryOp::And), args), true)
            | (Atom::Node(Head::Binary(BinaryOp::Or), args), false) => {
                args.iter().for_each(|a| self.learn(a, holds));
            }
            (Atom::Node(Head::Not, args), _) => args.iter().for_each(|a| self.learn(a, !holds)),
            _ => {}
        }
    }
}
