//! `blockize` of several blocks: what stands one behind the other under one loop becomes one block.
//!
//! ```text
//! for i in range(16):                               for i in range(16):
//!     for j in range(24):                               with T.sblock("outer_B_C_"):
//!         B[vi, vj] = …                     ->              vi_o, vj_o = i, 0
//!     for j in range(24):                                   for j in range(24): B[vi_o, vj_i] = …
//!         C[vi, vj] = … B[vi, vj] …                         for j in range(24): C[vi_o, vj_i] = … B[vi_o, vj_i] …
//! ```
//!
//! Each block is taken apart as [`super::blockize`] does, at the innermost loop or block around all of them. The parts outside
//! must be the same for all, and no reduction that sets its elements may go on outside.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};

use super::blockize::{Axis, KIND, Parts, check_chain, divide};
use super::structure::{around_all, body_list, holds, loops_around, with_body_list};
use crate::analysis::regions::with_regions;
use crate::s_tir::state::{NodeId, StmtRef, copy_loop, replace};
use crate::s_tir::step::operand;
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Tree};
use crate::stmt::*;

/// Makes one block of several.
pub(super) fn blockize_blocks(
    sch: &mut Schedule,
    places: &[StmtRef],
    keep_unit: bool,
) -> Result<Ref<SBlock>, ScheduleError> {
    let Some(first) = places.first() else {
        return Err(ScheduleError::Operand("blockize needs at least one block".into()));
    };
    let tree = &first.tree;
    let scope = first.scope()?;
    for place in places {
        if place.func != first.func || place.scope()? != scope {
            let block = &place.realize()?.block;
            return Err(ScheduleError::at_block(block, format!("block `{}` is in another scope", block.name)));
        }
    }
    let parent = around_all(tree, &places.iter().map(|place| place.node).collect::<Vec<_>>()).unwrap_or(scope);
    let around = &tree.node(parent).stmt;
    let mut list = body_list(around);
    let from = consecutive(tree, places, &list)?;
    let mut taken: Option<Taken> = None;
    let (mut nests, mut reuse, mut name) = (Vec::new(), Vec::new(), String::from("outer_"));
    for place in places {
        let realize = place.realize()?;
        let loops = loops_around(tree, place.node);
        let at = loops.iter().position(|l| tree.as_loop(parent) == Some(l)).map_or(0, |at| at + 1);
        check_chain(&loops[at..], &realize)?;
        let mut parts = divide(&realize, &loops, at, keep_unit)?;
        if parts.sets_outside {
            let reason = format!("block `{}` is reduced outside of the new block, too", realize.block.name);
            return Err(ScheduleError::at_block(&realize.block, reason).with_help("decompose_reduction first"));
        }
        match &taken {
            Some(taken) => taken.adopt(&mut parts, &realize.block)?,
            None => taken = Some(Taken::of(&parts)),
        }
        let inner = parts.inner(&realize);
        reuse.push((realize.block.clone(), inner.block.clone()));
        name = format!("{name}{}_", realize.block.name);
        let innermost: Stmt = inner.into();
        let nest = loops[at..].iter().rev().fold(innermost, |body, l| Ref::new(For { body, ..copy_loop(l) }).into());
        nests.push(nest);
    }
    let Some(Taken { axes, values, predicate }) = taken else {
        return Err(ScheduleError::Operand("blockize needs at least one block".into()));
    };
    let block = with_regions(SBlock {
        iter_vars: axes,
        reads: Vec::new(),
        writes: Vec::new(),
        name,
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: relaxide_ir::Attrs::new(),
        init: None,
        body: Stmt::seq(nests),
    });
    let outer: Stmt = Ref::new(SBlockRealize { iter_values: values, predicate, block: block.clone() }).into();
    list.splice(from..from + places.len(), [outer]);
    let changed = with_body_list(around, list);
    let body = replace(&sch.func(&first.func)?.body, &[(around.clone(), changed)]);
    sch.commit(&first.func, body, &reuse)?;
    Ok(block)
}

/// Where the statements that hold the blocks begin; they stand one behind the other.
fn consecutive(tree: &Tree, places: &[StmtRef], list: &[Stmt]) -> Result<usize, ScheduleError> {
    let at = |id: NodeId| list.iter().position(|stmt| holds(stmt, &tree.node(id).stmt));
    let found: Vec<Option<usize>> = places.iter().map(|place| at(place.node)).collect();
    for (place, (before, here)) in places[1..].iter().zip(found.iter().zip(&found[1..])) {
        if before.map(|before| before + 1) != *here {
            let block = &place.realize()?.block;
            let reason = format!("block `{}` does not stand directly behind the one named before it", block.name);
            return Err(ScheduleError::at_block(block, reason));
        }
    }
    found
        .first()
        .copied()
        .flatten()
        .ok_or_else(|| ScheduleError::Operand("a block stands inside of another statement".into()))
}

/// The parts outside, as the first block has them.
struct Taken {
    axes: Vec<Ref<IterVar>>,
    values: Vec<PrimExpr>,
    predicate: PrimExpr,
}

impl Taken {
    fn of(parts: &Parts) -> Taken {
        let outside = |axis: &Axis| (axis.outer.clone(), axis.outer_value.clone());
        let (axes, values) = parts.axes.iter().map(outside).unzip();
        Taken { axes, values, predicate: parts.outer_predicate.clone() }
    }

    /// Puts these parts outside in the place of another block's, which are the same.
    fn adopt(&self, parts: &mut Parts, block: &SBlock) -> Result<(), ScheduleError> {
        let mut analyzer = Analyzer::new();
        let mut same = |a: &PrimExpr, b: &PrimExpr| analyzer.can_prove_equal(a, b);
        let alike =
            parts.axes.len() == self.axes.len()
                && parts.axes.iter().zip(self.axes.iter().zip(&self.values)).all(|(mine, (axis, value))| {
                    same(&mine.outer.extent, &axis.extent) && same(&mine.outer_value, value)
                })
                && same(&parts.outer_predicate, &self.predicate);
        if !alike {
            let reason = format!("the axes of block `{}` run otherwise outside than those of the first", block.name);
            return Err(ScheduleError::at_block(block, reason));
        }
        for (mine, axis) in parts.axes.iter_mut().zip(&self.axes) {
            let map = VarMap::from([(mine.outer.var.clone(), PrimExpr::from(&axis.var))]);
            mine.whole = substitute(&mine.whole, &map);
            mine.outer = axis.clone();
        }
        Ok(())
    }
}

impl Schedule {
    /// Makes one block of several that stand one behind the other. The block outside.
    pub fn blockize_blocks(&mut self, blocks: &[Ref<SBlockRV>]) -> Result<Ref<SBlockRV>, StepError> {
        let list = AttrValue::List(blocks.iter().map(operand).collect());
        self.step_block(&KIND, vec![list], vec![true.into()])
    }
}
