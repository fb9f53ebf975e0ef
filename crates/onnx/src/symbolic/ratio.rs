//! [`Ratio`]: a number known at import as an expression over the model's dimensions.
//!
//! Exporters compute shapes in floats as well as in integers (`floor(h * 0.5)`), so an element is a quotient of two integer
//! expressions. Floats that shapes are multiplied by are dyadic fractions with small parts; those are exact here. A float
//! whose fraction would need large parts is not represented, and what depends on it is computed when the program runs.

use relaxide_ir::arith;
use relaxide_ir::prim::{self, PrimExpr};

use crate::dims;

/// The largest denominator of a float that is taken as a fraction.
const MAX_DENOMINATOR: f64 = 65536.0;
/// The largest numerator of a float that is taken as a fraction; products of a few still fit.
const MAX_NUMERATOR: f64 = 16_777_216.0;

/// A quotient of two integer expressions; the denominator is positive.
#[derive(Clone, Debug)]
pub struct Ratio {
    num: PrimExpr,
    den: PrimExpr,
}

impl Ratio {
    /// A whole number.
    pub fn int(value: impl Into<PrimExpr>) -> Ratio {
        Ratio { num: value.into(), den: prim::int(1) }
    }

    /// A float, where its fraction has small parts.
    pub fn float(value: f64) -> Option<Ratio> {
        let mut den = 1.0;
        while (value * den).fract() != 0.0 && den < MAX_DENOMINATOR {
            den *= 2.0;
        }
        let num = value * den;
        (num.fract() == 0.0 && num.abs() <= MAX_NUMERATOR)
            .then(|| Ratio { num: prim::int(num as i64), den: prim::int(den as i64) })
    }

    fn new(num: PrimExpr, den: PrimExpr) -> Ratio {
        if dims::equal(&num, &den) {
            return Ratio::int(1);
        }
        match (num.as_int(), den.as_int()) {
            (Some(n), Some(d)) if d != 0 => {
                let g = arith::gcd(n, d).max(1);
                Ratio { num: prim::int(n / g), den: prim::int(d / g) }
            }
            _ => Ratio { num, den },
        }
    }

    /// The same quotient of other expressions.
    pub fn with_parts(&self, mut f: impl FnMut(&PrimExpr) -> PrimExpr) -> Ratio {
        Ratio { num: f(&self.num), den: f(&self.den) }
    }

    /// The expression, if it is whole as written.
    pub fn as_whole(&self) -> Option<&PrimExpr> {
        self.den.is_int(1).then_some(&self.num)
    }

    /// The value, if it is a literal.
    pub fn as_int(&self) -> Option<i64> {
        self.as_whole()?.as_int()
    }

    /// The value as a float, if it is a literal.
    pub fn as_float(&self) -> Option<f64> {
        Some(self.num.as_int()? as f64 / self.den.as_int()? as f64)
    }

    /// Numerator and denominator.
    pub fn parts(&self) -> (&PrimExpr, &PrimExpr) {
        (&self.num, &self.den)
    }

    /// The sum.
    pub fn add(&self, other: &Ratio) -> Ratio {
        if dims::equal(&self.den, &other.den) {
            return Ratio::new(&self.num + &other.num, self.den.clone());
        }
        Ratio::new(&self.num * &other.den + &other.num * &self.den, &self.den * &other.den)
    }

    /// The negative.
    pub fn neg(&self) -> Ratio {
        Ratio { num: &self.num * -1, den: self.den.clone() }
    }

    /// The difference.
    pub fn sub(&self, other: &Ratio) -> Ratio {
        if dims::equal(&self.den, &other.den) {
            return Ratio::new(&self.num - &other.num, self.den.clone());
        }
        Ratio::new(&self.num * &other.den - &other.num * &self.den, &self.den * &other.den)
    }

    /// The product.
    pub fn mul(&self, other: &Ratio) -> Ratio {
        if dims::equal(&self.num, &other.den) {
            return Ratio::new(other.num.clone(), self.den.clone());
        }
        if dims::equal(&other.num, &self.den) {
            return Ratio::new(self.num.clone(), other.den.clone());
        }
        Ratio::new(&self.num * &other.num, &self.den * &other.den)
    }

    /// The quotient, where the divisor is known to be positive or is a literal other than zero.
    pub fn div(&self, other: &Ratio) -> Option<Ratio> {
        let inverse = match other.num.as_int() {
            Some(0) => return None,
            Some(n) if n < 0 => Ratio { num: &other.den * -1, den: prim::int(n.checked_neg()?) },
            Some(_) => Ratio { num: other.den.clone(), den: other.num.clone() },
            None if dims::non_negative(&other.num) => Ratio { num: other.den.clone(), den: other.num.clone() },
            None => return None,
        };
        Some(self.mul(&inverse))
    }

    /// The largest whole number that is not greater.
    pub fn floor(&self) -> Ratio {
        Ratio::int(dims::floor_div(&self.num, &self.den))
    }

    /// The smallest whole number that is not less.
    pub fn ceil(&self) -> Ratio {
        Ratio::int(dims::floor_div(&(&self.num + &self.den - 1), &self.den))
    }

    /// The whole number towards zero, as a conversion to an integer type takes it.
    pub fn trunc(&self) -> Ratio {
        if self.den.is_int(1) {
            return self.clone();
        }
        if dims::non_negative(&self.num) { self.floor() } else { Ratio::int(prim::div(&self.num, &self.den)) }
    }

    /// Whether two are equal; `None` where that depends on the dimensions.
    pub fn equals(&self, other: &Ratio) -> Option<bool> {
        let (a, b) = (&self.num * &other.den, &other.num * &self.den);
        if dims::equal(&a, &b) {
            return Some(true);
        }
        let differ = |a: &PrimExpr, b: &PrimExpr| a.as_int().is_some_and(|a| a < 0) && dims::non_negative(b);
        match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => Some(x == y),
            _ if differ(&a, &b) || differ(&b, &a) => Some(false),
            _ => None,
        }
    }

    /// Whether this is less than the other; `None` where that depends on the dimensions.
    pub fn less(&self, other: &Ratio) -> Option<bool> {
        let (a, b) = (&self.num * &other.den, &other.num * &self.den);
        match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => Some(x < y),
            _ if dims::equal(&a, &b) => Some(false),
            (Some(x), None) if x < 0 && dims::non_negative(&b) => Some(true),
            (None, Some(y)) if y <= 0 && dims::non_negative(&a) => Some(false),
            _ => None,
        }
    }

    /// The smaller of two, or the larger, where both are whole.
    pub fn extreme(&self, other: &Ratio, largest: Largest) -> Option<Ratio> {
        if let Some(less) = self.less(other) {
            return Some(if less == (largest == Largest::Yes) { other.clone() } else { self.clone() });
        }
        let (a, b) = (self.as_whole()?, other.as_whole()?);
        Some(Ratio::int(if largest == Largest::Yes { prim::max(a, b) } else { prim::min(a, b) }))
    }
}

/// Which of two extremes is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Largest {
    /// The larger.
    Yes,
    /// The smaller.
    No,
}
