//! Sums with minima and maxima in them.
//!
//! ```text
//! n - min(n, k)               ->   max(n, k) - k             what a slice `x[k:]` leaves of n rows
//! min(n, k) + max(n, k) - k   ->   n                         what `x[:k]` and `x[k:]` have together
//! max(max(n, 1), 2)           ->   max(n, 2)
//! ```
//!
//! The first keeps a slice of a slice as short as one slice: with `n - min(n, k)` for each, the extent would double every time.

use std::sync::Arc;

use super::Analyzer;
use super::atom::{Atom, AtomId};
use super::sum::Sum;

/// Extrema of a sum that are compared with each other.
const MOST_COMPARED: usize = 8;

/// A minimum or a maximum.
struct Extremum {
    id: AtomId,
    smaller: bool,
    sides: [Sum; 2],
}

impl Analyzer {
    fn extremum_of(&self, id: AtomId) -> Option<Extremum> {
        match self.atoms.get(id) {
            Atom::Min(a, b) => Some(Extremum { id, smaller: true, sides: [a.clone(), b.clone()] }),
            Atom::Max(a, b) => Some(Extremum { id, smaller: false, sides: [a.clone(), b.clone()] }),
            _ => None,
        }
    }

    /// The extrema that are terms of a sum, with their coefficients.
    fn extrema_in(&self, sum: &Sum) -> Vec<(Extremum, i64)> {
        let single = |(product, coefficient): &(Vec<AtomId>, i64)| match product[..] {
            [id] => Some((self.extremum_of(id)?, *coefficient)),
            _ => None,
        };
        sum.terms.iter().filter_map(single).collect()
    }

    /// What two extrema with a side in common say of each other: `min(a, x) - min(b, x)` lies between zero and `a - b` where `a` is
    /// at least `b`. Those of long sums are not compared, each with each.
    pub(super) fn facts_of_extrema(&self, sum: &Sum, facts: &mut Vec<Arc<Sum>>) {
        let extrema = self.extrema_in(sum);
        if !(2..=MOST_COMPARED).contains(&extrema.len()) {
            return;
        }
        for (upper, k) in &extrema {
            let others = |(e, l): &&(Extremum, i64)| e.smaller == upper.smaller && l.signum() == -k.signum();
            for (lower, _) in extrema.iter().filter(others) {
                for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let distance =
                        upper.sides[1 - i].sub(&lower.sides[1 - j]).filter(|_| upper.sides[i] == lower.sides[j]);
                    let Some(distance) = distance.filter(|d| d.as_constant().is_some_and(|d| d >= 0)) else { continue };
                    let [above, below] = [upper, lower].map(|e| Sum::atom(sum.dtype, e.id));
                    let between = above.sub(&below);
                    facts.extend(between.as_ref().and_then(|between| distance.sub(between)).map(Arc::new));
                    facts.extend(between.map(Arc::new));
                }
            }
        }
    }

    /// The sum with extrema taken into it where that makes it shorter.
    pub(super) fn merge_extrema(&mut self, mut sum: Sum) -> Sum {
        loop {
            let extrema = self.extrema_in(&sum);
            if extrema.is_empty() || self.atoms.sum_is_data(&sum) {
                return sum;
            }
            let next = pairs(&sum, &extrema).or_else(|| extrema.iter().find_map(|(e, k)| self.taken_in(&sum, e, *k)));
            match next {
                Some(shorter) if shorter != sum => sum = shorter,
                _ => return sum,
            }
        }
    }

    /// `rest - min(x, y)` as `max(rest - x, rest - y)`, where one of these is a number.
    fn taken_in(&mut self, sum: &Sum, extremum: &Extremum, coefficient: i64) -> Option<Sum> {
        // Only as many terms can cancel out as the rest has; to try each extremum of a long sum would take its length squared.
        let others = sum.terms.len() - 1;
        if coefficient.abs() != 1 || extremum.sides.iter().all(|side| side.terms.len() != others) {
            return None;
        }
        let rest = sum.add_scaled(&Sum::atom(sum.dtype, extremum.id), -coefficient)?;
        if rest.terms.is_empty() {
            return None;
        }
        let [a, b] = &extremum.sides;
        let (a, b) = (rest.add_scaled(a, coefficient)?, rest.add_scaled(b, coefficient)?);
        if a.as_constant().is_none() && b.as_constant().is_none() {
            return None;
        }
        let smaller = extremum.smaller == (coefficient > 0);
        Some(if smaller { self.minimum(&a, &b) } else { self.maximum(&a, &b) })
    }

    /// `max(a, max(x, y) + c)` where `a` is at least `x + c`: `max(a, y + c)`. The same for minima.
    pub(super) fn without_covered(&mut self, a: &Sum, b: &Sum, smaller: bool) -> Option<Sum> {
        for (one, other) in [(a, b), (b, a)] {
            let [(product, 1)] = &other.terms[..] else { continue };
            let &[id] = &product[..] else { continue };
            let Some(inner) = self.extremum_of(id).filter(|inner| inner.smaller == smaller) else { continue };
            let [x, y] = inner.sides;
            for (covered, left) in [(&x, &y), (&y, &x)] {
                let (Some(covered), Some(left)) = (covered.offset(other.constant), left.offset(other.constant)) else {
                    continue;
                };
                let is_covered =
                    if smaller { self.prove_at_most(one, &covered) } else { self.prove_at_most(&covered, one) };
                if is_covered {
                    return Some(if smaller { self.minimum(one, &left) } else { self.maximum(one, &left) });
                }
            }
        }
        None
    }
}

/// `min(a, b) + max(c, d)` where `a + c` is `b + d`: that.
fn pairs(sum: &Sum, extrema: &[(Extremum, i64)]) -> Option<Sum> {
    for (least, k) in extrema.iter().filter(|(e, _)| e.smaller) {
        for (most, _) in extrema.iter().filter(|(e, l)| !e.smaller && l == k) {
            let [a, b] = &least.sides;
            for [c, d] in [[&most.sides[0], &most.sides[1]], [&most.sides[1], &most.sides[0]]] {
                let (Some(total), Some(same)) = (a.add(c), b.add(d)) else { continue };
                if total == same {
                    let rest = sum.add_scaled(&Sum::atom(sum.dtype, least.id), -k)?;
                    let rest = rest.add_scaled(&Sum::atom(sum.dtype, most.id), -k)?;
                    return rest.add_scaled(&total, *k);
                }
            }
        }
    }
    None
}
