//! Flooring division and remainder of canonical forms.
//!
//! Both rest on one step: split the numerator into a multiple of the divisor and a rest, `a = q * c + r`; then
//! `a // c == q + r // c` and `a % c == r % c`, and if `0 <= r < c` the rest vanishes from the quotient and is the
//! remainder. What is left of `r // c` is made smaller by common divisors before it becomes an atom.

use super::atom::Atom;
use super::gcd;
use super::sum::{Sum, without};
use super::{Analyzer, Quotients};

impl Analyzer {
    /// `a // b`, rounding down.
    pub(super) fn floor_div(&mut self, a: &Sum, b: &Sum) -> Sum {
        if self.atoms.sum_is_data(a) || self.atoms.sum_is_data(b) {
            return match b.as_constant() {
                Some(1) => a.clone(),
                _ => self.quotient_atom(a, b),
            };
        }
        match b.as_constant() {
            Some(0) | Some(i64::MIN) => self.quotient_atom(a, b),
            Some(c) if c > 0 => self.div_by_constant(a, c).unwrap_or_else(|| self.quotient_atom(a, b)),
            Some(c) => match a.scale(-1) {
                Some(negated) => self.floor_div(&negated, &Sum::constant(b.dtype, -c)),
                None => self.quotient_atom(a, b),
            },
            None => self.div_by_sum(a, b).unwrap_or_else(|| self.quotient_atom(a, b)),
        }
    }

    /// `a % b`, with the sign of `b`.
    pub(super) fn floor_mod(&mut self, a: &Sum, b: &Sum) -> Sum {
        if self.atoms.sum_is_data(a) || self.atoms.sum_is_data(b) {
            return self.remainder_atom(a, b);
        }
        match b.as_constant() {
            Some(c) if c > 0 => self.mod_by_constant(a, c).unwrap_or_else(|| self.remainder_atom(a, b)),
            Some(_) => self.remainder_atom(a, b),
            None => self.mod_by_sum(a, b).unwrap_or_else(|| self.remainder_atom(a, b)),
        }
    }

    fn quotient_atom(&mut self, a: &Sum, b: &Sum) -> Sum {
        Sum::atom(a.dtype, self.atoms.intern(Atom::FloorDiv(a.clone(), b.clone()), a.dtype))
    }

    fn remainder_atom(&mut self, a: &Sum, b: &Sum) -> Sum {
        Sum::atom(a.dtype, self.atoms.intern(Atom::FloorMod(a.clone(), b.clone()), a.dtype))
    }

    /// `q` and `r` with `a == q * c + r`, the constant of `r` in `0 .. c` and its coefficients smaller than `c`.
    fn split(a: &Sum, c: i64) -> Option<(Sum, Sum)> {
        let (mut quotient, mut rest) = (Sum::constant(a.dtype, a.constant.div_euclid(c)), a.clone());
        rest.constant = a.constant.rem_euclid(c);
        rest.terms.clear();
        for (product, coefficient) in &a.terms {
            if coefficient / c != 0 {
                quotient.terms.push((product.clone(), coefficient / c));
            }
            if coefficient % c != 0 {
                rest.terms.push((product.clone(), coefficient % c));
            }
        }
        Some((quotient, rest))
    }

    /// The one value that `r // c` takes, if its bounds allow only one.
    fn only_quotient(&self, r: &Sum, c: i64) -> Option<i64> {
        let bounds = self.bounds_of(r);
        let (low, high) = (bounds.min?.div_euclid(c), bounds.max?.div_euclid(c));
        (low == high).then_some(low)
    }

    /// Divides a sum into terms that are multiples of some `g > 1` that divides `c` and a rest in `0 .. g`. The rest does
    /// not change `sum // c`, and `sum // c == (multiples / g) // (c / g)`. TVM leaves sums as they are whose constant is not all rest.
    fn split_by_divisor(&self, sum: &Sum, c: i64) -> Option<(Sum, i64, Sum)> {
        let mut divisors: Vec<i64> = sum.terms.iter().map(|(_, k)| gcd(*k, c)).filter(|g| *g > 1).collect();
        divisors.sort_unstable_by(|a, b| b.cmp(a));
        divisors.dedup();
        for g in divisors {
            let (mut multiples, mut rest) = sum.partition(|_, k| k % g == 0);
            multiples.constant = rest.constant - rest.constant.rem_euclid(g);
            rest.constant = rest.constant.rem_euclid(g);
            let is_kept = self.quotients == Quotients::Outside && multiples.constant != 0;
            if !is_kept && self.bounds_of(&rest).within(0, g) {
                return Some((multiples.divided_by(g), g, rest));
            }
        }
        None
    }

    fn div_by_constant(&mut self, a: &Sum, c: i64) -> Option<Sum> {
        let (quotient, rest) = Self::split(a, c)?;
        if let Some(only) = self.only_quotient(&rest, c) {
            return quotient.offset(only);
        }
        if let Some((multiples, g, _)) = self.split_by_divisor(&rest, c) {
            let smaller = if g == c { multiples } else { self.div_by_constant(&multiples, c / g)? };
            return quotient.add(&smaller);
        }
        // -y // c is not smaller than y // c in any sense, but one of both must be the form that is kept.
        if rest.terms.first().is_some_and(|(_, k)| *k < 0) {
            let mirrored = rest.scale(-1)?.offset(c - 1)?;
            let mirrored = self.div_by_constant(&mirrored, c)?;
            return quotient.sub(&mirrored);
        }
        let atom = self.div_of_division(&rest, c)?;
        quotient.add(&atom)
    }

    /// `(x // d + k) // c` and `(x % d) // c`, where they are simpler; else the atom `rest // c`.
    fn div_of_division(&mut self, rest: &Sum, c: i64) -> Option<Sum> {
        if let [(product, 1)] = rest.terms.as_slice()
            && let [atom] = product.as_slice()
        {
            match self.atoms.get(*atom).clone() {
                Atom::FloorDiv(x, d) => {
                    if let Some(d) = d.as_constant().filter(|d| *d > 0) {
                        let x = x.offset(rest.constant.checked_mul(d)?)?;
                        return self.div_by_constant(&x, c.checked_mul(d)?);
                    }
                }
                Atom::FloorMod(x, d) if rest.constant == 0 => {
                    if let Some(d) = d.as_constant().filter(|d| *d > 0 && d % c == 0) {
                        let x = self.div_by_constant(&x, c)?;
                        return self.mod_by_constant(&x, d / c);
                    }
                }
                _ => {}
            }
        }
        Some(self.quotient_atom(rest, &Sum::constant(rest.dtype, c)))
    }

    fn mod_by_constant(&mut self, a: &Sum, c: i64) -> Option<Sum> {
        if c == 1 {
            return Some(Sum::constant(a.dtype, 0));
        }
        let expanded = self.open_remainders(a, c)?;
        let (_, rest) = Self::split(&expanded, c)?;
        if let Some(only) = self.only_quotient(&rest, c) {
            return rest.offset(only.checked_mul(-c)?);
        }
        if let Some((multiples, g, low)) = self.split_by_divisor(&rest, c) {
            let high = if g == c { Sum::constant(a.dtype, 0) } else { self.mod_by_constant(&multiples, c / g)? };
            return low.add_scaled(&high, g);
        }
        Some(self.remainder_atom(&rest, &Sum::constant(a.dtype, c)))
    }

    /// Takes `x % d` as `x` where `c` divides `d`: modulo `c` they are the same.
    fn open_remainders(&mut self, a: &Sum, c: i64) -> Option<Sum> {
        let mut result = a.clone();
        for (product, coefficient) in &a.terms {
            if let [atom] = product.as_slice()
                && let Atom::FloorMod(x, d) = self.atoms.get(*atom)
                && d.as_constant().is_some_and(|d| d > 0 && d % c == 0)
            {
                let term = Sum::term(a.dtype, product.clone(), *coefficient);
                result = result.sub(&term)?.add_scaled(x, *coefficient)?;
            }
        }
        Some(result)
    }

    /// `a // c` with `x - x // d * d` in the place of those remainders `x % d` whose multiples of `d` are multiples of `c` here; `None`
    /// where there are none.
    pub(super) fn quotient_of_expanded(&mut self, a: &Sum, c: i64) -> Option<Sum> {
        let (mut expanded, mut whole) = (a.clone(), Sum::constant(a.dtype, 0));
        for (product, coefficient) in &a.terms {
            if let [atom] = product.as_slice()
                && let Atom::FloorMod(x, d) = self.atoms.get(*atom).clone()
                && let Some(multiple) = d.as_constant().filter(|d| *d > 0).and_then(|d| d.checked_mul(*coefficient))
                && multiple % c == 0
            {
                let term = Sum::term(a.dtype, product.clone(), *coefficient);
                expanded = expanded.sub(&term)?.add_scaled(&x, *coefficient)?;
                let quotient = self.floor_div(&x, &d);
                whole = whole.add_scaled(&quotient, -(multiple / c))?;
            }
        }
        if whole.is_zero() {
            return None;
        }
        self.div_by_constant(&expanded, c)?.add(&whole)
    }

    /// Division with remainder as of polynomials, term by term as long as the rest gets shorter.
    fn divide_terms(a: &Sum, b: &Sum) -> Option<(Sum, Sum)> {
        let (lead, lead_factor) = b.terms.iter().max_by_key(|(product, _)| product.len())?;
        let (mut quotient, mut rest) = (Sum::constant(a.dtype, 0), a.clone());
        'again: loop {
            for (product, coefficient) in &rest.terms {
                let Some(factor) = without(product, lead) else { continue };
                if coefficient % lead_factor != 0 {
                    continue;
                }
                let part = match factor.is_empty() {
                    true => Sum::constant(a.dtype, coefficient / lead_factor),
                    false => Sum::term(a.dtype, factor, coefficient / lead_factor),
                };
                let shorter = rest.sub(&part.mul(b)?)?;
                if shorter.terms.len() < rest.terms.len() {
                    quotient = quotient.add(&part)?;
                    rest = shorter;
                    continue 'again;
                }
            }
            return Some((quotient, rest));
        }
    }

    /// Whether `0 <= rest < b`.
    fn is_proper_rest(&mut self, rest: &Sum, b: &Sum) -> bool {
        let Some(room) = b.sub(rest).and_then(|room| room.offset(-1)) else { return false };
        self.prove_non_negative(rest) && self.prove_non_negative(&room)
    }

    fn div_by_sum(&mut self, a: &Sum, b: &Sum) -> Option<Sum> {
        let (quotient, rest) = Self::divide_terms(a, b)?;
        if rest.is_zero() || self.is_proper_rest(&rest, b) {
            return Some(quotient);
        }
        let atom = self.quotient_atom(&rest, b);
        quotient.add(&atom)
    }

    fn mod_by_sum(&mut self, a: &Sum, b: &Sum) -> Option<Sum> {
        let (_, rest) = Self::divide_terms(a, b)?;
        if rest.is_zero() || self.is_proper_rest(&rest, b) {
            return Some(rest);
        }
        Some(self.remainder_atom(&rest, b))
    }
}
