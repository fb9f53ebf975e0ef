//! Values of axes written by the iterators that they are made of.
//!
//! Loops that are fused and split are iterators: `f0 * 36 + f1` of `f0 < 2` and `f1 < 36` is one of 72 steps, and `(f0 * 36 + f1) // 18`
//! is its upper part. Written by iterators, a value keeps what was fused in one piece, where a simplifier would take it apart into
//! `f0 * 2 + f1 // 18`: the parts of one iterator can then be told from each other by their divisors alone, in every axis alike.
//!
//! An iterator is a *mark*, which runs from zero: a loop, or a sum of *splits* in which each fills the scale of the next one. A split is
//! `mark // lower % extent * scale`. A predicate `sum < n` says how far the mark of that sum runs. What is no sum of splits, or has parts
//! that do not divide evenly, has no such form. Source: TVM's `IterMapSimplify`.

use std::rc::Rc;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, free_vars};

use super::affine::conjuncts;
use crate::stmt::For;

/// The values in that form; `None` where one of them has none. Loops of one iteration are taken to be at their only value, or kept.
pub fn by_iterators(
    values: &[PrimExpr],
    loops: &[Ref<For>],
    predicate: &PrimExpr,
    units: Units,
) -> Option<Vec<PrimExpr>> {
    let mut with_cuts = Iterators::new(loops, units);
    let cut = conjuncts(predicate).iter().all(|condition| with_cuts.cut(condition).is_some());
    let all = |iterators: &mut Iterators<'_>| values.iter().map(|value| iterators.rewritten(value)).collect();
    let found: Option<Vec<PrimExpr>> = if cut { all(&mut with_cuts) } else { None };
    found.or_else(|| all(&mut Iterators::new(loops, units)))
}

/// What becomes of loops of one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// They stay where they are named.
    Kept,
    /// Their only value takes their place.
    Replaced,
}

/// What runs from zero.
#[derive(Debug)]
struct Mark {
    source: Source,
    extent: PrimExpr,
}

#[derive(Debug)]
enum Source {
    Loop(PrimExpr),
    Sum(Sum),
}

/// `mark // lower % extent * scale`.
#[derive(Clone, Debug)]
struct Split {
    mark: Rc<Mark>,
    lower: PrimExpr,
    extent: PrimExpr,
    scale: PrimExpr,
}

#[derive(Clone, Debug)]
struct Sum {
    splits: Vec<Split>,
    base: PrimExpr,
}

struct Iterators<'a> {
    loops: &'a [Ref<For>],
    units: Units,
    analyzer: Analyzer,
    /// A mark for each loop that has been named.
    of_loops: Vec<(Ref<Var>, Rc<Mark>)>,
    /// Marks of sums, with the sums as expressions.
    of_sums: Vec<(PrimExpr, Rc<Mark>)>,
}

impl<'a> Iterators<'a> {
    fn new(loops: &'a [Ref<For>], units: Units) -> Self {
        let mut analyzer = Analyzer::new();
        for n in loops {
            analyzer.mark_dims([&n.extent]);
        }
        Iterators { loops, units, analyzer, of_loops: Vec::new(), of_sums: Vec::new() }
    }

    fn rewritten(&mut self, value: &PrimExpr) -> Option<PrimExpr> {
        let sum = self.sum(value)?;
        let sum = self.fused(sum)?;
        Some(self.expr_of(&sum))
    }

    /// Learns from a condition how far a sum runs. Of other conditions nothing is learnt, which is `None`.
    fn cut(&mut self, condition: &PrimExpr) -> Option<()> {
        let PrimExpr::Binary(n) = condition else { return None };
        let bound = match n.op {
            BinaryOp::Lt if !self.runs(&n.b) => n.b.clone(),
            BinaryOp::Le if !self.runs(&n.b) => &n.b + prim::int_of(n.b.dtype(), 1),
            _ => return None,
        };
        let sum = self.sum(&n.a)?;
        let sum = self.fused(sum)?;
        let [split] = sum.splits.as_slice() else { return None };
        if !split.scale.is_int(1) || !sum.base.is_int(0) {
            return None;
        }
        let fewer = self.analyzer.simplify(&prim::min(bound, split.extent.clone()));
        let Source::Sum(of) = &split.mark.source else { return None };
        let (key, cut) = (self.expr_of(of), Rc::new(Mark { source: Source::Sum(of.clone()), extent: fewer }));
        self.of_sums.retain(|(known, _)| !same(known, &key));
        self.of_sums.push((key, cut));
        Some(())
    }

    fn runs(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().any(|var| self.loops.iter().any(|l| l.var == *var))
    }

    fn constant(e: &PrimExpr) -> Sum {
        Sum { splits: Vec::new(), base: e.clone() }
    }

    fn sum(&mut self, e: &PrimExpr) -> Option<Sum> {
        if !self.runs(e) {
            return Some(Self::constant(e));
        }
        match e {
            PrimExpr::Var(var) => self.of_loop(var),
            PrimExpr::Binary(n) => match n.op {
                BinaryOp::Add | BinaryOp::Sub => {
                    let (mut a, b) = (self.sum(&n.a)?, self.sum(&n.b)?);
                    let sign = prim::int_of(e.dtype(), if n.op == BinaryOp::Add { 1 } else { -1 });
                    for split in self.scaled(b.clone(), &sign).splits {
                        self.add(&mut a, split);
                    }
                    a.base = if n.op == BinaryOp::Add { &a.base + &b.base } else { &a.base - &b.base };
                    Some(a)
                }
                BinaryOp::Mul if !self.runs(&n.b) => self.sum(&n.a).map(|sum| self.scaled(sum, &n.b)),
                BinaryOp::Mul if !self.runs(&n.a) => self.sum(&n.b).map(|sum| self.scaled(sum, &n.a)),
                BinaryOp::FloorDiv if !self.runs(&n.b) => self.divided(&n.a, &n.b),
                BinaryOp::FloorMod if !self.runs(&n.b) => self.remainder(&n.a, &n.b),
                _ => None,
            },
            _ => None,
        }
    }

    fn of_loop(&mut self, var: &Ref<Var>) -> Option<Sum> {
        let n = self.loops.iter().find(|l| l.var == *var)?;
        if self.units == Units::Replaced && n.extent.is_int(1) {
            return Some(Self::constant(&n.min));
        }
        let known = self.of_loops.iter().find(|(of, _)| of == var).map(|(_, mark)| mark.clone());
        let mark = known.unwrap_or_else(|| {
            let source = if n.min.is_int(0) { PrimExpr::from(var) } else { PrimExpr::from(var) - &n.min };
            let mark = Rc::new(Mark { source: Source::Loop(source), extent: n.extent.clone() });
            self.of_loops.push((var.clone(), mark.clone()));
            mark
        });
        let one = prim::int_of(var.dtype(), 1);
        let extent = mark.extent.clone();
        Some(Sum { splits: vec![Split { mark, lower: one.clone(), extent, scale: one }], base: n.min.clone() })
    }

    fn scaled(&mut self, sum: Sum, by: &PrimExpr) -> Sum {
        let mut scale = |e: &PrimExpr| self.analyzer.simplify(&(e * by));
        let splits = sum.splits.iter().map(|split| Split { scale: scale(&split.scale), ..split.clone() }).collect();
        Sum { splits, base: scale(&sum.base) }
    }

    /// One split more. What lies next to another part of the same mark is one part with it.
    fn add(&mut self, sum: &mut Sum, new: Split) {
        for at in 0..sum.splits.len() {
            let old = sum.splits[at].clone();
            let [upper, lower] = [[&old, &new], [&new, &old]]
                .into_iter()
                .find(|[upper, lower]| self.is_next(upper, lower))
                .unwrap_or([&old, &old]);
            if Rc::ptr_eq(&upper.mark, &lower.mark) && !std::ptr::eq(upper, lower) {
                let extent = self.analyzer.simplify(&(&upper.extent * &lower.extent));
                let joined = Split { extent, ..lower.clone() };
                sum.splits.remove(at);
                return self.add(sum, joined);
            }
        }
        sum.splits.push(new);
    }

    /// Whether a part of a mark is the one above another, and counts as such.
    fn is_next(&mut self, upper: &Split, lower: &Split) -> bool {
        Rc::ptr_eq(&upper.mark, &lower.mark)
            && self.analyzer.can_prove_equal(&upper.lower, &(&lower.lower * &lower.extent))
            && self.analyzer.can_prove_equal(&upper.scale, &(&lower.scale * &lower.extent))
    }

    /// A sum as one split: the lightest has the common scale, and each fills the scale of the next one.
    fn fused(&mut self, sum: Sum) -> Option<Sum> {
        if sum.splits.len() <= 1 {
            return Some(sum);
        }
        let one = prim::int_of(sum.base.dtype(), 1);
        let lightest = self.lightest(&sum.splits)?;
        let mut rest = sum.splits.clone();
        let mut expected = lightest.clone();
        let mut light_first: Vec<Split> = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            // Of several with one scale, those of one value come first: they leave the scale as it is.
            let fits: Vec<usize> =
                (0..rest.len()).rev().filter(|at| self.analyzer.can_prove_equal(&rest[*at].scale, &expected)).collect();
            let at = *fits.iter().find(|at| rest[**at].extent.is_int(1)).or(fits.first())?;
            let split = rest.remove(at);
            expected = self.analyzer.simplify(&(&split.scale * &split.extent));
            light_first.push(split);
        }
        let down = |e: &PrimExpr, analyzer: &mut Analyzer| analyzer.simplify(&prim::floordiv(e, &lightest));
        let splits: Vec<Split> = light_first
            .into_iter()
            .rev()
            .map(|split| Split { scale: down(&split.scale, &mut self.analyzer), ..split })
            .collect();
        let total = down(&expected, &mut self.analyzer);
        let inner = Sum { splits, base: prim::int_of(sum.base.dtype(), 0) };
        let mark = self.mark_of(inner, total);
        let extent = mark.extent.clone();
        Some(Sum { splits: vec![Split { mark, lower: one, extent, scale: lightest }], base: sum.base })
    }

    /// The smallest scale, which all others are multiples of.
    fn lightest(&mut self, splits: &[Split]) -> Option<PrimExpr> {
        let divides = |a: &PrimExpr, b: &PrimExpr, analyzer: &mut Analyzer| {
            let zero = prim::int_of(a.dtype(), 0);
            a.as_int().is_none_or(|a| a > 0) && analyzer.can_prove_equal(&prim::floormod(b, a), &zero)
        };
        let all = splits.iter().map(|split| &split.scale);
        all.clone().find(|a| all.clone().all(|b| divides(a, b, &mut self.analyzer))).cloned()
    }

    fn mark_of(&mut self, sum: Sum, extent: PrimExpr) -> Rc<Mark> {
        let key = self.expr_of(&sum);
        if let Some((_, known)) = self.of_sums.iter().find(|(known, _)| same(known, &key)) {
            return known.clone();
        }
        let mark = Rc::new(Mark { source: Source::Sum(sum), extent });
        self.of_sums.push((key, mark.clone()));
        mark
    }

    /// What is divided, as one split without a base.
    fn dividend(&mut self, e: &PrimExpr) -> Option<Split> {
        let sum = self.sum(e)?;
        let sum = self.fused(sum)?;
        let base = self.analyzer.simplify(&sum.base);
        match sum.splits.as_slice() {
            [split] if base.is_int(0) => Some(split.clone()),
            _ => None,
        }
    }

    fn is_multiple(&mut self, e: &PrimExpr, of: &PrimExpr) -> bool {
        self.analyzer.can_prove_equal(&prim::floormod(e, of), &prim::int_of(e.dtype(), 0))
    }

    /// Whether a number is one that a part can be taken by.
    fn is_positive(&mut self, e: &PrimExpr) -> bool {
        e.as_int().map_or_else(|| self.analyzer.can_prove(&prim::ge(e, prim::int_of(e.dtype(), 0))), |e| e > 0)
    }

    fn divided(&mut self, e: &PrimExpr, by: &PrimExpr) -> Option<Sum> {
        let (split, zero) = (self.dividend(e)?, prim::int_of(e.dtype(), 0));
        if !self.is_positive(&split.scale) || !self.is_positive(by) {
            return None;
        }
        let one = |split: Split| Some(Sum { splits: vec![split], base: zero.clone() });
        if self.is_multiple(&split.scale, by) {
            let scale = self.analyzer.simplify(&prim::floordiv(&split.scale, by));
            return one(Split { scale, ..split });
        }
        if !self.is_multiple(by, &split.scale) {
            return None;
        }
        let by = self.analyzer.simplify(&prim::floordiv(by, &split.scale));
        if !self.is_multiple(&split.extent, &by) {
            return None;
        }
        let lower = self.analyzer.simplify(&(&split.lower * &by));
        let extent = self.analyzer.simplify(&prim::floordiv(&split.extent, &by));
        one(Split { lower, extent, scale: prim::int_of(e.dtype(), 1), ..split })
    }

    fn remainder(&mut self, e: &PrimExpr, by: &PrimExpr) -> Option<Sum> {
        let (split, zero) = (self.dividend(e)?, prim::int_of(e.dtype(), 0));
        if !self.is_positive(&split.scale) || !self.is_positive(by) {
            return None;
        }
        if self.is_multiple(&split.scale, by) {
            return Some(Self::constant(&zero));
        }
        if !self.is_multiple(by, &split.scale) {
            return None;
        }
        let count = self.analyzer.simplify(&prim::floordiv(by, &split.scale));
        let extent = if self.is_multiple(&split.extent, &count) { count } else { return None };
        Some(Sum { splits: vec![Split { extent, ..split }], base: zero })
    }

    fn expr_of(&mut self, sum: &Sum) -> PrimExpr {
        let zero = prim::int_of(sum.base.dtype(), 0);
        let value = sum.splits.iter().fold(zero, |value, split| {
            let one = self.expr_of_split(split);
            value + one * &split.scale
        });
        value + self.analyzer.simplify(&sum.base)
    }

    fn expr_of_split(&mut self, split: &Split) -> PrimExpr {
        let source = match &split.mark.source {
            Source::Loop(e) => e.clone(),
            Source::Sum(sum) => self.expr_of(sum),
        };
        if split.lower.is_int(1) && self.analyzer.can_prove_equal(&split.extent, &split.mark.extent) {
            return source;
        }
        let span = self.analyzer.simplify(&(&split.lower * &split.extent));
        match self.analyzer.can_prove_equal(&span, &split.mark.extent) {
            true => prim::floordiv(source, &split.lower),
            false => prim::floordiv(prim::floormod(source, span), &split.lower),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stmt::{ForKind, Stmt};

    fn loops(extents: &[(&str, i64)]) -> (Vec<Ref<For>>, Vec<PrimExpr>) {
        let vars: Vec<Ref<Var>> = extents.iter().map(|(name, _)| Var::dim(*name)).collect();
        let made = vars.iter().zip(extents).filter_map(|(var, (_, extent))| {
            match Stmt::for_loop(ForKind::Serial, var.clone(), *extent, Stmt::nop()) {
                Stmt::For(n) => Some(n),
                _ => None,
            }
        });
        (made.collect(), vars.iter().map(PrimExpr::from).collect())
    }

    #[test]
    fn what_was_fused_stays_in_one_piece() {
        let (nest, v) = loops(&[("a", 2), ("b", 36), ("u", 1)]);
        let fused = &v[0] * 36 + &v[1];
        let values =
            [prim::floordiv(&fused, 18), prim::floormod(prim::floordiv(&fused, 6), 3), prim::floormod(&fused, 6)];
        let yes = prim::boolean(true);
        let texts = |values: &[PrimExpr], units| {
            let found = by_iterators(values, &nest, &yes, units).expect("they are iterators");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(&values, Units::Kept), ["(a * 36 + b) // 18", "(a * 36 + b) % 18 // 6", "(a * 36 + b) % 6"]);
        assert_eq!(texts(&[&v[2] * 72 + &fused], Units::Kept), ["u * 72 + a * 36 + b"]);
        assert_eq!(texts(&[&v[2] * 72 + &fused], Units::Replaced), ["a * 36 + b"]);
        let again = prim::floordiv(&v[1], 6) * 6 + prim::floormod(&v[1], 6);
        assert_eq!(texts(&[again], Units::Kept), ["b"]);
    }

    #[test]
    fn values_are_the_same_as_before() {
        let (nest, v) = loops(&[("a", 3), ("b", 4), ("c", 6)]);
        let fused = (&v[0] * 4 + &v[1]) * 6 + &v[2];
        let values: Vec<PrimExpr> = [2, 3, 4, 6, 8, 12, 24]
            .into_iter()
            .flat_map(|by| [prim::floordiv(&fused, by), prim::floormod(&fused, by), prim::floormod(&v[2], by)])
            .collect();
        let mut found = 0;
        for value in values {
            let Some(made) = by_iterators(std::slice::from_ref(&value), &nest, &prim::boolean(true), Units::Kept)
            else {
                continue;
            };
            found += 1;
            for at in 0..72_i64 {
                let names = [at / 24, at / 6 % 4, at % 6].map(PrimExpr::from);
                let map = nest.iter().zip(names).map(|(l, value)| (l.var.clone(), value)).collect();
                let of = |e: &PrimExpr| Analyzer::new().simplify(&prim::substitute(e, &map)).as_int();
                assert_eq!(of(&made[0]), of(&value), "{value} is not {} at {at}", made[0]);
            }
        }
        assert!(found > 12, "{found} have a form");
    }
}
