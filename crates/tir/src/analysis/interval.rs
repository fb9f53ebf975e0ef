//! Symbolic intervals: between which expressions a value lies while some of its variables run through their ranges.
//!
//! ```text
//! io * 4 + ii + 1     with 0 <= ii < 4     ->   io * 4 + 1 ..= io * 4 + 4
//! (io * 4 + ii) // 2  with 0 <= ii < 4     ->   io * 2     ..= io * 2 + 1
//! ```
//!
//! Both ends are reached wherever each variable that runs occurs once; else the interval may be wider than the values are,
//! never narrower. Where an end cannot be written down (a value loaded from memory, an index by a running divisor) there is
//! no interval.

use std::collections::HashMap;

use relaxide_ffi::{FreeVars, Ref, structural_equal};
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, Binary, BinaryOp, PrimExpr, free_vars};

/// The values between two ends, both of them included.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The least.
    pub min: PrimExpr,
    /// The greatest.
    pub max: PrimExpr,
}

impl Interval {
    /// One value.
    pub fn point(value: impl Into<PrimExpr>) -> Interval {
        let value = value.into();
        Interval { min: value.clone(), max: value }
    }

    /// `extent` values from `min` on.
    pub fn of_range(min: &PrimExpr, extent: &PrimExpr) -> Interval {
        let max = prim::cast(min.dtype(), extent.clone()) + min - prim::int_of(min.dtype(), 1);
        Interval { min: min.clone(), max }
    }

    /// Whether it is known, by its form alone, to be one value.
    pub fn is_point(&self) -> bool {
        relaxide_ir::arith::same(&self.min, &self.max)
    }

    /// How many values there are.
    pub fn extent(&self, analyzer: &mut Analyzer) -> PrimExpr {
        analyzer.simplify(&(&self.max - &self.min + prim::int_of(self.max.dtype(), 1)))
    }

    /// What covers both. Ends that cannot be compared become a `min` or a `max`; those that are the same stay as they are
    /// written, though an axis of one step, say, is known to be zero.
    pub fn hull(&self, other: &Interval, analyzer: &mut Analyzer) -> Interval {
        let mut end = |a: &PrimExpr, b: &PrimExpr, outer: &PrimExpr| {
            if structural_equal(a, b, FreeVars::Same).is_ok() { a.clone() } else { analyzer.simplify(outer) }
        };
        let min = end(&self.min, &other.min, &prim::min(&self.min, &other.min));
        Interval { min, max: end(&self.max, &other.max, &prim::max(&self.max, &other.max)) }
    }

    /// What lies in both.
    pub fn meet(&self, other: &Interval, analyzer: &mut Analyzer) -> Interval {
        let min = analyzer.simplify(&prim::max(&self.min, &other.min));
        Interval { min, max: analyzer.simplify(&prim::min(&self.max, &other.max)) }
    }

    /// Whether every value of the other is known to lie in this one.
    pub fn covers(&self, other: &Interval, analyzer: &mut Analyzer) -> bool {
        analyzer.can_prove(&prim::le(&self.min, &other.min)) && analyzer.can_prove(&prim::ge(&self.max, &other.max))
    }
}

/// Variables that run, with their ranges in terms of those that stand still.
#[derive(Clone, Debug, Default)]
pub struct Running(HashMap<Ref<Var>, Option<Interval>>);

impl Running {
    /// Lets a variable run through `min .. min + extent`, whose ends may depend on variables that run already. `false` where
    /// they depend on them in a way that leaves no interval; the variable then stands still.
    pub fn add(&mut self, var: &Ref<Var>, min: &PrimExpr, extent: &PrimExpr, analyzer: &mut Analyzer) -> bool {
        let range = Interval::of_range(min, extent);
        let (Some(low), Some(high)) = (self.of(&range.min, analyzer), self.of(&range.max, analyzer)) else {
            return false;
        };
        self.insert(var, Interval { min: low.min, max: high.max });
        true
    }

    /// Lets a variable run through an interval.
    pub fn insert(&mut self, var: &Ref<Var>, interval: Interval) {
        self.0.insert(var.clone(), Some(interval));
    }

    /// Lets a variable run of which nothing is known but that it is not known outside.
    pub fn hide(&mut self, var: &Ref<Var>) {
        self.0.insert(var.clone(), None);
    }

    /// Lets a variable stand still again.
    pub fn stop(&mut self, var: &Ref<Var>) {
        self.0.remove(var);
    }

    /// Whether a variable runs.
    pub fn holds(&self, var: &Ref<Var>) -> bool {
        self.0.contains_key(var)
    }

    /// Whether no variable of an expression runs.
    pub fn is_still(&self, e: &PrimExpr) -> bool {
        self.0.is_empty() || !free_vars(e).iter().any(|var| self.0.contains_key(var))
    }

    /// The interval of an integer expression; `None` where there is none to be written down.
    pub fn of(&self, e: &PrimExpr, analyzer: &mut Analyzer) -> Option<Interval> {
        if self.is_still(e) {
            return Some(Interval::point(e));
        }
        // What occurs twice may cancel out.
        let found = self.walk(&analyzer.simplify(e), analyzer)?;
        let (min, max) = (analyzer.simplify(&found.min), analyzer.simplify(&found.max));
        Some(Interval { min, max })
    }

    fn walk(&self, e: &PrimExpr, analyzer: &mut Analyzer) -> Option<Interval> {
        if self.is_still(e) {
            return Some(Interval::point(e));
        }
        match e {
            PrimExpr::Var(var) => self.0.get(var).cloned().flatten(),
            PrimExpr::Binary(n) => self.walk_binary(n, analyzer),
            PrimExpr::Cast(n) if n.dtype.is_int() && n.value.dtype().is_int() => {
                let inner = self.walk(&n.value, analyzer)?;
                Some(Interval { min: prim::cast(n.dtype, inner.min), max: prim::cast(n.dtype, inner.max) })
            }
            PrimExpr::Select(n) => {
                let (a, b) = (self.walk(&n.true_value, analyzer)?, self.walk(&n.false_value, analyzer)?);
                Some(a.hull(&b, analyzer))
            }
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" => {
                let [_, a, b] = n.args.as_slice() else { return None };
                let (a, b) = (self.walk(a, analyzer)?, self.walk(b, analyzer)?);
                Some(a.hull(&b, analyzer))
            }
            _ => None,
        }
    }

    fn walk_binary(&self, n: &Binary, analyzer: &mut Analyzer) -> Option<Interval> {
        let (a, b) = (self.walk(&n.a, analyzer)?, self.walk(&n.b, analyzer)?);
        match n.op {
            BinaryOp::Add => Some(Interval { min: a.min + b.min, max: a.max + b.max }),
            BinaryOp::Sub => Some(Interval { min: a.min - b.max, max: a.max - b.min }),
            BinaryOp::Min => Some(Interval { min: prim::min(a.min, b.min), max: prim::min(a.max, b.max) }),
            BinaryOp::Max => Some(Interval { min: prim::max(a.min, b.min), max: prim::max(a.max, b.max) }),
            BinaryOp::Mul if b.is_point() => scaled(a, b.min, analyzer),
            BinaryOp::Mul if a.is_point() => scaled(b, a.min, analyzer),
            BinaryOp::FloorDiv if b.is_point() && is_positive(&b.min, analyzer) => {
                let divisor = b.min;
                Some(Interval { min: prim::floordiv(a.min, &divisor), max: prim::floordiv(a.max, &divisor) })
            }
            BinaryOp::FloorMod if b.is_point() && is_positive(&b.min, analyzer) => {
                let divisor = b.min;
                let (first, last) = (prim::floordiv(&a.min, &divisor), prim::floordiv(&a.max, &divisor));
                if analyzer.can_prove_equal(&first, &last) {
                    return Some(Interval {
                        min: prim::floormod(a.min, &divisor),
                        max: prim::floormod(a.max, &divisor),
                    });
                }
                let one = prim::int_of(divisor.dtype(), 1);
                Some(Interval { min: prim::int_of(divisor.dtype(), 0), max: divisor - one })
            }
            _ => None,
        }
    }
}

fn is_positive(e: &PrimExpr, analyzer: &mut Analyzer) -> bool {
    e.as_int().map_or_else(|| analyzer.can_prove(&prim::gt(e, 0)), |value| value > 0)
}

fn scaled(a: Interval, by: PrimExpr, analyzer: &mut Analyzer) -> Option<Interval> {
    if analyzer.can_prove(&prim::ge(&by, 0)) {
        Some(Interval { min: a.min * &by, max: a.max * &by })
    } else if analyzer.can_prove(&prim::le(&by, 0)) {
        Some(Interval { min: a.max * &by, max: a.min * &by })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_for_what_indices_are_made_of() {
        let [io, ii, n] = ["io", "ii", "n"].map(Var::dim);
        let mut analyzer = Analyzer::new();
        analyzer.mark_non_negative(&n);
        let mut running = Running::default();
        assert!(running.add(&ii, &prim::int(0), &prim::int(4), &mut analyzer));
        let (o, i) = (PrimExpr::from(&io), PrimExpr::from(&ii));
        let cases = [
            (&o * 4 + &i + 1, &o * 4 + 1, &o * 4 + 4),
            (prim::floordiv(&o * 4 + &i, 2), &o * 2, &o * 2 + 1),
            (&i - &i + &o, o.clone(), o.clone()),
            (PrimExpr::from(7) - &i, prim::int(4), prim::int(7)),
            (prim::floormod(&o * 4 + &i, 8), prim::floormod(&o, 2) * 4, prim::floormod(&o, 2) * 4 + 3),
            (prim::floormod(&o * 3 + &i, 8), prim::int(0), prim::int(7)),
            (prim::floormod(&o * 8 + &i, 8), prim::int(0), prim::int(3)),
            (&i * &n, prim::int(0), PrimExpr::from(&n) * 3),
            (prim::min(&i, 2), prim::int(0), prim::int(2)),
        ];
        for (e, min, max) in cases {
            let found = running.of(&e, &mut analyzer).unwrap();
            assert!(analyzer.can_prove_equal(&found.min, &min), "{e}: from {}", found.min);
            assert!(analyzer.can_prove_equal(&found.max, &max), "{e}: to {}", found.max);
        }
        assert!(running.of(&(&i * &o), &mut analyzer).is_none(), "the sign of the factor is not known");
    }

    #[test]
    fn a_range_that_depends_on_a_running_variable_is_widened() {
        let [i, j] = ["i", "j"].map(Var::dim);
        let mut analyzer = Analyzer::new();
        let mut running = Running::default();
        assert!(running.add(&i, &prim::int(0), &prim::int(4), &mut analyzer));
        assert!(running.add(&j, &PrimExpr::from(&i), &prim::int(2), &mut analyzer));
        let found = running.of(&PrimExpr::from(&j), &mut analyzer).unwrap();
        assert_eq!((found.min.as_int(), found.max.as_int()), (Some(0), Some(4)));
    }
}
