//! Whether the values of a block's axes are *affine* in the loops around it.
//!
//! They are where every axis is made of digits of loop counters, and no digit is used twice: then different iterations of
//! the loops are different values of the axes, and a loop that an axis does not use does not change that axis.
//!
//! ```text
//! vi = io * 8 + ii          vi = f // 16                   vi = i          vi = i + j
//! vj = j                    vj = f % 16                    vj = i
//! affine                    affine                         not: i twice    not: no weights
//! ```
//!
//! **Model.** A value is read as a sum of *digits* by weights. A digit is `source // lower % extent`, of a source that is a
//! loop counter or again a sum whose weights are those of a number system: `io * 8 + ii` where `ii` is below 8. A sum that
//! the block's predicate keeps below a bound is a source with that extent, so that splits which do not divide a loop are
//! affine as well. Then the digits of each source must not overlap. Divisions must be exact (`extent % c == 0`).

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, free_vars};

use crate::stmt::*;

/// Whether the values of a block's axes are affine in loops around it, where its predicate holds.
pub fn is_affine(n: &SBlockRealize, loops: &[Ref<For>]) -> bool {
    let mut reader = Reader::new(loops);
    if n.iter_values.iter().all(|value| reader.is_own_counter(value)) && n.predicate.is_int(1) {
        return distinct(&n.iter_values);
    }
    reader.learn(&n.predicate).is_some() && {
        let digits: Option<Vec<Vec<Digit>>> = n.iter_values.iter().map(|value| reader.value(value)).collect();
        digits.is_some_and(|digits| reader.disjoint(digits.into_iter().flatten().collect()))
    }
}

/// Whether no counter occurs twice in a list of counters and constants.
fn distinct(values: &[PrimExpr]) -> bool {
    let vars: Vec<_> = values.iter().filter_map(PrimExpr::as_var).collect();
    vars.iter().enumerate().all(|(i, v)| !vars[..i].contains(v))
}

/// A source of digits, by its place in a list.
type SourceId = usize;

/// What digits are taken from.
struct Source {
    /// How many values it has.
    extent: PrimExpr,
    kind: SourceKind,
}

enum SourceKind {
    Counter,
    Sum(Vec<Digit>),
}

/// `source // lower % extent * weight`.
#[derive(Clone)]
struct Digit {
    source: SourceId,
    lower: PrimExpr,
    extent: PrimExpr,
    weight: PrimExpr,
}

/// A sum that the predicate bounds.
struct Bound {
    digits: Vec<Digit>,
    below: PrimExpr,
}

struct Reader {
    analyzer: Analyzer,
    sources: Vec<Source>,
    bounds: Vec<Bound>,
    counters: Vec<Ref<Var>>,
}

impl Reader {
    fn new(loops: &[Ref<For>]) -> Reader {
        let mut analyzer = Analyzer::new();
        let mut sources = Vec::new();
        for l in loops {
            analyzer.mark_dims([&l.extent]);
            analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
            sources.push(Source { extent: l.extent.clone(), kind: SourceKind::Counter });
        }
        Reader { analyzer, sources, bounds: Vec::new(), counters: loops.iter().map(|l| l.var.clone()).collect() }
    }

    fn is_own_counter(&self, e: &PrimExpr) -> bool {
        e.as_int().is_some() || e.as_var().is_some_and(|var| self.counters.contains(var))
    }

    fn equal(&mut self, a: &PrimExpr, b: &PrimExpr) -> bool {
        self.analyzer.can_prove_equal(a, b)
    }

    fn simple(&mut self, e: PrimExpr) -> PrimExpr {
        self.analyzer.simplify(&e)
    }

    fn is_constant(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().all(|var| !self.counters.contains(var))
    }

    /// Reads a predicate: bounds of sums, smaller ones first.
    fn learn(&mut self, predicate: &PrimExpr) -> Option<()> {
        let mut list = Vec::new();
        conjuncts(predicate, &mut list);
        let mut bounds = Vec::new();
        for condition in list {
            if condition.is_int(1) || self.analyzer.can_prove(&condition) {
                continue;
            }
            let PrimExpr::Binary(n) = &condition else { return None };
            let (sum, below) = match n.op {
                BinaryOp::Lt => (&n.a, n.b.clone()),
                BinaryOp::Gt => (&n.b, n.a.clone()),
                BinaryOp::Le => (&n.a, prim::add(n.b.clone(), prim::int_of(n.b.dtype(), 1))),
                BinaryOp::Ge => (&n.b, prim::add(n.a.clone(), prim::int_of(n.a.dtype(), 1))),
                _ => return None,
            };
            if self.is_constant(sum) && self.is_constant(&below) {
                continue;
            }
            if !self.is_constant(&below) {
                return None;
            }
            bounds.push((free_vars(sum).len(), sum.clone(), below));
        }
        bounds.sort_by_key(|(size, ..)| *size);
        for (_, sum, below) in bounds {
            let digits = self.sum(&sum)?;
            self.bounds.push(Bound { digits, below });
        }
        Some(())
    }

    /// The digits of an axis' value: one number system, so at most one digit once it is a source of its own.
    fn value(&mut self, e: &PrimExpr) -> Option<Vec<Digit>> {
        let digits = self.sum(e)?;
        if digits.len() < 2 {
            return Some(digits);
        }
        self.gather(digits).map(|digit| vec![digit])
    }

    /// An expression as digits; constants beside them do not matter here.
    fn sum(&mut self, e: &PrimExpr) -> Option<Vec<Digit>> {
        if self.is_constant(e) {
            return Some(Vec::new());
        }
        match e {
            PrimExpr::Var(var) => {
                let source = self.counters.iter().position(|c| c == var)?;
                let extent = self.sources.get(source)?.extent.clone();
                if extent.is_int(1) {
                    return Some(Vec::new());
                }
                let one = prim::int_of(var.dtype(), 1);
                Some(vec![Digit { source, lower: one.clone(), extent, weight: one }])
            }
            PrimExpr::Cast(n) if n.dtype.is_integer() => self.sum(&n.value),
            PrimExpr::Binary(n) => self.binary(n),
            _ => None,
        }
    }

    fn binary(&mut self, n: &prim::Binary) -> Option<Vec<Digit>> {
        match n.op {
            BinaryOp::Add => Some([self.sum(&n.a)?, self.sum(&n.b)?].concat()),
            BinaryOp::Sub if self.is_constant(&n.b) => self.sum(&n.a),
            BinaryOp::Mul if self.is_constant(&n.b) => self.times(&n.a, &n.b),
            BinaryOp::Mul if self.is_constant(&n.a) => self.times(&n.b, &n.a),
            BinaryOp::FloorDiv | BinaryOp::FloorMod if self.is_constant(&n.b) => {
                let digits = self.sum(&n.a)?;
                let Some(digit) = self.gather(digits) else {
                    return self.apart(&n.a, &n.b, n.op);
                };
                self.cut(digit, &n.b, n.op)
            }
            _ => None,
        }
    }

    fn times(&mut self, e: &PrimExpr, factor: &PrimExpr) -> Option<Vec<Digit>> {
        let digits = self.sum(e)?;
        Some(digits.into_iter().map(|d| Digit { weight: prim::mul(d.weight.clone(), factor.clone()), ..d }).collect())
    }

    /// The quotient or remainder of a sum that is no number system but whose form is simpler than it looks.
    fn apart(&mut self, a: &PrimExpr, b: &PrimExpr, op: BinaryOp) -> Option<Vec<Digit>> {
        let simple = self.simple(prim::binary(op, a.clone(), b.clone()));
        match &simple {
            PrimExpr::Binary(n) if n.op == op => None,
            _ => self.sum(&simple),
        }
    }

    /// The quotient or remainder of one digit.
    fn cut(&mut self, digit: Digit, by: &PrimExpr, op: BinaryOp) -> Option<Vec<Digit>> {
        let Digit { source, lower, extent, weight } = digit;
        if !weight.is_int(1) {
            let rest = self.simple(prim::floormod(weight.clone(), by.clone()));
            if !rest.is_int(0) {
                return None;
            }
            let weight = self.simple(prim::floordiv(weight, by.clone()));
            return Some(if op == BinaryOp::FloorMod {
                Vec::new()
            } else {
                vec![Digit { source, lower, extent, weight }]
            });
        }
        if self.analyzer.can_prove(&prim::ge(by.clone(), extent.clone())) {
            return Some(if op == BinaryOp::FloorDiv {
                Vec::new()
            } else {
                vec![Digit { source, lower, extent, weight }]
            });
        }
        if !self.simple(prim::floormod(extent.clone(), by.clone())).is_int(0) {
            return None;
        }
        Some(vec![match op {
            BinaryOp::FloorDiv => {
                let (lower, extent) = (prim::mul(lower, by.clone()), prim::floordiv(extent, by.clone()));
                Digit { source, lower: self.simple(lower), extent: self.simple(extent), weight }
            }
            _ => Digit { source, lower, extent: by.clone(), weight },
        }])
    }

    /// Digits as one digit of the sum that they make; `None` where their weights are not those of a number system.
    fn gather(&mut self, mut digits: Vec<Digit>) -> Option<Digit> {
        for i in 0..self.bounds.len() {
            self.fold_bound(i, &mut digits);
        }
        if digits.len() == 1 {
            return digits.pop();
        }
        let least = digits.iter().filter_map(|d| d.weight.as_int()).min();
        let start = digits.iter().find(|d| d.weight.as_int() == least || digits.len() == 1)?.weight.clone();
        let one = prim::int_of(start.dtype(), 1);
        let mut extent = one.clone();
        let mut ordered: Vec<Digit> = Vec::new();
        while !digits.is_empty() {
            let wanted = prim::mul(start.clone(), extent.clone());
            let at = (0..digits.len()).find(|i| {
                let weight = digits[*i].weight.clone();
                self.equal(&weight, &wanted)
            })?;
            let digit = digits.remove(at);
            extent = self.simple(prim::mul(extent, digit.extent.clone()));
            let weight = self.simple(prim::floordiv(digit.weight.clone(), start.clone()));
            ordered.push(Digit { weight, ..digit });
        }
        let source = self.source_of(ordered, extent.clone());
        Some(Digit { source, lower: one, extent, weight: start })
    }

    /// Where all digits of a bounded sum are there by one factor, they are one digit.
    fn fold_bound(&mut self, index: usize, digits: &mut Vec<Digit>) {
        let Some(bound) = self.bounds.get(index) else { return };
        let (mut parts, below) = (bound.digits.clone(), bound.below.clone());
        for earlier in 0..index {
            self.fold_bound(earlier, &mut parts);
        }
        let Some(least) = parts.iter().filter(|p| p.weight.is_int(1)).map(|p| p.weight.clone()).next() else { return };
        let mut places = Vec::new();
        let mut factor: Option<PrimExpr> = None;
        for part in &parts {
            let Some(at) =
                (0..digits.len()).find(|i| !places.contains(i) && self.same_digit(&digits[*i].clone(), part))
            else {
                return;
            };
            if part.weight.is_int(1) {
                factor = Some(digits[at].weight.clone());
            }
            places.push(at);
        }
        let Some(factor) = factor else { return };
        for (part, at) in parts.iter().zip(&places) {
            let scaled = prim::mul(part.weight.clone(), factor.clone());
            let found = digits[*at].weight.clone();
            if !self.equal(&scaled, &found) {
                return;
            }
        }
        let source = self.source_of(parts, below.clone());
        places.sort_unstable();
        for at in places.into_iter().rev() {
            digits.remove(at);
        }
        digits.push(Digit { source, lower: least, extent: below, weight: factor });
    }

    fn same_digit(&mut self, a: &Digit, b: &Digit) -> bool {
        a.source == b.source && self.equal(&a.lower, &b.lower) && self.equal(&a.extent, &b.extent)
    }

    /// The source that a sum is, the same for the same sum.
    fn source_of(&mut self, digits: Vec<Digit>, extent: PrimExpr) -> SourceId {
        for id in 0..self.sources.len() {
            let Some(SourceKind::Sum(there)) = self.sources.get(id).map(|s| &s.kind) else { continue };
            let there = there.clone();
            if there.len() == digits.len()
                && digits.iter().all(|d| {
                    there.iter().any(|t| {
                        self.same_digit(d, t) && {
                            let (a, b) = (d.weight.clone(), t.weight.clone());
                            self.equal(&a, &b)
                        }
                    })
                })
            {
                return id;
            }
        }
        self.sources.push(Source { extent, kind: SourceKind::Sum(digits) });
        self.sources.len() - 1
    }

    /// Whether no part of a source is used twice.
    fn disjoint(&mut self, mut used: Vec<Digit>) -> bool {
        // A sum that is used uses its own digits, once.
        let mut opened: Vec<SourceId> = Vec::new();
        let mut next = 0;
        while let Some(digit) = used.get(next).cloned() {
            next += 1;
            if let Some(SourceKind::Sum(parts)) = self.sources.get(digit.source).map(|s| &s.kind)
                && !opened.contains(&digit.source)
            {
                opened.push(digit.source);
                used.extend(parts.iter().cloned());
            }
        }
        (0..self.sources.len()).all(|source| {
            let digits = used.iter().filter(|d| d.source == source).cloned().collect();
            self.no_overlap(digits)
        })
    }

    fn no_overlap(&mut self, mut digits: Vec<Digit>) -> bool {
        let Some(first) = digits.first() else { return true };
        let mut end = prim::int_of(first.lower.dtype(), 1);
        while !digits.is_empty() {
            let exact = (0..digits.len()).find(|i| {
                let lower = digits[*i].lower.clone();
                self.equal(&lower, &end)
            });
            let at = exact.or_else(|| {
                // A gap: the least digit above, where that is known.
                let all: Option<Vec<i64>> = digits.iter().map(|d| d.lower.as_int()).collect();
                let (low, lowers) = (end.as_int()?, all?);
                let least = *lowers.iter().min()?;
                (least > low && least % low == 0).then(|| lowers.iter().position(|l| *l == least))?
            });
            let Some(at) = at else { return false };
            let digit = digits.remove(at);
            end = self.simple(prim::mul(digit.lower, digit.extent));
        }
        true
    }
}

fn conjuncts(e: &PrimExpr, list: &mut Vec<PrimExpr>) {
    match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => {
            conjuncts(&n.a, list);
            conjuncts(&n.b, list);
        }
        other => list.push(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
