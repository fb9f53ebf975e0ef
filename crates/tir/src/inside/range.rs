//! Between which limits a value that is data lies, by its form and by the conditions around it.
//!
//! ```text
//! max(min(I[i], n - 1), 0)         below n where n >= 1
//! floormod(I[i], n)                in 0 .. n where n >= 1
//! int64(U[i])                      below 256 where U holds bytes
//! select(v < 0, v + n, v)          at least 0 on its second side alone
//! ```
//!
//! Data may be any number, so arithmetic on it may wrap around: a sum or a product is looked at only where its parts are
//! known to be small. Where nothing is data, the analyzer is asked.

use relaxide_ir::prim::{self, BinaryOp, PrimExpr};

use super::Hold;
use crate::schedule::affine::same;

/// How deep an expression is looked into.
const DEPTH: u32 = 12;
/// Values below this in size do not wrap around in the few sums and products of an index.
const SMALL_BITS: u8 = 32;

/// Whether the form of a value says its limits whatever is loaded.
pub(super) fn is_bounded_by_form(e: &PrimExpr) -> bool {
    match e {
        PrimExpr::Binary(n) => matches!(n.op, BinaryOp::Min | BinaryOp::Max | BinaryOp::FloorMod),
        PrimExpr::Call(n) => n.op == "tirx.checked_index",
        PrimExpr::Cast(n) => is_bounded_by_form(&n.value) || narrow(&n.value),
        _ => narrow(e),
    }
}

/// Whether the type of a value holds small numbers only.
fn narrow(e: &PrimExpr) -> bool {
    let dtype = e.dtype();
    (dtype.is_integer() || dtype.is_bool()) && dtype.bits < SMALL_BITS
}

impl Hold {
    /// Whether a value is known to be at least zero.
    pub(super) fn is_at_least_zero(&mut self, e: &PrimExpr) -> bool {
        self.at_least(e, &prim::int_of(e.dtype(), 0), DEPTH)
    }

    /// Whether a value is known to be less than another.
    pub(super) fn is_below(&mut self, e: &PrimExpr, end: &PrimExpr) -> bool {
        self.below(e, end, DEPTH)
    }

    /// `e >= low`, of what is known when the kernel begins. The analyzer knows numbers: what is clamped to lengths with names, or wrapped
    /// around by them, has its form.
    fn known_at_least(&mut self, e: &PrimExpr, low: &PrimExpr, depth: u32) -> bool {
        if self.analyzer.can_prove(&prim::ge(e.clone(), low.clone())) {
            return true;
        }
        let PrimExpr::Binary(n) = e else { return false };
        match n.op {
            _ if depth == 0 => false,
            BinaryOp::Max => self.at_least(&n.a, low, depth - 1) || self.at_least(&n.b, low, depth - 1),
            BinaryOp::Min => self.at_least(&n.a, low, depth - 1) && self.at_least(&n.b, low, depth - 1),
            BinaryOp::FloorMod => low.is_int(0) && self.is_positive(&n.b),
            _ => false,
        }
    }

    /// `e >= low`.
    fn at_least(&mut self, e: &PrimExpr, low: &PrimExpr, depth: u32) -> bool {
        if !self.is_data(e) {
            return !self.is_data(low) && self.known_at_least(e, low, depth);
        }
        if depth == 0 {
            return false;
        }
        let depth = depth - 1;
        let known: Vec<(PrimExpr, bool)> =
            self.facts.iter().filter(|f| same(&f.high, e)).map(|f| (f.low.clone(), f.strict)).collect();
        for (bound, _) in known {
            if !same(&bound, e) && bound.dtype() == low.dtype() && self.at_least(&bound, low, depth.min(3)) {
                return true;
            }
        }
        match e {
            PrimExpr::Var(var) => match self.values.get(var).cloned() {
                Some(value) => self.at_least(&value, low, depth),
                None => false,
            },
            PrimExpr::Binary(n) => match n.op {
                BinaryOp::Max => self.at_least(&n.a, low, depth) || self.at_least(&n.b, low, depth),
                BinaryOp::Min => self.at_least(&n.a, low, depth) && self.at_least(&n.b, low, depth),
                BinaryOp::FloorMod => low.is_int(0) && self.is_positive(&n.b),
                BinaryOp::FloorDiv => {
                    low.is_int(0) && n.b.as_int().is_some_and(|c| c > 0) && self.at_least(&n.a, low, depth)
                }
                BinaryOp::Mul => {
                    low.is_int(0)
                        && self.is_small(e, depth)
                        && self.at_least(&n.a, low, depth)
                        && self.at_least(&n.b, low, depth)
                }
                BinaryOp::Add if self.is_small(e, depth) => match (self.is_data(&n.a), self.is_data(&n.b)) {
                    (true, false) => self.at_least(&n.a, &(low - &n.b), depth),
                    (false, true) => self.at_least(&n.b, &(low - &n.a), depth),
                    _ => low.is_int(0) && self.at_least(&n.a, low, depth) && self.at_least(&n.b, low, depth),
                },
                BinaryOp::Sub if self.is_small(e, depth) && !self.is_data(&n.b) => {
                    self.at_least(&n.a, &(low + &n.b), depth)
                }
                BinaryOp::Sub if self.is_small(e, depth) && !self.is_data(&n.a) && !self.is_data(low) => {
                    let end = &n.a - low + prim::int_of(e.dtype(), 1);
                    self.below(&n.b, &end, depth)
                }
                _ => false,
            },
            PrimExpr::Select(n) => {
                self.when(&n.condition, true, |this| this.at_least(&n.true_value, low, depth))
                    && self.when(&n.condition, false, |this| this.at_least(&n.false_value, low, depth))
            }
            PrimExpr::Cast(n) => {
                let (from, to) = (n.value.dtype(), e.dtype());
                let unsigned = from.is_bool() || from.is_uint();
                if low.is_int(0) && unsigned && to.is_int() && to.bits > from.bits {
                    return true;
                }
                let kept = from.is_int() && to.is_int() && to.bits >= from.bits;
                match low.as_int() {
                    Some(low) if kept && prim::holds(from, low) => {
                        self.at_least(&n.value, &prim::int_of(from, low), depth)
                    }
                    _ => false,
                }
            }
            PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
                ("tirx.checked_index", _) => low.as_int().is_some_and(|low| low <= 0),
                ("tirx.if_then_else", [c, a, b]) => {
                    self.when(c, true, |this| this.at_least(a, low, depth))
                        && self.when(c, false, |this| this.at_least(b, low, depth))
                }
                _ => false,
            },
            PrimExpr::Load(_) => (e.dtype().is_uint() || e.dtype().is_bool()) && low.is_int(0),
            _ => false,
        }
    }

    /// `e < end`.
    fn below(&mut self, e: &PrimExpr, end: &PrimExpr, depth: u32) -> bool {
        if !self.is_data(e) {
            if self.is_data(end) || self.analyzer.can_prove(&prim::lt(e.clone(), end.clone())) {
                return !self.is_data(end);
            }
            // A quotient is below an end if what is divided is below the end's multiple.
            return match e {
                PrimExpr::Binary(n) if n.op == BinaryOp::FloorDiv && depth > 0 => match n.b.as_int() {
                    Some(c) if c > 1 => self.below(&n.a, &(end * prim::int_of(end.dtype(), c)), depth - 1),
                    _ => false,
                },
                PrimExpr::Binary(n) if depth > 0 => match n.op {
                    BinaryOp::Max => self.below(&n.a, end, depth - 1) && self.below(&n.b, end, depth - 1),
                    BinaryOp::Min => self.below(&n.a, end, depth - 1) || self.below(&n.b, end, depth - 1),
                    BinaryOp::FloorMod => same(&n.b, end) && self.is_positive(&n.b),
                    _ => false,
                },
                _ => false,
            };
        }
        if depth == 0 {
            return false;
        }
        let depth = depth - 1;
        if self.is_known_below(e, end) {
            return true;
        }
        match e {
            PrimExpr::Var(var) => match self.values.get(var).cloned() {
                Some(value) => self.below(&value, end, depth),
                None => false,
            },
            PrimExpr::Binary(n) => self.binary_below(n, end, depth),
            PrimExpr::Select(n) => {
                self.when(&n.condition, true, |this| this.below(&n.true_value, end, depth))
                    && self.when(&n.condition, false, |this| this.below(&n.false_value, end, depth))
            }
            PrimExpr::Cast(n) => {
                let (from, to) = (n.value.dtype(), e.dtype());
                match end.as_int() {
                    Some(end) if from.is_integer() && to.is_int() && to.bits >= from.bits => {
                        let kept = from.is_int() || to.bits > from.bits;
                        let all = kept && from.bits < 63 && !prim::holds(from, end) && end > 0;
                        all || kept && prim::holds(from, end) && self.below(&n.value, &prim::int_of(from, end), depth)
                    }
                    Some(end) => from.is_bool() && end > 1,
                    None => false,
                }
            }
            PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
                ("tirx.checked_index", [_, extent, ..]) => {
                    !self.is_data(extent)
                        && !self.is_data(end)
                        && self.analyzer.can_prove(&prim::le(extent.clone(), end.clone()))
                }
                ("tirx.if_then_else", [c, a, b]) => {
                    self.when(c, true, |this| this.below(a, end, depth))
                        && self.when(c, false, |this| this.below(b, end, depth))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// `e < end`, because a condition around it says so.
    fn is_known_below(&mut self, e: &PrimExpr, end: &PrimExpr) -> bool {
        let known: Vec<(PrimExpr, bool)> =
            self.facts.iter().filter(|f| same(&f.low, e)).map(|f| (f.high.clone(), f.strict)).collect();
        known.into_iter().any(|(bound, strict)| {
            let direct = same(&bound, end) && strict;
            let comparable = bound.dtype() == end.dtype() && !self.is_data(&bound) && !self.is_data(end);
            direct
                || comparable && {
                    let holds = if strict { prim::le(bound, end.clone()) } else { prim::lt(bound, end.clone()) };
                    self.analyzer.can_prove(&holds)
                }
        })
    }

    /// `n < end`, where one of the operands is data.
    fn binary_below(&mut self, n: &relaxide_ffi::Ref<prim::Binary>, end: &PrimExpr, depth: u32) -> bool {
        let e = PrimExpr::Binary(n.clone());
        match n.op {
            BinaryOp::Min => self.below(&n.a, end, depth) || self.below(&n.b, end, depth),
            BinaryOp::Max => self.below(&n.a, end, depth) && self.below(&n.b, end, depth),
            BinaryOp::FloorMod => {
                let fits = |this: &mut Hold| {
                    !this.is_data(&n.b)
                        && !this.is_data(end)
                        && this.analyzer.can_prove(&prim::le(n.b.clone(), end.clone()))
                };
                self.is_positive(&n.b) && fits(self)
            }
            BinaryOp::FloorDiv => match n.b.as_int() {
                Some(c) if c > 0 => self.below(&n.a, &(end * prim::int_of(end.dtype(), c)), depth),
                _ => false,
            },
            BinaryOp::Add if self.is_small(&e, depth) => match (self.is_data(&n.a), self.is_data(&n.b)) {
                (true, false) => self.below(&n.a, &(end - &n.b), depth),
                (false, true) => self.below(&n.b, &(end - &n.a), depth),
                _ => false,
            },
            BinaryOp::Sub if self.is_small(&e, depth) => match (self.is_data(&n.a), self.is_data(&n.b)) {
                (true, false) => self.below(&n.a, &(end + &n.b), depth),
                (false, true) if !self.is_data(end) => {
                    let low = &n.a - end + prim::int_of(e.dtype(), 1);
                    self.at_least(&n.b, &low, depth)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Answers with a condition taken to hold or to fail.
    fn when(&mut self, condition: &PrimExpr, holds: bool, ask: impl FnOnce(&mut Hold) -> bool) -> bool {
        let condition = if holds { condition.clone() } else { prim::not(condition.clone()) };
        let mark = self.assume(&condition);
        let answer = ask(self);
        self.forget(mark);
        answer
    }

    fn is_positive(&mut self, e: &PrimExpr) -> bool {
        !self.is_data(e) && self.analyzer.can_prove(&prim::ge(e.clone(), prim::int_of(e.dtype(), 1)))
    }

    /// Whether neither a value nor what it is made of can be so large that arithmetic wraps around. Dimensions count as small:
    /// memory has to hold what they count.
    fn is_small(&mut self, e: &PrimExpr, depth: u32) -> bool {
        if !self.is_data(e) {
            return true;
        }
        if depth == 0 {
            return false;
        }
        let depth = depth - 1;
        let bounded = |this: &Hold, both: bool| {
            let above = this.facts.iter().any(|f| same(&f.low, e) && !this.is_data(&f.high));
            let below = this.facts.iter().any(|f| same(&f.high, e) && !this.is_data(&f.low));
            if both { above && below } else { above || below }
        };
        if bounded(self, true) {
            return true;
        }
        match e {
            PrimExpr::Var(var) => match self.values.get(var).cloned() {
                Some(value) => self.is_small(&value, depth),
                None => false,
            },
            PrimExpr::Binary(n) => match n.op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                    self.is_small(&n.a, depth) && self.is_small(&n.b, depth)
                }
                BinaryOp::Min | BinaryOp::Max => {
                    let (a, b) = (self.is_small(&n.a, depth), self.is_small(&n.b, depth));
                    a && b || (a || b) && self.is_clamp(e)
                }
                BinaryOp::FloorMod => self.is_positive(&n.b),
                BinaryOp::FloorDiv => n.b.as_int().is_some_and(|c| c > 0) && self.is_small(&n.a, depth),
                _ => false,
            },
            PrimExpr::Select(n) => self.is_small(&n.true_value, depth) && self.is_small(&n.false_value, depth),
            PrimExpr::Cast(n) => {
                let from = n.value.dtype();
                let whole = from.is_integer() || from.is_bool();
                whole && from.bits <= SMALL_BITS && e.dtype().bits > SMALL_BITS
                    || whole && self.is_small(&n.value, depth)
            }
            PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
                ("tirx.checked_index", _) => true,
                ("tirx.if_then_else", [_, a, b]) => self.is_small(a, depth) && self.is_small(b, depth),
                _ => false,
            },
            PrimExpr::Load(_) => narrow(e),
            _ => false,
        }
    }

    /// Whether it is a minimum around a maximum, or the other way round, of what is small.
    fn is_clamp(&self, e: &PrimExpr) -> bool {
        let PrimExpr::Binary(outer) = e else { return false };
        let sides = [(&outer.a, &outer.b), (&outer.b, &outer.a)];
        sides.iter().any(|(inner, limit)| match inner {
            PrimExpr::Binary(n) => {
                let opposite =
                    matches!((outer.op, n.op), (BinaryOp::Min, BinaryOp::Max) | (BinaryOp::Max, BinaryOp::Min));
                opposite && !self.is_data(limit) && (!self.is_data(&n.a) || !self.is_data(&n.b))
            }
            _ => false,
        })
    }
}
