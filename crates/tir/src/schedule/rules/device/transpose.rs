//! Rows that are columns elsewhere: a tile goes through memory that the threads of a block share.
//!
//! ```text
//! B[y, x] = A[x, y]
//!   ->  block (32 y, 32 x):  tile[x, y] = A[x0 + x, y0 + y]        # neighbours read neighbours
//!                            sync
//!                            B[y0 + y, x0 + x] = tile[x, y]        # neighbours write neighbours
//! ```
//!
//! Parameters: tiles of 32 x 32, whose rows have one element more than they need, so that a column lies in as many banks; 256 threads, each
//! four elements. Roof: memory bandwidth.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, add, and, floordiv, floormod, int, load, lt, mul};
use relaxide_ir::{Buffer, Var};

use super::super::super::affine::{ceil_div, coefficient, flat_index};
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Refusal, Stage, nest};
use super::super::merge;
use super::super::row::has_choice;
use super::super::transpose::{Replace, column};
use super::limits;
use super::team::{ends_threads, power_of_two};
use crate::Stmt;

/// Rows and columns of a tile.
const SIDE: i64 = 32;
/// Threads of a block.
const THREADS: i64 = 256;
/// Rows or columns below which tiles would be empty for the most part.
const FEW: i64 = 16;

/// A stage that reads columns: its axes, and the load that is contiguous along another axis than the stores.
struct Found<'s> {
    x: &'s Axis,
    y: &'s Axis,
    outer: &'s [Axis],
    read: Ref<BufferLoad>,
}

/// What is transposed, or why tiles do not serve.
fn find(stage: &Stage) -> Result<Found<'_>, Refusal> {
    if stage.output.dtype.is_packed() || stage.reads().iter().any(|buffer| buffer.dtype.is_packed()) {
        return Err(Refusal::new("elements share bytes"));
    }
    if ends_threads(&stage.value) {
        return Err(Refusal::new("an index that is data may end a thread that others wait for"));
    }
    let Some((x, outer)) = stage.spatial.split_last() else {
        return Err(Refusal::new("a single element has no rows"));
    };
    if coefficient(&flat_index(&stage.output, &stage.indices), &x.var) != Some(1) {
        return Err(Refusal::new("the output is not contiguous"));
    }
    let Some((y, read)) = outer.iter().find_map(|y| Some((y, column(stage, x, y)?))) else {
        return Err(Refusal::new("nothing is contiguous along another axis"));
    };
    if has_choice(&stage.value) {
        return Err(Refusal::new("what is read depends on a condition"));
    }
    if [x, y].iter().any(|axis| axis.extent.as_int().is_some_and(|n| n < FEW)) {
        return Err(Refusal::new("rows or columns are too short for tiles"));
    }
    Ok(Found { x, y, outer, read })
}

/// Makes the nest of a stage that reads columns.
pub fn apply(cx: &mut Cx, stage: &Stage, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    let limits = limits(cx)?;
    if limits.threads < SIDE {
        return Err(Refusal::new("a block has too few threads"));
    }
    let stage = &merge::run(stage);
    let Found { x, y, outer, read } = find(stage)?;
    let most = (SIDE * SIDE).min(power_of_two(limits.threads));
    let threads = choices.choose(Guess {
        name: "threads",
        value: THREADS.min(most),
        domain: Domain::powers_of_two(SIDE, most),
        reason: "a thread has four elements, so that several loads are under way",
        limit: "a row of a tile has a thread for each element, and a tile no more elements than threads",
    });
    let rows = threads / SIDE;
    let [block, thread, rows_at, columns_at, tx, ty] = ["block", "thread", "rows", "columns", "tx", "ty"].map(Var::dim);
    let mut axes: Vec<Axis> = outer.iter().filter(|a| a.var != y.var).cloned().collect();
    axes.push(Axis { var: rows_at.clone(), extent: ceil_div(&y.extent, SIDE) });
    axes.push(Axis { var: columns_at.clone(), extent: ceil_div(&x.extent, SIDE) });
    let (blocks, binds) = nest::fuse(&axes, &block);
    let tile = Buffer::scoped("tile", read.buffer.dtype, [int(SIDE), int(SIDE + 1)], "shared");
    let number = PrimExpr::from(&thread);
    // One pass over the tile: along `fast` neighbours are neighbours.
    let pass = |fast: (&Axis, &Ref<Var>), slow: (&Axis, &Ref<Var>), store: &dyn Fn(&PrimExpr, &PrimExpr) -> Stmt| {
        Stmt::each("iteration", SIDE / rows, |iteration| {
            let line = Var::dim("line");
            let inside = and(
                lt(PrimExpr::from(&fast.0.var), fast.0.extent.clone()),
                lt(PrimExpr::from(&slow.0.var), slow.0.extent.clone()),
            );
            let at = |first: &Ref<Var>, within: &Ref<Var>| {
                add(mul(PrimExpr::from(first), int(SIDE)), PrimExpr::from(within))
            };
            Stmt::seq([
                Stmt::bind(line.clone(), add(mul(iteration, int(rows)), PrimExpr::from(&ty))),
                Stmt::bind(fast.0.var.clone(), at(fast.1, &tx)),
                Stmt::bind(slow.0.var.clone(), at(slow.1, &line)),
                Stmt::when(inside, store(&PrimExpr::from(&line), &PrimExpr::from(&tx))),
            ])
        })
    };
    let fill = pass((y, &rows_at), (x, &columns_at), &|line, within| {
        Stmt::store(&tile, [line.clone(), within.clone()], PrimExpr::from(read.clone()))
    });
    let drain = pass((x, &columns_at), (y, &rows_at), &|line, within| {
        let by = load(&tile, [within.clone(), line.clone()]);
        let value = Replace { read: &read, by: &by }.mutate_prim(&stage.value);
        Stmt::store(&stage.output, stage.indices.clone(), freshen_lets(&value))
    });
    let mut body = binds;
    body.extend([
        Stmt::alloc(&tile),
        Stmt::bind(tx.clone(), floormod(&number, int(SIDE))),
        Stmt::bind(ty.clone(), floordiv(&number, int(SIDE))),
        fill,
        Stmt::barrier(),
        drain,
    ]);
    Ok(launch(&block, blocks, &thread, rows * SIDE, Stmt::seq(body)))
}
