//! How large integers can become, as polynomials of what a launch is given.
//!
//! ```text
//! n, m: parameters          x in range(n)          x * m + x % 7    has a magnitude of at most    n * m + 7
//! ```
//!
//! Bounds of numbers do not know a length that has a name; a polynomial of it can be computed where the length is known. Coefficients are not
//! negative, so a polynomial grows with its variables, and one that is at least as large as several others, term by term, speaks for all of them.
//! A polynomial is computed in double precision, in which nothing overflows.
//!
//! What comes from memory in more than 16 bits, from floats or from calls has no magnitude here.

use std::collections::{BTreeMap, HashMap};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::{BinaryOp, PrimExpr, add, cast, float_of, mul};

/// Terms beyond which a polynomial is given up.
const MOST_TERMS: usize = 48;
/// Factors of a term beyond which it is given up.
const MOST_FACTORS: usize = 12;

const DOUBLE: DataType = DataType::float(64);

/// The variables of a term, by their numbers, in order; none for the constant.
type Term = Vec<u16>;

/// A sum of terms with coefficients above zero. Its variables stand for integers that are at least zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Polynomial(BTreeMap<Term, f64>);

impl Polynomial {
    fn constant(value: f64) -> Polynomial {
        Polynomial(if value > 0.0 { BTreeMap::from([(Term::new(), value)]) } else { BTreeMap::new() })
    }

    fn variable(number: u16) -> Polynomial {
        Polynomial(BTreeMap::from([(vec![number], 1.0)]))
    }

    /// The term without variables.
    pub(super) fn constant_term(&self) -> f64 {
        self.0.get(&Term::new()).copied().unwrap_or(0.0)
    }

    /// Whether there is no variable in it.
    pub(super) fn is_constant(&self) -> bool {
        self.0.keys().all(Vec::is_empty)
    }

    fn joined(mut self, other: &Polynomial, join: impl Fn(f64, f64) -> f64) -> Polynomial {
        for (term, value) in &other.0 {
            let own = self.0.entry(term.clone()).or_insert(0.0);
            *own = join(*own, *value);
        }
        self
    }

    fn plus(self, other: &Polynomial) -> Polynomial {
        self.joined(other, |a, b| a + b)
    }

    /// At least as large as both.
    pub(super) fn max(self, other: &Polynomial) -> Polynomial {
        self.joined(other, f64::max)
    }

    fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut product = Polynomial::default();
        for (term, value) in &self.0 {
            for (more, by) in &other.0 {
                let mut term: Term = term.iter().chain(more).copied().collect();
                term.sort_unstable();
                *product.0.entry(term).or_insert(0.0) += value * by;
            }
        }
        product.is_small().then_some(product)
    }

    fn is_small(&self) -> bool {
        self.0.len() <= MOST_TERMS && self.0.keys().all(|term| term.len() <= MOST_FACTORS)
    }

    /// At least as large as the quotient of any number up to this by an integer above zero that is at least `divisor`.
    fn over(&self, divisor: &Polynomial) -> Polynomial {
        let mut quotient = Polynomial::default();
        for (term, value) in &self.0 {
            // Each term of the divisor is a bound as well. Where it is zero, so is a term that it divides.
            let candidates = divisor.0.iter().filter_map(|(of, by)| Some((without(term, of)?, of, *by)));
            let best = candidates.max_by(|a, b| a.1.len().cmp(&b.1.len()));
            let (term, value) = match best {
                Some((rest, of, by)) => (rest, value / if of.is_empty() { by.max(1.0) } else { by }),
                None => (term.clone(), *value),
            };
            *quotient.0.entry(term).or_insert(0.0) += value;
        }
        quotient
    }

    /// What the quotient by `by` of a number that is at least this, rounded down, is at least.
    fn floor_over(&self, by: f64) -> Polynomial {
        let rest = self.constant_term() - (by - 1.0);
        if rest < 0.0 {
            return Polynomial::default();
        }
        let terms = self.0.iter().filter(|(term, _)| !term.is_empty()).map(|(term, value)| (term.clone(), value / by));
        Polynomial(terms.collect()).plus(&Polynomial::constant(rest / by))
    }

    /// Its value where the variables have these values.
    pub(super) fn value(&self, variables: &[Ref<Var>]) -> PrimExpr {
        let factor = |number: &u16| cast(DOUBLE, PrimExpr::from(&variables[usize::from(*number)]));
        let term = |(term, value): (&Term, &f64)| {
            term.iter().fold(float_of(DOUBLE, *value), |product, number| mul(product, factor(number)))
        };
        self.0.iter().map(term).reduce(add).unwrap_or_else(|| float_of(DOUBLE, 0.0))
    }
}

/// The factors of a product.
fn factors(e: &PrimExpr) -> Vec<&PrimExpr> {
    match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::Mul => [factors(&n.a), factors(&n.b)].concat(),
        _ => vec![e],
    }
}

/// A term without the factors of another; nothing if it has not all of them.
fn without(term: &Term, divisor: &Term) -> Option<Term> {
    let mut rest = term.clone();
    for factor in divisor {
        rest.remove(rest.iter().position(|own| own == factor)?);
    }
    Some(rest)
}

/// Between which an integer lies, as far as is known.
#[derive(Clone, Debug)]
struct Range {
    /// Its magnitude is at most this.
    upper: Polynomial,
    /// It is at least this; nothing for what may be below zero.
    lower: Option<Polynomial>,
}

impl Range {
    /// From zero.
    fn up_to(upper: Polynomial) -> Range {
        Range { upper, lower: Some(Polynomial::default()) }
    }

    fn is_natural(&self) -> bool {
        self.lower.is_some()
    }

    /// The same where a condition holds for its being above zero, else of any sign.
    fn natural_if(self, holds: bool) -> Range {
        Range { lower: self.lower.filter(|_| holds), ..self }
    }
}

/// Magnitudes of expressions, by those of their variables.
#[derive(Default)]
pub(super) struct Magnitudes {
    variables: Vec<Ref<Var>>,
    known: HashMap<Ref<Var>, Option<Range>>,
    /// The numbers of values of counters from zero.
    extents: HashMap<Ref<Var>, PrimExpr>,
    found: HashMap<PrimExpr, Option<Range>>,
}

impl Magnitudes {
    /// Counts a variable among those of the polynomials. Whoever uses what is found makes sure that it is not negative.
    pub(super) fn parameter(&mut self, var: &Ref<Var>) {
        let number = u16::try_from(self.variables.len()).ok();
        self.variables.push(var.clone());
        let exact = number.map(Polynomial::variable);
        self.known.insert(var.clone(), exact.map(|value| Range { upper: value.clone(), lower: Some(value) }));
    }

    /// The variables of the polynomials, by their numbers.
    pub(super) fn parameters(&self) -> &[Ref<Var>] {
        &self.variables
    }

    /// Gives a counter its magnitude.
    pub(super) fn count(&mut self, var: &Ref<Var>, min: &PrimExpr, extent: &PrimExpr) {
        if min.is_int(0) {
            self.extents.insert(var.clone(), extent.clone());
        }
        let range = self.range(min).zip(self.range(extent));
        let range = range.map(|(min, extent)| {
            let is_natural = min.is_natural();
            Range::up_to(min.upper.plus(&extent.upper)).natural_if(is_natural)
        });
        self.known.insert(var.clone(), range);
    }

    /// Gives a name the magnitude of its value.
    pub(super) fn bind(&mut self, var: &Ref<Var>, value: &PrimExpr) {
        let range = self.range(value);
        self.known.insert(var.clone(), range);
    }

    /// What the magnitude of an integer is at most.
    pub(super) fn of(&mut self, e: &PrimExpr) -> Option<Polynomial> {
        self.range(e).map(|range| range.upper)
    }

    fn range(&mut self, e: &PrimExpr) -> Option<Range> {
        match e {
            PrimExpr::Int(n) => {
                let upper = Polynomial::constant((n.value as f64).abs());
                Some(Range { lower: (n.value >= 0).then(|| upper.clone()), upper })
            }
            PrimExpr::Var(var) => self.known.get(var).cloned().flatten(),
            _ => {
                if let Some(range) = self.found.get(e) {
                    return range.clone();
                }
                let range = self.compute(e).filter(|range| range.upper.is_small());
                self.found.insert(e.clone(), range.clone());
                range
            }
        }
    }

    fn compute(&mut self, e: &PrimExpr) -> Option<Range> {
        match e {
            PrimExpr::Cast(n) => match n.value.dtype() {
                from if from.is_bool() => Some(Range::up_to(Polynomial::constant(1.0))),
                from if from.is_int() && n.dtype.bits >= 32 => self.range(&n.value),
                from if from.is_uint() && from.bits <= 16 && n.dtype.bits >= 32 => self.range(&n.value),
                _ => None,
            },
            PrimExpr::Binary(n) => self.binary(n.op, &n.a, &n.b),
            PrimExpr::Select(n) => self.either(&n.true_value, &n.false_value),
            PrimExpr::Let(n) => {
                self.bind(&n.var, &n.value);
                self.range(&n.body)
            }
            PrimExpr::Ramp(n) => {
                let (base, stride) = (self.range(&n.base)?, self.range(&n.stride)?);
                let lanes = u16::try_from(n.lanes).ok()?;
                let last = stride.upper.times(&Polynomial::constant(f64::from(lanes)))?;
                let is_natural = base.is_natural() && stride.is_natural();
                Some(Range::up_to(base.upper.plus(&last)).natural_if(is_natural))
            }
            PrimExpr::Broadcast(n) => self.range(&n.value),
            PrimExpr::Load(n) if n.buffer.dtype.is_integer() && n.buffer.dtype.bits <= 16 => {
                let bits = i32::from(n.buffer.dtype.bits);
                Some(Range::up_to(Polynomial::constant(2f64.powi(bits))).natural_if(n.buffer.dtype.is_uint()))
            }
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" => match n.args.as_slice() {
                [_, yes, no] => self.either(yes, no),
                _ => None,
            },
            _ => None,
        }
    }

    /// A bound of a counter's quotient by some factors of the number of its values, which are above zero: the product of the others.
    fn cancelled(&mut self, counter: &PrimExpr, divisor: &PrimExpr) -> Option<Polynomial> {
        let PrimExpr::Var(var) = counter else { return None };
        let extent = self.extents.get(var)?.clone();
        let mut rest = factors(&extent);
        for factor in factors(divisor) {
            rest.remove(rest.iter().position(|own| *own == factor)?);
        }
        let mut product = Polynomial::constant(1.0);
        for factor in rest {
            product = product.times(&self.range(factor)?.upper)?;
        }
        Some(product)
    }

    fn either(&mut self, a: &PrimExpr, b: &PrimExpr) -> Option<Range> {
        let (a, b) = (self.range(a)?, self.range(b)?);
        let are_natural = a.is_natural() && b.is_natural();
        Some(Range::up_to(a.upper.max(&b.upper)).natural_if(are_natural))
    }

    fn binary(&mut self, op: BinaryOp, a: &PrimExpr, b: &PrimExpr) -> Option<Range> {
        if op.is_comparison() || op.is_logical() {
            return Some(Range::up_to(Polynomial::constant(1.0)));
        }
        let right = self.range(b)?;
        match op {
            BinaryOp::Div | BinaryOp::FloorDiv if right.is_natural() => {
                if let Some(upper) = self.cancelled(a, b) {
                    return Some(Range::up_to(upper));
                }
            }
            // A rest is less than its divisor, whatever is divided.
            BinaryOp::FloorMod => {
                let is_natural = right.is_natural();
                return Some(Range::up_to(right.upper).natural_if(is_natural));
            }
            BinaryOp::Mod => return Some(Range::up_to(right.upper).natural_if(false)),
            _ => {}
        }
        let left = self.range(a)?;
        let lowers = left.lower.as_ref().zip(right.lower.as_ref());
        Some(match op {
            BinaryOp::Add => {
                Range { lower: lowers.map(|(a, b)| a.clone().plus(b)), upper: left.upper.plus(&right.upper) }
            }
            BinaryOp::Sub => Range::up_to(left.upper.plus(&right.upper)).natural_if(false),
            BinaryOp::Mul => {
                Range { lower: lowers.and_then(|(a, b)| a.times(b)), upper: left.upper.times(&right.upper)? }
            }
            BinaryOp::Div | BinaryOp::FloorDiv => {
                let lower = lowers.map(|(a, _)| match b.as_int() {
                    Some(by) if by > 0 => a.floor_over(by as f64),
                    _ => Polynomial::default(),
                });
                let divisor = right.lower.unwrap_or_default();
                // What is below zero is rounded away from it.
                Range { lower, upper: left.upper.over(&divisor).plus(&Polynomial::constant(1.0)) }
            }
            BinaryOp::Min => self.either(a, b)?,
            BinaryOp::Max => Range { lower: left.lower.or(right.lower), upper: left.upper.max(&right.upper) },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use relaxide_ir::prim::{binary, floordiv, floormod, int, sub};

    use super::*;
    use crate::interp::{self, Scalar};
    use crate::testing::Random;

    /// A length in tiles of 32, at least one.
    fn tiles(of: &Ref<Var>) -> PrimExpr {
        binary(BinaryOp::Max, floordiv(add(PrimExpr::from(of), int(31)), int(32)), int(1))
    }

    /// An expression of variables, whose divisors are above zero.
    fn expression(random: &mut Random, vars: &[Ref<Var>], depth: usize) -> PrimExpr {
        if depth == 0 || random.one_in(6) {
            return match random.below(3) {
                0 => int(random.between(-9, 9)),
                _ => PrimExpr::from(&vars[random.below(vars.len())]),
            };
        }
        let mut part = || expression(random, vars, depth - 1);
        let (a, b) = (part(), part());
        let divisor = match random.below(4) {
            0 => int(random.between(1, 70)),
            1 => binary(BinaryOp::Max, b.clone(), int(1)),
            2 => tiles(&vars[0]),
            _ => mul(tiles(&vars[0]), tiles(&vars[1])),
        };
        match random.below(9) {
            0 => add(a, b),
            1 => sub(a, b),
            2 | 3 => mul(a, b),
            4 | 5 => floordiv(a, divisor),
            6 => floormod(a, divisor),
            7 => binary(BinaryOp::Min, a, b),
            _ => binary(BinaryOp::Max, a, b),
        }
    }

    #[test]
    fn no_value_is_larger_than_its_polynomial() {
        let [n, m, i, tile] = ["n", "m", "i", "tile"].map(Var::dim);
        let (vars, mut checked) = ([n.clone(), m.clone(), i.clone(), tile.clone()], 0);
        let of_matrix = mul(tiles(&n), tiles(&m));
        for seed in 0..4000 {
            let random = &mut Random::new(seed);
            let e = expression(random, &vars, 4);
            let mut magnitudes = Magnitudes::default();
            [&n, &m].into_iter().for_each(|var| magnitudes.parameter(var));
            magnitudes.count(&i, &int(-2), &PrimExpr::from(&n));
            magnitudes.count(&tile, &int(0), &mul(int(3), of_matrix.clone()));
            let Some(most) = magnitudes.of(&e) else { continue };
            let most = most.value(magnitudes.parameters());
            for _ in 0..8 {
                let (of_n, of_m) = (random.between(0, 90), random.between(0, 90));
                let of_i = -2 + random.between(0, (of_n - 1).max(0));
                let count = 3 * ((of_n + 31) / 32).max(1) * ((of_m + 31) / 32).max(1);
                let mut values = HashMap::from([(n.clone(), of_n), (m.clone(), of_m), (i.clone(), of_i)]);
                values.insert(tile.clone(), random.between(0, count - 1));
                let (Ok(Scalar::Int(value)), Ok(Scalar::Float(most))) =
                    (interp::eval(&e, &values), interp::eval(&most, &values))
                else {
                    continue;
                };
                checked += 1;
                assert!((value as f64).abs() <= most * (1.0 + 1e-9), "{e} is {value}, not within {most}: {values:?}");
            }
        }
        assert!(checked > 20_000, "{checked}");
    }

    #[test]
    fn tiles_of_a_product_do_not_multiply_its_size() {
        // Which matrix of a batch a tile of n/32 by m/32 is in, times the size of a matrix, is no more than all elements.
        let [b, n, m, tile] = ["b", "n", "m", "tile"].map(Var::dim);
        let mut magnitudes = Magnitudes::default();
        [&b, &n, &m].into_iter().for_each(|var| magnitudes.parameter(var));
        let tiles = |of: &Ref<Var>| floordiv(add(PrimExpr::from(of), int(31)), int(32));
        let of_matrix = mul(tiles(&n), tiles(&m));
        magnitudes.count(&tile, &int(0), &mul(PrimExpr::from(&b), of_matrix.clone()));
        let at = mul(floordiv(PrimExpr::from(&tile), of_matrix), mul(PrimExpr::from(&n), PrimExpr::from(&m)));
        let most = magnitudes.of(&at).unwrap().value(magnitudes.parameters());
        let values = HashMap::from([(b, 8), (n, 1024), (m, 1024)]);
        let Ok(Scalar::Float(most)) = interp::eval(&most, &values) else { panic!("{most}") };
        assert!((8e6..4e7).contains(&most), "{most}");
    }
}
