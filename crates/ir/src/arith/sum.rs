//! Sums of products of atoms: the canonical form of an index expression.

use relaxide_ffi::DataType;

use super::atom::AtomId;
use super::gcd;

/// Atoms that are multiplied, in order; an atom occurs as often as its power.
pub(super) type Product = Vec<AtomId>;

/// Most terms that a product of two sums may expand to.
const MAX_TERMS: usize = 64;

/// Whether values of a type are indices: signed scalars of 32 or 64 bits.
pub(super) fn is_index(dtype: DataType) -> bool {
    dtype.is_int() && dtype.lanes == 1 && matches!(dtype.bits, 32 | 64)
}

/// `constant + sum of coefficient * product`. Terms are sorted by product and have coefficients other than zero, so equal
/// forms are equal values of this type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Sum {
    pub dtype: DataType,
    pub terms: Vec<(Product, i64)>,
    pub constant: i64,
}

impl Sum {
    pub fn constant(dtype: DataType, constant: i64) -> Sum {
        Sum { dtype, terms: Vec::new(), constant }
    }

    pub fn atom(dtype: DataType, atom: AtomId) -> Sum {
        Sum { dtype, terms: vec![(vec![atom], 1)], constant: 0 }
    }

    pub fn term(dtype: DataType, product: Product, coefficient: i64) -> Sum {
        Sum { dtype, terms: vec![(product, coefficient)], constant: 0 }
    }

    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub fn is_zero(&self) -> bool {
        self.terms.is_empty() && self.constant == 0
    }

    /// The value as the type holds it; `None` where it would overflow.
    fn fit(&self, value: i128) -> Option<i64> {
        let value = i64::try_from(value).ok()?;
        crate::prim::holds(self.dtype, value).then_some(value)
    }

    pub fn add(&self, other: &Sum) -> Option<Sum> {
        self.add_scaled(other, 1)
    }

    pub fn sub(&self, other: &Sum) -> Option<Sum> {
        self.add_scaled(other, -1)
    }

    /// `self + other * factor`
    pub fn add_scaled(&self, other: &Sum, factor: i64) -> Option<Sum> {
        let scaled = |k: i64| i128::from(k) * i128::from(factor);
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (product, coefficient) = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some((p, k)), Some((q, l))) if p == q => {
                    left.next();
                    right.next();
                    (p, i128::from(*k) + scaled(*l))
                }
                (Some((p, k)), Some((q, _))) if p < q => {
                    left.next();
                    (p, i128::from(*k))
                }
                (Some((p, k)), None) => {
                    left.next();
                    (p, i128::from(*k))
                }
                (_, Some((q, l))) => {
                    right.next();
                    (q, scaled(*l))
                }
            };
            if coefficient != 0 {
                terms.push((product.clone(), self.fit(coefficient)?));
            }
        }
        let constant = self.fit(i128::from(self.constant) + scaled(other.constant))?;
        Some(Sum { dtype: self.dtype, terms, constant })
    }

    pub fn offset(&self, by: i64) -> Option<Sum> {
        let constant = self.fit(i128::from(self.constant) + i128::from(by))?;
        Some(Sum { constant, ..self.clone() })
    }

    pub fn scale(&self, by: i64) -> Option<Sum> {
        Sum::constant(self.dtype, 0).add_scaled(self, by)
    }

    /// `self * coefficient * product`
    pub fn times_product(&self, product: &[AtomId], coefficient: i64) -> Option<Sum> {
        let mut terms = Vec::with_capacity(self.terms.len() + 1);
        for (p, k) in &self.terms {
            terms.push((merge(p, product), self.fit(i128::from(*k) * i128::from(coefficient))?));
        }
        let constant = self.fit(i128::from(self.constant) * i128::from(coefficient))?;
        if product.is_empty() {
            return Some(Sum { dtype: self.dtype, terms, constant });
        }
        if constant != 0 {
            terms.push((product.to_vec(), constant));
        }
        terms.sort_unstable();
        Some(Sum { dtype: self.dtype, terms, constant: 0 })
    }

    /// The product, expanded; `None` where it overflows or has too many terms.
    pub fn mul(&self, other: &Sum) -> Option<Sum> {
        if self.terms.len().max(1) * other.terms.len().max(1) > MAX_TERMS {
            return None;
        }
        let mut result = self.scale(other.constant)?;
        for (product, coefficient) in &other.terms {
            result = result.add(&self.times_product(product, *coefficient)?)?;
        }
        Some(result)
    }

    /// Divides every coefficient and the constant, which must all be multiples.
    pub fn divided_by(&self, divisor: i64) -> Sum {
        let terms = self.terms.iter().map(|(p, k)| (p.clone(), k / divisor)).collect();
        Sum { dtype: self.dtype, terms, constant: self.constant / divisor }
    }

    /// The same without its constant.
    pub fn without_constant(&self) -> Sum {
        Sum { constant: 0, ..self.clone() }
    }

    /// The greatest common divisor of the coefficients, the constant aside; 0 if there are none.
    pub fn gcd(&self) -> i64 {
        self.terms.iter().fold(0, |g, (_, k)| gcd(g, *k))
    }

    /// The terms that satisfy a condition, and the others; the constant stays with the others.
    pub fn partition(&self, keep: impl Fn(&Product, i64) -> bool) -> (Sum, Sum) {
        let (yes, no) = self.terms.iter().cloned().partition(|(p, k)| keep(p, *k));
        let dtype = self.dtype;
        (Sum { dtype, terms: yes, constant: 0 }, Sum { dtype, terms: no, constant: self.constant })
    }

    /// The same sum where it is a constant, of another type.
    pub fn retyped(&self, dtype: DataType) -> Option<Sum> {
        let constant = self.as_constant()?;
        crate::prim::holds(dtype, constant).then(|| Sum::constant(dtype, constant))
    }
}

/// The product of two products.
pub(super) fn merge(a: &[AtomId], b: &[AtomId]) -> Product {
    let mut all: Product = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    all
}

/// `product` without the factors of `divisor`, if it has them all.
pub(super) fn without(product: &[AtomId], divisor: &[AtomId]) -> Option<Product> {
    let mut rest = product.to_vec();
    for atom in divisor {
        let at = rest.iter().position(|a| a == atom)?;
        rest.remove(at);
    }
    Some(rest)
}
