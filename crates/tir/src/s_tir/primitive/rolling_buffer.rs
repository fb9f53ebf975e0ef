//! `rolling_buffer`: of a buffer whose box moves along with a loop, only the box is kept, and only what is new is computed.
//!
//! ```text
//! for i in range(8):                               for i in range(8):
//!     for ax0, ax1 in T.grid(3, 10):                   for ax0, ax1 in T.grid(3, 10):
//!         B[i + ax0, ax1] = …                  ->          if i < 1 or 2 <= ax0:
//!     for j, k in T.grid(8, 3):                                B[(i + ax0) % 3, ax1] = …
//!         C[i, j] += B[i + k, j]                       for j, k in T.grid(8, 3):
//!                                                          C[i, j] += B[(i + k) % 3, j]
//! ```
//!
//! The block computes the buffer under a loop around all that read it, as `compute_at` leaves it. Along each dimension the
//! box begins at a number, or at a multiple of a loop (divided perhaps); where it moves by less than its extent, boxes of
//! successive iterations overlap. Along the dimension that moves with the outermost such loop the buffer becomes as long as
//! the box, and indices go round in it. Nothing in the box is computed again that the iteration before has computed, along
//! any dimension. Iterations now depend on each other: loops around run in order, and the axes that move with the loop
//! promise nothing any more.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, VarMap, free_vars};
use relaxide_ir::{Buffer, Var};

use super::caching::only_writer;
use super::rebuffer::Rebuffer;
use super::split::analyzer_at;
use super::structure::{around_all, loops_around, nth_buffer};
use crate::IndexMap;
use crate::analysis::interval::{Interval, Running};
use crate::analysis::regions::{substitute_region, widened};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, StmtRef, copy_block, replace};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "RollingBuffer",
    method: "rolling_buffer",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("write_buffer_index")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let region = nth_buffer(&realize.block, call.int(0)?, &realize.block.writes, "writes")?;
    let at = common_loop(&place, &region.buffer)?;
    let rolling = Rolling::of(&place, &realize, &region, at)?;
    rolling.check_order(&place, at)?;
    let func = sch.func(&place.func)?;
    let body = replace(&func.body, &rolling.changed_blocks(&place, &realize, at));
    sch.commit(&place.func, body, &[])?;
    let new = Ref::new(rolling.shortened());
    Rebuffer::new(&rolling.buffer, &new, Some(&rolling.round())).commit(sch, &place.func)?;
    Ok(Vec::new())
}

/// The innermost loop around the block and all that read the buffer.
fn common_loop(place: &StmtRef, buffer: &Ref<Buffer>) -> Result<NodeId, ScheduleError> {
    let (n, root) = (place.realize()?, place.scope()?);
    let (tree, block) = (&place.tree, &n.block);
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let scope = Scope::new(tree, root);
    if let (Some(a), Some(b)) = (scope.why_not_complete(place.node), scope.why_not_reduction(place.node)) {
        return Err(refuse(format!(
            "block `{}` is neither a complete block ({a}) nor a reduction block ({b})",
            block.name
        )));
    }
    if scope.is_output(place.node) {
        return Err(refuse(format!(
            "block `{}` is an output block: it writes a result of the kernel, all of which is kept",
            block.name
        )));
    }
    only_writer(&scope, tree, buffer)?;
    if tree.blocks().any(|(_, n)| n.block.match_buffers.iter().any(|m| m.source.buffer == *buffer)) {
        return Err(refuse(format!("a block sees a part of buffer `{}` under another name", buffer.name)));
    }
    let readers = scope.children.iter().copied().filter(|id| *id != place.node && scope.reads(*id, buffer));
    let all: Vec<NodeId> = [place.node].into_iter().chain(readers).collect();
    match around_all(tree, &all).filter(|at| all.len() > 1 && tree.as_loop(*at).is_some()) {
        Some(at) => Ok(at),
        None => {
            Err(refuse(format!("no loop is around block `{}` and all that read buffer `{}`", block.name, buffer.name))
                .with_help("compute_at brings a block under a loop of its consumer"))
        }
    }
}

/// A dimension along which the box moves with a loop.
struct Moving {
    dim: usize,
    var: Ref<Var>,
    /// The least index of the box.
    begin: PrimExpr,
    /// How many elements the boxes of two iterations share.
    overlap: i64,
}

struct Rolling {
    buffer: Ref<Buffer>,
    moving: Vec<Moving>,
    /// Which of them goes round, and the extent of the box along it.
    rolled: usize,
    extent: i64,
}

impl Rolling {
    fn of(place: &StmtRef, n: &SBlockRealize, region: &BufferRegion, at: NodeId) -> Result<Rolling, ScheduleError> {
        let (tree, block, buffer) = (&place.tree, &n.block, &region.buffer);
        let refuse = |reason: String| {
            ScheduleError::at_block(block, reason).with_help(
                "split the loops so that the box moves by a fixed number of elements, and by less than it holds",
            )
        };
        let outer: Vec<Ref<For>> =
            tree.loops_above(at).into_iter().chain([at]).filter_map(|id| tree.as_loop(id).cloned()).collect();
        let dims = box_of(place, n, region, at);
        let mut moving = Vec::new();
        let mut extents = Vec::new();
        let mut analyzer = Analyzer::new();
        for (dim, part) in dims.iter().enumerate() {
            let extent = part.extent(&mut analyzer).as_int();
            extents.push(extent);
            if !free_vars(&part.min).iter().any(|v| outer.iter().any(|l| l.var == *v)) {
                continue;
            }
            let (Some((var, step)), Some(extent)) = (step_of(&part.min), extent) else {
                let (begin, name) = (&part.min, &buffer.name);
                return Err(refuse(format!("along dimension {dim} the box of buffer `{name}` begins at {begin}")));
            };
            if extent > step {
                moving.push(Moving { dim, var, begin: part.min.clone(), overlap: extent - step });
            }
        }
        let rolled = outer.iter().find_map(|l| moving.iter().position(|m| m.var == l.var));
        let Some(rolled) = rolled else {
            let reason = format!("boxes of buffer `{}` in successive iterations do not overlap", buffer.name);
            return Err(refuse(reason));
        };
        let extent = extents.get(moving[rolled].dim).copied().flatten().unwrap_or(1);
        Ok(Rolling { buffer: buffer.clone(), moving, rolled, extent })
    }

    /// Loops around run in order from zero on, and what is computed in one iteration is finished there.
    fn check_order(&self, place: &StmtRef, at: NodeId) -> Result<(), ScheduleError> {
        let (tree, n) = (&place.tree, place.realize()?);
        for id in tree.all_loops_above(at).into_iter().chain([at]) {
            let Some(l) = tree.as_loop(id) else { continue };
            if !matches!(l.kind, ForKind::Serial | ForKind::Unrolled) && !l.extent.is_int(1) {
                let reason = format!(
                    "iterations of loop `{}` run at the same time, and would share buffer `{}`",
                    l.var.name, self.buffer.name
                );
                return Err(ScheduleError::at_loop(l, reason).with_help("roll the buffer before loops are marked"));
            }
            if self.moving.iter().any(|m| m.var == l.var) && !l.min.is_int(0) {
                return Err(ScheduleError::at_loop(l, format!("loop `{}` does not begin at zero", l.var.name)));
            }
            if self.moving.iter().filter(|m| m.var == l.var).count() > 1 {
                let reason = format!(
                    "the box of buffer `{}` moves along several dimensions with loop `{}`",
                    self.buffer.name, l.var.name
                );
                return Err(ScheduleError::at_loop(l, reason));
            }
            let reduces = |(iter, value): (&Ref<IterVar>, &PrimExpr)| {
                iter.kind == IterKind::Reduce && free_vars(value).contains(&l.var)
            };
            if n.block.iter_vars.iter().zip(&n.iter_values).any(reduces) {
                let reason =
                    format!("block `{}` is reduced by loop `{}`, outside of what reads it", n.block.name, l.var.name);
                return Err(ScheduleError::at_loop(l, reason));
            }
        }
        let own = |m: &Moving| {
            let region = n.block.writes.iter().find(|w| w.buffer == self.buffer)?;
            region.region.get(m.dim).filter(|r| r.extent.is_int(1))?.min.as_var().cloned()
        };
        match self.moving.iter().find(|m| own(m).is_none_or(|v| !n.block.iter_vars.iter().any(|i| i.var == v))) {
            None => Ok(()),
            Some(m) => {
                let reason = format!(
                    "block `{}` does not write dimension {} of buffer `{}` at an axis",
                    n.block.name, m.dim, self.buffer.name
                );
                Err(ScheduleError::at_block(&n.block, reason))
            }
        }
    }

    /// The block under the condition that it computes what is new, and blocks whose axes move with the loop.
    fn changed_blocks(&self, place: &StmtRef, own: &Ref<SBlockRealize>, at: NodeId) -> Vec<(Stmt, Stmt)> {
        let tree = &place.tree;
        let rolled = &self.moving[self.rolled].var;
        let mut changes = Vec::new();
        for id in tree.child_blocks(at) {
            let Some(n) = tree.as_block(id) else { continue };
            let kind_of = |(iter, value): (&Ref<IterVar>, &PrimExpr)| {
                if iter.kind != IterKind::Spatial || !free_vars(value).contains(rolled) {
                    return iter.clone();
                }
                let (var, min, extent) = (iter.var.clone(), iter.min.clone(), iter.extent.clone());
                Ref::new(IterVar { var, min, extent, kind: IterKind::Opaque })
            };
            let iter_vars = n.block.iter_vars.iter().zip(&n.iter_values).map(kind_of).collect();
            let block = Ref::new(SBlock { iter_vars, ..copy_block(&n.block) });
            let predicate = if n == own { self.is_new(n) } else { n.predicate.clone() };
            let changed = SBlockRealize { iter_values: n.iter_values.clone(), predicate, block };
            changes.push((n.clone().into(), Ref::new(changed).into()));
        }
        changes
    }

    fn is_new(&self, n: &SBlockRealize) -> PrimExpr {
        let mut analyzer = Analyzer::new();
        let region = n.block.writes.iter().find(|w| w.buffer == self.buffer);
        self.moving.iter().fold(n.predicate.clone(), |all, m| {
            let axis = region.and_then(|r| r.region.get(m.dim)).and_then(|r| r.min.as_var());
            let value =
                n.block.iter_vars.iter().zip(&n.iter_values).find(|(i, _)| axis == Some(&i.var)).map(|(_, v)| v);
            let Some(value) = value else { return all };
            let inside = analyzer.simplify_as_tvm(&(value - &m.begin));
            let first = prim::lt(&m.var, prim::int_of(m.var.dtype(), 1));
            prim::and(all, prim::or(first, prim::le(prim::int_of(inside.dtype(), m.overlap), inside)))
        })
    }

    /// The buffer, as long as the box along the dimension that goes round.
    fn shortened(&self) -> Buffer {
        let old = &self.buffer;
        let rolled = self.moving[self.rolled].dim;
        let dim = |(d, dim): (usize, &PrimExpr)| {
            if d == rolled { prim::int_of(dim.dtype(), self.extent) } else { dim.clone() }
        };
        Buffer {
            name: old.name.clone(),
            data: old.data.clone(),
            dtype: old.dtype,
            shape: old.shape.iter().enumerate().map(dim).collect(),
            strides: Vec::new(),
            elem_offset: old.elem_offset.clone(),
            scope: old.scope.clone(),
            alignment: old.alignment,
            offset_factor: old.offset_factor,
            layout: relaxide_ir::layout::Placement::Strided,
            producer: None,
        }
    }

    /// How indices go round.
    fn round(&self) -> IndexMap {
        let rolled = self.moving[self.rolled].dim;
        let vars: Vec<Ref<Var>> =
            self.buffer.shape.iter().enumerate().map(|(d, dim)| Var::prim(format!("i{d}"), dim.dtype())).collect();
        let index = |(d, var): (usize, &Ref<Var>)| {
            if d == rolled { prim::floormod(var, prim::int_of(var.dtype(), self.extent)) } else { PrimExpr::from(var) }
        };
        let final_indices = vars.iter().enumerate().map(index).collect();
        IndexMap { initial_indices: vars, final_indices, inverse_index_map: None }
    }
}

/// What the block writes in one iteration of a loop, whether inside of the buffer or not.
fn box_of(place: &StmtRef, n: &SBlockRealize, region: &BufferRegion, at: NodeId) -> Vec<Interval> {
    let tree = &place.tree;
    let mut analyzer = analyzer_at(tree, place.node);
    let mut running = Running::default();
    let inner = loops_around(tree, place.node);
    let outside = tree.loops_above(at).len() + 1;
    for l in inner.iter().skip(outside) {
        running.add(&l.var, &l.min, &l.extent, &mut analyzer);
    }
    let axes: VarMap = n.block.iter_vars.iter().map(|i| i.var.clone()).zip(n.iter_values.iter().cloned()).collect();
    widened(&substitute_region(region, &axes), &running, &mut analyzer)
}

/// The loop that an index moves with, and by how much at most: `i`, `i * 4`, `i * 3 // 2`.
fn step_of(begin: &PrimExpr) -> Option<(Ref<Var>, i64)> {
    if let Some(var) = begin.as_var() {
        return Some((var.clone(), 1));
    }
    let PrimExpr::Binary(n) = begin else { return None };
    let by = n.b.as_int().filter(|by| *by > 0)?;
    match (n.op, n.a.as_var()) {
        (BinaryOp::Mul, Some(var)) => Some((var.clone(), by)),
        (BinaryOp::FloorDiv, _) => {
            let (var, step) =
                step_of(&n.a).filter(|_| !matches!(&n.a, PrimExpr::Binary(a) if a.op == BinaryOp::FloorDiv))?;
            Some((var, (step + by - 1) / by))
        }
        _ => None,
    }
}

impl Schedule {
    /// Keeps of a buffer that a block computes under a loop only the box that moves along, and computes only what is new.
    pub fn rolling_buffer(&mut self, block: &Ref<SBlockRV>, write_buffer_index: i64) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block)], vec![write_buffer_index.into()])
    }
}
