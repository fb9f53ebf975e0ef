//! Arithmetic analysis: simplifying index expressions and proving facts about them.
//!
//! Dimensions, indices and loop bounds are integer expressions over variables of which only a range is known. Passes ask
//! an [`Analyzer`] three things of them: a simpler form, whether a condition always holds, and between which constants a
//! value lies.
//!
//! **Model.** An index expression is brought to a *canonical form*: a sum of products of atoms with integer coefficients,
//!
//! ```text
//! (n * 2 + m) - m          ->  n * 2
//! (a * 8 + b) // 8         ->  a                 where 0 <= b < 8
//! (h - 1) // 2 + 1         ->  (h + 1) // 2
//! x // 8 * 8 + x % 8       ->  x
//! ```
//!
//! where an atom is a variable or a `//`, `%`, `min`, `max`, load … that could not be taken apart. Two expressions are
//! equal if their difference has the form `0`. Inequalities are proved from constant bounds of the form and, where these do
//! not suffice, by adding known inequalities (the range of a loop variable, an assumed condition, `c * (x // c) <= x`).
//!
//! **Assumptions.** Signed 32- and 64-bit scalars count as indices, and index arithmetic does not overflow. What was loaded
//! from memory or returned by a call is data: it may overflow, so only rules that hold modulo 2^n touch it. Other types
//! (floats, small integers, vectors) are rebuilt around their simplified indices and not otherwise changed. A variable has
//! the range that was [bound](Analyzer::bind); without one it may be any integer.
//!
//! **Cost.** Forms are expanded, so a product of sums grows; beyond 64 terms it is kept as an atom. Proofs search to a
//! fixed depth within a fixed budget. Not proved does not mean false.

mod atom;
mod bounds;
mod canonical;
pub mod dims;
mod divide;
mod emit;
mod extrema;
mod forms;
mod gcd;
mod prove;
mod rewrite;
pub mod solver;
mod sum;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use relaxide_ffi::Ref;

pub use bounds::Bounds;
pub use forms::RewriteCounts;
pub use gcd::gcd;

use atom::{Atoms, Value};
use sum::Sum;

use crate::{PrimExpr, Var};

/// What is known about the variables in scope, and the questions that can be asked about expressions over them.
#[derive(Default)]
pub struct Analyzer {
    atoms: Atoms,
    /// Constant bounds of variables.
    ranges: HashMap<Ref<Var>, Bounds>,
    /// Variables that stand for an expression.
    values: HashMap<Ref<Var>, Sum>,
    /// Sums that are known to be at least zero.
    facts: Vec<Arc<Sum>>,
    /// What has been found with what is known now.
    answers: Answers,
    /// Bounds of atoms, as the ranges of variables make them.
    atom_bounds: RefCell<Vec<Option<Bounds>>>,
    /// Whether a proof is being searched.
    proving: bool,
    /// How quotients of remainders are written.
    quotients: Quotients,
}

/// How expressions with quotients are written; the value is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Quotients {
    /// `x // 4 % 3`, and terms of one coefficient as they come.
    #[default]
    Inside,
    /// As TVM writes them: `x % 12 // 4`, and in front those that are divided by more.
    Outside,
}

/// Answers that hold as long as nothing else becomes known.
#[derive(Debug, Default)]
struct Answers {
    /// The canonical forms of expressions.
    forms: HashMap<PrimExpr, Value>,
    /// Whether sums have been proved never to be negative.
    proofs: HashMap<Sum, bool>,
}

/// A condition that was assumed, to be forgotten.
#[derive(Debug)]
#[must_use]
pub struct Assumption {
    /// How many facts there were before it.
    facts: usize,
    /// What had been found before it.
    answers: Answers,
}

impl Analyzer {
    /// An analyzer that knows nothing.
    pub fn new() -> Analyzer {
        Analyzer::default()
    }

    /// An analyzer that knows nothing, and for which the machine's factor of scalable vectors ([`prim::VSCALE`](crate::prim::VSCALE)) is
    /// a number of at least one. The compiler's passes leave it alone: they recognise vectors by how their lanes are written.
    pub fn counting_vscale() -> Analyzer {
        let mut analyzer = Analyzer::default();
        analyzer.atoms.counts_vscale = true;
        analyzer
    }

    /// Says that a variable lies in `min .. min + extent`.
    pub fn bind(&mut self, var: &Ref<Var>, min: impl Into<PrimExpr>, extent: impl Into<PrimExpr>) {
        if !sum::is_index(var.dtype()) {
            return;
        }
        let this = self.var_sum(var);
        let (Some(min), Some(extent)) = (self.convert_index(&min.into()), self.convert_index(&extent.into())) else {
            return;
        };
        if min.dtype != var.dtype() || extent.dtype != var.dtype() {
            return;
        }
        let last = min.add(&extent).and_then(|end| end.offset(-1));
        let low = self.bounds_of(&min).min;
        let high = last.as_ref().and_then(|last| self.bounds_of(last).max);
        self.narrow(var, Bounds { min: low, max: high });
        if min.as_constant().is_none() {
            self.facts.extend(this.sub(&min).map(Arc::new));
        }
        if let Some(last) = last.filter(|last| last.as_constant().is_none()) {
            self.facts.extend(last.sub(&this).map(Arc::new));
        }
    }

    /// Says that a variable stands for a value.
    pub fn bind_value(&mut self, var: &Ref<Var>, value: &PrimExpr) {
        if sum::is_index(var.dtype())
            && let Some(value) = self.convert_index(value)
        {
            self.answers = Answers::default();
            self.values.insert(var.clone(), value);
        }
    }

    /// Says that a variable is at least zero, as dimensions are.
    pub fn mark_non_negative(&mut self, var: &Ref<Var>) {
        self.mark_at_least(var, 0);
    }

    /// Says that a variable is at least `min`.
    pub fn mark_at_least(&mut self, var: &Ref<Var>, min: i64) {
        self.narrow(var, Bounds { min: Some(min), max: None });
    }

    /// Says that a variable lies within bounds.
    fn narrow(&mut self, var: &Ref<Var>, bounds: Bounds) {
        let range = self.ranges.entry(var.clone()).or_default();
        *range = range.meet(bounds);
        self.answers = Answers::default();
        self.atom_bounds.get_mut().clear();
    }

    /// Says that every variable in these dimensions is at least zero.
    pub fn mark_dims<'a>(&mut self, shape: impl IntoIterator<Item = &'a PrimExpr>) {
        for var in shape.into_iter().flat_map(crate::prim::free_vars) {
            self.mark_non_negative(&var);
        }
    }

    /// Answers under a condition that is taken to hold.
    pub fn assuming<T>(&mut self, condition: &PrimExpr, ask: impl FnOnce(&mut Analyzer) -> T) -> T {
        let mark = self.assume(condition);
        let answer = ask(self);
        self.forget(mark);
        answer
    }

    /// Takes a condition to hold, until it is forgotten.
    pub fn assume(&mut self, condition: &PrimExpr) -> Assumption {
        let value = self.convert(condition);
        let mark = Assumption { facts: self.facts.len(), answers: std::mem::take(&mut self.answers) };
        self.learn(&value, true);
        mark
    }

    /// Forgets a condition, and everything that was assumed or bound behind it.
    pub fn forget(&mut self, mark: Assumption) {
        self.facts.truncate(mark.facts);
        self.answers = mark.answers;
    }

    /// A simpler expression of the same value; the expression itself where none was found.
    pub fn simplify(&mut self, e: &PrimExpr) -> PrimExpr {
        let value = self.convert(e);
        let simple = self.emit(&value);
        if same(e, &simple) { e.clone() } else { simple }
    }

    /// Whether a variable can have one value only.
    fn is_settled(&self, var: &Ref<Var>) -> bool {
        self.ranges.get(var).is_some_and(|range| range.min.is_some() && range.min == range.max)
    }

    /// Whether a condition is known to hold always.
    pub fn can_prove(&mut self, condition: &PrimExpr) -> bool {
        let value = self.convert(condition);
        self.truth_of(&value) == Some(true)
    }

    /// Whether two integer expressions are known to be equal always.
    pub fn can_prove_equal(&mut self, a: &PrimExpr, b: &PrimExpr) -> bool {
        if same(a, b) {
            return true;
        }
        match (self.convert(a), self.convert(b)) {
            (Value::Index(a), Value::Index(b)) => {
                let Some(difference) = self.difference(&a, &b) else { return false };
                let zero = self.bounds_of(&difference);
                (zero.min, zero.max) == (Some(0), Some(0))
            }
            (a, b) => a == b,
        }
    }

    /// `a - b`, where that is one constant.
    pub fn constant_difference(&mut self, a: &PrimExpr, b: &PrimExpr) -> Option<i64> {
        let (Value::Index(a), Value::Index(b)) = (self.convert(a), self.convert(b)) else { return None };
        self.difference(&a, &b)?.as_constant()
    }

    /// The constants between which an integer expression lies.
    pub fn bounds(&mut self, e: &PrimExpr) -> Bounds {
        match self.convert(e) {
            Value::Index(sum) => self.bounds_of(&sum),
            Value::Other(atom) => self.bounds_of_atom(atom),
        }
    }

    /// `a - b`, of two types perhaps.
    fn difference(&mut self, a: &Sum, b: &Sum) -> Option<Sum> {
        let b = if a.dtype == b.dtype { b.clone() } else { b.retyped(a.dtype)? };
        let difference = a.sub(&b)?;
        Some(self.merge_divisions(difference))
    }
}

/// Whether two expressions have the same form, variables being themselves.
pub fn same(a: &PrimExpr, b: &PrimExpr) -> bool {
    a == b || relaxide_ffi::structural_equal(a, b, relaxide_ffi::FreeVars::Same).is_ok()
}
