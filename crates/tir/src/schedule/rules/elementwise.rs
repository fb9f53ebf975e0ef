//! Injective stages: one pass over the output in vectors.
//!
//! Matches every stage without a reduction whose body has a vector form: arithmetic, broadcasts, concatenation, slices,
//! gathers, rearrangements. Adjacent axes that every access walks together have been merged before.
//!
//! ```text
//! parallel p in range(outer * ceil(inner / 4096)):      # serial where the whole is small
//!     s = scale[c]                                      # whatever does not move along the row is loaded once
//!     for t in range(… // 8):  B[c, base + t*8 .. +8] = max(A[c, …] * s, 0)
//!     the rest of the row, masked
//! ```
//!
//! Parameters: a block of 4096 elements (16 KiB of f32: half of the first-level cache, and enough to hide a task's start);
//! vectors of the widest type among output and inputs, four at a time where an element takes long: the processor looks at some
//! sixty operations that wait, which are two vectors of a softplus, one after the other. Conditions that do not move along the row (concatenation of
//! channels) are decided once a row. Rows that take their elements out of the same lines (space to depth) follow each other. Roof: memory bandwidth.

use std::cmp::Reverse;

use relaxide_ir::prim::{PrimExpr, VarMap, int, min, mul, sub};
use relaxide_ir::{DataType, Var};

use super::super::affine::{ceil_div, coefficient, cost, flat_index, loads, product, uses_any};
use super::super::inline::bound_in;
use super::super::nest::Tail;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Machine, Refusal, Stage, nest};
use super::row::Row;
use super::rule::{self, Rule};
use crate::Stmt;

/// Elements of a row that one task takes.
const BLOCK: i64 = 4096;
/// The costs of an element with which several vectors go together: from more than one call of a function, to more than three.
/// Values of even more, the gates of an LSTM, have calls that do not wait for each other, and take long to compile.
const LONG: std::ops::Range<i64> = 20..60;
/// How many do.
const TOGETHER: i64 = 4;
/// Elements from one that a row takes to the next, so that several rows share lines.
const MOST_APART: i64 = 8;

/// The rule.
pub struct Elementwise;

/// A stage and its axes.
pub struct Found<'w> {
    stage: &'w Stage,
    inner: &'w Axis,
    outer: &'w [Axis],
}

/// What the rule decides.
pub struct Decided {
    /// Elements of a row that one task takes, where tasks share rows.
    block: Option<i64>,
    /// Lanes of a vector.
    lanes: i64,
    /// Vectors that go together.
    together: i64,
}

impl Rule for Elementwise {
    type Work = Stage;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(machine: &Machine, stage: &'w Stage) -> Result<Found<'w>, Refusal> {
        let Some((inner, outer)) = stage.spatial.split_last() else {
            return Err(Refusal::new("a single element has no vectors"));
        };
        if inner.extent.as_int().is_some_and(|n| n < machine.lanes(widest(stage)) / 2) {
            return Err(Refusal::new("rows are shorter than half a vector"));
        }
        Ok(Found { stage, inner, outer })
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let Found { stage, inner, .. } = found;
        // One thread alone has nothing to share.
        let block = machine.parallel_threshold.is_some().then(|| choices.choose(block_of(BLOCK)));
        let lanes = rule::lanes(choices, machine.lanes(widest(stage)));
        let pays = is_long(stage) && inner.extent.as_int().is_none_or(|n| n >= TOGETHER * lanes);
        let together = choices.choose(Guess {
            name: "together",
            value: if pays { TOGETHER } else { 1 },
            domain: Domain::powers_of_two(1, if stage.tail == Tail::Masked { 8 } else { 1 }),
            reason: match pays {
                true => "an element takes so long that one vector alone would leave the processor waiting",
                false => "vectors of short values, or of short rows, do not wait for each other",
            },
            limit: "rows that end without a mask have room for one vector, and registers for no more than eight",
        });
        Ok(Decided { block, lanes, together })
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        emit(cx, found, decided)
    }
}

pub(super) fn block_of(value: i64) -> Guess {
    Guess {
        name: "block",
        value,
        domain: Domain::powers_of_two(256, 1 << 16),
        reason: "so many elements of 32 bits are half of the first-level cache, and hide the start of a task",
        limit: "smaller tasks cost more than they do, and of larger ones there are too few",
    }
}

/// The nest of an injective stage.
fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
    let Found { stage, inner, outer } = found;
    let (counter, block) = (Var::dim("p"), Var::dim("block"));
    let mut axes = in_order_of_lines(stage, inner, outer);
    let cut = decided.block.filter(|block| inner.extent.as_int().is_none_or(|n| n > *block));
    let (start, extent) = match cut {
        None => (int(0), inner.extent.clone()),
        Some(size) => {
            axes.push(Axis { var: block.clone(), extent: ceil_div(&inner.extent, size) });
            let start = mul(PrimExpr::from(&block), int(size));
            (start.clone(), min(int(size), sub(&inner.extent, start)))
        }
    };
    let none = VarMap::new();
    let row = Row {
        axis: &inner.var,
        length: &inner.extent,
        lanes: decided.lanes * decided.together,
        buffer: &stage.output,
        indices: &stage.indices,
        map: &none,
        tail: stage.tail,
        ahead: stage.ahead.as_deref(),
    };
    let length = Var::dim("length");
    let (bind, extent) = match extent.as_int() {
        Some(n) => (Stmt::nop(), int(n)),
        None => (Stmt::bind(length.clone(), extent), PrimExpr::from(&length)),
    };
    let row = row.emit(cx, &start, &extent, &stage.value)?;
    let body = Stmt::seq([bind, row]);
    if axes.is_empty() {
        return Ok(body);
    }
    let (tasks, binds) = nest::fuse(&axes, &counter);
    let body = Stmt::seq(binds.into_iter().chain([body]));
    let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(cost(&stage.value) + 1));
    Ok(nest::parallel(&cx.machine, counter, tasks, work, body))
}

/// The outer axes: where a row takes every few elements of lines, the others of which other rows take, those rows follow each other.
fn in_order_of_lines(stage: &Stage, inner: &Axis, outer: &[Axis]) -> Vec<Axis> {
    let mut axes = outer.to_vec();
    let places = loads(&stage.value).into_iter().map(|load| flat_index(&load.buffer, &load.indices));
    let is_strided =
        |place: &PrimExpr| coefficient(place, &inner.var).is_some_and(|step| (2..=MOST_APART).contains(&step));
    if let Some(place) = places.into_iter().find(is_strided) {
        // What is not known is far, and what does not move along memory stays outside.
        axes.sort_by_key(|axis| match coefficient(&place, &axis.var) {
            Some(step) if step > 0 => Reverse(step),
            _ => Reverse(i64::MAX),
        });
    }
    axes
}

/// Whether the chain of operations of one element is so long that a processor has too few of them in sight to be busy. Only
/// where a row ends with a mask: other ends have room for one vector. Elements that are gathered do not wait for each other, and their
/// addresses fill the registers.
fn is_long(stage: &Stage) -> bool {
    stage.tail == Tail::Masked && LONG.contains(&cost(&stage.value)) && !gathers(&stage.value)
}

/// Whether an element is loaded from where others say.
fn gathers(value: &PrimExpr) -> bool {
    let names = bound_in(value);
    let says = |index: &PrimExpr| !loads(index).is_empty() || uses_any(index, &names);
    loads(value).iter().any(|load| load.indices.iter().any(says))
}

/// The widest element type that takes part, which decides how many lanes fit.
pub fn widest(stage: &Stage) -> DataType {
    let inputs = loads(&stage.value).into_iter().map(|l| l.buffer.dtype);
    inputs.fold(stage.output.dtype, |widest, dtype| if dtype.bits > widest.bits { dtype } else { widest })
}
