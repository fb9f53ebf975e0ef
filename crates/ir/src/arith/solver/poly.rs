//! Polynomials with integer coefficients.

use std::collections::{BTreeMap, BTreeSet};

use super::super::gcd::wide_gcd;

/// A value that stands for itself.
pub(super) type Atom = u32;
/// A product of atoms, in order; the empty one is the number one.
pub(super) type Monomial = Vec<Atom>;

/// What is larger takes too long.
const MAX_TERMS: usize = 48;
const MAX_DEGREE: usize = 4;

/// A sum of monomials with coefficients, none of which is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Poly(BTreeMap<Monomial, i128>);

impl Poly {
    pub fn constant(value: i128) -> Poly {
        Poly::term(Vec::new(), value)
    }

    pub fn atom(atom: Atom) -> Poly {
        Poly::term(vec![atom], 1)
    }

    fn term(monomial: Monomial, factor: i128) -> Poly {
        Poly(if factor == 0 { BTreeMap::new() } else { BTreeMap::from([(monomial, factor)]) })
    }

    /// `self + other * factor`; nothing where a number becomes too large.
    pub fn plus(&self, other: &Poly, factor: i128) -> Option<Poly> {
        let mut sum = self.0.clone();
        for (monomial, value) in &other.0 {
            let entry = sum.entry(monomial.clone()).or_insert(0);
            *entry = entry.checked_add(value.checked_mul(factor)?)?;
        }
        sum.retain(|_, value| *value != 0);
        (sum.len() <= MAX_TERMS).then_some(Poly(sum))
    }

    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (left, x) in &self.0 {
            for (right, y) in &other.0 {
                let mut monomial = [left.as_slice(), right].concat();
                monomial.sort_unstable();
                if monomial.len() > MAX_DEGREE {
                    return None;
                }
                product = product.plus(&Poly::term(monomial, x.checked_mul(*y)?), 1)?;
            }
        }
        Some(product)
    }

    pub fn negated(&self) -> Option<Poly> {
        Poly::default().plus(self, -1)
    }

    /// The polynomial with a polynomial in the place of an atom.
    pub fn with(&self, atom: Atom, value: &Poly) -> Option<Poly> {
        if !self.0.keys().any(|monomial| monomial.contains(&atom)) {
            return Some(self.clone());
        }
        let mut result = Poly::default();
        for (monomial, factor) in &self.0 {
            let rest: Monomial = monomial.iter().copied().filter(|one| *one != atom).collect();
            let mut part = Poly::term(rest.clone(), *factor);
            for _ in rest.len()..monomial.len() {
                part = part.times(value)?;
            }
            result = result.plus(&part, 1)?;
        }
        Some(result)
    }

    /// The number that it is, if it is one.
    pub fn as_constant(&self) -> Option<i128> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    pub fn constant_part(&self) -> i128 {
        self.0.get(&Vec::new()).copied().unwrap_or(0)
    }

    /// The terms with atoms.
    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, i128)> {
        self.0.iter().filter(|(monomial, _)| !monomial.is_empty()).map(|(monomial, factor)| (monomial, *factor))
    }

    /// The greatest number that divides all coefficients of terms with atoms; zero where there are none.
    pub fn content(&self) -> i128 {
        self.terms().fold(0, |found, (_, factor)| wide_gcd(found, factor))
    }

    /// Coefficients divided by a number that divides them; the constant is rounded down.
    pub fn divided(&self, by: i128) -> Poly {
        let rounded = |(monomial, factor): (&Monomial, &i128)| (monomial.clone(), factor.div_euclid(by));
        Poly(self.0.iter().map(rounded).filter(|(_, factor)| *factor != 0).collect())
    }

    pub fn without_constant(&self) -> Poly {
        Poly(self.0.iter().filter(|(monomial, _)| !monomial.is_empty()).map(|(m, f)| (m.clone(), *f)).collect())
    }

    pub fn degree(&self) -> usize {
        self.0.keys().map(Vec::len).max().unwrap_or(0)
    }

    /// The atoms of products of several.
    pub fn nonlinear_atoms(&self, found: &mut BTreeSet<Atom>) {
        self.0.keys().filter(|monomial| monomial.len() > 1).for_each(|monomial| found.extend(monomial));
    }

    pub fn mentions(&self, atoms: &BTreeSet<Atom>) -> bool {
        self.0.keys().flatten().any(|atom| atoms.contains(atom))
    }

    /// `(atom, factor)` of a polynomial with one atom that is no product.
    pub fn single(&self) -> Option<(Atom, i128)> {
        let mut terms = self.terms();
        match (terms.next(), terms.next()) {
            (Some((monomial, factor)), None) if monomial.len() == 1 => monomial.first().map(|atom| (*atom, factor)),
            _ => None,
        }
    }
}
