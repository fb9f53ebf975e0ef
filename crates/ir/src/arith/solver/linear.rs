//! Whether linear conditions contradict each other.
//!
//! By Farkas' lemma conditions `p₁ ≥ 0 … pₖ ≥ 0` have no common rational solution if and only if a sum of them with factors that
//! are not negative is a negative number. The factors are searched by the simplex method, in exact fractions. Products of
//! atoms count as atoms here.

use std::collections::BTreeMap;

use super::super::gcd::wide_gcd;
use super::poly::{Monomial, Poly};

/// More conditions than this are not looked at together.
const MAX_CONDITIONS: usize = 160;
/// Steps of the method.
const MAX_STEPS: usize = 600;

/// A fraction in lowest terms, whose denominator is positive.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    const ZERO: Fraction = Fraction { over: 0, under: 1 };
    const ONE: Fraction = Fraction { over: 1, under: 1 };

    fn of(over: i128, under: i128) -> Option<Fraction> {
        if under == 0 {
            return None;
        }
        let common = wide_gcd(over, under).max(1) * under.signum();
        Some(Fraction { over: over.checked_div(common)?, under: under.checked_div(common)? })
    }

    fn times(self, other: Fraction) -> Option<Fraction> {
        if self.over == 0 || other.over == 0 {
            return Some(Fraction::ZERO);
        }
        let (left, right) = (wide_gcd(self.over, other.under), wide_gcd(other.over, self.under));
        Fraction::of(
            (self.over / left).checked_mul(other.over / right)?,
            (self.under / right).checked_mul(other.under / left)?,
        )
    }

    fn minus(self, other: Fraction) -> Option<Fraction> {
        if other.over == 0 {
            return Some(self);
        }
        let over = self.over.checked_mul(other.under)?.checked_sub(other.over.checked_mul(self.under)?)?;
        Fraction::of(over, self.under.checked_mul(other.under)?)
    }

    fn inverse(self) -> Option<Fraction> {
        Fraction::of(self.under, self.over)
    }

    fn is_below(self, other: Fraction) -> Option<bool> {
        Some(self.over.checked_mul(other.under)? < other.over.checked_mul(self.under)?)
    }
}

/// Whether conditions `p ≥ 0` are known to have no common solution.
pub(super) fn contradict(conditions: &[Poly]) -> bool {
    conditions.len() <= MAX_CONDITIONS && Tableau::of(conditions).and_then(Tableau::solved).unwrap_or(false)
}

/// One row for each product of atoms, whose factors are to cancel, and one for the constants, whose sum is to be minus one. The
/// columns are the conditions and what the rows lack of their right sides, which is to become zero.
struct Tableau {
    rows: Vec<Vec<Fraction>>,
    /// The column that each row stands for.
    basis: Vec<usize>,
    conditions: usize,
}

impl Tableau {
    fn of(conditions: &[Poly]) -> Option<Tableau> {
        let mut places: BTreeMap<&Monomial, usize> = BTreeMap::new();
        for (monomial, _) in conditions.iter().flat_map(Poly::terms) {
            let next = places.len();
            places.entry(monomial).or_insert(next);
        }
        let (count, height) = (conditions.len(), places.len() + 1);
        let mut rows = vec![vec![Fraction::ZERO; count + 1]; height];
        for (column, condition) in conditions.iter().enumerate() {
            for (monomial, factor) in condition.terms() {
                let row = rows.get_mut(*places.get(monomial)?)?;
                *row.get_mut(column)? = Fraction { over: factor, under: 1 };
            }
            let constant = condition.constant_part().checked_neg()?;
            *rows.last_mut()?.get_mut(column)? = Fraction { over: constant, under: 1 };
        }
        *rows.last_mut()?.last_mut()? = Fraction::ONE;
        Some(Tableau { rows, basis: (count..count + height).collect(), conditions: count })
    }

    /// Whether the right sides can be reached; nothing where numbers or steps become too many.
    fn solved(mut self) -> Option<bool> {
        for _ in 0..MAX_STEPS {
            let lacking =
                |tableau: &Tableau, row: usize| tableau.basis.get(row).is_some_and(|at| *at >= tableau.conditions);
            let missing = (0..self.rows.len())
                .any(|row| lacking(&self, row) && self.right(row).is_some_and(|value| value.over != 0));
            if !missing {
                return Some(true);
            }
            // The first column that brings what is lacking down.
            let mut entering = None;
            for column in 0..self.conditions {
                let mut gain = Fraction::ZERO;
                for row in (0..self.rows.len()).filter(|row| lacking(&self, *row)) {
                    gain = gain.minus(self.at(row, column)?)?;
                }
                if gain.over < 0 {
                    entering = Some(column);
                    break;
                }
            }
            let Some(column) = entering else { return Some(false) };
            let Some(row) = self.leaving(column)? else { return Some(false) };
            self.pivot(row, column)?;
        }
        None
    }

    fn at(&self, row: usize, column: usize) -> Option<Fraction> {
        self.rows.get(row)?.get(column).copied()
    }

    fn right(&self, row: usize) -> Option<Fraction> {
        self.rows.get(row)?.last().copied()
    }

    /// The row whose right side is the first to reach zero; of several, that of the first column.
    fn leaving(&self, column: usize) -> Option<Option<usize>> {
        let mut best: Option<(Fraction, usize, usize)> = None;
        for row in 0..self.rows.len() {
            let factor = self.at(row, column)?;
            if factor.over <= 0 {
                continue;
            }
            let ratio = self.right(row)?.times(factor.inverse()?)?;
            let place = *self.basis.get(row)?;
            let is_better = match &best {
                None => true,
                Some((other, at, _)) => ratio.is_below(*other)? || (ratio == *other && place < *at),
            };
            if is_better {
                best = Some((ratio, place, row));
            }
        }
        Some(best.map(|(_, _, row)| row))
    }

    fn pivot(&mut self, row: usize, column: usize) -> Option<()> {
        let scale = self.at(row, column)?.inverse()?;
        let scaled = self.rows.get(row)?.iter().map(|value| value.times(scale)).collect::<Option<Vec<_>>>()?;
        for (at, other) in self.rows.iter_mut().enumerate() {
            let factor = *other.get(column)?;
            if at == row || factor.over == 0 {
                continue;
            }
            for (value, by) in other.iter_mut().zip(&scaled) {
                *value = value.minus(by.times(factor)?)?;
            }
        }
        *self.rows.get_mut(row)? = scaled;
        *self.basis.get_mut(row)? = column;
        Some(())
    }
}
