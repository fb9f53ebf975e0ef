//! `merge`: loop nests that stand one behind the other become one.
//!
//! ```text
//! for i, j in T.grid(16, 24):                  for i_m, j_m in T.grid(16, 24):
//!     B[i, j] = A[i, j] * 2             ->         B[i_m, j_m] = A[i_m, j_m] * 2
//! for i, j in T.grid(16, 24):                      C[i_m, j_m] = B[i_m, j_m] + 1
//!     C[i, j] = B[i, j] + 1
//! ```
//!
//! The given loops are merged with those around them, up to the innermost loop or block around them all. The nests have the
//! same extents, level by level, and hold nothing beside each other. They come to stand where the last one stood.
//!
//! An iteration of a later nest may need what an earlier nest makes in the same iteration, and nothing that the earlier nest
//! makes later: what it reads must lie in what is written there, by then finished. A later nest writes nothing that an
//! earlier one touches in other iterations: both touch one element, whose indices are the merged loops.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars};
use relaxide_ir::{Buffer, Var};

use super::split::check_plain;
use super::structure::{around_all, body_list, loops_around, with_body_list};
use crate::analysis::interval::{Interval, Running};
use crate::analysis::regions::{substitute_region, widened};
use crate::functor::substitute_stmt;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{NodeId, Tree, replace};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "Merge",
    method: "merge",
    is_pure: false,
    params: &[Param::Splat],
    results: Results::One,
    apply,
};

/// A nest that is merged: its loops, the outermost first.
struct Nest {
    ids: Vec<NodeId>,
    loops: Vec<Ref<For>>,
}

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let places = call.loops()?.iter().map(|l| sch.loop_ref(l)).collect::<Result<Vec<_>, _>>()?;
    let [first, _, ..] = places.as_slice() else {
        return Err(ScheduleError::Operand("merge needs at least two loops".into()));
    };
    let tree = &first.tree;
    for place in &places {
        if place.func != first.func || tree.scope_of(place.node) != tree.scope_of(first.node) {
            return Err(ScheduleError::at_loop(&*place.for_loop()?, "the loops are not in one scope"));
        }
    }
    let parent = around_all(tree, &places.iter().map(|place| place.node).collect::<Vec<_>>())
        .ok_or_else(|| ScheduleError::Operand("there is no block around the loops".into()))?;
    let nests = places.iter().map(|place| nest(tree, place.node, parent)).collect::<Result<Vec<_>, _>>()?;
    check_shapes(tree, &nests)?;
    check_dependences(tree, parent, &nests)?;

    let fresh = |l: &Ref<For>| Var::new(format!("{}_m", l.var.name), l.var.ty.clone());
    let vars: Vec<Ref<Var>> = nests[0].loops.iter().map(fresh).collect();
    let bodies = nests.iter().filter_map(|nest| {
        let merged = |(l, var): (&Ref<For>, &Ref<Var>)| (l.var.clone(), prim::cast(l.var.dtype(), var));
        let map: VarMap = nest.loops.iter().zip(&vars).map(merged).collect();
        nest.loops.last().map(|inner| substitute_stmt(&inner.body, &map))
    });
    let innermost = Stmt::seq(bodies.collect::<Vec<_>>());
    let levels = vars.iter().zip(&nests[0].loops).rev();
    let merged = levels.fold(innermost, |body, (var, l)| Stmt::serial(var.clone(), l.extent.clone(), body));

    let last = nests.len() - 1;
    let outermost = |nest: &Nest| tree.node(nest.ids[0]).stmt.clone();
    let stands: Vec<Stmt> = nests.iter().map(outermost).collect();
    let around = &tree.node(parent).stmt;
    let list = body_list(around).into_iter().filter_map(|stmt| match stands.iter().position(|s| *s == stmt) {
        Some(at) if at == last => Some(merged.clone()),
        Some(_) => None,
        None => Some(stmt),
    });
    let changed = with_body_list(around, list.collect());
    let body = replace(&sch.func(&first.func)?.body, &[(around.clone(), changed)]);
    sch.commit(&first.func, body, &[])?;
    let inner = vars.last().ok_or_else(|| ScheduleError::Operand("there is no loop to merge".into()))?;
    Ok(vec![Value::Loop(first.func.clone(), inner.clone())])
}

fn nest(tree: &Tree, given: NodeId, parent: NodeId) -> Result<Nest, ScheduleError> {
    let mut ids = vec![given];
    while let Some(outer) = tree.node(ids[ids.len() - 1]).parent.filter(|outer| *outer != parent) {
        ids.push(outer);
    }
    ids.reverse();
    let loops: Vec<Ref<For>> = ids.iter().filter_map(|id| tree.as_loop(*id).cloned()).collect();
    for pair in loops.windows(2) {
        if pair[0].body != Stmt::For(pair[1].clone()) {
            let reason = format!("loop `{}` holds more than loop `{}`", pair[0].var.name, pair[1].var.name);
            return Err(ScheduleError::at_loop(&pair[0], reason));
        }
    }
    loops.iter().try_for_each(|l| check_plain(l))?;
    match body_list(&tree.node(parent).stmt).iter().any(|stmt| *stmt == tree.node(ids[0]).stmt) {
        true => Ok(Nest { ids, loops }),
        false => Err(ScheduleError::at_loop(&loops[0], "the nest stands inside of another statement")),
    }
}

/// The nests stand in the order given, and have as many loops of the same extents.
fn check_shapes(tree: &Tree, nests: &[Nest]) -> Result<(), ScheduleError> {
    let mut analyzer = Analyzer::new();
    for (before, nest) in nests.iter().zip(&nests[1..]) {
        let (first, outer) = (&nests[0], &nest.loops[0]);
        if before.ids[0] >= nest.ids[0] {
            return Err(ScheduleError::at_loop(outer, "the loops are not given in the order that they stand in"));
        }
        if nest.loops.len() != first.loops.len() {
            let (here, there) = (nest.loops.len(), first.loops.len());
            let reason = format!("{here} loops are to be merged with {there}");
            return Err(ScheduleError::at_loop(outer, reason).with_help("give loops of the same depth"));
        }
        for (a, b) in first.loops.iter().zip(&nest.loops) {
            if !analyzer.can_prove_equal(&a.extent, &prim::cast(a.extent.dtype(), b.extent.clone())) {
                let reason = format!("loop `{}` has {} iterations, not {}", b.var.name, b.extent, a.extent);
                return Err(ScheduleError::at_loop(b, reason));
            }
            let used = free_vars(&b.extent);
            if let Some(l) = nest.loops.iter().find(|l| used.contains(&l.var)) {
                let reason = format!("the extent of `{}` depends on `{}`", b.var.name, l.var.name);
                return Err(ScheduleError::at_loop(b, reason));
            }
        }
    }
    debug_assert!(nests.iter().all(|nest| nest.ids.iter().all(|id| tree.as_loop(*id).is_some())));
    Ok(())
}

fn touched(regions: &[Ref<BufferRegion>]) -> impl Iterator<Item = &Ref<Buffer>> {
    regions.iter().map(|region| &region.buffer)
}

/// The buffer that two blocks may not touch in another order, if there is one: one of them writes it.
fn conflict<'a>(a: &'a SBlock, b: &'a SBlock) -> Option<&'a Ref<Buffer>> {
    let in_b = |buffer: &&Ref<Buffer>| touched(&b.writes).chain(touched(&b.reads)).any(|other| other == *buffer);
    let writes = |buffer: &&Ref<Buffer>| touched(&b.writes).any(|other| other == *buffer);
    touched(&a.writes).find(in_b).or_else(|| touched(&a.reads).find(writes))
}

fn check_dependences(tree: &Tree, parent: NodeId, nests: &[Nest]) -> Result<(), ScheduleError> {
    let blocks = |id: NodeId| match tree.as_block(id) {
        Some(_) => vec![id],
        None => tree.child_blocks(id),
    };
    for (at, nest) in nests.iter().enumerate() {
        for made in blocks(nest.ids[0]) {
            let Some(a) = tree.as_block(made) else { continue };
            for later in &nests[at + 1..] {
                for id in blocks(later.ids[0]) {
                    check_pair(tree, (nest, made), (later, id))?;
                }
            }
            // What stands between the nests is executed in front of them.
            let last = nests[nests.len() - 1].ids[0];
            for between in tree.node(parent).children.iter().filter(|id| **id > nest.ids[0] && **id < last) {
                if nests.iter().any(|nest| nest.ids[0] == *between) {
                    continue;
                }
                for b in blocks(*between).into_iter().filter_map(|id| tree.as_block(id)) {
                    if let Some(buffer) = conflict(&a.block, &b.block) {
                        let (mine, other) = (&a.block.name, &b.block.name);
                        let reason = format!(
                            "block `{mine}` would move behind block `{other}`, and both touch buffer `{}`",
                            buffer.name
                        );
                        return Err(ScheduleError::at_block(&a.block, reason));
                    }
                }
            }
        }
    }
    Ok(())
}

/// A block of a later nest gets from one of an earlier nest what it needs in time.
fn check_pair(tree: &Tree, earlier: (&Nest, NodeId), later: (&Nest, NodeId)) -> Result<(), ScheduleError> {
    let (Some(maker), Some(user)) = (tree.as_block(earlier.1), tree.as_block(later.1)) else { return Ok(()) };
    let refuse = |reason: String| Err(ScheduleError::at_block(&user.block, reason));
    let (a, b) = (&maker.block.name, &user.block.name);
    for buffer in touched(&user.block.writes) {
        let theirs = maker.block.reads.iter().chain(&maker.block.writes).filter(|r| r.buffer == *buffer);
        let mine = user.block.writes.iter().filter(|r| r.buffer == *buffer);
        let apart =
            |(a, b): (&Ref<BufferRegion>, &Ref<BufferRegion>)| same_element(earlier.0, maker, a, later.0, user, b);
        let theirs: Vec<&Ref<BufferRegion>> = theirs.collect();
        if mine.flat_map(|b| theirs.iter().map(move |a| (*a, b))).any(|pair| !apart(pair)) {
            return refuse(format!(
                "block `{b}` writes buffer `{}`, which block `{a}` touches in other iterations",
                buffer.name
            ));
        }
    }
    for read in &user.block.reads {
        let Some(written) = maker.block.writes.iter().find(|w| w.buffer == read.buffer) else { continue };
        let merged = |var: &Ref<Var>| earlier.0.loops.iter().any(|l| l.var == *var);
        for (iter, value) in maker.block.iter_vars.iter().zip(&maker.iter_values) {
            if iter.kind != IterKind::Spatial && free_vars(value).iter().any(merged) {
                let name = &iter.var.name;
                return refuse(format!("block `{a}` goes on along `{name}` after block `{b}` reads what it writes"));
            }
        }
        let mut analyzer = Analyzer::new();
        let levels = later.0.loops.iter().zip(&earlier.0.loops);
        let map: VarMap = levels.map(|(l, m)| (l.var.clone(), prim::cast(l.var.dtype(), &m.var))).collect();
        let there = in_one_iteration(tree, earlier.0, maker, earlier.1, written, &VarMap::new(), &mut analyzer);
        let here = in_one_iteration(tree, later.0, user, later.1, read, &map, &mut analyzer);
        if !there.iter().zip(&here).all(|(written, read)| written.covers(read, &mut analyzer)) {
            return refuse(format!(
                "block `{b}` reads of buffer `{}` what block `{a}` has not written in the same iteration",
                read.buffer.name
            ));
        }
    }
    Ok(())
}

/// Whether two blocks touch, in each iteration of the merged loops, one element, the same, and another one in each iteration.
fn same_element(
    earlier: &Nest,
    maker: &SBlockRealize,
    a: &BufferRegion,
    later: &Nest,
    user: &SBlockRealize,
    b: &BufferRegion,
) -> bool {
    let at = |n: &SBlockRealize, region: &BufferRegion| -> Option<Vec<PrimExpr>> {
        let axes = n.block.iter_vars.iter().map(|i| i.var.clone()).zip(n.iter_values.iter().cloned()).collect();
        let point = |r: &Ref<Range>| r.extent.is_int(1).then(|| r.min.clone());
        substitute_region(region, &axes).region.iter().map(point).collect()
    };
    let (Some(there), Some(here)) = (at(maker, a), at(user, b)) else { return false };
    let levels = later.loops.iter().zip(&earlier.loops);
    let map: VarMap = levels.map(|(l, m)| (l.var.clone(), prim::cast(l.var.dtype(), &m.var))).collect();
    let mut analyzer = Analyzer::new();
    let same = there.iter().zip(&here).all(|(a, b)| analyzer.can_prove_equal(a, &prim::substitute(b, &map)));
    let counted = |l: &Ref<For>| l.extent.is_int(1) || there.iter().any(|index| index.as_var() == Some(&l.var));
    same && earlier.loops.iter().all(counted)
}

/// What a block touches while the loops inside of the merged ones run.
fn in_one_iteration(
    tree: &Tree,
    nest: &Nest,
    realize: &Ref<SBlockRealize>,
    id: NodeId,
    region: &BufferRegion,
    rename: &VarMap,
    analyzer: &mut Analyzer,
) -> Vec<Interval> {
    let mut running = Running::default();
    for l in loops_around(tree, id) {
        analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
        analyzer.mark_dims([&l.extent]);
        let inside = tree.find_loop(&l.var).is_some_and(|at| at > nest.ids[nest.ids.len() - 1]);
        if inside {
            running.add(&l.var, &l.min, &l.extent, analyzer);
        }
    }
    let value = |e: &PrimExpr| prim::substitute(e, rename);
    let axes = realize.block.iter_vars.iter().map(|i| i.var.clone()).zip(realize.iter_values.iter().map(value));
    widened(&substitute_region(region, &axes.collect()), &running, analyzer)
}

impl Schedule {
    /// Makes one loop nest of several of the same extents, given by their innermost loops in the order that they stand in.
    pub fn merge(&mut self, loops: &[Ref<LoopRV>]) -> Result<Ref<LoopRV>, StepError> {
        let inputs: Vec<AttrValue> = loops.iter().map(loop_operand).collect();
        self.step_loop(&KIND, inputs, vec![])
    }
}
