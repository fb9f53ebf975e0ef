//! `sample_compute_location`: a place to compute a block at, drawn or given as decided.
//!
//! ```text
//! l = sch.sample_compute_location(block, decision=2)
//! sch.compute_at(block, l)                              where -2: inline it, -1: leave it, 2: under loop 2 of its consumer
//! ```
//!
//! The places are those at which `compute_inline` and `compute_at` are legal: the loops around the first consumer, outermost
//! first, as far as all consumers are under them. Loops of one iteration are no places; so are those of a reduction with no
//! spatial loop inside, and spatial ones inside of those of a reduction. A decision that is no place any more becomes the
//! place in front of it. What is drawn may be no loop: `compute_at` and `reverse_compute_at` know these places.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::free_vars;

use super::compute_inline::compute_inline;
use super::moving::{Way, move_block};
use super::structure::around_all;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, StmtRef, Tree};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{LoopRV, Mark, SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "SampleComputeLocation",
    method: "sample_compute_location",
    is_pure: true,
    params: &[Param::Input("block"), Param::Decision],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let block = call.block(0)?;
    let places = places(sch, &block)?;
    let at = match &call.decision {
        Some(AttrValue::Int(decided)) => nearest(&places, *decided),
        Some(AttrValue::Prim(e)) => nearest(&places, e.as_int().unwrap_or(-1)),
        _ => sch.random.below(places.len()),
    };
    let (number, value) = places.get(at).cloned().unwrap_or((-1, Value::Mark(Mark::Root)));
    call.decision = Some(AttrValue::Int(number));
    Ok(vec![value])
}

/// The place of a number, or the one in front of where it would be; the block's own place where there is none.
fn nearest(places: &[(i64, Value)], decided: i64) -> usize {
    let own = places.iter().position(|(number, _)| *number == -1).unwrap_or(0);
    places.iter().rposition(|(number, _)| *number <= decided).unwrap_or(own)
}

/// The places with their numbers, in order of the numbers.
fn places(sch: &Schedule, block: &Ref<SBlockRV>) -> Result<Vec<(i64, Value)>, ScheduleError> {
    let place = sch.block_ref(block)?;
    let tree = &place.tree;
    let consumers = Scope::new(tree, place.scope()?).consumers(place.node);
    let mut found = Vec::new();
    if compute_inline(&mut sch.clone(), block).is_ok() {
        found.push((-2, Value::Mark(Mark::Inline)));
    }
    found.push((-1, Value::Mark(Mark::Root)));
    for (number, l) in candidates(tree, &consumers) {
        if can_stand_under(sch, &place, block, l) {
            found.push((number, Value::Loop(place.func.clone(), l.var.clone())));
        }
    }
    Ok(found)
}

fn can_stand_under(sch: &Schedule, place: &StmtRef, block: &Ref<SBlockRV>, l: &Ref<For>) -> bool {
    let mut trial = sch.clone();
    let rv = Ref::new(LoopRV::default());
    trial.loops.insert(rv.clone(), (place.func.clone(), l.var.clone()));
    move_block(&mut trial, Way::ToConsumers, block, &rv, true, -1).is_ok()
}

/// The loops around all consumers that are worth a try, with their numbers among those around the first.
fn candidates<'t>(tree: &'t Tree, consumers: &[NodeId]) -> Vec<(i64, &'t Ref<For>)> {
    let Some(first) = consumers.first() else { return Vec::new() };
    let Some(innermost) = around_all(tree, consumers).filter(|at| tree.as_loop(*at).is_some()) else {
        return Vec::new();
    };
    let around = tree.loops_above(*first);
    let count = around.iter().position(|id| *id == innermost).map_or(0, |at| at + 1);
    let around = around.get(..count).unwrap_or_default();
    let last_spatial = around.iter().rposition(|id| is_spatial(tree, *id));
    let mut found = Vec::new();
    let mut reduces = false;
    for (number, id) in around.iter().enumerate() {
        let Some(l) = tree.as_loop(*id).filter(|l| !l.extent.is_int(1)) else { continue };
        match is_spatial(tree, *id) {
            true if reduces => break,
            false if last_spatial.is_none_or(|last| number > last) => break,
            spatial => reduces |= !spatial,
        }
        found.push((number as i64, l));
    }
    found
}

/// Whether a loop runs over spatial axes only.
fn is_spatial(tree: &Tree, id: NodeId) -> bool {
    let Some(l) = tree.as_loop(id) else { return false };
    tree.child_blocks(id).into_iter().filter_map(|block| tree.as_block(block)).all(|n| {
        let uses = |value| free_vars(value).contains(&l.var);
        let axes = n.block.iter_vars.iter().zip(&n.iter_values);
        axes.filter(|(_, value)| uses(value)).all(|(iter, _)| iter.kind == IterKind::Spatial)
    })
}

impl Schedule {
    /// A place to compute a block at; `decision` says which: -2 inlines it, -1 leaves it, others are loops of its consumer.
    pub fn sample_compute_location(
        &mut self,
        block: &Ref<SBlockRV>,
        decision: Option<i64>,
    ) -> Result<Ref<LoopRV>, StepError> {
        let made = self.step(&KIND, vec![operand(block)], vec![], decision.map(AttrValue::Int))?;
        let found = made.into_iter().find_map(|rv| if let crate::s_tir::Rv::Loop(l) = rv { Some(l) } else { None });
        found.ok_or_else(|| StepError::new(KIND.method, ScheduleError::NoLoop, self))
    }
}
