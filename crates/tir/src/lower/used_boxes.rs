//! Which boxes of buffers statements use, each access under the conditions around it.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, BufferLoad, PrimExpr, PrimVisitor};
use relaxide_ir::{Buffer, Var};

use crate::analysis::interval::{Interval, Running};
use crate::functor::StmtVisitor;
use crate::stmt::*;

/// The boxes of some buffers that a statement uses. A dimension without an interval is `None`, and so is a buffer that is used in
/// another way than element by element.
#[derive(Default)]
pub(super) struct Used {
    pub(super) analyzer: Analyzer,
    pub(super) candidates: Vec<Ref<Buffer>>,
    pub(super) running: Running,
    /// Variables that are defined inside.
    pub(super) defined: HashSet<Ref<Var>>,
    pub(super) boxes: HashMap<Ref<Buffer>, Option<Vec<Option<Interval>>>>,
    /// What the conditions around say.
    limits: Vec<Limit>,
}

/// An expression that runs is no less, or no more, than another that stands still.
struct Limit {
    of: PrimExpr,
    bound: PrimExpr,
    is_least: bool,
}

impl Used {
    /// Of some buffers nothing is used yet.
    pub(super) fn of(candidates: Vec<Ref<Buffer>>, analyzer: Analyzer) -> Used {
        Used { analyzer, candidates, ..Used::default() }
    }

    fn access(&mut self, buffer: &Ref<Buffer>, ranges: Vec<(PrimExpr, PrimExpr)>) {
        if !self.candidates.contains(buffer) {
            // Another view of the memory needs all of it.
            let viewed = self.candidates.iter().find(|b| b.data == buffer.data).cloned();
            if let Some(viewed) = viewed {
                self.boxes.insert(viewed, None);
            }
            return;
        }
        if ranges.len() != buffer.ndim() {
            self.boxes.insert(buffer.clone(), None);
            return;
        }
        let dims: Vec<Option<Interval>> = ranges.iter().map(|(min, max)| self.interval(min, max)).collect();
        match self.boxes.get_mut(buffer) {
            None => drop(self.boxes.insert(buffer.clone(), Some(dims))),
            Some(None) => {}
            Some(Some(known)) => {
                for (known, new) in known.iter_mut().zip(dims) {
                    *known = match (known.take(), new) {
                        (Some(a), Some(b)) => Some(a.hull(&b, &mut self.analyzer)),
                        _ => None,
                    };
                }
            }
        }
    }

    fn interval(&mut self, min: &PrimExpr, max: &PrimExpr) -> Option<Interval> {
        let (low, high) = (self.running.of(min, &mut self.analyzer)?, self.running.of(max, &mut self.analyzer)?);
        let mut found = Interval { min: low.min, max: high.max };
        for limit in &self.limits {
            let end = if limit.is_least { min } else { max };
            if limit.of.dtype() != end.dtype() {
                continue;
            }
            let apart = self.analyzer.simplify(&(end - &limit.of));
            if self.running.is_still(&apart) {
                let bound = self.analyzer.simplify(&(&limit.bound + apart));
                narrow(&mut found, bound, limit.is_least, &mut self.analyzer);
            }
        }
        Some(found)
    }

    /// What is used where a condition holds, or where it does not.
    fn under(&mut self, condition: &PrimExpr, holds: bool, visit: impl FnOnce(&mut Self)) {
        let before = (self.limits.len(), self.running.clone());
        self.learn(condition, holds);
        visit(self);
        self.limits.truncate(before.0);
        self.running = before.1;
    }

    fn learn(&mut self, condition: &PrimExpr, holds: bool) {
        match condition {
            PrimExpr::Not(n) => self.learn(&n.a, !holds),
            PrimExpr::Call(n) if n.op == "tirx.likely" => n.args.iter().for_each(|inner| self.learn(inner, holds)),
            PrimExpr::Binary(n) => match (n.op, holds) {
                (BinaryOp::And, true) | (BinaryOp::Or, false) => {
                    self.learn(&n.a, holds);
                    self.learn(&n.b, holds);
                }
                (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => self.ordered(&n.a, &n.b, 1),
                (BinaryOp::Le, true) | (BinaryOp::Gt, false) => self.ordered(&n.a, &n.b, 0),
                (BinaryOp::Gt, true) | (BinaryOp::Le, false) => self.ordered(&n.b, &n.a, 1),
                (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => self.ordered(&n.b, &n.a, 0),
                (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                    self.ordered(&n.a, &n.b, 0);
                    self.ordered(&n.b, &n.a, 0);
                }
                (BinaryOp::Ne, true) | (BinaryOp::Eq, false) if n.b.is_int(0) => self.not_zero(&n.a),
                _ => {}
            },
            e if holds && e.dtype().is_int() => self.not_zero(e),
            _ => {}
        }
    }

    /// What is not zero and not negative is positive.
    fn not_zero(&mut self, e: &PrimExpr) {
        let least = self.running.of(e, &mut self.analyzer).map(|interval| interval.min);
        if least.is_some_and(|least| self.analyzer.can_prove(&prim::ge(&least, prim::int_of(least.dtype(), 0)))) {
            self.ordered(&prim::int_of(e.dtype(), 1), e, 0);
        }
    }

    /// `low + gap` is no more than `high`.
    fn ordered(&mut self, low: &PrimExpr, high: &PrimExpr, gap: i64) {
        let dtype = low.dtype();
        if !dtype.is_int() || dtype.lanes != 1 || high.dtype() != dtype || prim::is_data(low) || prim::is_data(high) {
            return;
        }
        let gap = prim::int_of(dtype, gap);
        let (of, bound, is_least) = match (self.running.is_still(low), self.running.is_still(high)) {
            (true, false) => (high.clone(), low + gap, true),
            (false, true) => (low.clone(), high - gap, false),
            _ => return,
        };
        if let PrimExpr::Var(var) = &of
            && let Some(mut range) = self.running.of(&of, &mut self.analyzer)
        {
            narrow(&mut range, bound.clone(), is_least, &mut self.analyzer);
            self.running.insert(var, range);
        }
        self.limits.push(Limit { of, bound, is_least });
    }

    fn element(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) {
        let range = |index: &PrimExpr| match index {
            PrimExpr::Ramp(n) if n.lanes > 0 && n.stride.as_int().is_some_and(|s| s >= 0) => {
                (n.base.clone(), &n.base + &n.stride * prim::int_of(n.base.dtype(), n.lanes - 1))
            }
            _ => (index.clone(), index.clone()),
        };
        self.access(buffer, indices.iter().map(range).collect());
    }
}

impl PrimVisitor for Used {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Load(n) => {
                let BufferLoad { buffer, indices, .. } = &**n;
                self.element(buffer, indices);
            }
            PrimExpr::Let(n) => drop(self.defined.insert(n.var.clone())),
            // Of a choice that computes one side alone.
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" && n.args.len() == 3 => {
                self.visit_prim(&n.args[0]);
                self.under(&n.args[0], true, |used| used.visit_prim(&n.args[1]));
                self.under(&n.args[0], false, |used| used.visit_prim(&n.args[2]));
                return;
            }
            _ => {}
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Used {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.visit_prim(&n.min);
                self.visit_prim(&n.extent);
                self.defined.insert(n.var.clone());
                // The range of a loop that may have no iteration would say that it has one.
                if n.extent.as_int().is_some_and(|count| count > 0) {
                    self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
                }
                self.running.add(&n.var, &n.min, &n.extent, &mut self.analyzer);
                self.visit_stmt(&n.body);
            }
            Stmt::Bind(n) => {
                self.visit_prim(&n.value);
                self.defined.insert(n.var.clone());
                if let Some(interval) = self.running.of(&n.value, &mut self.analyzer) {
                    self.running.insert(&n.var, interval);
                }
            }
            Stmt::Store(n) => {
                self.element(&n.buffer, &n.indices);
                self.walk_stmt(stmt);
            }
            Stmt::Block(n) => {
                self.defined.extend(n.block.iter_vars.iter().map(|iter| iter.var.clone()));
                for matched in &n.block.match_buffers {
                    let region = &matched.source.region;
                    let range = |r: &Ref<Range>| {
                        let ends = Interval::of_range(&r.min, &r.extent);
                        (ends.min, ends.max)
                    };
                    self.access(&matched.source.buffer, region.iter().map(range).collect());
                }
                n.iter_values.iter().for_each(|v| self.visit_prim(v));
                self.visit_prim(&n.predicate);
                self.under(&n.predicate, true, |used| {
                    n.block.init.iter().chain([&n.block.body]).for_each(|s| used.visit_stmt(s));
                });
            }
            Stmt::If(n) => {
                self.visit_prim(&n.condition);
                self.under(&n.condition, true, |used| used.visit_stmt(&n.then_case));
                if let Some(otherwise) = &n.else_case {
                    self.under(&n.condition, false, |used| used.visit_stmt(otherwise));
                }
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// An interval cut at a bound that is known to lie inside of it.
fn narrow(interval: &mut Interval, bound: PrimExpr, is_least: bool, analyzer: &mut Analyzer) {
    if is_least && analyzer.can_prove(&prim::ge(&bound, &interval.min)) {
        interval.min = bound;
    } else if !is_least && analyzer.can_prove(&prim::le(&bound, &interval.max)) {
        interval.max = bound;
    }
}
