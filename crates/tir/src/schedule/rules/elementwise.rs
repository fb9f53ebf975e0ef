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
//! channels) are decided once a row. Roof: memory bandwidth.

use relaxide_ir::prim::{PrimExpr, VarMap, int, min, mul, sub};
use relaxide_ir::{DataType, Var};

use super::super::affine::{ceil_div, cost, loads, product, uses_any};
use super::super::inline::bound_in;
use super::super::nest::Tail;
use super::super::{Axis, Cx, Refusal, Stage, nest};
use super::row::Row;
use crate::Stmt;

/// Elements of a row that one task takes.
const BLOCK: i64 = 4096;
/// The costs of an element with which several vectors go together: from more than one call of a function, to more than three.
/// Values of even more, the gates of an LSTM, have calls that do not wait for each other, and take long to compile.
const LONG: std::ops::Range<i64> = 20..60;
/// How many do.
const TOGETHER: i64 = 4;

/// Makes the nest of an injective stage.
pub fn apply(cx: &mut Cx, stage: &Stage) -> Result<Stmt, Refusal> {
    let lanes = cx.machine.lanes(widest(stage));
    let Some((inner, outer)) = stage.spatial.split_last() else {
        return Err(Refusal::new("a single element has no vectors"));
    };
    if inner.extent.as_int().is_some_and(|n| n < lanes / 2) {
        return Err(Refusal::new("rows are shorter than half a vector"));
    }
    let blocks = ceil_div(&inner.extent, BLOCK);
    // One thread alone has nothing to share.
    let single = cx.machine.parallel_threshold.is_none() || inner.extent.as_int().is_some_and(|n| n <= BLOCK);
    let (counter, block) = (Var::dim("p"), Var::dim("block"));
    let mut axes = outer.to_vec();
    let (start, extent) = if single {
        (int(0), inner.extent.clone())
    } else {
        axes.push(Axis { var: block.clone(), extent: blocks });
        let start = mul(PrimExpr::from(&block), int(BLOCK));
        (start.clone(), min(int(BLOCK), sub(&inner.extent, start)))
    };
    let none = VarMap::new();
    let together =
        if is_long(stage) && inner.extent.as_int().is_none_or(|n| n >= TOGETHER * lanes) { TOGETHER } else { 1 };
    let row = Row {
        axis: &inner.var,
        lanes: lanes * together,
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
