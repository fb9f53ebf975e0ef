//! Rules for devices: the threads of a block work together, by memory that they share and barriers.
//!
//! A rule binds its loops itself ([`launch`](super::super::threads::launch)); what no rule takes is an element a thread
//! ([`threads`](super::super::threads)).

mod product;
mod reduction;
mod rowwise;
mod scan;
mod sort;
mod team;
mod transpose;

#[cfg(test)]
mod tests;

pub use rowwise::fits as fits_threads;
pub use sort::SORTS_RANKS;

use super::super::{Cx, Note, Reduce, Refusal, ScheduleError, Stage, Work};
use super::{Rule, fallback, first, independent, merge};
use crate::Stmt;
use crate::lower::DeviceLimits;

const MAPS: &[Rule<Stage>] =
    &[Rule { name: "shared transpose", apply: transpose::apply }, Rule { name: "fallback", apply: fallback::map }];

const REDUCTIONS: &[Rule<Reduce>] = &[
    Rule { name: "tiled product", apply: product::apply },
    Rule { name: "shared reduction", apply: reduction::apply },
    Rule { name: "fallback", apply: fallback::reduce },
];

const OPAQUE: &[Rule<Stmt>] = &[
    Rule { name: "shared scan", apply: |cx, stmt| inside(stmt, |body| scan::apply(cx, body)) },
    Rule { name: "shared sort", apply: |cx, stmt| inside(stmt, |body| sort::apply(cx, body)) },
    Rule { name: "independent", apply: rows_apart },
    Rule { name: "opaque", apply: |_, stmt| Ok(fallback::opaque(stmt)) },
];

const PLAIN: &[Rule<Reduce>] = &[Rule { name: "fallback", apply: fallback::reduce }];

/// The nest of a piece of work over the threads of a device.
pub(super) fn schedule(
    cx: &mut Cx,
    limits: DeviceLimits,
    work: &Work,
    name: String,
    notes: &mut Vec<Note>,
) -> Result<Stmt, ScheduleError> {
    match work {
        Work::Map(stage) => first(cx, MAPS, stage, name, notes),
        Work::Reduce(reduce) => {
            let plain = reduce.stage.reduce.iter().any(|a| a.extent.is_int(0)) || reduce.output.dtype.is_packed();
            if plain {
                first(cx, PLAIN, reduce, name, notes)
            } else {
                first(cx, REDUCTIONS, &merge::reduce(reduce), name, notes)
            }
        }
        Work::Rows(rows) => match rowwise::apply(limits, rows) {
            Ok(stmt) => {
                notes.push(Note { stage: name, rule: "shared rows", refused: Vec::new() });
                Ok(stmt)
            }
            Err(refusal) => Err(ScheduleError::NoRule { stage: name, reason: refusal.to_string() }),
        },
        Work::Opaque(stmt) => first(cx, OPAQUE, stmt, name, notes),
    }
}

/// What a rule makes of loops, which may be the body of a block that is nothing but a body.
fn inside(stmt: &Stmt, apply: impl FnOnce(&Stmt) -> Result<Stmt, Refusal>) -> Result<Stmt, Refusal> {
    let Stmt::Block(realize) = stmt else { return apply(stmt) };
    let body = apply(independent::plain(realize).ok_or_else(|| Refusal::new("its block has axes"))?)?;
    Ok(Stmt::seq(realize.block.alloc_buffers.iter().map(Stmt::alloc).chain([body])))
}

/// Loops whose turns have nothing to do with each other, a thread each.
fn rows_apart(cx: &mut Cx, stmt: &Stmt) -> Result<Stmt, Refusal> {
    independent::apply(cx, stmt).ok_or_else(|| Refusal::new("its turns depend on each other"))
}

/// The limits of the device that rules of this folder are asked for.
fn limits(cx: &Cx) -> Result<DeviceLimits, Refusal> {
    cx.machine.device.ok_or_else(|| Refusal::new("it is no device"))
}
