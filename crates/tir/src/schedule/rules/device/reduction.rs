//! Reductions of many terms: the threads of a block share them.
//!
//! ```text
//! B[i] = sum over k of A[i, k]                       # terms lie side by side: neighbours take neighbouring terms
//!   ->  block i:  256 threads, each every 256th term; then a tree in shared memory
//! B[j] = sum over k of A[k, j]                       # results lie side by side: neighbours make neighbouring results
//!   ->  block j:  32 results, 8 threads for each
//! ```
//!
//! Also one-row products, where the vector is read from the cache. Parameters: 256 threads a block; as many of them for one result as there
//! are terms, or 8 where results lie side by side. Where results are so few that most of the device would have nothing to do, their terms
//! are cut into parts, which are results of a first launch; a second puts them together. Few terms, and many results that lie side by side, are left to the fallback, where each
//! thread makes a result: its neighbours read neighbours as well. Roof: memory bandwidth.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, floordiv, floormod, ge, if_then_else, int, load, lt, mul, substitute};
use relaxide_ir::{BinaryOp, Buffer};

use super::super::super::affine::{ceil_div, coefficient, flat_index, loads, product};
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Reduce, Reduction, Refusal, Stage, nest};
use super::team::{Team, identity, power_of_two, refuse_checks};
use super::{limits, threads};
use crate::Stmt;
use crate::lower::DeviceLimits;

/// Threads of a block.
const THREADS: i64 = 256;
/// Threads for one result where nobody knows how many terms there are.
const UNKNOWN: i64 = 128;
/// Terms below which one thread makes a result.
const FEW: i64 = 32;
/// Results side by side that a block makes together: what one access of neighbouring threads brings.
const COLUMNS: i64 = 32;
/// Results side by side from which there are enough for a thread each.
const MANY: i64 = 64 << 10;
/// Blocks below which most of a device has nothing to do.
const BUSY: i64 = 32;
/// Terms from which a result is made in parts, where blocks are few.
const LONG: i64 = 32 << 10;
/// Terms of a part, as far as there are no more parts than these.
const PART: i64 = 8 << 10;
const PARTS: i64 = 256;
/// Parts where nobody knows how many terms there are.
const PARTS_OF_ANY: i64 = 128;

/// What is decided of a block.
struct Block {
    threads: i64,
    /// Results side by side that it makes together.
    columns: i64,
    /// Whether the threads of a warp can give each other values.
    shuffles: bool,
}

impl Block {
    fn decide(choices: &mut Choices<'_>, limits: DeviceLimits, shuffles: bool) -> Block {
        let why = "so many hide how long memory takes, and several blocks fit a multiprocessor";
        let threads = threads(choices, limits, THREADS, why);
        let columns = choices.choose(Guess {
            name: "columns",
            value: COLUMNS.min(threads),
            domain: Domain::powers_of_two(1, threads),
            reason: "results side by side, if they are, of which one access of neighbouring threads brings so many",
            limit: "a block has a thread for each of them at least",
        });
        Block { threads, columns, shuffles }
    }
}

/// How the threads of a block are shared out.
struct Shape {
    /// Threads for one result.
    terms: i64,
    /// Results of a block.
    groups: i64,
    /// The axis along which results lie side by side, if neighbours make neighbouring results.
    column: Option<usize>,
}

/// Makes the nest of a reduction of many terms.
pub fn apply(cx: &mut Cx, reduce: &Reduce, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    refuse_checks(reduce)?;
    let limits = limits(cx)?;
    let block = Block::decide(choices, limits, cx.machine.shuffles);
    let shape = shape(reduce, &block)?;
    let terms = product(reduce.stage.reduce.iter().map(|a| &a.extent));
    let blocks = product(reduce.stage.spatial.iter().map(|a| &a.extent)).as_int().map(|n| n / shape.groups);
    let one = one_launch(reduce, &shape, &block)?;
    if blocks.is_none_or(|n| n >= BUSY) || terms.as_int().is_some_and(|n| n < LONG) {
        return Ok(one);
    }
    let two = two_launches(reduce, &terms, &block)?;
    Ok(if terms.as_int().is_some() { two } else { Stmt::if_else(ge(terms, int(LONG)), two, one) })
}

/// Parts of results, and then the results.
fn two_launches(reduce: &Reduce, terms: &PrimExpr, block: &Block) -> Result<Stmt, Refusal> {
    let stage = &reduce.stage;
    let Some(reduction) = &stage.reduction else { return Err(Refusal::new("it does not reduce")) };
    let dtype = stage.output.dtype;
    let parts = terms.as_int().map_or(PARTS_OF_ANY, |n| (n / PART).clamp(2, PARTS));
    let each = ceil_div(terms, parts);
    let neutral = identity(reduction.op, dtype)?;
    let [part, term, again] = ["part", "term", "part"].map(Var::dim);
    let axes = |part: &relaxide_ffi::Ref<Var>| -> Vec<Axis> {
        let part = Axis { var: part.clone(), extent: int(parts) };
        stage.spatial.iter().cloned().chain([part]).collect()
    };
    let of_parts = axes(&part);
    let made = Buffer::new("parts", dtype, of_parts.iter().map(|a| a.extent.clone()).collect::<Vec<_>>());
    let at = |axes: &[Axis]| -> Vec<PrimExpr> { axes.iter().map(|a| PrimExpr::from(&a.var)).collect() };
    // What the axes of the terms are, of the number of a term.
    let number = add(mul(PrimExpr::from(&part), &each), PrimExpr::from(&term));
    let (mut rest, mut points) = (number.clone(), VarMap::new());
    for (position, axis) in stage.reduce.iter().enumerate().rev() {
        let point = if position == 0 { rest.clone() } else { floormod(rest.clone(), axis.extent.clone()) };
        points.insert(axis.var.clone(), point);
        rest = floordiv(rest, axis.extent.clone());
    }
    let value = substitute(&stage.value, &points);
    let is_whole = terms.as_int().is_some_and(|n| n % parts == 0);
    let value = if is_whole { value } else { if_then_else(lt(number, terms.clone()), value, neutral.clone()) };
    let first = Reduce::plain(Stage {
        spatial: of_parts.clone(),
        reduce: vec![Axis { var: term, extent: each }],
        output: made.clone(),
        indices: at(&of_parts),
        reduction: Some(Reduction { op: reduction.op, init: neutral }),
        value,
        ..stage.clone()
    });
    let of_part = axes(&again);
    let second = Reduce {
        stage: Stage {
            reduce: vec![Axis { var: again, extent: int(parts) }],
            value: load(&made, at(&of_part)),
            ..stage.clone()
        },
        ..reduce.clone()
    };
    let few = Shape { terms: power_of_two(parts).min(block.threads), groups: 1, column: None };
    let list = [one_launch(&first, &shape(&first, block)?, block)?, one_launch(&second, &few, block)?];
    Ok(Stmt::seq([Stmt::alloc(&made)].into_iter().chain(list)))
}

fn one_launch(reduce: &Reduce, shape: &Shape, of_block: &Block) -> Result<Stmt, Refusal> {
    let &Shape { terms, groups, column } = shape;
    let mut axes: Vec<Axis> = reduce.stage.spatial.clone();
    if let Some(column) = column {
        let column = axes.remove(column);
        axes.push(column);
    }
    let [block, thread, point] = ["block", "thread", "point"].map(Var::dim);
    let (results, binds) = nest::fuse(&axes, &point);
    let (number, block_number) = (PrimExpr::from(&thread), PrimExpr::from(&block));
    let [group, term] = ["group", "term"].map(Var::dim);
    let (group_of, term_of, stride) = match column {
        Some(_) => (floormod(&number, int(groups)), floordiv(&number, int(groups)), groups),
        None => (floordiv(&number, int(terms)), floormod(&number, int(terms)), 1),
    };
    let team = Team { terms, term: PrimExpr::from(&term), thread: number, stride, shuffles: of_block.shuffles };
    let red = Buffer::scoped("red", reduce.stage.output.dtype, [int(terms * groups)], "shared");
    let at = add(mul(block_number, int(groups)), PrimExpr::from(&group));
    let whole = results.as_int().is_some_and(|n| n % groups == 0);
    let wanted = (!whole).then(|| lt(PrimExpr::from(&point), results.clone()));
    let mut body = vec![Stmt::alloc(&red), Stmt::bind(group, group_of), Stmt::bind(term, term_of)];
    body.push(Stmt::bind(point.clone(), at));
    if !axes.is_empty() {
        body.extend(binds);
    }
    body.push(team.reduce(reduce, &red, wanted.as_ref())?);
    let epilogue = Stmt::when(lt(&team.term, int(1)), team.emit_epilogue(reduce, &red)?);
    body.push(wanted.map_or(epilogue.clone(), |wanted| Stmt::when(wanted, epilogue)));
    Ok(launch(&block, ceil_div(&results, groups), &thread, terms * groups, Stmt::seq(body)))
}

fn shape(reduce: &Reduce, block: &Block) -> Result<Shape, Refusal> {
    let (stage, threads, columns) = (&reduce.stage, block.threads, block.columns);
    let op = stage.reduction.as_ref().map(|r| r.op);
    if !matches!(op, Some(BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max)) {
        return Err(Refusal::new("its parts cannot be put together"));
    }
    let terms = product(stage.reduce.iter().map(|a| &a.extent)).as_int();
    if terms.is_some_and(|n| n < FEW) {
        return Err(Refusal::new("few terms"));
    }
    let reads = loads(&stage.value);
    let along =
        |axis: &Axis| reads.iter().any(|l| coefficient(&flat_index(&l.buffer, &l.indices), &axis.var) == Some(1));
    let for_one = || match terms {
        Some(n) => power_of_two(n).min(threads),
        None => UNKNOWN.min(threads),
    };
    if stage.reduce.last().is_some_and(&along) {
        let terms = for_one();
        return Ok(Shape { terms, groups: threads / terms, column: None });
    }
    let results = product(stage.spatial.iter().map(|a| &a.extent)).as_int();
    let Some(column) = stage.spatial.iter().rposition(&along) else {
        if terms.is_some_and(|n| n < threads) || results.is_none_or(|n| n >= threads) {
            return Err(Refusal::new("terms lie apart, and there are threads enough"));
        }
        return Ok(Shape { terms: for_one(), groups: 1, column: None });
    };
    if results.is_some_and(|n| n >= MANY) {
        return Err(Refusal::new("there are enough results side by side for a thread each"));
    }
    let groups = stage.spatial[column].extent.as_int().map_or(columns, |n| power_of_two(n).min(columns)).min(threads);
    let most = terms.map_or(threads, power_of_two);
    Ok(Shape { terms: (threads / groups).min(most), groups, column: Some(column) })
}
