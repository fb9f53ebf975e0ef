//! Moving a block under a loop: which part of its axes is needed there, and the loops over that part.
//!
//! What is needed is a box of a buffer: for `compute_at` the box that the consumers under the loop read, for
//! `reverse_compute_at` the box that the producers under the loop write. Inverting the block's own access `B[vi, vj * 2]`
//! turns the box into a range of each axis; an axis that the access does not tell keeps its whole range. The block then
//! stands under new loops `ax0, ax1, …` over these ranges. Where a range may reach outside of the axis, a condition guards
//! the block.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, VarMap};

use super::compute_inline::compute_inline;
use super::gaps::leaves_gaps;
use super::inversion::{inverted, quotients};
use super::reverse_compute_inline::reverse_compute_inline;
use super::structure::{body_list, holds, loop_inside, loops_around, own_nest, with_body_list};
use crate::analysis::affine::conjuncts;
use crate::analysis::interval::{Interval, Running};
use crate::analysis::regions::{substitute_region, widened};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, StmtRef, replace};
use crate::s_tir::{LoopRV, Mark, SBlockRV, Schedule, ScheduleError};
use crate::stmt::*;

/// Which way a block moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To those that read what it writes.
    ToConsumers,
    /// To those that write what it reads.
    ToProducers,
}

/// A move that has been asked for, with what it is about looked up.
struct Move<'a> {
    way: Way,
    place: &'a StmtRef,
    realize: Ref<SBlockRealize>,
    target: NodeId,
    scope: &'a Scope<'a>,
    /// Producers or consumers, as the way asks.
    others: Vec<NodeId>,
}

/// Moves a block to a place that is a loop, or was sampled: then it may stay where it stands, or be inlined. `index` is where in the loop's body: -1 is the last place that is right, -2 the first.
pub(super) fn move_block(
    sch: &mut Schedule,
    way: Way,
    block: &Ref<SBlockRV>,
    loop_: &Ref<LoopRV>,
    keep_unit: bool,
    index: i64,
) -> Result<(), ScheduleError> {
    match (sch.mark(loop_), way) {
        (Some(Mark::Root), _) => return sch.block_ref(block).map(drop),
        (Some(Mark::Inline), Way::ToConsumers) => return compute_inline(sch, block),
        (Some(Mark::Inline), Way::ToProducers) => return reverse_compute_inline(sch, block),
        (None, _) => {}
    }
    let (place, outer) = (sch.block_ref(block)?, sch.loop_ref(loop_)?);
    let (realize, given) = (place.realize()?, outer.for_loop()?);
    let tree = &place.tree;
    let scope = Scope::new(tree, place.scope()?);
    let target = tree.find_loop(&given.var).filter(|_| place.func == outer.func);
    let target = target.ok_or_else(|| ScheduleError::at_loop(&given, "the loop is in another function"))?;
    let others = match way {
        Way::ToConsumers => scope.consumers(place.node),
        Way::ToProducers => scope.producers(place.node),
    };
    let m = Move { way, place: &place, realize: realize.clone(), target, scope: &scope, others };
    m.check(&given)?;
    let nest = m.nest(keep_unit)?;
    let stmt = &tree.node(target).stmt;
    let list = body_list(stmt);
    let at = m.position(&list, index, &given)?;
    let mut list: Vec<Stmt> = list;
    list.insert(at, nest);
    let body = &sch.func(&place.func)?.body;
    let changes = [(own_nest(tree, place.node), Stmt::nop()), (stmt.clone(), with_body_list(stmt, list))];
    let body = replace(body, &changes);
    sch.commit(&place.func, body, &[])
}

impl Move<'_> {
    fn refuse(&self, reason: String) -> ScheduleError {
        ScheduleError::at_block(&self.realize.block, reason)
    }

    fn name(&self, id: NodeId) -> &str {
        self.place.tree.as_block(id).map_or("", |n| n.block.name.as_str())
    }

    fn check(&self, given: &For) -> Result<(), ScheduleError> {
        let (tree, node) = (&self.place.tree, self.place.node);
        let name = &self.realize.block.name;
        if tree.scope_of(self.target) != Some(self.scope.root) {
            let reason = format!("loop `{}` and block `{name}` are not in the same block scope", given.var.name);
            return Err(ScheduleError::at_loop(given, reason));
        }
        if tree.contains(self.target, node) {
            let reason = format!("loop `{}` is already an ancestor of block `{name}`", given.var.name);
            return Err(
                ScheduleError::at_loop(given, reason).with_help("to move it outwards, reorder or split the loops")
            );
        }
        let (complete, reduction) = (self.scope.why_not_complete(node), self.scope.why_not_reduction(node));
        if let (Some(a), Some(b)) = (complete, reduction) {
            let reason = format!("block `{name}` is neither a complete block ({a}) nor a reduction block ({b})");
            return Err(self.refuse(reason).with_help("decompose a reduction after it is moved, not before"));
        }
        let what = if self.way == Way::ToConsumers { "consumers" } else { "producers" };
        if self.way == Way::ToConsumers && self.scope.is_output(node) {
            let reason = format!(
                "block `{name}` is an output block: it writes a result of the kernel, all of which must be computed"
            );
            return Err(self.refuse(reason).with_help("cache_write first, and move the block that computes the cache"));
        }
        if self.others.is_empty() && !(self.way == Way::ToProducers && node > self.target) {
            return Err(self.refuse(format!("block `{name}` has no {what}")));
        }
        let own = loops_around(tree, node);
        if let Some(l) = loop_inside(&self.realize.block, &own) {
            let reason =
                format!("block `{name}` uses the counter of loop `{}`, which is not one of its axes", l.var.name);
            return Err(self.refuse(reason));
        }
        if let Some(id) = self.others.iter().find(|id| !tree.contains(self.target, **id)) {
            let reason = format!(
                "it requires all the {what} of block `{name}` to be under loop `{1}`, and block `{0}` is not",
                self.name(*id),
                given.var.name
            );
            return Err(ScheduleError::at_loop(given, reason).with_help(format!("choose a loop around all {what}")));
        }
        if self.way == Way::ToProducers { self.check_finished(given) } else { Ok(()) }
    }

    /// What the producers write under one iteration of the loop is finished there: no loop outside goes on adding to it.
    fn check_finished(&self, given: &For) -> Result<(), ScheduleError> {
        let tree = &self.place.tree;
        let outer: Vec<Ref<Var>> = tree
            .loops_above(self.target)
            .into_iter()
            .chain([self.target])
            .filter_map(|id| tree.as_loop(id).filter(|l| !l.extent.is_int(1)).map(|l| l.var.clone()))
            .collect();
        for id in &self.others {
            let Some(n) = tree.as_block(*id) else { continue };
            self.check_box(given, *id, n)?;
            for (iter, value) in n.block.iter_vars.iter().zip(&n.iter_values) {
                let used = prim::free_vars(value);
                if iter.kind == IterKind::Reduce
                    && let Some(var) = outer.iter().find(|v| used.contains(v))
                {
                    let reason = format!(
                        "block `{}` still adds to what `{}` reads in later iterations of loop `{}`",
                        n.block.name, self.realize.block.name, var.name
                    );
                    return Err(ScheduleError::at_loop(given, reason)
                        .with_help(format!("choose a loop outside of `{}`, or reorder it inwards", var.name)));
                }
            }
        }
        Ok(())
    }

    /// A producer writes all of the box that it writes in one iteration of the loop: its loops leave no gaps, and its condition
    /// cuts nothing out but for what lies outside of its axes.
    fn check_box(&self, given: &For, id: NodeId, n: &SBlockRealize) -> Result<(), ScheduleError> {
        let tree = &self.place.tree;
        let loops = loops_around(tree, id);
        let inner: Vec<&Ref<For>> = loops.iter().skip_while(|l| l.var != given.var).skip(1).collect();
        let mut analyzer = Analyzer::new();
        for l in &loops {
            analyzer.mark_dims([&l.extent]);
            analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
        }
        for (iter, value) in n.block.iter_vars.iter().zip(&n.iter_values) {
            analyzer.mark_dims([&iter.extent]);
            let inside = prim::lt(value, &iter.min + &iter.extent);
            let _stays = analyzer.assume(&inside);
        }
        let mut spatial =
            n.block.iter_vars.iter().zip(&n.iter_values).filter(|(iter, _)| iter.kind == IterKind::Spatial);
        if let Some((iter, _)) = spatial.find(|(_, value)| leaves_gaps(value, &inner)) {
            let reason = format!(
                "block `{}` does not write all of its box along `{}` in one iteration of loop `{}`",
                n.block.name, iter.var.name, given.var.name
            );
            return Err(ScheduleError::at_loop(given, reason).with_help("choose a loop further out or further in"));
        }
        for condition in conjuncts(&n.predicate) {
            let used = prim::free_vars(&condition);
            if inner.iter().any(|l| used.contains(&l.var)) && !analyzer.can_prove(&condition) {
                let reason = format!(
                    "block `{}` writes a part of its box only, where `{condition}`, under loop `{}`",
                    n.block.name, given.var.name
                );
                return Err(ScheduleError::at_loop(given, reason).with_help("choose a loop further out or further in"));
            }
        }
        Ok(())
    }

    /// Loops that the values of a reduction axis come from are executed one iteration after another.
    fn check_order(&self, axis: &Var, value: &PrimExpr) -> Result<(), ScheduleError> {
        let (tree, used) = (&self.place.tree, prim::free_vars(value));
        for id in tree.all_loops_above(self.target).into_iter().chain([self.target]) {
            let Some(l) = tree.as_loop(id).filter(|l| used.contains(&l.var)) else { continue };
            if !matches!(l.kind, ForKind::Serial | ForKind::Unrolled) {
                let reason = format!(
                    "block `{}` would be reduced along `{}` by loop `{}`, whose iterations run at the same time",
                    self.realize.block.name, axis.name, l.var.name
                );
                return Err(ScheduleError::at_loop(l, reason).with_help("move it before the loop is marked"));
            }
        }
        Ok(())
    }

    /// Where in the loop's body the block goes.
    fn position(&self, list: &[Stmt], index: i64, given: &For) -> Result<usize, ScheduleError> {
        let tree = &self.place.tree;
        let at = |id: &NodeId| list.iter().position(|s| holds(s, &tree.node(*id).stmt));
        let producers = self.scope.producers(self.place.node);
        let consumers = self.scope.consumers(self.place.node);
        let first = producers.iter().filter_map(at).max().map_or(0, |last| last + 1);
        let last = consumers.iter().filter_map(at).min().unwrap_or(list.len());
        if first > last {
            let reason =
                format!("there is no place in loop `{}` behind the producers and before the consumers", given.var.name);
            return Err(ScheduleError::at_loop(given, reason));
        }
        match usize::try_from(index) {
            Ok(at) if (first..=last).contains(&at) => Ok(at),
            Err(_) if index == -1 => Ok(last),
            Err(_) if index == -2 => Ok(first),
            _ => {
                let reason = format!("index {index} is not in {first} ..= {last}, nor -1 (last) or -2 (first)");
                Err(ScheduleError::at_loop(given, reason))
            }
        }
    }

    /// The boxes of buffers that are needed, each by the accesses of one other block.
    fn required(&self, analyzer: &mut Analyzer) -> HashMap<Ref<relaxide_ir::Buffer>, Vec<Interval>> {
        let tree = &self.place.tree;
        for id in tree.all_loops_above(self.target).into_iter().chain([self.target]) {
            if let Some(l) = tree.as_loop(id) {
                analyzer.mark_dims([&l.extent]);
                analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
            }
        }
        let mut required: HashMap<Ref<relaxide_ir::Buffer>, Vec<Interval>> = HashMap::new();
        for id in &self.others {
            let Some(n) = tree.as_block(*id) else { continue };
            let inner = loops_around(tree, *id);
            let outside = inner.iter().position(|l| tree.find_loop(&l.var) == Some(self.target)).map_or(0, |at| at + 1);
            for l in &inner[outside..] {
                analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
            }
            let axes: VarMap =
                n.block.iter_vars.iter().map(|i| i.var.clone()).zip(n.iter_values.iter().cloned()).collect();
            let (theirs, mine) = match self.way {
                Way::ToConsumers => (&n.block.reads, &self.realize.block.writes),
                Way::ToProducers => (&n.block.writes, &self.realize.block.reads),
            };
            for region in theirs.iter().filter(|r| mine.iter().any(|m| m.buffer == r.buffer)) {
                let mut running = self.sharing(&region.buffer.scope, analyzer);
                for l in &inner[outside..] {
                    running.add(&l.var, &l.min, &l.extent, analyzer);
                }
                let dims = widened(&substitute_region(region, &axes), &running, analyzer);
                match required.get_mut(&region.buffer) {
                    None => drop(required.insert(region.buffer.clone(), dims)),
                    Some(known) => {
                        for (known, new) in known.iter_mut().zip(&dims) {
                            *known = known.hull(new, analyzer);
                        }
                    }
                }
            }
        }
        required
    }

    /// The threads that see one memory of a scope, as counters that run: what each of them needs of it is needed.
    fn sharing(&self, scope: &str, analyzer: &mut Analyzer) -> Running {
        let tree = &self.place.tree;
        let mut running = Running::default();
        for id in tree.all_loops_above(self.target).into_iter().chain([self.target]) {
            let Some(l) = tree.as_loop(id).filter(|l| l.kind == ForKind::ThreadBinding) else { continue };
            let shares = match scope {
                "warp" => l.thread_tag == "threadIdx.x",
                _ => scope.starts_with("shared") && !l.thread_tag.starts_with("blockIdx"),
            };
            if shares {
                running.add(&l.var, &l.min, &l.extent, analyzer);
            }
        }
        running
    }

    /// Over all iterations of the loops around, the range of an axis comes to the whole axis: a border that reads nothing of
    /// its producers is written as well.
    fn check_whole(&self, iter: &IterVar, range: &Interval, analyzer: &mut Analyzer) -> Result<(), ScheduleError> {
        let tree = &self.place.tree;
        let mut running = Running::default();
        for id in tree.all_loops_above(self.target).into_iter().chain([self.target]) {
            if let Some(l) = tree.as_loop(id) {
                running.add(&l.var, &l.min, &l.extent, analyzer);
            }
        }
        let whole = Interval::of_range(&iter.min, &iter.extent);
        let (low, high) = (running.of(&range.min, analyzer), running.of(&range.max, analyzer));
        let all = low.zip(high).map(|(low, high)| low.hull(&high, analyzer));
        match all.is_some_and(|all| all.covers(&whole, analyzer)) {
            true => Ok(()),
            false => {
                let reason = format!(
                    "under this loop block `{}` would not take all values of axis `{}`",
                    self.realize.block.name, iter.var.name
                );
                Err(self.refuse(reason).with_help("choose a loop further out"))
            }
        }
    }

    /// What the block reads at these values of its axes is among what the producers write under one iteration of the loop.
    fn check_made(
        &self,
        made: &HashMap<Ref<relaxide_ir::Buffer>, Vec<Interval>>,
        at: &Running,
        analyzer: &mut Analyzer,
    ) -> Result<(), ScheduleError> {
        for region in &self.realize.block.reads {
            let Some(made) = made.get(&region.buffer) else { continue };
            let read = widened(region, at, analyzer);
            if !made.iter().zip(&read).all(|(made, read)| made.covers(read, analyzer)) {
                let reason = format!(
                    "block `{}` reads more of `{}` than its producers have written in one iteration of the loop",
                    self.realize.block.name, region.buffer.name
                );
                return Err(self.refuse(reason).with_help("choose a loop further out"));
            }
        }
        Ok(())
    }

    /// The block under loops over the part of its axes that is needed.
    fn nest(&self, keep_unit: bool) -> Result<Stmt, ScheduleError> {
        let block = &self.realize.block;
        let mut analyzer = Analyzer::new();
        let required = self.required(&mut analyzer);
        let mut ranges: HashMap<Ref<Var>, Interval> = HashMap::new();
        let mine = if self.way == Way::ToConsumers { &block.writes } else { &block.reads };
        for region in mine {
            let Some(dims) = required.get(&region.buffer) else { continue };
            let found = quotients(&region.region, dims, &mut analyzer);
            let told: Vec<Ref<Var>> = found.iter().map(|(var, _)| var.clone()).collect();
            ranges.extend(found);
            for (range, needed) in region.region.iter().zip(dims) {
                if range.min.as_var().is_none() && prim::free_vars(&range.min).iter().any(|v| told.contains(v)) {
                    continue;
                }
                for (var, part) in inverted(range, needed, block, &mut analyzer) {
                    let joined = match ranges.get(&var) {
                        Some(known) => known.hull(&part, &mut analyzer),
                        None => part,
                    };
                    ranges.insert(var, joined);
                }
            }
        }
        let mut at = Running::default();
        let (mut loops, mut values, mut predicate) = (Vec::new(), Vec::new(), prim::boolean(true));
        for iter in &block.iter_vars {
            let whole = Interval::of_range(&iter.min, &iter.extent);
            let needed = ranges.remove(&iter.var).unwrap_or_else(|| whole.clone());
            let (range, guarded) = within(needed, &whole, &mut analyzer);
            if self.way == Way::ToProducers {
                self.check_whole(iter, &range, &mut analyzer)?;
            }
            let extent = range.extent(&mut analyzer);
            let value = if extent.is_int(1) && !keep_unit {
                range.min.clone()
            } else {
                let var = Var::prim(format!("ax{}", loops.len()), extent.dtype());
                let value = &range.min + &var;
                analyzer.bind(&var, prim::int_of(extent.dtype(), 0), extent.clone());
                loops.push((var, extent));
                value
            };
            if guarded {
                for condition in [prim::ge(&value, &iter.min), prim::lt(&value, &iter.min + &iter.extent)] {
                    if !analyzer.can_prove(&condition) {
                        predicate = prim::and(predicate, condition);
                    }
                }
            }
            if iter.kind == IterKind::Reduce {
                self.check_order(&iter.var, &value)?;
            }
            values.push(value);
            at.insert(&iter.var, range);
        }
        if self.way == Way::ToProducers {
            self.check_made(&required, &at, &mut analyzer)?;
        }
        let predicate = analyzer.simplify_as_tvm(&predicate);
        let realize = SBlockRealize { iter_values: values, predicate, block: block.clone() };
        let innermost: Stmt = Ref::new(realize).into();
        Ok(loops.into_iter().rev().fold(innermost, |body, (var, extent)| Stmt::serial(var, extent, body)))
    }
}

/// The part of an axis that is looped over, and whether it may reach outside of the axis.
fn within(needed: Interval, whole: &Interval, analyzer: &mut Analyzer) -> (Interval, bool) {
    if whole.covers(&needed, analyzer) {
        return (needed, false);
    }
    if needed.covers(whole, analyzer) {
        return (whole.clone(), false);
    }
    (needed, true)
}
