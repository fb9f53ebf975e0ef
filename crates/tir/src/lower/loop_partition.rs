//! A loop over a range in which a guard almost always holds becomes loops with and without the guard.
//!
//! ```text
//! for i in range(n):                        for i in range(min(n, 10)):
//!     if T.likely(i < 10):                      A[i] = B[i]
//!         A[i] = B[i]               ->      for i in range(n - min(n, 10)):
//!                                               if i + min(n, 10) < 10:
//!                                                   A[i + min(n, 10)] = B[i + min(n, 10)]
//! ```
//!
//! Conditions that someone has marked as likely are solved for the counter: each comparison that is linear in it holds from or up
//! to a value of it, whatever the loops inside count. Where all of these hold, the conditions go; the iterations before and
//! behind keep them. Order is kept: the loops stand one behind the other.
//!
//! A loop of constant extent is left as it is, since its guards are cheap where it is short, unless it is asked for: by the option
//! `s_tir.LoopPartition` with `partition_const_loop`, or by the loop's annotation `pragma_loop_partition_hint`, which also takes
//! all conditions for likely. Of such a loop, if its extent is constant, the parts that keep conditions are parted in turn.
//!
//! Of the option's other entries, `no_unroll_loop_with_extent_one` keeps parts of one iteration loops, and
//! `unroll_loop_with_partition_hint_no_interval` has loops with that annotation unrolled that cannot be parted.
//!
//! The marks and the annotations go in any case: behind this pass nothing reads them.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::pass::{PassContext, PassInfo};
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, PrimMutator, PrimVisitor, VarMap, free_vars, substitute};

use super::pure::is_pure;
use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::analysis::affine::conjuncts;
use crate::analysis::interval::{Interval, Running};
use crate::early_exit::EarlyExits;
use crate::functor::{StmtMutator, StmtVisitor, fresh_copy, substitute_stmt};
use crate::stmt::*;

/// The option of a pass context that the pass reads.
const OPTION: &str = "s_tir.LoopPartition";

/// The annotation of a loop that asks for it.
const HINTS: [&str; 2] = ["pragma_loop_partition_hint", "loop_partition_hint"];

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.LoopPartition",
    "A loop with a guard that is likely to hold becomes loops with and without it.",
    |func, context, _| partition_loops(func, Options::of(context))
);

/// What the pass is told.
#[derive(Clone, Copy)]
struct Options {
    /// Whether loops of constant extent are looked at.
    const_loops: bool,
    /// Whether a part of one iteration stays a loop.
    keep_single: bool,
    /// Whether a loop that asks for it and cannot be parted is unrolled.
    unroll_hinted: bool,
}

impl Options {
    fn of(context: &PassContext) -> Options {
        let is_set = |key| context.config.entry(OPTION, key) != 0;
        Options {
            const_loops: is_set("partition_const_loop"),
            keep_single: is_set("no_unroll_loop_with_extent_one"),
            unroll_hinted: is_set("unroll_loop_with_partition_hint_no_interval"),
        }
    }
}

/// A kernel whose loops are partitioned by conditions that are likely.
fn partition_loops(func: &PrimFunc, options: Options) -> Result<PrimFunc, LowerError> {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    let body = Partition { analyzer, options }.mutate_stmt(&func.body);
    Ok(func.with_body(Unmark.mutate_stmt(&body)))
}

struct Partition {
    analyzer: Analyzer,
    options: Options,
}

impl PrimMutator for Partition {}

impl Partition {
    fn within(&mut self, n: &Ref<For>) -> Stmt {
        let mark = self.analyzer.assume(&prim::ge(&n.extent, 1));
        self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
        let body = self.mutate_stmt(&n.body);
        self.analyzer.forget(mark);
        if body == n.body { n.clone().into() } else { Stmt::loop_around(n, body) }
    }

    /// The loop in up to three parts, if conditions of it can be solved: all of them together, or, in a loop that asks for it,
    /// the first that holds for some iterations.
    fn split(&mut self, n: &Ref<For>, hinted: bool) -> Option<Stmt> {
        let mut conditions =
            Conditions { all: hinted, found: Vec::new(), running: Running::default(), inside: Vec::new() };
        conditions.visit_stmt(&n.body);
        let mut solved = Vec::new();
        for Condition { condition, running, inside } in &conditions.found {
            let parts = conjuncts(condition).into_iter();
            let parts = parts.filter_map(|part| Some((self.solve(&part, &n.var, running, inside)?, part)));
            solved.push(parts.collect::<Vec<_>>());
        }
        let together: Vec<_> = solved.iter().flatten().cloned().collect();
        let parts = self.parts(n, hinted, &together);
        match hinted && parts.is_none() {
            true => solved.iter().find_map(|one| self.parts(n, hinted, one)),
            false => parts,
        }
    }

    /// The loop without some conditions where all of them hold, between what is in front of that and behind.
    fn parts(&mut self, n: &Ref<For>, hinted: bool, solved: &[(Solution, PrimExpr)]) -> Option<Stmt> {
        if solved.is_empty() {
            return None;
        }
        let end = self.analyzer.simplify(&(&n.min + &n.extent));
        // Between the loop's own ends, whatever the conditions say.
        let mut low = n.min.clone();
        for bound in solved.iter().flat_map(|(bounds, _)| &bounds.low) {
            low = self.larger(&low, bound);
        }
        if solved.iter().any(|(bounds, _)| !bounds.low.is_empty()) {
            low = self.smaller(&low, &end);
        }
        let mut high = end.clone();
        for bound in solved.iter().flat_map(|(bounds, _)| &bounds.high) {
            high = self.smaller(&high, bound);
        }
        let high = self.larger(&high, &low);
        let middle = Without { solved: solved.iter().map(|(_, part)| part.clone()).collect() }.mutate_stmt(&n.body);
        let parts = [(&n.min, &low, None), (&low, &high, Some(middle)), (&high, &end, None)];
        let mut left = Vec::new();
        for (from, to, body) in parts {
            let extent = self.analyzer.simplify(&(to - from));
            if !self.analyzer.can_prove(&prim::le(&extent, 0)) {
                left.push((from, extent, body));
            }
        }
        // Where they hold for no iteration, the loop would be in pieces and as it was.
        if hinted && left.iter().all(|(_, _, body)| body.is_none()) {
            return None;
        }
        let again = hinted && left.iter().all(|(_, extent, _)| extent.as_int().is_some());
        let made = left.into_iter().map(|(from, extent, body)| {
            let again = again && body.is_none();
            let body = body.unwrap_or_else(|| n.body.clone());
            self.part(n, from, extent, body, again)
        });
        Some(Stmt::seq(made.collect::<Vec<_>>()))
    }

    /// Some iterations of a loop, counted from zero, and parted again where that is asked for.
    fn part(&mut self, n: &Ref<For>, from: &PrimExpr, extent: PrimExpr, body: Stmt, again: bool) -> Stmt {
        let zero = prim::int_of(n.var.dtype(), 0);
        let whole: Stmt = Ref::new(For { min: zero, extent, body, ..(**n).clone() }).into();
        let Stmt::For(part) = fresh_copy(&whole) else { return whole };
        let is_plain = part.annotations.0.keys().all(|key| HINTS.contains(&key.as_str()));
        let alone = part.extent.is_int(1) && is_plain && !self.options.keep_single;
        let shifted = if alone { from.clone() } else { prim::add(&part.var, from) };
        let body = substitute_stmt(&part.body, &VarMap::from([(part.var.clone(), shifted)]));
        if alone {
            return self.mutate_stmt(&body);
        }
        let part = Ref::new(For { body, ..(*part).clone() });
        if again { self.mutate_stmt(&part.into()) } else { self.within(&part) }
    }

    /// Whether a condition that can be solved for the counter holds in some iterations and fails in others, as far as known.
    fn is_undecided(&mut self, n: &Ref<For>) -> bool {
        let mut conditions =
            Conditions { all: true, found: Vec::new(), running: Running::default(), inside: Vec::new() };
        conditions.running.add(&n.var, &n.min, &n.extent, &mut Analyzer::new());
        conditions.visit_stmt(&n.body);
        let counter = &n.var;
        conditions.found.iter().any(|Condition { condition, running, inside }| {
            let mut still = running.clone();
            still.stop(counter);
            conjuncts(condition)
                .iter()
                .any(|part| self.solve(part, counter, &still, inside).is_some() && !self.is_decided(part, running))
        })
    }

    /// Whether a comparison holds, or fails, for all values of what runs.
    fn is_decided(&mut self, part: &PrimExpr, running: &Running) -> bool {
        let PrimExpr::Binary(n) = part else { return false };
        let Some(Interval { min, max }) = running.of(&(&n.a - &n.b), &mut self.analyzer) else { return false };
        let decided = match n.op {
            BinaryOp::Lt | BinaryOp::Ge => [prim::lt(&max, 0), prim::ge(&min, 0)],
            BinaryOp::Gt | BinaryOp::Le => [prim::gt(&min, 0), prim::le(&max, 0)],
            BinaryOp::Eq => [prim::gt(&min, 0), prim::lt(&max, 0)],
            _ => return false,
        };
        decided.iter().any(|fact| self.analyzer.can_prove(fact))
    }

    fn larger(&mut self, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        self.analyzer.simplify(&prim::max(a, b))
    }

    fn smaller(&mut self, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        self.analyzer.simplify(&prim::min(a, b))
    }

    /// From which value of a counter on, and in front of which, a comparison holds.
    fn solve(&mut self, part: &PrimExpr, var: &Ref<Var>, running: &Running, inside: &[Ref<Var>]) -> Option<Solution> {
        let PrimExpr::Binary(n) = part else { return None };
        let dtype = n.a.dtype();
        if !dtype.is_int() || dtype.lanes != 1 || dtype != var.dtype() || !is_pure(part) {
            return None;
        }
        // `difference <= most` and `difference >= least`.
        let (most, least) = match n.op {
            BinaryOp::Lt => (Some(-1), None),
            BinaryOp::Le => (Some(0), None),
            BinaryOp::Gt => (None, Some(1)),
            BinaryOp::Ge => (None, Some(0)),
            BinaryOp::Eq => (Some(0), Some(0)),
            _ => return None,
        };
        let difference = &n.a - &n.b;
        let at = |value: PrimExpr| substitute(&difference, &VarMap::from([(var.clone(), value)]));
        let step = &at(prim::add(var, 1)) - &difference;
        let factor = self.analyzer.simplify(&step).as_int().filter(|f| *f != 0)?;
        let rest = running.of(&at(prim::int_of(dtype, 0)), &mut self.analyzer)?;
        let outside = |e: &PrimExpr| !free_vars(e).iter().any(|v| inside.contains(v) || v == var);
        if !outside(&rest.min) || !outside(&rest.max) {
            return None;
        }
        let mut solution = Solution::default();
        // With the largest rest it holds for every one, and the other way round.
        let ends = [(most, rest.max, 1), (least, rest.min, -1)];
        for (limit, rest, sign) in ends {
            let Some(limit) = limit else { continue };
            // `sign * (factor * var + rest) <= sign * limit`
            let room = (prim::int_of(dtype, limit) - rest) * prim::int_of(dtype, sign);
            let divisor = prim::int_of(dtype, (sign * factor).abs());
            let bound = prim::floordiv(room, divisor);
            match sign * factor > 0 {
                true => solution.high.push(self.analyzer.simplify(&(bound + prim::int_of(dtype, 1)))),
                false => solution.low.push(self.analyzer.simplify(&(bound * prim::int_of(dtype, -1)))),
            }
        }
        Some(solution)
    }
}

/// The values of a counter from the largest of the first to in front of the smallest of the second.
#[derive(Clone, Default)]
struct Solution {
    low: Vec<PrimExpr>,
    high: Vec<PrimExpr>,
}

impl StmtMutator for Partition {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        let hinted = HINTS.iter().any(|hint| is_set(n.annotations.get(hint)));
        let looked_at = hinted || self.options.const_loops || n.extent.as_int().is_none();
        // A `break` in one piece would not leave the others.
        let in_pieces = matches!(n.kind, ForKind::Serial | ForKind::Parallel | ForKind::Unrolled)
            && !EarlyExits::of(&n.body).of_loop;
        match looked_at && in_pieces {
            true => {
                let parts = self.split(n, hinted);
                let unrolls = hinted && self.options.unroll_hinted && n.extent.as_int().is_some_and(|count| count > 1);
                match parts {
                    // The loop itself, with fewer conditions.
                    Some(Stmt::For(whole)) if unrolls && whole.extent == n.extent && self.is_undecided(n) => {
                        Ref::new(For { kind: ForKind::Unrolled, ..For::clone(&whole) }).into()
                    }
                    Some(parts) => parts,
                    None if unrolls && self.is_undecided(n) => {
                        self.within(&Ref::new(For { kind: ForKind::Unrolled, ..(**n).clone() }))
                    }
                    None => self.within(n),
                }
            }
            false => self.within(n),
        }
    }
}

/// Whether an annotation is there and neither false nor zero.
fn is_set(value: Option<&AttrValue>) -> bool {
    match value {
        Some(AttrValue::Bool(set)) => *set,
        Some(AttrValue::Int(number)) => *number != 0,
        Some(AttrValue::Prim(e)) => e.as_int().is_some_and(|number| number != 0),
        _ => false,
    }
}

/// A condition, the loops between the one that is looked at and it, and what is defined there.
struct Condition {
    condition: PrimExpr,
    running: Running,
    inside: Vec<Ref<Var>>,
}

/// Collects conditions that are likely.
struct Conditions {
    /// Whether all are.
    all: bool,
    found: Vec<Condition>,
    running: Running,
    inside: Vec<Ref<Var>>,
}

impl Conditions {
    fn condition(&mut self, e: &PrimExpr) {
        let marked = match e {
            PrimExpr::Call(n) if n.op == "tirx.likely" => n.args.first().cloned(),
            _ => self.all.then(|| e.clone()),
        };
        match (marked, e) {
            (Some(condition), _) if condition.dtype().lanes == 1 => {
                self.found.push(Condition { condition, running: self.running.clone(), inside: self.inside.clone() });
            }
            (None, PrimExpr::Binary(n)) if n.op == BinaryOp::And => {
                self.condition(&n.a);
                self.condition(&n.b);
            }
            _ => {}
        }
    }
}

impl PrimVisitor for Conditions {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Select(n) => self.condition(&n.condition),
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" => n.args.iter().take(1).for_each(|c| self.condition(c)),
            PrimExpr::Let(n) => self.inside.push(n.var.clone()),
            _ => {}
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Conditions {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.inside.push(n.var.clone());
                self.running.add(&n.var, &n.min, &n.extent, &mut Analyzer::new());
            }
            Stmt::Bind(n) => self.inside.push(n.var.clone()),
            Stmt::Block(n) => self.inside.extend(n.block.iter_vars.iter().map(|iter| iter.var.clone())),
            Stmt::If(n) => self.condition(&n.condition),
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// Takes comparisons to hold.
struct Without {
    solved: Vec<PrimExpr>,
}

impl PrimMutator for Without {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        if self.solved.contains(e) {
            return prim::boolean(true);
        }
        match self.remake_prim(e) {
            // A choice that is none any more.
            PrimExpr::Call(made) if made.op == "tirx.if_then_else" => match made.args.as_slice() {
                [condition, yes, _] if is_true(condition) => yes.clone(),
                _ => made.into(),
            },
            made => made,
        }
    }
}

impl StmtMutator for Without {}

/// Whether a condition always holds, marked or not.
fn is_true(condition: &PrimExpr) -> bool {
    match condition {
        PrimExpr::Call(n) if n.op == "tirx.likely" => n.args.first().is_some_and(is_true),
        _ => condition.is_int(1),
    }
}

/// Takes marks away.
struct Unmark;

impl PrimMutator for Unmark {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Call(n) if n.op == "tirx.likely" && n.args.len() == 1 => self.mutate_prim(&n.args[0]),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Unmark {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let stmt = self.remake_stmt(stmt);
        let Stmt::For(n) = &stmt else { return stmt };
        if !HINTS.iter().any(|hint| n.annotations.get(hint).is_some()) {
            return stmt;
        }
        let mut annotations = n.annotations.clone();
        annotations.0.retain(|key, _| !HINTS.contains(&key.as_str()));
        Ref::new(For { annotations, ..For::clone(n) }).into()
    }
}
