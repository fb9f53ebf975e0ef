//! Questions about dimensions, which [the one prover](relaxide_ir::arith::dims) answers. Every symbolic variable of an imported
//! model is a dimension, so none is negative.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr};

pub use relaxide_ir::arith::dims::{differ, equal, is_long, non_negative, simplify, slice_bound, weight};

/// How two dimensions stand to each other that are broadcast together, neither of which is known to be 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are equal always.
    Equal,
    /// One was computed from what the other was (a skip connection past a stride): they are taken to be equal, which the program checks.
    TakenAsEqual,
    /// They are equal, or one is 1: the program finds out.
    Open,
    /// They are never equal, and neither is ever 1.
    Apart,
}

/// How two dimensions stand to each other.
pub fn relation(a: &PrimExpr, b: &PrimExpr) -> Relation {
    let may_be_one = |e: &PrimExpr| e.as_int().is_none() && !relaxide_ir::arith::dims::at_least(e, 2);
    if equal(a, b) {
        Relation::Equal
    } else if differ(a, b) {
        if may_be_one(a) || may_be_one(b) { Relation::Open } else { Relation::Apart }
    } else if share_variable(a, b) && !one_may_be_one(a, b) && may_be_equal(a, b) {
        Relation::TakenAsEqual
    } else {
        Relation::Open
    }
}

/// Whether some variable is a part of both, so that one was computed from what the other was.
fn share_variable(a: &PrimExpr, b: &PrimExpr) -> bool {
    let (a, b) = (variables(a), variables(b));
    a.iter().any(|var| b.contains(var))
}

/// Whether one of two dimensions turns out to be 1 where the other does not, for some lengths that a model may well meet: a slice
/// of one row beside all rows. Lengths are tried that are too large to become 1 by the strides of a network.
fn one_may_be_one(a: &PrimExpr, b: &PrimExpr) -> bool {
    const LENGTHS: [i64; 7] = [1009, 4096, 2003, 1 << 14, 6007, 3 << 12, 9001];
    at_lengths(a, b, &LENGTHS).any(|(a, b)| (a == 1) != (b == 1))
}

/// Whether two dimensions are equal for some lengths that a model may well meet, multiples of strides among them.
fn may_be_equal(a: &PrimExpr, b: &PrimExpr) -> bool {
    const LENGTHS: [i64; 9] = [1 << 14, 1 << 12, 3 << 10, 1 << 10, 1000, 224, 101, 64, 7];
    let mut same = LENGTHS.iter().map(std::slice::from_ref);
    at_lengths(a, b, &LENGTHS).any(|(a, b)| a == b) || same.any(|one| at_lengths(a, b, one).any(|(a, b)| a == b))
}

/// What two dimensions are where their variables are some lengths, which go round.
fn at_lengths(a: &PrimExpr, b: &PrimExpr, lengths: &[i64]) -> impl Iterator<Item = (i64, i64)> {
    let mut all = variables(a);
    all.extend(variables(b));
    (0..lengths.len()).filter_map(move |round| {
        let length =
            |(i, var): (usize, &Ref<Var>)| (var.clone(), prim::int(lengths[(round + i * (round + 1)) % lengths.len()]));
        let lengths: prim::VarMap = all.iter().enumerate().rev().map(length).collect();
        let at = |dim: &PrimExpr| simplify(&prim::substitute(dim, &lengths)).as_int();
        at(a).zip(at(b))
    })
}

fn variables(e: &PrimExpr) -> Vec<Ref<Var>> {
    struct Variables(Vec<Ref<Var>>);
    impl prim::PrimVisitor for Variables {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Var(var) = e {
                self.0.push(var.clone());
            }
            self.walk_prim(e);
        }
    }
    let mut found = Variables(Vec::new());
    prim::PrimVisitor::visit_prim(&mut found, e);
    found.0
}

/// Whether it is known to be `least` or more. A dimension that a model leaves open is taken to be at least one.
pub fn at_least(e: &PrimExpr, least: i64) -> bool {
    match e.as_int() {
        None if least <= 1 => true,
        _ => relaxide_ir::arith::dims::at_least(e, least),
    }
}

/// The quotient rounded down, simplified.
pub fn floor_div(num: &PrimExpr, den: &PrimExpr) -> PrimExpr {
    simplify(&prim::floordiv(num, den))
}

/// The product of dimensions.
pub fn product<'a>(dims: impl IntoIterator<Item = &'a PrimExpr>) -> PrimExpr {
    simplify(&dims.into_iter().fold(prim::int(1), |n, d| n * d))
}

/// An axis counted from the front, from one that may count from the back.
pub fn axis(axis: i64, rank: usize) -> Option<usize> {
    let from_front = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(from_front).ok().filter(|&a| a < rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_one_row_may_be_one_and_strides_may_not() {
        let n = PrimExpr::Var(Var::dim("n"));
        let i = PrimExpr::Var(Var::dim("i"));
        assert!(one_may_be_one(&n, &prim::min(&n, 1)));
        assert!(one_may_be_one(&n, &(prim::min(&i + 1, &n) - prim::min(&i, &n))));
        assert!(!one_may_be_one(&n, &(prim::floordiv(&n + 31, 32) * 32)));
        assert!(!one_may_be_one(&n, &(&n - 1)));
    }

    #[test]
    fn lengths_that_a_stride_gave_back_are_taken_as_equal_and_multiples_are_not() {
        let n = PrimExpr::Var(Var::dim("n"));
        assert_eq!(relation(&n, &(prim::floordiv(&n + 31, 32) * 32)), Relation::TakenAsEqual);
        assert_eq!(relation(&n, &(prim::floordiv(&n - 1, 2) * 2 + 2)), Relation::TakenAsEqual);
        assert_eq!(relation(&n, &(&n * 6)), Relation::Open);
        // Where `n` is 1.
        assert_eq!(relation(&n, &(&n + 6)), Relation::Open);
        assert_eq!(relation(&(&n + 2), &(&n + 6)), Relation::Apart);
        assert_eq!(relation(&n, &prim::min(&n, 1)), Relation::Open);
    }
}
