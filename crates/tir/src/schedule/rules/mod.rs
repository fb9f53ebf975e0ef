//! The table of rules: for each kind of work, the rules in the order in which they are asked.

mod back_to_back;
mod cached_columns;
mod cached_row;
mod channel_lanes;
mod clipped;
mod column_terms;
mod contraction;
mod conv;
mod depthwise;
mod device;
mod elementwise;
mod fallback;
mod gathered;
mod independent;
mod interleave;
mod lifted_choice;
mod masked_depthwise;
mod matmul;
mod merge;
mod reduction;
mod register_tile;
mod row;
mod row_sides;
mod rowwise;
mod rule;
mod separable;
mod transpose;
mod window;

pub(super) use column_terms::has_column_terms;
pub use contraction::{Contraction, words};
pub use depthwise::copies_image;
pub use device::SORTS_RANKS;
pub(super) use device::fits_threads;
pub use register_tile::tile_columns;
pub use row::has_choice;
pub(super) use window::{Window, slide};

pub(super) use rule::threads_from;
use rule::{Entry, apply, first, with_threads};

use super::parameters::Choices;
use super::record::Record;
use super::{Cx, Reduce, ScheduleError, Stage, Work};
use crate::Stmt;
use crate::functor::fresh_copy;

const MAPS: &[Entry<Stage>] = &[
    Entry { name: "interleave", apply: apply::<interleave::Interleave> },
    Entry { name: "transpose", apply: apply::<transpose::Transpose> },
    Entry { name: "gathered", apply: apply::<gathered::Gathered> },
    Entry { name: "elementwise", apply: apply::<elementwise::Elementwise> },
    Entry { name: "fallback", apply: apply::<fallback::Elements> },
];

const REDUCTIONS: &[Entry<Reduce>] = &[
    Entry { name: "conv", apply: apply::<conv::Convolution> },
    Entry { name: "channel_lanes", apply: apply::<channel_lanes::ShortRows> },
    Entry { name: "masked_depthwise", apply: apply::<masked_depthwise::MaskedDepthwise> },
    Entry { name: "depthwise", apply: apply::<depthwise::Depthwise> },
    Entry { name: "matmul", apply: apply::<matmul::MatrixProduct> },
    Entry { name: "separable", apply: apply::<separable::Separable> },
    Entry { name: "column_terms", apply: apply::<column_terms::ColumnTerms> },
    Entry { name: "reduction", apply: apply::<reduction::Reductions> },
    Entry { name: "fallback", apply: apply::<fallback::Sums> },
];

/// Names of rules that are no rows of a table: those of several stages, of loops, and of nothing.
const OTHERS: &[&str] = &[super::back_to_back::NAME, "rowwise", "independent", "opaque", "empty"];

/// The rules for processors and those for devices, by the names that notes have for them.
pub fn names() -> [Vec<&'static str>; 2] {
    let rows = MAPS.iter().map(|row| row.name).chain(REDUCTIONS.iter().map(|row| row.name));
    let mut own: Vec<&str> = rows.chain(OTHERS.iter().copied()).collect();
    own.sort_unstable();
    own.dedup();
    [own, device::names()]
}

const PLAIN: &[Entry<Reduce>] = &[Entry { name: "fallback", apply: apply::<fallback::Sums> }];

/// The nest of a stage; two where a choice is the same for all of its elements.
fn map(cx: &mut Cx, stage: &Stage, name: String, record: &mut Record<'_>) -> Result<Stmt, ScheduleError> {
    let Some(condition) = lifted_choice::same_for_all(stage) else {
        return first(cx, MAPS, &merge::run(stage), name, record);
    };
    let mut side = |holds: bool| {
        let value = lifted_choice::decided(&stage.value, &condition, holds);
        map(cx, &Stage { value, ..stage.clone() }, name.clone(), record)
    };
    let (taken, other) = (side(true)?, fresh_copy(&side(false)?));
    Ok(Stmt::if_else(condition, taken, other))
}

/// Merges axes that move together, and makes the loop nest of a piece of work by the first rule that does not refuse.
/// Work on a tensor without elements is none.
pub fn schedule(cx: &mut Cx, work: &Work, record: &mut Record<'_>) -> Result<Stmt, ScheduleError> {
    let name = work.name();
    let spatial = match work {
        Work::Map(stage) => Some(&stage.spatial),
        Work::Reduce(reduce) => Some(&reduce.stage.spatial),
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => None,
    };
    if spatial.is_some_and(|axes| axes.iter().any(|a| a.extent.is_int(0))) {
        record.settle(name, "empty")?;
        return Ok(Stmt::nop());
    }
    if let Some(limits) = cx.machine.device {
        return device::schedule(cx, limits, work, name, record);
    }
    match work {
        Work::Map(stage) => map(cx, stage, name, record),
        Work::Reduce(reduce) => {
            // Without terms there is nothing to lay out: the plain loops store what the reduction starts from.
            let plain = reduce.stage.reduce.iter().any(|a| a.extent.is_int(0));
            let rules = if plain { PLAIN } else { REDUCTIONS };
            first(cx, rules, &merge::reduce(reduce), name, record)
        }
        Work::Rows(rows) => {
            let Some(decided) = &rows.decided else {
                return Err(ScheduleError::NoRule { stage: name, reason: "nothing is decided of its rows".into() });
            };
            record.note_reserved(decided.key.clone(), name, "rowwise", decided.parameters.clone());
            rowwise::apply(cx, rows, decided, record)
        }
        Work::BackToBack(chain) => back_to_back::apply(cx, chain, name, record),
        Work::Opaque(stmt) => {
            let key = record.key(&name);
            let mut choices = Choices::of(record.asked(&key));
            match with_threads(cx, &mut choices, |cx| independent::apply(cx, stmt)) {
                Some(rows) => record.settle_with(name, "independent", choices).map(|()| rows),
                None => record.settle(name, "opaque").map(|()| fallback::opaque(stmt)),
            }
        }
    }
}
