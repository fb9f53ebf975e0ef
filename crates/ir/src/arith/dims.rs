//! Questions about dimensions: the one prover of lengths.
//!
//! The importer, type rules, legalization and passes all ask here, so that none of them loses a shape that another has found.
//! What makes a dimension more than an integer: it counts elements, so no variable in it is negative, and neither is its
//! value. `max(n, 0)` is `n`, and `min(n, 64)` of one tensor is `min(64, n)` of another.
//!
//! Not proved does not mean different. [`differ`] is for what is known to be different.

use super::Analyzer;
use crate::PrimExpr;
use crate::prim;

/// An analyzer that takes the variables of some dimensions for counts.
pub fn analyzer<'a>(dims: impl IntoIterator<Item = &'a PrimExpr>) -> Analyzer {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(dims);
    analyzer
}

/// Whether two dimensions are equal whatever their variables are.
pub fn equal(a: &PrimExpr, b: &PrimExpr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => x == y,
        _ => a == b || analyzer([a, b]).can_prove_equal(a, b),
    }
}

/// Whether two lists of dimensions are equal whatever their variables are.
pub fn all_equal(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| equal(x, y))
}

/// Whether two dimensions are different whatever their variables are.
pub fn differ(a: &PrimExpr, b: &PrimExpr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => x != y,
        _ => analyzer([a, b]).constant_difference(a, b).is_some_and(|d| d != 0),
    }
}

/// Whether an expression over dimensions is known not to be negative.
pub fn non_negative(e: &PrimExpr) -> bool {
    at_least(e, 0)
}

/// Whether an expression over dimensions is known to be so much or more.
pub fn at_least(e: &PrimExpr, least: i64) -> bool {
    match e.as_int() {
        Some(value) => value >= least,
        None => {
            let mut analyzer = analyzer([e]);
            let min = analyzer.bounds(e).min;
            min.is_some_and(|min| min >= least)
                || analyzer.can_prove(&prim::ge(e.clone(), prim::int_of(e.dtype(), least)))
        }
    }
}

/// A bound of a slice of a dimension, counted from the front and inside of it. A negative one counts from the end; one that
/// is larger than the dimension is its end.
pub fn slice_bound(bound: &PrimExpr, dim: &PrimExpr) -> PrimExpr {
    // Exporters write the largest number of some integer type for "to the end".
    const TO_THE_END: i64 = 1_000_000_000;
    match (bound.as_int(), dim.as_int()) {
        (Some(b), Some(d)) => prim::int(if b < 0 { b.saturating_add(d).max(0) } else { b.min(d) }),
        (Some(0), None) => prim::int(0),
        (Some(b), None) if b >= TO_THE_END => dim.clone(),
        (Some(b), None) if b < 0 => simplify(&prim::max(dim + b, prim::int(0))),
        _ if equal(bound, dim) => dim.clone(),
        _ if non_negative(bound) => simplify(&prim::min(bound, dim)),
        // Which end it counts from depends on the dimensions.
        _ => {
            let (front, back) = (prim::min(bound, dim), prim::max(bound + dim, 0));
            simplify(&prim::select(prim::lt(bound, 0), back, front))
        }
    }
}

/// How much there is to an expression; of two equal ones, the smaller is the better name.
pub fn weight(e: &PrimExpr) -> usize {
    struct Count(usize);
    impl prim::PrimVisitor for Count {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 += 1;
            self.walk_prim(e);
        }
    }
    let mut count = Count(0);
    prim::PrimVisitor::visit_prim(&mut count, e);
    if e.as_int().is_some() { 0 } else { count.0 }
}

/// Whether an expression has so many parts that a name is better: what follows from it would mention it several times, and what follows
/// from that several times again.
pub fn is_long(e: &PrimExpr) -> bool {
    const MOST_PARTS: usize = 40;
    weight(e) > MOST_PARTS
}

/// The same value in a simpler form.
pub fn simplify(e: &PrimExpr) -> PrimExpr {
    if e.as_int().is_some() || e.as_var().is_some() { e.clone() } else { analyzer([e]).simplify(e) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Var;

    #[test]
    fn a_count_is_never_negative() {
        let n = PrimExpr::from(&Var::dim("n"));
        assert!(equal(&prim::max(n.clone(), 0), &n));
        assert!(equal(&prim::min(&n, 64), &prim::min(prim::int(64), prim::max(n.clone(), 0))));
        assert!(non_negative(&(&n * &n)) && !non_negative(&(&n - 1)));
        assert!(differ(&(&n + 1), &n) && !differ(&n, &prim::int(3)));
    }

    #[test]
    fn what_slices_leave_of_a_length_is_added_up() {
        let n = PrimExpr::from(&Var::dim("n"));
        let up_to = |k: i64| prim::min(&n, k);
        let part = |i: i64| prim::max(up_to(i + 1) - up_to(i), 0);
        assert!(non_negative(&(up_to(60) - up_to(59))) && !non_negative(&(up_to(59) - up_to(60))));
        assert!(non_negative(&(prim::int(1) - part(3))));
        let all = (0..50).map(part).reduce(|sum, part| part + sum).unwrap_or_else(|| prim::int(0));
        assert!(equal(&all, &up_to(50)));
    }
}
