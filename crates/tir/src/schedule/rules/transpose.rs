//! Rows that are columns elsewhere: transposition, changes of layout.
//!
//! Matches injective stages that read something contiguously along another axis `y` than the output's own `x`.
//!
//! ```text
//! B[y, x] = A[x, y]
//!   ->  parallel p over blocks of 16 y × 64 x:
//!           for y in the block:  B[y, x0 .. x0 + 64] = A[x0 .. x0 + 64, y]     # strided, from lines in the cache
//! ```
//!
//! A row of the output takes one element of each line of the input; row after row, a long one would drive out lines before
//! their next element is asked for. Parameters: 16 elements of f32 are a line; 64 lines are an eighth of the first-level
//! cache, and 64 elements a run that is worth asking for. Roof: memory bandwidth.

use relaxide_ir::Var;
use relaxide_ir::prim::{BufferLoad, PrimExpr, VarMap, add, int, min, mul, sub};

use super::super::affine::{ceil_div, coefficient, cost, flat_index, loads, product, uses};
use super::super::{Axis, Cx, Refusal, Stage, nest};
use super::elementwise::widest;
use super::row::{Row, Tail};
use crate::Stmt;

/// Bytes of a line of the cache.
const LINE: i64 = 64;
/// Elements along the output's row.
const RUN: i64 = 64;

/// Makes the nest of a stage that reads columns.
pub fn apply(cx: &mut Cx, stage: &Stage) -> Result<Stmt, Refusal> {
    let Some((x, outer)) = stage.spatial.split_last() else {
        return Err(Refusal::new("a single element has no rows"));
    };
    if coefficient(&flat_index(&stage.output, &stage.indices), &x.var) != Some(1) {
        return Err(Refusal::new("the output is not contiguous"));
    }
    let Some((y, line)) = outer.iter().find_map(|y| Some((y, column(stage, x, y)?))) else {
        return Err(Refusal::new("nothing is contiguous along another axis"));
    };
    let lanes = cx.machine.lanes(widest(stage));
    if [(x, lanes), (y, line / 2)].iter().any(|(axis, least)| axis.extent.as_int().is_some_and(|n| n < *least)) {
        return Err(Refusal::new("rows or columns are too short for blocks"));
    }
    let (counter, row_block, run, inside) = (Var::dim("p"), Var::dim("rows"), Var::dim("run"), Var::dim("r"));
    let mut axes: Vec<Axis> = outer.iter().filter(|a| a.var != y.var).cloned().collect();
    axes.push(Axis { var: row_block.clone(), extent: ceil_div(&y.extent, line) });
    axes.push(Axis { var: run.clone(), extent: ceil_div(&x.extent, RUN) });
    let (tasks, binds) = nest::fuse(&axes, &counter);
    let (first, start) = (mul(PrimExpr::from(&row_block), int(line)), mul(PrimExpr::from(&run), int(RUN)));
    let (rows, length) = (part(&y.extent, &first, line), part(&x.extent, &start, RUN));
    let count = Var::dim("length");
    let (bind, length) = match length.as_int() {
        Some(n) => (Stmt::nop(), int(n)),
        None => (Stmt::bind(count.clone(), length), PrimExpr::from(&count)),
    };
    let none = VarMap::new();
    let row =
        Row { axis: &x.var, lanes, buffer: &stage.output, indices: &stage.indices, map: &none, tail: Tail::Masked };
    let row = row.emit(cx, &start, &length, &stage.value)?;
    let row = Stmt::seq([Stmt::bind(y.var.clone(), add(first, PrimExpr::from(&inside))), row]);
    let body = Stmt::seq(binds.into_iter().chain([bind, Stmt::serial(inside, rows, row)]));
    let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(cost(&stage.value) + 1));
    Ok(nest::parallel(&cx.machine, counter, tasks, work, body))
}

/// How many elements of a line there are, if something is contiguous along `y` and far apart along `x`.
fn column(stage: &Stage, x: &Axis, y: &Axis) -> Option<i64> {
    let is_column = |read: &BufferLoad| {
        let flat = flat_index(&read.buffer, &read.indices);
        let far = uses(&flat, &x.var) && coefficient(&flat, &x.var) != Some(1);
        far && coefficient(&flat, &y.var) == Some(1)
    };
    let read = loads(&stage.value).into_iter().find(|l| is_column(l))?;
    Some((LINE / (i64::from(read.buffer.dtype.bits) / 8).max(1)).max(1))
}

/// How much of an extent a block that begins at `first` has.
fn part(extent: &PrimExpr, first: &PrimExpr, block: i64) -> PrimExpr {
    match extent.as_int() {
        Some(n) if n % block == 0 => int(block),
        _ => min(int(block), sub(extent, first)),
    }
}
