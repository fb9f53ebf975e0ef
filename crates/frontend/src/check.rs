//! What a model takes for granted and the program checks.
//!
//! A check is a condition that is right when the program runs, or the program ends with its text and the numbers that it is about:
//!
//! ```text
//! lengths must be the same, or 1: dimension 1 of `x` is 3, dimension 1 of `w` is 5
//! ```
//!
//! It travels as further dimensions of a shape that is bound: the condition, which must be 1, and behind it the numbers, which may
//! be anything. So it costs no call of its own, and its failure is an error about a shape.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::guard_note;

/// A condition, and what is said where it does not hold.
#[derive(Clone, Debug)]
pub struct Check {
    /// What must be so.
    pub condition: PrimExpr,
    text: String,
    is_guard: bool,
    /// Numbers that it is about, each with what it is.
    pub values: Vec<(String, PrimExpr)>,
}

impl Check {
    /// A condition with its text.
    pub fn new(condition: PrimExpr, text: impl Into<String>) -> Check {
        Check { condition, text: text.into(), is_guard: false, values: Vec::new() }
    }

    /// The same as a guard: it is about these lengths alone, and a program that is compiled for others does without
    /// ([`guard_note`]).
    pub fn as_guard(self) -> Check {
        Check { is_guard: true, ..self }
    }

    /// The same, with the numbers that it is about.
    pub fn with(mut self, values: impl IntoIterator<Item = (String, PrimExpr)>) -> Check {
        self.values.extend(values);
        self
    }

    /// Two numbers that must be the same.
    pub fn equal(a: (impl Into<String>, PrimExpr), b: (impl Into<String>, PrimExpr), text: &str) -> Check {
        Check::new(prim::eq(&a.1, &b.1), text).with([(a.0.into(), a.1), (b.0.into(), b.1)])
    }

    /// What is said where the condition is known not to hold.
    pub fn said(&self) -> String {
        let known = |(what, value): &(String, PrimExpr)| Some(format!("{what} is {}", value.as_int()?));
        let numbers: Vec<String> = self.values.iter().filter_map(known).collect();
        if numbers.is_empty() { self.text.clone() } else { format!("{}: {}", self.text, numbers.join(", ")) }
    }

    /// The dimensions as which it travels.
    pub fn dims(&self) -> Vec<PrimExpr> {
        let truth = match self.condition.as_int() {
            Some(known) => prim::int(i64::from(known != 0)),
            None => prim::select(self.condition.clone(), prim::int(1), prim::int(0)),
        };
        std::iter::once(truth).chain(self.values.iter().map(|(_, value)| value.clone())).collect()
    }

    /// What is said, where the numbers are the dimensions from `first` on.
    pub fn note(&self, first: usize) -> String {
        let number = |(i, (what, _)): (usize, &(String, PrimExpr))| format!("{what} is {{{}}}", first + i);
        let numbers: Vec<String> = self.values.iter().enumerate().map(number).collect();
        let colon = if numbers.is_empty() { "" } else { ": " };
        let text = format!("{}{colon}{}", self.text, numbers.join(", "));
        if self.is_guard { guard_note(&text) } else { text }
    }
}
