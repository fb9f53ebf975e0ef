//! What is known of dimensions that are broadcast before the run shows them.
//!
//! `add` of `(n, 4)` and `(m, 4)` has a first dimension of its own, `d`: `n` where both agree or `m` is 1, `m` where `n` is 1. If
//! the sum is added to another tensor of `(n, 4)`, the result has that dimension again: where `d` exists at all, it is 1 or what
//! is not 1 among `n` and `m`, so `n` changes nothing. Broadcasting is a union. So each such dimension is known by the set of
//! those that it was made of: a union that is known needs no new dimension, no condition and no repeated tensor. Without this
//! each step of an unrolled LSTM made dimensions of those of the step before, three times, each holding the former several
//! times.

use relaxide_ir::prim::{PrimExpr, PrimVisitor};
use relaxide_relax::shape::prove_equal;

/// Dimensions that came of broadcasting, each with those that it was made of.
#[derive(Debug, Default)]
pub struct Agreed {
    known: Vec<(PrimExpr, Vec<PrimExpr>)>,
}

impl Agreed {
    /// How many there are: what comes later can be forgotten again, where names that were bound inside of a branch end.
    pub fn mark(&self) -> usize {
        self.known.len()
    }

    /// Forgets what came behind a mark.
    pub fn forget(&mut self, mark: usize) {
        self.known.truncate(mark);
    }

    fn parts(&self, dim: &PrimExpr) -> Vec<PrimExpr> {
        let found = self.known.iter().rev().find(|(known, _)| is_same(known, dim));
        found.map_or_else(|| vec![dim.clone()], |(_, parts)| parts.clone())
    }

    /// What a dimension is made of that is broadcast from two.
    pub fn parts_of_both(&self, p: &PrimExpr, q: &PrimExpr) -> Vec<PrimExpr> {
        let mut parts = self.parts(p);
        for part in self.parts(q) {
            if !holds(&parts, &part) {
                parts.push(part);
            }
        }
        parts
    }

    /// The dimension that is made of just these.
    pub fn known(&self, parts: &[PrimExpr]) -> Option<PrimExpr> {
        let is_all = |known: &[PrimExpr]| known.len() == parts.len() && parts.iter().all(|part| holds(known, part));
        self.known.iter().rev().find(|(_, known)| is_all(known)).map(|(dim, _)| dim.clone())
    }

    /// Notes what a new dimension is made of.
    pub fn add(&mut self, dim: PrimExpr, parts: Vec<PrimExpr>) {
        self.known.push((dim, parts));
    }
}

fn holds(parts: &[PrimExpr], part: &PrimExpr) -> bool {
    parts.iter().any(|known| is_same(known, part))
}

fn is_same(a: &PrimExpr, b: &PrimExpr) -> bool {
    match (a.as_var(), b.as_var()) {
        (Some(a), Some(b)) => a == b,
        _ => prove_equal(a, b),
    }
}

/// Whether an expression is no larger than what one broadcast of two names makes.
pub(super) fn is_small(e: &PrimExpr) -> bool {
    const FEW: usize = 24;
    struct Count(usize);
    impl PrimVisitor for Count {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 += 1;
            self.walk_prim(e);
        }
    }
    let mut count = Count(0);
    count.visit_prim(e);
    count.0 <= FEW
}
