//! Proofs by cases, for questions that are worth a search.
//!
//! What the [`Analyzer`](super::Analyzer) proves it proves fast, along a few rules. Here a condition follows from others if its
//! contrary contradicts them, which is searched for:
//!
//! 1. conditions become formulas over polynomials (`terms`),
//! 2. of each alternative one is taken after the other,
//! 3. equations are used up, and what is left is compared as linear inequalities (`linear`),
//! 4. where that is not enough, signs of factors are taken as cases, and known inequalities are multiplied with each other,
//! 5. few values are tried one by one (`points`), which is how bits are known.
//!
//! Not proved does not mean false: the search has a budget.

mod linear;
mod points;
mod poly;
mod terms;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use relaxide_ffi::Ref;

use crate::Var;
use crate::prim::PrimExpr;
use poly::{Atom, Poly};
use terms::{Formula, Terms};

/// Cases that are looked at.
const BUDGET: usize = 400;
/// Values that are tried.
const MAX_POINTS: i128 = 1 << 17;
/// Factors whose signs are taken as cases.
const MAX_SIGNS: usize = 4;
/// Inequalities that are multiplied with each other.
const MAX_FACTORS: usize = 12;

/// Whether a condition is found to follow from others. Integer arithmetic counts as that of mathematics.
pub fn follows(known: &[PrimExpr], goal: &PrimExpr) -> bool {
    let mut terms = Terms::default();
    let mut formulas = Vec::new();
    for condition in known {
        // What is too large to be looked at is not made use of.
        formulas.extend(terms.condition(condition, true));
    }
    let Some(contrary) = terms.condition(goal, false) else { return false };
    formulas.push(contrary);
    formulas.append(&mut terms.facts);
    let mut search = Search { known, goal, vars: terms.vars, budget: BUDGET };
    search.refutes(Vec::new(), Vec::new(), formulas)
}

struct Search<'a> {
    known: &'a [PrimExpr],
    goal: &'a PrimExpr,
    vars: HashMap<Ref<Var>, Atom>,
    budget: usize,
}

impl Search<'_> {
    /// Whether conditions contradict each other: `signs` are those that are not negative, `zeros` those that are zero.
    fn refutes(&mut self, mut signs: Vec<Poly>, mut zeros: Vec<Poly>, formulas: Vec<Formula>) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        let mut choices: Vec<Vec<Formula>> = Vec::new();
        let mut pending = formulas;
        while let Some(formula) = pending.pop() {
            match formula {
                Formula::Known(true) => {}
                Formula::Known(false) => return true,
                Formula::AtLeastZero(poly) => signs.push(poly),
                Formula::Zero(poly) => zeros.push(poly),
                Formula::All(parts) => pending.extend(parts),
                Formula::Any(mut parts) => {
                    if parts.iter().any(|part| matches!(part, Formula::Known(true))) {
                        continue;
                    }
                    parts.retain(|part| !matches!(part, Formula::Known(false)) && !is_impossible(part));
                    match parts.len() {
                        0 => return true,
                        1 => pending.extend(parts),
                        _ => choices.push(parts),
                    }
                }
            }
        }
        let Some(left) = reduced(&signs, &zeros) else { return true };
        if linear::contradict(&left) {
            return true;
        }
        choices.sort_by_key(|parts| std::cmp::Reverse(parts.len()));
        let Some(parts) = choices.pop() else {
            return self.refutes_by_signs(&left, MAX_SIGNS) || self.no_point(&signs);
        };
        let rest: Vec<Formula> = choices.into_iter().map(Formula::Any).collect();
        parts.into_iter().all(|part| {
            let formulas = rest.iter().cloned().chain([part]).collect();
            self.refutes(signs.clone(), zeros.clone(), formulas)
        })
    }

    /// Takes the signs of factors as cases, and multiplies inequalities.
    fn refutes_by_signs(&mut self, signs: &[Poly], left: usize) -> bool {
        let mut factors = BTreeSet::new();
        signs.iter().for_each(|poly| poly.nonlinear_atoms(&mut factors));
        if factors.is_empty() || self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        let bounds = bounds_of(signs);
        let is_open = |atom: &&Atom| {
            let (low, high) = bounds.get(*atom).copied().unwrap_or_default();
            low.is_none_or(|low| low < 0) && high.is_none_or(|high| high > 0)
        };
        if linear::contradict(&with_products(signs, &factors)) {
            return true;
        }
        let Some(atom) = factors.iter().find(is_open).filter(|_| left > 0) else { return false };
        let one = Poly::atom(*atom);
        let above = one.plus(&Poly::constant(1), -1);
        let below = one.negated().and_then(|poly| poly.plus(&Poly::constant(1), -1));
        let (Some(above), Some(below)) = (above, below) else { return false };
        [(vec![above], vec![]), (vec![], vec![one]), (vec![below], vec![])].into_iter().all(|(case, zeros)| {
            let Some(signs) = reduced(&[signs, &case].concat(), &zeros) else { return true };
            linear::contradict(&signs) || self.refutes_by_signs(&signs, left - 1)
        })
    }

    /// Whether none of the values that variables can have contradicts what is to be proved. Only few are tried.
    fn no_point(&self, signs: &[Poly]) -> bool {
        let bounds = bounds_of(signs);
        let mut axes = Vec::new();
        let mut count = 1i128;
        for (var, atom) in &self.vars {
            let Some((Some(low), Some(high))) = bounds.get(atom).copied() else { return false };
            count = count.saturating_mul((high - low + 1).max(0));
            let (Ok(low), Ok(high)) = (i64::try_from(low), i64::try_from(high)) else { return false };
            axes.push((var.clone(), low, high));
        }
        if count > MAX_POINTS {
            return false;
        }
        let mut point: HashMap<Ref<Var>, i64> = axes.iter().map(|(var, low, _)| (var.clone(), *low)).collect();
        (0..count).all(|_| {
            let fails = self.known.iter().any(|e| points::value(e, &point) == Some(0));
            let holds = fails || points::value(self.goal, &point).is_some_and(|value| value != 0);
            // The next point: the first axis that has one goes on, those in front begin anew.
            for (var, low, high) in &axes {
                let Some(value) = point.get_mut(var) else { return false };
                if *value < *high {
                    *value += 1;
                    break;
                }
                *value = *low;
            }
            holds
        })
    }
}

/// Whether all of a part's conditions are constants that fail, as far as is seen at once.
fn is_impossible(part: &Formula) -> bool {
    matches!(part, Formula::All(parts) if parts.iter().any(|inner| matches!(inner, Formula::Known(false)) || is_impossible(inner)))
}

/// The constants between which atoms lie.
fn bounds_of(signs: &[Poly]) -> HashMap<Atom, (Option<i128>, Option<i128>)> {
    let mut found: HashMap<Atom, (Option<i128>, Option<i128>)> = HashMap::new();
    for poly in signs {
        let Some((atom, factor)) = poly.single() else { continue };
        let bounds = found.entry(atom).or_default();
        let constant = poly.constant_part();
        if factor > 0 {
            // factor * x >= -constant
            let low = -constant.div_euclid(factor);
            bounds.0 = Some(bounds.0.map_or(low, |known| known.max(low)));
        } else {
            let high = constant.div_euclid(-factor);
            bounds.1 = Some(bounds.1.map_or(high, |known| known.min(high)));
        }
    }
    found
}

/// The inequalities that are left once equations are used up; nothing where they contradict each other at sight.
fn reduced(signs: &[Poly], zeros: &[Poly]) -> Option<Vec<Poly>> {
    let (mut signs, mut zeros) = (signs.to_vec(), zeros.to_vec());
    let mut kept: Vec<Poly> = Vec::new();
    loop {
        while let Some(zero) = zeros.pop() {
            if zero.as_constant().is_some_and(|value| value != 0) {
                return None;
            }
            let content = zero.content();
            if content == 0 {
                continue;
            }
            if zero.constant_part() % content != 0 {
                return None;
            }
            let zero = zero.divided(content);
            let Some((atom, value)) = solved(&zero) else {
                // It stays, as two inequalities.
                kept.extend(zero.negated());
                kept.push(zero);
                continue;
            };
            let put = |list: &[Poly]| list.iter().map(|poly| poly.with(atom, &value)).collect::<Option<Vec<_>>>();
            if let (Some(new_signs), Some(new_zeros), Some(new_kept)) = (put(&signs), put(&zeros), put(&kept)) {
                (signs, zeros, kept) = (new_signs, new_zeros, new_kept);
            } else {
                kept.extend(zero.negated());
                kept.push(zero);
            }
        }
        // Of several bounds of one sum the tightest counts, and a sum between equal bounds is known.
        let mut tightest: BTreeMap<Poly, i128> = BTreeMap::new();
        for poly in signs.iter().chain(&kept) {
            let content = poly.content();
            if content == 0 {
                if poly.constant_part() < 0 {
                    return None;
                }
                continue;
            }
            let poly = poly.divided(content);
            let constant = poly.constant_part();
            tightest
                .entry(poly.without_constant())
                .and_modify(|known| *known = (*known).min(constant))
                .or_insert(constant);
        }
        for (sum, low) in &tightest {
            let Some(high) = sum.negated().and_then(|other| tightest.get(&other).copied()) else { continue };
            if low.checked_add(high).is_some_and(|width| width < 0) {
                return None;
            }
            if low.checked_add(high) == Some(0)
                && let Some(zero) = sum.plus(&Poly::constant(*low), 1)
                && solved(&zero).is_some()
            {
                zeros.push(zero);
                break;
            }
        }
        signs = tightest.iter().filter_map(|(sum, constant)| sum.plus(&Poly::constant(*constant), 1)).collect();
        kept.clear();
        if zeros.is_empty() {
            return Some(signs);
        }
    }
}

/// `(x, value)` of an equation that says what an atom is.
fn solved(zero: &Poly) -> Option<(Atom, Poly)> {
    let (atom, factor) = zero.terms().find_map(|(monomial, factor)| match monomial.as_slice() {
        [atom] if factor.abs() == 1 => {
            let elsewhere = zero.terms().filter(|(other, _)| other.contains(atom)).count() > 1;
            (!elsewhere).then_some((*atom, factor))
        }
        _ => None,
    })?;
    let rest = zero.plus(&Poly::atom(atom), -factor)?;
    let value = if factor > 0 { rest.negated()? } else { rest };
    Some((atom, value))
}

/// Inequalities, and the products of those that are about factors.
fn with_products(signs: &[Poly], factors: &BTreeSet<Atom>) -> Vec<Poly> {
    // What a type says has numbers so large that their products help nobody.
    let is_small = |poly: &&Poly| poly.constant_part().unsigned_abs() < 1 << 30;
    let about: Vec<&Poly> = signs
        .iter()
        .filter(|poly| poly.degree() == 1 && poly.mentions(factors))
        .filter(is_small)
        .take(MAX_FACTORS)
        .collect();
    let mut all = signs.to_vec();
    for (at, left) in about.iter().enumerate() {
        all.extend(about.iter().skip(at).filter_map(|right| left.times(right)));
    }
    all
}
