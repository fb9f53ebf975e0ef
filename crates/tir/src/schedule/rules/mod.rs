//! The table of rules: for each kind of work, the rules in the order in which they are asked.

mod clipped;
mod contraction;
mod conv;
mod depthwise;
mod device;
mod elementwise;
mod fallback;
mod independent;
mod interleave;
mod kept_row;
mod long_columns;
mod matmul;
mod merge;
mod reduction;
mod register_tile;
mod row;
mod rowwise;
mod transpose;
mod window;

pub use contraction::Contraction;
pub use device::SORTS_RANKS;
pub(super) use device::fits_threads;
pub use row::has_choice;
pub(super) use window::{Window, slide};

use super::{Cx, Note, Reduce, Refusal, ScheduleError, Stage, Work};
use crate::Stmt;

/// A rule: its name and its function.
struct Rule<T> {
    name: &'static str,
    apply: fn(&mut Cx, &T) -> Result<Stmt, Refusal>,
}

const MAPS: &[Rule<Stage>] = &[
    Rule { name: "interleave", apply: interleave::apply },
    Rule { name: "transpose", apply: transpose::apply },
    Rule { name: "elementwise", apply: elementwise::apply },
    Rule { name: "fallback", apply: fallback::map },
];

const REDUCTIONS: &[Rule<Reduce>] = &[
    Rule { name: "conv", apply: conv::apply },
    Rule { name: "depthwise", apply: depthwise::apply },
    Rule { name: "matmul", apply: matmul::apply },
    Rule { name: "reduction", apply: reduction::apply },
    Rule { name: "fallback", apply: fallback::reduce },
];

const PLAIN: &[Rule<Reduce>] = &[Rule { name: "fallback", apply: fallback::reduce }];

/// Merges axes that move together, and makes the loop nest of a piece of work by the first rule that does not refuse.
/// Work on a tensor without elements is none.
pub fn schedule(cx: &mut Cx, work: &Work, notes: &mut Vec<Note>) -> Result<Stmt, ScheduleError> {
    let name = work.name();
    let spatial = match work {
        Work::Map(stage) => Some(&stage.spatial),
        Work::Reduce(reduce) => Some(&reduce.stage.spatial),
        Work::Rows(_) | Work::Opaque(_) => None,
    };
    if spatial.is_some_and(|axes| axes.iter().any(|a| a.extent.is_int(0))) {
        notes.push(Note { stage: name, rule: "empty", refused: Vec::new() });
        return Ok(Stmt::nop());
    }
    if let Some(limits) = cx.machine.device {
        return device::schedule(cx, limits, work, name, notes);
    }
    match work {
        Work::Map(stage) => first(cx, MAPS, &merge::run(stage), name, notes),
        Work::Reduce(reduce) => {
            // Without terms there is nothing to lay out: the plain loops store what the reduction starts from.
            let plain = reduce.stage.reduce.iter().any(|a| a.extent.is_int(0));
            let rules = if plain { PLAIN } else { REDUCTIONS };
            first(cx, rules, &merge::reduce(reduce), name, notes)
        }
        Work::Rows(rows) => {
            notes.push(Note { stage: name, rule: "rowwise", refused: Vec::new() });
            rowwise::apply(cx, rows, notes)
        }
        Work::Opaque(stmt) => {
            let rows = independent::apply(cx, stmt);
            let rule = if rows.is_some() { "independent" } else { "opaque" };
            notes.push(Note { stage: name, rule, refused: Vec::new() });
            Ok(rows.unwrap_or_else(|| fallback::opaque(stmt)))
        }
    }
}

fn first<T>(
    cx: &mut Cx,
    rules: &[Rule<T>],
    work: &T,
    stage: String,
    notes: &mut Vec<Note>,
) -> Result<Stmt, ScheduleError> {
    let mut refused = Vec::new();
    for rule in rules {
        match (rule.apply)(cx, work) {
            Ok(stmt) => {
                notes.push(Note { stage, rule: rule.name, refused });
                return Ok(stmt);
            }
            Err(refusal) => refused.push((rule.name, refusal)),
        }
    }
    let reason = refused.pop().map_or_else(|| "there is none".into(), |(_, r)| r.to_string());
    Err(ScheduleError::NoRule { stage, reason })
}
