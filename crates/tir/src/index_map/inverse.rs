//! The way back: from the index of an element in a new layout to that in the old one.
//!
//! A map that only reorders axes, splits them and joins them takes the old indices apart into *digits*: `i % 4` and `i // 4`
//! are the digits of `i` below and above four. A new index is a sum of digits by their weights, as `j * 4 + i % 4` is. Where
//! each digit occurs once, the digits of an old index are found in the new ones, and add up to it:
//!
//! ```text
//! (i, j) → (i, j // 4, j % 4)          back: (a, b, c) → (a, b * 4 + c)
//! (i, j) → i * 16 + j   (j below 16)   back: a → (a // 16, a % 16)
//! ```
//!
//! Where the last block of a split axis is not full, the new layout has elements that no old one goes to: it is *padded*.
//!
//! **Leaves out** maps that say an old index in another way (`i * i`, `-i`, `i + j` without weights): they have no inverse here.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr};

use super::IndexMap;

/// The map back.
#[derive(Debug)]
pub struct Inverse {
    /// From new indices to old ones.
    pub map: IndexMap,
    /// Whether the new layout may have elements that no old one goes to.
    pub padded: bool,
}

/// Digits of an axis: `axis // lower % extent`, or all from `lower` up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Digits {
    /// Which axis.
    pub axis: usize,
    lower: i64,
    extent: Option<i64>,
}

/// Digits by a weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// The digits.
    pub digits: Digits,
    weight: i64,
}

impl IndexMap {
    /// The map back, over the dimensions of the old layout; `None` where it cannot be said.
    pub fn inverse(&self, dims: &[PrimExpr]) -> Option<Inverse> {
        if dims.len() != self.initial_indices.len() {
            return None;
        }
        let mut analyzer = Analyzer::new();
        if let Some(inverse) = self.inverse_by(&mut analyzer, dims) {
            return Some(inverse);
        }
        for (var, dim) in self.initial_indices.iter().zip(dims) {
            analyzer.bind(var, 0, dim.clone());
        }
        // What is known of small dimensions makes digits zero that the new layout has all the same.
        let inverse = self.inverse_by(&mut analyzer, dims).filter(|inverse| !inverse.padded)?;
        let elements = |dims: &[PrimExpr]| dims.iter().fold(PrimExpr::from(1), prim::mul);
        analyzer.can_prove_equal(&elements(&self.apply_to_shape(dims)?), &elements(dims)).then_some(inverse)
    }

    fn inverse_by(&self, analyzer: &mut Analyzer, dims: &[PrimExpr]) -> Option<Inverse> {
        let vars: Vec<Ref<Var>> = (0..self.final_indices.len()).map(|i| Var::dim(format!("axis{i}"))).collect();
        let mut found: Vec<(Digits, PrimExpr)> = Vec::new();
        for (var, index) in vars.iter().zip(&self.final_indices) {
            let terms = self.terms(&analyzer.simplify(index))?;
            found.extend(taken_apart(terms, &PrimExpr::from(var), dims)?);
        }
        let mut padded = false;
        let mut final_indices = Vec::with_capacity(dims.len());
        for (axis, dim) in dims.iter().enumerate() {
            let (index, whole) = combine_digits(axis, dim, &mut found, analyzer)?;
            padded |= !whole;
            final_indices.push(index);
        }
        let map = IndexMap { initial_indices: vars, final_indices, inverse_index_map: None };
        found.is_empty().then_some(Inverse { map, padded })
    }

    /// A new index as a sum of digits by weights, the heaviest first.
    pub(super) fn terms(&self, index: &PrimExpr) -> Option<Vec<Term>> {
        let mut terms = Vec::new();
        self.collect(index, 1, &mut terms)?;
        terms.sort_by_key(|t| std::cmp::Reverse(t.weight));
        Some(terms)
    }

    fn collect(&self, e: &PrimExpr, weight: i64, terms: &mut Vec<Term>) -> Option<()> {
        if e.is_int(0) {
            return Some(());
        }
        if let PrimExpr::Binary(n) = e {
            match (n.op, n.b.as_int()) {
                (BinaryOp::Add, _) => {
                    self.collect(&n.a, weight, terms)?;
                    return self.collect(&n.b, weight, terms);
                }
                (BinaryOp::Mul, Some(factor)) if factor > 0 => {
                    return self.collect(&n.a, weight.checked_mul(factor)?, terms);
                }
                _ => {}
            }
        }
        terms.push(Term { digits: self.digits(e)?, weight });
        Some(())
    }

    fn digits(&self, e: &PrimExpr) -> Option<Digits> {
        if let PrimExpr::Var(var) = e {
            let axis = self.initial_indices.iter().position(|v| v == var)?;
            return Some(Digits { axis, lower: 1, extent: None });
        }
        let PrimExpr::Binary(n) = e else { return None };
        let by = n.b.as_int().filter(|by| *by > 0)?;
        let whole = self.digits(&n.a)?;
        match (n.op, whole.extent) {
            (BinaryOp::FloorDiv, None) => Some(Digits { lower: whole.lower.checked_mul(by)?, ..whole }),
            (BinaryOp::FloorDiv, Some(extent)) if extent % by == 0 => {
                Some(Digits { lower: whole.lower.checked_mul(by)?, extent: Some(extent / by), ..whole })
            }
            (BinaryOp::FloorMod, None) => Some(Digits { extent: Some(by), ..whole }),
            (BinaryOp::FloorMod, Some(extent)) if extent % by == 0 => Some(Digits { extent: Some(by), ..whole }),
            (BinaryOp::FloorMod, Some(extent)) if extent <= by => Some(whole),
            _ => None,
        }
    }
}

/// The digits that a new index is the sum of, each as an expression of that index.
fn taken_apart(terms: Vec<Term>, index: &PrimExpr, dims: &[PrimExpr]) -> Option<Vec<(Digits, PrimExpr)>> {
    let mut out = Vec::with_capacity(terms.len());
    let mut below = terms.iter().skip(1);
    for (i, term) in terms.iter().enumerate() {
        // What lies below a digit must fill its weight exactly.
        let fits = match below.next() {
            Some(next) => next.weight.checked_mul(extent_of(next.digits, dims)?)? == term.weight,
            None => term.weight == 1,
        };
        if !fits {
            return None;
        }
        let shifted = prim::floordiv(index, term.weight);
        let value = if i == 0 { shifted } else { prim::floormod(shifted, extent_of(term.digits, dims)?) };
        out.push((term.digits, value));
    }
    Some(out)
}

/// How many values digits take.
fn extent_of(digits: Digits, dims: &[PrimExpr]) -> Option<i64> {
    match digits.extent {
        Some(extent) => Some(extent),
        None => {
            let dim = dims.get(digits.axis)?.as_int()?;
            Some(dim.checked_add(digits.lower - 1)? / digits.lower)
        }
    }
}

/// An old index as the sum of its digits, which are taken from `found`, and whether they fill its dimension exactly.
fn combine_digits(
    axis: usize,
    dim: &PrimExpr,
    found: &mut Vec<(Digits, PrimExpr)>,
    analyzer: &mut Analyzer,
) -> Option<(PrimExpr, bool)> {
    let (mut own, rest): (Vec<_>, Vec<_>) = found.drain(..).partition(|(d, _)| d.axis == axis);
    *found = rest;
    own.sort_by_key(|(d, _)| std::cmp::Reverse(d.lower));
    let Some((highest, _)) = own.first().cloned() else {
        // An axis that has one element needs no digits.
        return dim.is_int(1).then(|| (PrimExpr::from(0), true));
    };
    let mut lower = 1;
    for (digits, _) in own.iter().rev() {
        if digits.lower != lower {
            return None;
        }
        lower = lower.checked_mul(digits.extent.unwrap_or(1))?;
    }
    if own.iter().skip(1).any(|(d, _)| d.extent.is_none()) {
        return None;
    }
    let whole = match highest.extent {
        None => analyzer.can_prove_equal(&prim::floormod(dim, lower), &PrimExpr::from(0)),
        Some(_) => {
            if dim.as_int().is_none_or(|dim| dim > lower) {
                return None;
            }
            dim.is_int(lower)
        }
    };
    let sum = own.into_iter().map(|(d, value)| value * d.lower).reduce(|sum, digit| sum + digit)?;
    Some((sum, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(names: &[&str], f: impl FnOnce(&[PrimExpr]) -> Vec<PrimExpr>) -> IndexMap {
        let vars: Vec<Ref<Var>> = names.iter().map(|n| Var::dim(*n)).collect();
        let exprs: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        IndexMap { initial_indices: vars, final_indices: f(&exprs), inverse_index_map: None }
    }

    fn ints(values: &[i64]) -> Vec<PrimExpr> {
        values.iter().map(|v| PrimExpr::from(*v)).collect()
    }

    /// Every element goes somewhere of its own, and comes back; from everywhere else the way leads outside.
    fn check(map: &IndexMap, dims: &[i64], padded: bool) {
        let inverse = map.inverse(&ints(dims)).unwrap();
        assert_eq!(inverse.padded, padded);
        let mut seen = std::collections::HashSet::new();
        let all = |dims: &[i64]| {
            let dims = dims.to_vec();
            (0..dims.iter().product()).map(move |flat: i64| {
                let mut rest = flat;
                let mut index = vec![0; dims.len()];
                for (i, dim) in dims.iter().enumerate().rev() {
                    (index[i], rest) = (rest % dim, rest / dim);
                }
                index
            })
        };
        let values = |e: Vec<PrimExpr>| -> Vec<i64> {
            e.iter().map(|e| Analyzer::new().simplify(e).as_int().unwrap()).collect()
        };
        for index in all(dims) {
            let there = values(map.apply(&ints(&index)).unwrap());
            assert!(seen.insert(there.clone()), "{index:?}");
            assert_eq!(values(inverse.map.apply(&ints(&there)).unwrap()), index);
        }
        for there in all(&values(map.apply_to_shape(&ints(dims)).unwrap())) {
            let index = values(inverse.map.apply(&ints(&there)).unwrap());
            let inside = index.iter().zip(dims).all(|(i, dim)| i < dim);
            assert_eq!(inside, seen.contains(&there), "{there:?}");
            assert!(inside || padded, "{there:?}");
        }
    }

    #[test]
    fn axes_are_moved_split_and_joined() {
        check(&map(&["i", "j"], |v| vec![v[1].clone(), v[0].clone()]), &[3, 5], false);
        let split = |v: &[PrimExpr]| vec![v[0].clone(), prim::floordiv(&v[1], 4), prim::floormod(&v[1], 4)];
        check(&map(&["i", "j"], split), &[2, 8], false);
        check(&map(&["i", "j"], split), &[2, 6], true);
        // Less than one block.
        check(&map(&["i", "j"], split), &[2, 3], true);
        check(&map(&["i", "j"], split), &[2, 1], true);
        check(&map(&["i", "j"], |v| vec![&v[0] * 5 + &v[1]]), &[3, 5], false);
        check(
            &map(&["i", "j"], |v| vec![prim::floordiv(&v[0] * 16 + &v[1], 4), prim::floormod(&v[1], 4)]),
            &[2, 16],
            false,
        );
        let twice = |v: &[PrimExpr]| {
            vec![prim::floormod(prim::floordiv(&v[0], 2), 3), prim::floordiv(&v[0], 6) * 2 + prim::floormod(&v[0], 2)]
        };
        check(&map(&["i"], twice), &[12], false);
        check(&map(&["i"], twice), &[11], true);
    }

    #[test]
    fn other_maps_have_no_inverse_here() {
        let none = |m: IndexMap, dims: &[i64]| assert!(m.inverse(&ints(dims)).is_none(), "{m:?}");
        none(map(&["i", "j"], |v| vec![&v[0] + &v[1]]), &[2, 2]);
        none(map(&["i"], |v| vec![v[0].clone(), v[0].clone()]), &[2]);
        none(map(&["i", "j"], |v| vec![v[0].clone()]), &[2, 2]);
        none(map(&["i"], |v| vec![prim::floordiv(&v[0], 2)]), &[4]);
        none(map(&["i"], |v| vec![&v[0] * &v[0]]), &[4]);
        none(map(&["i"], |v| vec![v[0].clone()]), &[4, 4]);
        none(map(&["i"], |v| vec![prim::floormod(&v[0], 2)]), &[4]);
    }

    #[test]
    fn a_symbolic_axis_may_be_padded() {
        let n = PrimExpr::from(&Var::dim("n"));
        let split = map(&["i"], |v| vec![prim::floordiv(&v[0], 4), prim::floormod(&v[0], 4)]);
        assert!(split.inverse(std::slice::from_ref(&n)).unwrap().padded);
        assert!(!split.inverse(&[n * 4]).unwrap().padded);
    }
}
