//! Rules for devices: the threads of a block work together, by memory that they share and barriers.
//!
//! A rule binds its loops itself ([`launch`](super::super::threads::launch)); what no rule takes is an element a thread
//! ([`threads`](super::super::threads)).

mod product;
mod reduction;
mod rowwise;
mod scan;
mod shared_loops;
mod sort;
mod team;
mod tensor_core;
mod transpose;
mod vectors;

pub use rowwise::fits as fits_threads;
pub use sort::SORTS_RANKS;

use super::super::parameters::{Choices, Domain, Guess};
use super::super::record::Record;
use super::super::threads::THREADS as ALONE;
use super::super::{Cx, Machine, Reduce, Refusal, ScheduleError, Stage, Work};
use super::rule::{Entry, apply, first};
use super::{fallback, independent, merge};
use crate::Stmt;
use crate::lower::DeviceLimits;

/// Bytes of the largest access of a thread.
const ACCESS: i64 = 16;

const MAPS: &[Entry<Stage>] = &[
    Entry { name: "shared transpose", apply: transpose::apply },
    Entry { name: "vector elements", apply: apply::<vectors::Vectors> },
    Entry { name: "fallback", apply: apply::<fallback::Elements> },
];

const REDUCTIONS: &[Entry<Reduce>] = &[
    Entry { name: "tensor-core product", apply: apply::<tensor_core::TensorCores> },
    Entry { name: "tiled product", apply: product::apply },
    Entry { name: "shared reduction", apply: reduction::apply },
    Entry { name: "fallback", apply: apply::<fallback::Sums> },
];

const OPAQUE: &[Entry<Stmt>] = &[
    Entry { name: "shared scan", apply: |cx, stmt, choices| inside(stmt, |body| scan::apply(cx, body, choices)) },
    Entry { name: "shared sort", apply: |cx, stmt, choices| inside(stmt, |body| sort::apply(cx, body, choices)) },
    Entry {
        name: "shared loops",
        apply: |cx, stmt, choices| inside(stmt, |body| shared_loops::apply(cx, body, choices)),
    },
    Entry { name: "independent", apply: rows_apart },
    Entry { name: "opaque", apply: |_, stmt, _| Ok(fallback::opaque(stmt)) },
];

const PLAIN: &[Entry<Reduce>] = &[Entry { name: "fallback", apply: apply::<fallback::Sums> }];

/// The name of the rule for stages that share rows.
const ROWS: &str = "shared rows";

/// The rules' names.
pub fn names() -> Vec<&'static str> {
    let rows = MAPS.iter().map(|row| row.name).chain(REDUCTIONS.iter().map(|row| row.name));
    let mut names: Vec<&str> = rows.chain(OPAQUE.iter().map(|row| row.name)).chain([ROWS]).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The nest of a piece of work over the threads of a device.
pub(super) fn schedule(
    cx: &mut Cx,
    limits: DeviceLimits,
    work: &Work,
    name: String,
    record: &mut Record<'_>,
) -> Result<Stmt, ScheduleError> {
    match work {
        Work::Map(stage) => first(cx, MAPS, stage, name, record),
        Work::Reduce(reduce) => {
            let plain = reduce.stage.reduce.iter().any(|a| a.extent.is_int(0)) || reduce.output.dtype.is_packed();
            if plain {
                first(cx, PLAIN, reduce, name, record)
            } else {
                first(cx, REDUCTIONS, &merge::reduce(reduce), name, record)
            }
        }
        Work::Rows(rows) => {
            let key = record.key(&name);
            let mut choices = Choices::of(record.asked(&key));
            match rowwise::apply(&cx.machine, limits, rows, &mut choices) {
                Ok(stmt) => {
                    record.settle_with(name, ROWS, choices)?;
                    Ok(stmt)
                }
                Err(refusal) => Err(ScheduleError::NoRule { stage: name, reason: refusal.to_string() }),
            }
        }
        Work::BackToBack(_) => {
            Err(ScheduleError::NoRule { stage: name, reason: "devices take products one by one".into() })
        }
        Work::Opaque(stmt) => first(cx, OPAQUE, stmt, name, record),
    }
}

/// What a rule makes of loops, which may be the body of a block that is nothing but a body.
fn inside(stmt: &Stmt, apply: impl FnOnce(&Stmt) -> Result<Stmt, Refusal>) -> Result<Stmt, Refusal> {
    let Stmt::Block(realize) = stmt else { return apply(stmt) };
    let body = apply(independent::plain(realize).ok_or_else(|| Refusal::new("its block has axes"))?)?;
    Ok(Stmt::seq(realize.block.alloc_buffers.iter().map(Stmt::alloc).chain([body])))
}

/// Loops whose iterations have nothing to do with each other, a thread each.
fn rows_apart(cx: &mut Cx, stmt: &Stmt, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    let threads = alone(&cx.machine, choices);
    let made = with_blocks_of(cx, threads, |cx| independent::apply(cx, stmt));
    made.ok_or_else(|| Refusal::new("its iterations depend on each other"))
}

/// Threads of a block where threads do not work together; none on processors.
pub(super) fn alone(machine: &Machine, choices: &mut Choices<'_>) -> Option<i64> {
    let most = team::power_of_two(machine.device?.threads);
    Some(choices.choose(Guess {
        name: "threads",
        value: ALONE.min(most),
        domain: Domain::powers_of_two(ALONE.min(32).min(most), most),
        reason: "few, since what is left over of the last block does nothing",
        limit: "a block has at least a warp, and no more threads than the target allows",
    }))
}

/// Emits loops whose iterations go to blocks of so many threads.
pub(super) fn with_blocks_of<T>(cx: &mut Cx, threads: Option<i64>, emit: impl FnOnce(&mut Cx) -> T) -> T {
    let outside = std::mem::replace(&mut cx.machine.block, threads);
    let made = emit(cx);
    cx.machine.block = outside;
    made
}

/// The limits of the device that rules of this folder are asked for.
fn limits(cx: &Cx) -> Result<DeviceLimits, Refusal> {
    limits_of(&cx.machine)
}

fn limits_of(machine: &Machine) -> Result<DeviceLimits, Refusal> {
    machine.device.ok_or_else(|| Refusal::new("it is no device"))
}

/// Threads of a block: a power of two.
fn threads(choices: &mut Choices<'_>, limits: DeviceLimits, guess: i64, reason: &'static str) -> i64 {
    let most = team::power_of_two(limits.threads);
    choices.choose(Guess {
        name: "threads",
        value: guess.min(most),
        domain: Domain::powers_of_two(32.min(most), most),
        reason,
        limit: "a block has at least a warp, and no more threads than the target allows; results are put together by halves",
    })
}
