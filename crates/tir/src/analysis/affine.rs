//! What the axes of a block are bound to: sums of digits of loops.
//!
//! Splitting a loop binds an axis to `i0 * 4 + i1`; fusing two binds them to `f // 8` and `f % 8`. All of these are sums of
//! *digits* `source // lower % extent` by weights, where a source is a loop variable or such a sum itself. The bindings are
//! *affine* if the digits below each weight fill it exactly and no part of a loop is used twice: then different points of
//! the loops are different points of the axes, and the axes can be taken apart along the loops.
//!
//! A predicate `i0 * 10 + i1 < 128` cuts the source on its left to 128 values. Loops of one iteration are constants.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{self, Binary, BinaryOp, PrimExpr, VarMap, free_vars, substitute};

use crate::stmt::{For, SBlockRealize};

/// Part of a loop, or of several joined: `source // lower % extent`.
#[derive(Clone, Debug)]
pub struct Digit {
    /// A loop variable, or a contiguous sum over several.
    pub source: PrimExpr,
    /// How many values the source takes.
    pub total: PrimExpr,
    /// What the source is divided by.
    pub lower: PrimExpr,
    /// How many values the digit takes.
    pub extent: PrimExpr,
}

impl Digit {
    /// Its value.
    pub fn value(&self, analyzer: &mut Analyzer) -> PrimExpr {
        let high = prim::floordiv(&self.source, &self.lower);
        let whole = prim::floordiv(&self.total + &self.lower - prim::int_of(self.total.dtype(), 1), &self.lower);
        if analyzer.can_prove_equal(&whole, &self.extent) { high } else { prim::floormod(high, &self.extent) }
    }

    /// Whether a variable occurs in it.
    pub fn uses(&self, var: &Ref<Var>) -> bool {
        free_vars(&self.source).contains(var)
    }
}

/// A digit by a weight.
#[derive(Clone, Debug)]
pub struct Term {
    /// The digit.
    pub digit: Digit,
    /// What it is multiplied by.
    pub weight: PrimExpr,
}

/// What an axis is bound to: `base` and a sum of terms, the heaviest first.
#[derive(Clone, Debug)]
pub struct Binding {
    /// What does not depend on the loops.
    pub base: PrimExpr,
    /// The digits.
    pub terms: Vec<Term>,
    /// How many values the sum takes.
    pub extent: PrimExpr,
}

impl Binding {
    /// Its value.
    pub fn value(&self, analyzer: &mut Analyzer) -> PrimExpr {
        let sum = |sum: PrimExpr, term: &Term| sum + term.digit.value(analyzer) * &term.weight;
        let value = self.terms.iter().fold(prim::int_of(self.base.dtype(), 0), sum);
        analyzer.simplify(&(value + &self.base))
    }

    /// The terms over given loops, which must be the lightest ones, and how many values they take; `None` where they are not.
    pub fn inner(&self, is_inner: impl Fn(&Digit) -> bool) -> Option<usize> {
        let at = self.terms.iter().position(|t| is_inner(&t.digit)).unwrap_or(self.terms.len());
        self.terms[at..].iter().all(|t| is_inner(&t.digit)).then_some(at)
    }
}

/// Why bindings are not affine. The schedule's doing: it asks for what needs affine bindings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAffine {
    /// A value is no sum of digits.
    #[error("`{0}` is no sum of parts of loops")]
    NoSum(String),
    /// Digits leave gaps or overlap within one value.
    #[error("the parts of loops in `{0}` overlap or leave gaps")]
    Gaps(String),
    /// A part of a loop is used twice.
    #[error("part of `{0}` is used by more than one axis")]
    Shared(String),
    /// An axis takes other values than its bindings do.
    #[error("axis `{axis}` takes {axis_extent} values, but what it is bound to takes {extent}")]
    Extent {
        /// The axis.
        axis: String,
        /// How many values it has.
        axis_extent: String,
        /// How many values the binding has.
        extent: String,
    },
}

/// Whether the values of a block's axes are affine in the loops around it, where its predicate holds.
pub fn is_affine(realize: &SBlockRealize, loops: &[Ref<For>]) -> bool {
    Detect::new(loops, &realize.predicate).bindings(realize).is_ok()
}

/// The bindings of a block's axes over the loops around it, which take all values of the axes.
pub fn bindings_of(realize: &SBlockRealize, loops: &[Ref<For>]) -> Result<Vec<Binding>, NotAffine> {
    let mut detect = Detect::new(loops, &realize.predicate);
    let found = detect.bindings(realize)?;
    for (iter, binding) in realize.block.iter_vars.iter().zip(&found) {
        let fits = match realize.predicate.is_int(1) {
            true => detect.analyzer.can_prove_equal(&binding.extent, &iter.extent),
            false => detect.analyzer.can_prove(&prim::ge(&binding.extent, &iter.extent)),
        };
        if !fits {
            let axis = iter.var.name.clone();
            let (axis_extent, extent) = (iter.extent.to_string(), binding.extent.to_string());
            return Err(NotAffine::Extent { axis, axis_extent, extent });
        }
    }
    Ok(found)
}

/// The conditions that a predicate is the conjunction of.
pub fn conjuncts(predicate: &PrimExpr) -> Vec<PrimExpr> {
    match predicate {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => {
            let mut all = conjuncts(&n.a);
            all.extend(conjuncts(&n.b));
            all
        }
        _ if predicate.as_int().is_some_and(|v| v != 0) => Vec::new(),
        _ => vec![predicate.clone()],
    }
}

struct Detect<'a> {
    loops: &'a [Ref<For>],
    /// Loops of one iteration.
    constant: VarMap,
    /// Sums that a predicate cuts, and to how many values.
    cuts: Vec<(PrimExpr, PrimExpr)>,
    analyzer: Analyzer,
}

impl<'a> Detect<'a> {
    fn new(loops: &'a [Ref<For>], predicate: &PrimExpr) -> Self {
        let mut detect = Detect { loops, constant: VarMap::new(), cuts: Vec::new(), analyzer: Analyzer::new() };
        for n in loops {
            detect.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
            if n.extent.is_int(1) {
                detect.constant.insert(n.var.clone(), n.min.clone());
            }
        }
        for condition in conjuncts(predicate) {
            if let PrimExpr::Binary(n) = &condition
                && n.op == BinaryOp::Lt
                && !detect.runs(&n.b)
            {
                let sum = detect.simplify(&n.a);
                detect.cuts.push((sum, n.b.clone()));
            }
        }
        detect
    }

    fn bindings(&mut self, realize: &SBlockRealize) -> Result<Vec<Binding>, NotAffine> {
        let found: Vec<Binding> =
            realize.iter_values.iter().map(|value| self.binding(value)).collect::<Result<_, _>>()?;
        self.independent(&found)?;
        Ok(found)
    }

    fn simplify(&mut self, e: &PrimExpr) -> PrimExpr {
        self.analyzer.simplify(&substitute(e, &self.constant))
    }

    fn runs(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().any(|var| self.loops.iter().any(|l| l.var == *var) && !self.constant.contains_key(var))
    }

    fn binding(&mut self, value: &PrimExpr) -> Result<Binding, NotAffine> {
        // A loop may be wider than the axis; no value of the axis is.
        let value = match value {
            PrimExpr::Cast(n) if n.dtype.is_int() && n.value.dtype().is_int() => self.simplify(&n.value),
            value => self.simplify(value),
        };
        let (mut terms, mut base) = (Vec::new(), prim::int_of(value.dtype(), 0));
        let one = prim::int_of(value.dtype(), 1);
        self.collect(&value, &one, &mut terms, &mut base)?;
        let extent = self.extent_of(&mut terms, &value)?;
        let base = self.analyzer.simplify(&base);
        let extent = self.cut(&value, extent);
        Ok(Binding { base, terms, extent })
    }

    /// How many values a sum takes where a predicate may cut it.
    fn cut(&mut self, sum: &PrimExpr, extent: PrimExpr) -> PrimExpr {
        let cut = self.cuts.iter().find(|(cut, _)| same(cut, sum)).map(|(_, bound)| bound.clone());
        cut.map_or(extent.clone(), |bound| self.analyzer.simplify(&prim::min(extent, bound)))
    }

    fn collect(
        &mut self,
        e: &PrimExpr,
        scale: &PrimExpr,
        terms: &mut Vec<Term>,
        base: &mut PrimExpr,
    ) -> Result<(), NotAffine> {
        if !self.runs(e) {
            *base = &*base + e * scale;
            return Ok(());
        }
        if let PrimExpr::Binary(n) = e {
            match n.op {
                BinaryOp::Add => {
                    self.collect(&n.a, scale, terms, base)?;
                    return self.collect(&n.b, scale, terms, base);
                }
                BinaryOp::Sub if !self.runs(&n.b) => {
                    *base = &*base - &n.b * scale;
                    return self.collect(&n.a, scale, terms, base);
                }
                BinaryOp::Mul if !self.runs(&n.b) => return self.collect(&n.a, &(scale * &n.b), terms, base),
                BinaryOp::Mul if !self.runs(&n.a) => return self.collect(&n.b, &(scale * &n.a), terms, base),
                _ => {}
            }
        }
        let (digit, offset) = self.digit(e)?;
        *base = &*base + offset * scale;
        terms.push(Term { digit, weight: self.analyzer.simplify(scale) });
        Ok(())
    }

    /// A digit, and what is added to it.
    fn digit(&mut self, e: &PrimExpr) -> Result<(Digit, PrimExpr), NotAffine> {
        let none = || NotAffine::NoSum(e.to_string());
        match e {
            PrimExpr::Var(var) => {
                let n = self.loops.iter().find(|l| l.var == *var).ok_or_else(none)?;
                let one = prim::int_of(var.dtype(), 1);
                let (total, extent) = (n.extent.clone(), n.extent.clone());
                // Where a loop does not start at zero, its variable is not a digit by itself.
                let zero = n.min.is_int(0);
                let source = if zero { e.clone() } else { e - &n.min };
                Ok((Digit { source, total, lower: one, extent }, n.min.clone()))
            }
            PrimExpr::Binary(n) if matches!(n.op, BinaryOp::FloorDiv | BinaryOp::FloorMod) && !self.runs(&n.b) => {
                let whole = self.dividend(&n.a)?;
                let digit = self.divided(n, whole).ok_or_else(none)?;
                Ok((digit, prim::int_of(e.dtype(), 0)))
            }
            _ => Err(none()),
        }
    }

    /// What is divided, as one digit: a digit itself, or a contiguous sum.
    fn dividend(&mut self, e: &PrimExpr) -> Result<Digit, NotAffine> {
        let (mut terms, mut base) = (Vec::new(), prim::int_of(e.dtype(), 0));
        let one = prim::int_of(e.dtype(), 1);
        self.collect(e, &one, &mut terms, &mut base)?;
        if !self.analyzer.simplify(&base).is_int(0) {
            return Err(NotAffine::NoSum(e.to_string()));
        }
        let cut = self.cuts.iter().any(|(sum, _)| same(sum, e));
        if let [term] = terms.as_slice()
            && term.weight.is_int(1)
            && !cut
        {
            return Ok(term.digit.clone());
        }
        let extent = self.extent_of(&mut terms, e)?;
        let total = self.cut(e, extent);
        Ok(Digit { source: e.clone(), total: total.clone(), lower: one, extent: total })
    }

    fn divided(&mut self, n: &Binary, whole: Digit) -> Option<Digit> {
        let by = &n.b;
        let divides = self.analyzer.can_prove_equal(&prim::floormod(&whole.extent, by), &prim::int_of(by.dtype(), 0));
        let all = prim::floordiv(&whole.total + &whole.lower - prim::int_of(whole.total.dtype(), 1), &whole.lower);
        let is_highest = self.analyzer.can_prove_equal(&all, &whole.extent);
        match n.op {
            BinaryOp::FloorDiv if divides || is_highest => {
                let extent =
                    self.analyzer.simplify(&prim::floordiv(&whole.extent + by - prim::int_of(by.dtype(), 1), by));
                let lower = self.analyzer.simplify(&(&whole.lower * by));
                Some(Digit { lower, extent, ..whole })
            }
            BinaryOp::FloorMod if divides => Some(Digit { extent: by.clone(), ..whole }),
            BinaryOp::FloorMod if self.analyzer.can_prove(&prim::le(&whole.extent, by)) => Some(whole),
            _ => None,
        }
    }

    /// Sorts terms by weight, the heaviest first, and checks that the lighter fill the weight of the heavier. How many
    /// values the sum takes.
    fn extent_of(&mut self, terms: &mut [Term], value: &PrimExpr) -> Result<PrimExpr, NotAffine> {
        let mut filled = prim::int_of(value.dtype(), 1);
        let mut sorted: Vec<Term> = Vec::with_capacity(terms.len());
        let mut rest: Vec<Term> = terms.to_vec();
        while !rest.is_empty() {
            let next = rest.iter().position(|t| self.analyzer.can_prove_equal(&t.weight, &filled));
            let Some(at) = next else { return Err(NotAffine::Gaps(value.to_string())) };
            let term = rest.remove(at);
            filled = self.analyzer.simplify(&(&term.weight * &term.digit.extent));
            sorted.push(term);
            if !self.cuts.is_empty() {
                filled = self.cut_of_terms(&sorted, filled);
            }
        }
        sorted.reverse();
        terms.clone_from_slice(&sorted);
        Ok(filled)
    }

    /// How many values the lightest terms take together where a predicate may cut their sum.
    fn cut_of_terms(&mut self, terms: &[Term], extent: PrimExpr) -> PrimExpr {
        let zero = prim::int_of(extent.dtype(), 0);
        let add = |sum: PrimExpr, t: &Term| sum + t.digit.value(&mut self.analyzer) * &t.weight;
        let sum = terms.iter().rev().fold(zero, add);
        let sum = self.analyzer.simplify(&sum);
        self.cut(&sum, extent)
    }

    /// Whether no part of a loop is in two terms.
    fn independent(&mut self, bindings: &[Binding]) -> Result<(), NotAffine> {
        let digits: Vec<&Digit> = bindings.iter().flat_map(|b| &b.terms).map(|t| &t.digit).collect();
        for (i, a) in digits.iter().enumerate() {
            for b in &digits[i + 1..] {
                let shared = free_vars(&a.source).into_iter().find(|v| self.runs(&v.into()) && b.uses(v));
                let Some(shared) = shared else { continue };
                let apart = same(&a.source, &b.source) && (self.is_below(a, b) || self.is_below(b, a));
                if !apart {
                    return Err(NotAffine::Shared(shared.name.clone()));
                }
            }
        }
        Ok(())
    }

    /// Whether a digit of a source lies below another of it.
    fn is_below(&mut self, low: &Digit, high: &Digit) -> bool {
        self.analyzer.can_prove(&prim::le(&low.lower * &low.extent, &high.lower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stmt::{ForKind, SBlock, Stmt};

    fn nest(extents: &[(&str, i64)]) -> (Vec<Ref<For>>, Vec<PrimExpr>) {
        let vars: Vec<Ref<Var>> = extents.iter().map(|(name, _)| Var::dim(*name)).collect();
        let loops = vars.iter().zip(extents).filter_map(|(v, (_, extent))| {
            match Stmt::for_loop(ForKind::Serial, v.clone(), *extent, Stmt::nop()) {
                Stmt::For(n) => Some(n),
                _ => None,
            }
        });
        (loops.collect(), vars.iter().map(PrimExpr::from).collect())
    }

    fn extents(values: &[PrimExpr], loops: &[Ref<For>], predicate: PrimExpr) -> Result<Vec<Option<i64>>, NotAffine> {
        let mut detect = Detect::new(loops, &predicate);
        let found = values.iter().map(|v| detect.binding(v)).collect::<Result<Vec<_>, _>>()?;
        detect.independent(&found)?;
        for (value, binding) in values.iter().zip(&found) {
            let again = binding.value(&mut detect.analyzer);
            assert!(detect.analyzer.can_prove_equal(&again, value), "{value} is not {again}");
        }
        Ok(found.iter().map(|b| b.extent.as_int()).collect())
    }

    #[test]
    fn splits_and_fusions_are_affine() {
        let (loops, v) = nest(&[("i", 4), ("j", 6), ("k", 10), ("u", 1)]);
        let yes = || prim::boolean(true);
        let ok = |values: &[PrimExpr], expected: &[i64]| {
            let expected = expected.iter().copied().map(Some).collect();
            assert_eq!(extents(values, &loops, yes()), Ok(expected));
        };
        ok(&[&v[0] * 6 + &v[1], v[2].clone()], &[24, 10]);
        ok(&[prim::floordiv(&v[2], 5), prim::floormod(&v[2], 5)], &[2, 5]);
        ok(&[&v[1] * 4 + &v[0] + 3], &[24]);
        ok(&[prim::floordiv(&v[0] * 6 + &v[1], 8), prim::floormod(&v[0] * 6 + &v[1], 8)], &[3, 8]);
        ok(&[prim::floormod(&v[2], 5) * 2 + prim::floordiv(&v[2], 5)], &[10]);
    }

    #[test]
    fn what_overlaps_or_leaves_gaps_is_not() {
        let (loops, v) = nest(&[("i", 4), ("j", 6), ("k", 10)]);
        let no = |values: &[PrimExpr]| extents(values, &loops, prim::boolean(true)).unwrap_err();
        assert!(matches!(no(&[&v[0] + &v[1]]), NotAffine::Gaps(_)));
        assert!(matches!(no(&[&v[0] * 7 + &v[1]]), NotAffine::Gaps(_)));
        assert!(matches!(no(&[&v[0] * &v[1]]), NotAffine::NoSum(_)));
        assert!(matches!(no(&[v[0].clone(), v[0].clone()]), NotAffine::Shared(_)));
        assert!(matches!(no(&[prim::floordiv(&v[2], 2), prim::floordiv(&v[2], 5)]), NotAffine::Shared(_)));
    }

    #[test]
    fn a_predicate_cuts_a_sum() {
        let (loops, v) = nest(&[("i", 13), ("j", 10)]);
        let sum = &v[0] * 10 + &v[1];
        let predicate = prim::lt(&sum, 128);
        assert_eq!(extents(std::slice::from_ref(&sum), &loops, predicate.clone()), Ok(vec![Some(128)]));
        let parts = [prim::floordiv(&sum, 16), prim::floormod(&sum, 16)];
        assert_eq!(extents(&parts, &loops, predicate), Ok(vec![Some(8), Some(16)]));
    }

    fn affine(
        extents: &[i64],
        predicate: fn(&[PrimExpr]) -> PrimExpr,
        values: fn(&[PrimExpr]) -> Vec<PrimExpr>,
    ) -> bool {
        let vars: Vec<Ref<Var>> = (0..extents.len()).map(|i| Var::dim(format!("i{i}"))).collect();
        let loops: Vec<Ref<For>> = vars
            .iter()
            .zip(extents)
            .filter_map(|(v, e)| match Stmt::serial(v.clone(), *e, Stmt::nop()) {
                Stmt::For(n) => Some(n),
                _ => None,
            })
            .collect();
        let at: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        let block = SBlock {
            iter_vars: vec![],
            reads: vec![],
            writes: vec![],
            name: "b".into(),
            alloc_buffers: vec![],
            match_buffers: vec![],
            annotations: relaxide_ir::Attrs::new(),
            init: None,
            body: Stmt::nop(),
        };
        is_affine(
            &SBlockRealize { iter_values: values(&at), predicate: predicate(&at), block: Ref::new(block) },
            &loops,
        )
    }

    fn always(_: &[PrimExpr]) -> PrimExpr {
        prim::boolean(true)
    }

    #[test]
    fn digits_that_are_used_once_are_affine() {
        assert!(affine(&[4, 8], always, |i| vec![i[1].clone(), i[0].clone()]));
        assert!(affine(&[4, 8], always, |i| vec![&i[0] * 8 + &i[1]]));
        assert!(affine(&[32], always, |i| vec![prim::floordiv(&i[0], 8), prim::floormod(&i[0], 8)]));
        assert!(affine(&[4, 8], always, |i| {
            let sum = &i[0] * 8 + &i[1];
            vec![prim::floordiv(&sum, 4), prim::floormod(&sum, 4)]
        }));
        let below_30 = |i: &[PrimExpr]| prim::lt(&i[0] * 8 + &i[1], 30);
        assert!(affine(&[4, 8], below_30, |i| vec![&i[0] * 8 + &i[1]]));
        let twice = |i: &[PrimExpr]| {
            let inner = &i[1] * 4 + &i[2];
            prim::and(prim::lt(&i[0] * 5 + &inner, 28), prim::lt(inner, 5))
        };
        assert!(affine(&[6, 2, 4], twice, |i| vec![&i[0] * 5 + (&i[1] * 4 + &i[2])]));
    }

    #[test]
    fn overlapping_digits_are_not() {
        assert!(!affine(&[4], always, |i| vec![i[0].clone(), i[0].clone()]));
        assert!(!affine(&[4, 8], always, |i| vec![&i[0] + &i[1]]));
        assert!(!affine(&[4, 8], always, |i| vec![&i[0] * 4 + &i[1]]));
        assert!(!affine(&[32], always, |i| vec![prim::floordiv(&i[0], 4), prim::floormod(&i[0], 8)]));
        assert!(!affine(&[4, 4], always, |i| vec![&i[0] * &i[1]]));
    }
}
